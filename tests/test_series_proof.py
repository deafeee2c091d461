# SPDX-License-Identifier: GPL-2.0-only
"""What shows that the series is sound: invariants, failing disks, coverage, memory, deliberate faults."""

from __future__ import annotations

import argparse
import base64
import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from conftest import ROOT, Guests, command, soon
from pageout import maintainer
from pageout.common import Failure


def script(name: str) -> ModuleType:
    """A script of scripts/ that has no suffix, as a module."""
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), str(ROOT / "scripts" / name))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[loader.name] = module
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module


# Guests ------------------------------------------------------------------------------------------------


def killed_nobody(guests: Guests, run: str, step: str) -> dict:
    record = guests.record(run, step)
    assert record["status"] == "PASS"
    assert record["vmstat"]["oom_kill"] == 0
    return record


@pytest.mark.guest("invariants")
@pytest.mark.parametrize("step", ["base", "full"])
def test_when_all_is_quiet_nothing_is_left(guests: Guests, step: str) -> None:
    """No folio isolated or under write, no swap in use, counters that agree, swapoff that ends."""
    assert guests.record("invariants", step)["status"] == "PASS"


@pytest.mark.guest("disk-errors")
@pytest.mark.parametrize("step", ["base", "full"])
def test_write_errors_lose_nothing_and_stop_nothing(guests: Guests, step: str) -> None:
    killed_nobody(guests, "disk-errors", step)


@pytest.mark.guest("fragmented")
@pytest.mark.parametrize("step", ["base", "full"])
def test_swap_that_is_full_kills_nobody(guests: Guests, step: str) -> None:
    """The series once lost the memory of what was read ahead or written and had its slot: 2164 pages of 39 MB."""
    killed_nobody(guests, "fragmented", step)


@pytest.mark.guest("swap-limit")
def test_a_limit_of_swap_leaves_no_slot_behind(guests: Guests) -> None:
    assert guests.record("swap-limit", "full")["status"] == "PASS"


@pytest.mark.guest("pinned")
def test_pinned_pages_leave_no_slot_behind(guests: Guests) -> None:
    """They are counted for a run of slots and take none of it."""
    assert guests.record("pinned", "full")["status"] == "PASS"


@pytest.mark.guest("in-flight")
def test_writes_that_have_ended_are_under_way_no_more(guests: Guests) -> None:
    assert guests.record("in-flight", "full")["status"] == "PASS"


@pytest.mark.guest("kept-order")
def test_what_is_held_back_comes_back(guests: Guests) -> None:
    assert guests.record("kept-order", "full")["status"] == "PASS"


def stood_still(guests: Guests, run: str, step: str) -> None:
    record = killed_nobody(guests, run, step)
    # The stalls were there: on the guest's clock they alone take two minutes.
    assert record["elapsed_s"] > 120


@pytest.mark.guest("disk-stalls")
@pytest.mark.parametrize("step", ["base", "full"])
def test_a_disk_that_stands_still_for_a_minute_stops_nothing_for_good(guests: Guests, step: str) -> None:
    """All wait, nobody is killed, nothing is lost, and writing goes on; and all that a second time."""
    stood_still(guests, "disk-stalls", step)


@pytest.mark.full
@pytest.mark.parametrize("step", ["base", "full"])
@pytest.mark.parametrize("run", [pytest.param(r, marks=pytest.mark.guest(r)) for r in ("disk-stalls-ssd", "disk-stalls-mglru")])
def test_so_does_another_disk_and_the_other_lru(guests: Guests, run: str, step: str) -> None:
    stood_still(guests, run, step)


@pytest.mark.guest("truncate")
def test_a_folio_may_lose_its_mapping_while_it_is_isolated(guests: Guests) -> None:
    assert guests.record("truncate", "full")["status"] == "PASS"


@pytest.mark.guest("under-write")
def test_a_page_may_be_dirtied_again_while_it_is_written(guests: Guests) -> None:
    assert guests.record("under-write", "full")["status"] == "PASS"


@pytest.mark.guest("vmpressure")
def test_vmpressure_is_told_what_was_scanned(guests: Guests) -> None:
    assert guests.record("vmpressure", "full")["status"] == "PASS"


# The tools of the proof ----------------------------------------------------------------------------------


def test_every_fault_fits_the_series() -> None:
    result = command(ROOT / "scripts/mutations", "--list")
    assert result.returncode == 0, result.stderr
    assert len(result.stdout.splitlines()) >= 20


def test_the_suites_pass_on_the_host_without_any_fault(tmp_path: Path) -> None:
    """What a suite uses has to be in tests/kunit_host/shim.h, or no fault of policy can be tried."""
    tester = script("mutations").Tester(argparse.Namespace(linux=None, out=tmp_path, profile=[]))
    assert tester.host(None) == ""


def test_a_fault_that_does_not_fit_is_named() -> None:
    mutations = script("mutations")
    fault = mutations.Mutation("a-fault", "why", "mm/x.c", [("two", "three")], ["uml"])
    for text in ("one", "two two"):
        with pytest.raises(Failure, match="a-fault.*not once"):
            mutations.patch_of(fault, {"mm/x.c": text}, True)
    patch = mutations.patch_of(fault, {"mm/x.c": "one\ntwo\n"}, True)
    assert "-two\n+three\n" in patch and patch.startswith("From: ")
    assert mutations.patch_of(fault, {"mm/x.c": "one\ntwo\n"}, False) == ""


def test_what_aids_a_fault_is_there_without_it_too(tmp_path: Path) -> None:
    mutations = script("mutations")
    fault = mutations.Mutation("a-fault", "why", "mm/x.c", [("two", "three")], ["uml"], [("mm/x.c", "one", "ONE"), ("mm/y.c", "a", "b")])
    text = {"mm/x.c": "one\ntwo\n", "mm/y.c": "a\n"}
    with_fault, without = (mutations.patch_of(fault, text, on) for on in (True, False))
    for patch in (with_fault, without):
        assert "-one\n" in patch and "+ONE\n" in patch and "--- a/mm/y.c" in patch
    assert "+three\n" in with_fault and "three" not in without
    with pytest.raises(Failure, match="in mm/y.c its text is there 0 times"):
        mutations.patch_of(fault, {**text, "mm/y.c": "c\n"}, False)

    for words, named in (('tests = ["no-such-test"]', "no test 'no-such-test'"), ('tests = ["truncate@no-such"]', "no profile 'no-such'"),
                         ('tests = ["host@kcsan"]', "no test 'host'")):
        (tmp_path / "list.toml").write_text(f'[[mutation]]\nname = "n"\nwhy = "w"\nfile = "mm/x.c"\nold = "a"\nnew = "b"\n{words}\n')
        with pytest.raises(Failure, match=named):
            mutations.read_list(tmp_path / "list.toml")


@pytest.mark.parametrize("stride", [1, 4])
def test_the_least_memory_is_found(stride: int) -> None:
    least = script("oom-sweep").least
    for low, high in ((16, 24), (16, 61)):
        for true in range(low, high + 2):
            for start in range(low - 2, high + 3, 3):
                asked: list[int] = []

                def survives(n: int, true: int = true, asked: list[int] = asked) -> bool:
                    asked.append(n)
                    return n >= true

                assert least(survives, low, high, start, stride) == true
                assert len(set(asked)) == len(asked) and all(low <= n <= high for n in asked), asked


def test_a_step_that_needs_more_memory_is_marked() -> None:
    sweep = script("oom-sweep")
    found = {"w": {"base": sweep.Found(28, "OOM"), "full": sweep.Found(29, "HANG")}}
    assert "| w | 28 MiB | 29 MiB ! | OOM, HANG |" in sweep.table(found, ["base", "full"])


def test_counts_of_coverage_are_summed_and_damage_is_named(tmp_path: Path) -> None:
    coverage = script("coverage")
    (tmp_path / "workload.err").write_text("noise\ngcda: pageout.gcda\n" + base64.encodebytes(b"\x00adcg").decode() + "gcda end\n")
    assert coverage.counts_of(tmp_path) == {"pageout.gcda": b"\x00adcg"}
    (tmp_path / "workload.err").write_text("nothing\n")
    with pytest.raises(Failure, match="no counts"):
        coverage.counts_of(tmp_path)
    lines = coverage.Lines()

    def line(number: int, count: int, *branches: int) -> dict:
        return {"line_number": number, "count": count, "branches": [{"count": b, "throw": False, "fallthrough": False} for b in branches]}

    lines.add({"lines": [line(1, 0), line(2, 5, 5, 0), line(3, 0)]})
    lines.add({"lines": [line(1, 1), line(2, 1, 0, 0), line(3, 0)]})
    assert lines.of(None) == ([1, 2, 3], [3], 2, 1)
    assert lines.of({1, 3}) == ([1, 3], [3], 0, 0)


@pytest.mark.parametrize("name", ["coverage", "oom-sweep", "mutations"])
def test_help_and_wrong_names(name: str) -> None:
    path = ROOT / "scripts" / name
    result = command(path, "--help")
    assert result.returncode == 0 and "examples:" in result.stdout and "exit status" in result.stdout
    wrong = command(path, "--only", "no-such-thing")
    assert wrong.returncode == 1 and "no-such-thing" in wrong.stderr and "Traceback" not in wrong.stderr
    assert command(path, "--no-such-option").returncode == 2


def test_no_guest_outlives_who_has_started_it(tmp_path: Path) -> None:
    """A driver that is killed has no chance to end what it has started; pageout-bench ends its guests when it gets SIGINT."""
    programs, pid = tmp_path / "bin", tmp_path / "pid"
    programs.mkdir()
    bench = programs / "pageout-bench"
    # Python, as a shell cannot trap a signal that was ignored when it began, which is so in the background of another one.
    bench.write_text(f"""#!/usr/bin/python3
import os, pathlib, signal, time
pid = pathlib.Path({str(pid)!r})
def end(*_):
    pid.unlink()
    os._exit(130)
signal.signal(signal.SIGINT, end)
pid.write_text("")
while True:
    time.sleep(0.1)
""")
    bench.chmod(0o755)
    with subprocess.Popen([ROOT / "scripts/oom-sweep", "--only", "1-comfortable", "--out", tmp_path / "out"], stdin=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, env={**os.environ, "PAGEOUT_BIN": str(programs)}) as driver:
        assert soon(pid.exists)
        driver.kill()
    assert soon(lambda: not pid.exists())


def test_what_differs_from_vanilla_is_explained_or_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = tmp_path / "vanilla.toml"
    known.write_text('[[differs]]\npatch = "mm: a"\nobject = "mm/vmscan.o"\nfunctions = ["f"]\nwhy = "moved"\n')
    monkeypatch.setattr(maintainer, "EXPLAINED", known)
    same, other = {"f": ["1", 10], "g": ["1", 4]}, {"f": ["2", 13], "g": ["1", 4]}
    passed = maintainer.vanilla_result({"mm/vmscan.o": (same, other)}, "mm: a")
    assert passed.ok and passed.cell() == "ok*" and passed.notes == ["mm/vmscan.o: f (+3 instructions): moved"]
    unexplained = maintainer.vanilla_result({"mm/vmscan.o": (same, other)}, "mm: b")
    assert unexplained.ok is False and "f differs (10 instructions, 13 after the patch)" in unexplained.detail[0]
    stale = maintainer.vanilla_result({"mm/vmscan.o": (same, same)}, "mm: a")
    assert stale.ok is False and "f is the same" in stale.detail[0]
    known.write_text("[[differs]\n")
    with pytest.raises(Failure, match="vanilla.toml"):
        maintainer.vanilla_result({}, "mm: a")


# What takes hours ----------------------------------------------------------------------------------------


def whole(name: str, timeout_s: float) -> subprocess.CompletedProcess[str]:
    result = command(ROOT / "scripts" / name, timeout_s=timeout_s)
    print(result.stdout)
    assert result.returncode == 0, result.stdout + result.stderr
    return result


@pytest.mark.full
def test_lines_of_pageout_c_are_covered() -> None:
    whole("coverage", 3 * 3600)
    assert json.loads((ROOT / "results/coverage/coverage.json").read_text())["mm/pageout.c"]


@pytest.mark.full
def test_no_workload_needs_more_memory_than_at_base() -> None:
    whole("oom-sweep", 4 * 3600)


@pytest.mark.full
def test_every_fault_is_caught() -> None:
    whole("mutations", 6 * 3600)
