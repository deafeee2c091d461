# SPDX-License-Identifier: GPL-2.0-only
"""Fire: the program on this machine's own memory, its table, and in a guest."""

from __future__ import annotations

import argparse
import importlib.machinery
import importlib.util
import json
import os
import re
from pathlib import Path
from types import ModuleType

import pytest
from conftest import BIN, ROOT, Guests, command

MEMORY_ROLES = {"anon", "thp", "shmem", "file", "file-private", "uffd"}


def fire(*words: str, timeout_s: float = 300) -> tuple[int, list[dict], str]:
    """Without --machine: the workers touch their own memory and nothing else."""
    result = command(BIN / "pageout-load", "fire", *words, timeout_s=timeout_s)
    return result.returncode, [json.loads(line) for line in result.stdout.splitlines()], result.stderr


def events(lines: list[dict], name: str) -> list[dict]:
    return [line for line in lines if line["event"] == name]


def test_a_short_fire_verifies_what_it_writes(tools: None, tmp_path: Path) -> None:
    status, lines, err = fire("--seed", "5", "--seconds", "2", "--bytes", "16M", "--dir", str(tmp_path))
    assert status == 0, err
    start = events(lines, "start")[0]
    assert start["seed"] == 5 and set(start["roles"]) == MEMORY_ROLES
    assert events(lines, "end")[0]["verified_pages"] > 1000
    missing = {line["role"] for line in events(lines, "missing")}
    for name, steps in events(lines, "progress")[-1]["steps"].items():
        assert steps > 0 or name.rpartition("-")[0] in missing, name
    assert not list(tmp_path.iterdir()), "its files are gone when it is"


def test_it_changes_the_machine_only_when_told(tools: None) -> None:
    status, _, err = fire("--roles", "swap,cpus", "--seconds", "1")
    assert status == 1
    assert "--machine" in err


def test_a_wrong_byte_is_found_and_named(tools: None) -> None:
    status, lines, _ = fire("--seed", "6", "--seconds", "60", "--bytes", "8M", "--roles", "anon", "--corrupt-after", "20")
    assert status == 3
    corruption = events(lines, "corruption")[0]
    assert corruption["offset"] == 100 and corruption["wrong_bytes"] == 1
    assert corruption["expected"] ^ corruption["found"] == 1
    assert "anon" in events(lines, "wrong page")[0]["role"]


def test_a_worker_that_stands_still_is_found_and_named(tools: None) -> None:
    status, lines, _ = fire("--seconds", "60", "--bytes", "8M", "--roles", "anon,shmem", "--hang-after", "20", "--stall-s", "3")
    assert status == 4
    assert "worker 0" in events(lines, "hang")[0]["what"]
    assert not command("pgrep", "-f", "pageout-load fire .*--stall-s 3").stdout, "nobody is left behind"


def test_a_role_that_is_not_there(tools: None) -> None:
    status, _, err = fire("--roles", "anon,nonsense")
    assert status == 1
    assert "nonsense" in err and "anon" in err and "swap" in err


def test_every_switch_of_the_series_has_its_values() -> None:
    """A switch that fire does not know is set to 0 and 1 only; those of the series have a table."""
    documented: set[str] = set()
    for patch in (ROOT / "patches" / "6.12").glob("0*.patch"):
        documented |= set(re.findall(r"^\+What:\s+/sys/kernel/mm/pageout/(\w+)$", patch.read_text(), re.MULTILINE))
    assert documented
    source = (ROOT / "harness/load/src/fire_machine.cpp").read_text()
    table = source[source.index("SwitchValues switch_values("):source.index("void fill_swap_header(")]
    assert not documented - set(re.findall(r'"(\w+)"', table))


@pytest.fixture(scope="module")
def script() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("fire_script", str(ROOT / "scripts/fire"))
    spec = importlib.util.spec_from_loader("fire_script", loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules["fire_script"] = module
    loader.exec_module(module)
    return module


def test_lists_of_seeds(script: ModuleType) -> None:
    assert script.number_list("1-3,7") == [1, 2, 3, 7]
    with pytest.raises(Exception, match="list of numbers"):
        script.number_list("1-x")


def test_each_seed_has_its_profile(script: ModuleType) -> None:
    profiles = [script.profile_of(text) for text in ("fire", "debug:2,3", "kcsan:5")]
    args = argparse.Namespace(scenario="fire", profile=profiles, seeds=range(1, 6), steps="full,base", base_seeds=2, seconds=60)
    runs = [(run.seed, run.step, run.profile) for run in script.planned(args)]
    assert runs == [(1, "full", "fire"), (1, "base", "fire"), (2, "full", "debug"), (2, "base", "debug"), (3, "full", "debug"),
                    (4, "full", "fire"), (5, "full", "kcsan")]
    args.profile = profiles[1:]
    with pytest.raises(script.Failure, match="seed 1"):
        script.planned(args)
    with pytest.raises(argparse.ArgumentTypeError, match="no profile"):
        script.profile_of(":1-3")


def keep(out: Path, step: str, seed: int, time: str, record: dict) -> None:
    folder = out / "fire" / step / f"seed-{seed}" / time / step / "1"
    folder.mkdir(parents=True)
    (folder / "record.json").write_text(json.dumps(record))


def test_the_table_adds_up_what_is_there(script: ModuleType, tmp_path: Path) -> None:
    begin = {"event": "start", "seconds": 180}
    progress = [begin, {"event": "progress", "s": 90, "verified_pages": 1500000}, {"event": "progress", "s": 400, "verified_pages": 3000000, "pswpout": 50000}]
    kernel = {"kernel_key": "0123abcdef"}
    keep(tmp_path, "full", 1, "a", {"status": "PASS", "environment": kernel, "workload_events": progress})
    keep(tmp_path, "full", 2, "b", {"status": "PANIC", "environment": kernel, "reason": "BUG: KASAN: x | y", "workload_events": progress[:2]})
    keep(tmp_path, "full", 2, "c", {"status": "NO-BOOT", "reason": "nothing", "workload_events": []})
    text = script.table(script.records(tmp_path))
    assert "| fire | full | fire | 0123abcd | 2 | 2 | 4.5 | 0.05 | 1 | 1 PANIC |" in text
    assert "| fire | full | fire | - | 1 | 1 | 0.0 | 0.00 | 0 | 1 NO-BOOT |" in text
    assert "| fire | full | fire | 0123abcd | 1 | PASS | 3.0 | 3.00 | 0.05 |" in text
    assert "BUG: KASAN: x / y" in text


def test_without_any_run_the_table_is_an_error(tmp_path: Path) -> None:
    result = command(ROOT / "scripts/fire", "--table", "--out", tmp_path)
    assert result.returncode == 1
    assert str(tmp_path) in result.stderr


def last_progress(record: dict) -> dict:
    return [e for e in record["workload_events"] if e.get("event") == "progress"][-1]


@pytest.mark.full
@pytest.mark.guest("fire")
def test_fire_in_a_guest(guests: Guests) -> None:
    for step in ("base", "full"):
        record = guests.record("fire", step)
        last = last_progress(record)
        for name in ("pswpout", "pswpin", "swapoffs", "group_kills", "stuck", "failing_writes", "unplugged", "moved_pages"):
            assert last[name] > 0, name
        assert last["bus_errors"] == 0
        assert (last["switched"] > 0) == (step == "full")
        missing = [e["what"] for e in record["workload_events"] if e.get("event") == "missing"]
        for ability in ("zram", "zswap", "userfaultfd", "memory cgroups", "failslab", "simdisk", "CPU", "nodes"):
            assert not any(ability in what.replace("compaction", "") for what in missing), missing


@pytest.mark.full
@pytest.mark.guest("fire-read-errors")
def test_what_cannot_be_read_ends_only_who_needs_it(guests: Guests) -> None:
    """Reads of a swap disk fail: SIGBUS for whoever touches the page, and every byte that is read is right."""
    for step in ("base", "full"):
        last = last_progress(guests.record("fire-read-errors", step))
        assert last["failing_reads"] > 0 and last["bus_errors"] > 0 and last["verified_pages"] > 0, last


SPLATS = {"splat-warning": "WARNING", "splat-kasan": "KASAN"}


@pytest.mark.full
@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.guest(f"status/{n}")) for n in SPLATS])
def test_a_splat_fails_a_run_that_went_well(guests: Guests, name: str) -> None:
    record = guests.record(f"status/{name}")
    assert record["status"] == "PANIC" and SPLATS[name] in record["reason"]


def test_the_fragments_of_profiles_ask_for_nothing_twice() -> None:
    for path in (ROOT / "scripts/profiles").glob("*.config"):
        names = re.findall(r"^(?:# )?(CONFIG_\w+)(?:=| is not set)", path.read_text(), re.MULTILINE)
        assert len(names) == len(set(names)), path
    assert os.access(ROOT / "scripts/fire", os.X_OK)
