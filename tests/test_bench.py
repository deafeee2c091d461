# SPDX-License-Identifier: GPL-2.0-only
"""What the bench has to show on the kernels of the series."""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import BIN, ROOT, Guests, bench, command
from runs import PAIRS, PAIRS_FULL


@pytest.mark.guest("smoke", "smoke-again")
def test_a_run_repeats_to_the_byte(guests: Guests) -> None:
    a, b = (guests.folder(n) / "base" / "1" for n in ("smoke", "smoke-again"))
    result = bench("compare", "--identical", a, b)
    assert result.returncode == 0, result.stdout + result.stderr
    # And without trusting our own comparison.
    traces = sorted(p.name for p in a.glob("trace.blktrace.*"))
    assert traces and traces == sorted(p.name for p in b.glob("trace.blktrace.*"))
    for name in traces:
        assert (a / name).read_bytes() == (b / name).read_bytes(), name
    records = [json.loads((f / "record.json").read_text()) for f in (a, b)]
    for record in records:
        del record["host"]
    assert records[0] == records[1]


@pytest.mark.guest("anon-cycle")
def test_the_bench_sees_the_plug_of_2012(guests: Guests) -> None:
    result = bench("selftest-control", guests.folder("anon-cycle"))
    assert result.returncode == 0, result.stdout + result.stderr
    base, control = guests.record("anon-cycle"), guests.record("anon-cycle", "control:ra-unplugged")

    def dispatches_a_page(record: dict) -> float:
        read = record["block"]["read"]
        return read["dispatched"]["count"] / (read["completed"]["bytes"] / 4096)

    assert dispatches_a_page(control) >= 3 * dispatches_a_page(base)


def test_a_blind_bench_says_so(tmp_path: Path) -> None:
    result = bench("selftest-control", tmp_path)
    assert result.returncode != 0
    assert str(tmp_path) in result.stderr or "BLIND" in result.stderr


def compare_pairs(guests: Guests, names: list[str]) -> dict[str, tuple[float, float]]:
    """Patch 1 over base in each figure: the 95 % interval of the mean ratio over pairs of runs."""
    figures: dict[str, Callable[[dict], float]] = {"seconds": lambda r: r["steady"]["seconds"]}
    for way in ("read", "write"):
        for count in ("queued", "dispatched", "completed"):
            figures[f"{way} {count}"] = lambda r, w=way, c=count: r["block"][w][c]["count"]
    intervals = {}
    for name, value in figures.items():
        logs = [math.log(value(guests.record(n, "1")) / value(guests.record(n))) for n in names]
        # 2.3 is Student's t for 8 degrees of freedom, and a little wide for more.
        half = 2.31 * statistics.stdev(logs) / math.sqrt(len(logs))
        intervals[name] = (math.exp(statistics.mean(logs) - half), math.exp(statistics.mean(logs) + half))
    return intervals


def assert_no_change(intervals: dict[str, tuple[float, float]]) -> None:
    """Within 1 %: one pair of runs says nothing, for a kernel that differs in one instruction picks other
    victims and takes another course, several per cent apart. Their mean has to agree with 1 within 1 %."""
    text = "; ".join(f"{name} x{low:.3f} to x{high:.3f}" for name, (low, high) in intervals.items())
    print(text)
    for name, (low, high) in intervals.items():
        assert low <= 1.01 and high >= 0.99, f"{name} changes: {text}"


@pytest.mark.guest(*(f"pairs/{mib}" for mib in PAIRS))
def test_counting_changes_nothing(guests: Guests) -> None:
    assert_no_change(compare_pairs(guests, [f"pairs/{mib}" for mib in PAIRS]))


@pytest.mark.full
@pytest.mark.parametrize("workload", [
    pytest.param(w, marks=pytest.mark.guest(*(f"pairs/{w}-{mib}" for mib in PAIRS_FULL))) for w in ("anon-cycle", "interleave")])
def test_counting_changes_nothing_at_length(guests: Guests, workload: str) -> None:
    intervals = compare_pairs(guests, [f"pairs/{workload}-{mib}" for mib in PAIRS_FULL])
    assert_no_change(intervals)


@pytest.mark.guest("pairs/48")
def test_patch_1_agrees_with_the_trace(guests: Guests) -> None:
    record = guests.record("pairs/48", "1")
    vmstat = record["vmstat"]
    assert vmstat["swpout_folio"] > 0 and vmstat["swpin_folio"] > 0
    # One bio a folio in 6.12, and every one of them is in the trace.
    assert vmstat["swpout_bio"] == record["block"]["write"]["queued"]["count"]
    assert vmstat["swpin_bio"] == record["block"]["read"]["queued"]["count"]


@pytest.mark.guest("random-dirty", "random-dirty-ssd", "interleave", "anon-cycle")
def test_where_the_vanilla_kernel_loses(guests: Guests) -> None:
    """The measured facts in kind: what the series is for is there to be seen."""
    random, ssd = guests.record("random-dirty"), guests.record("random-dirty-ssd")
    for record in (random, ssd):
        assert record["steady"]["pages_per_read_request"] < 1.5, "random-dirty reads back one page a request"
    assert 12 <= random["derived"]["steady_to_media_limit"] <= 120
    assert ssd["derived"]["steady_to_media_limit"] >= 3
    assert guests.record("interleave")["derived"]["steady_to_media_limit"] >= 4
    assert guests.record("anon-cycle")["derived"]["steady_to_media_limit"] < 2, "in order, today's kernel is near the limit"


def summary_blocks(text: str) -> str:
    """The summary, byte for byte, without blkparse's lines on the files it reads."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("Input file ")).strip("\n")


@pytest.mark.parametrize(("run", "step"), [
    pytest.param(run, step, marks=pytest.mark.guest(run))
    for run, step in (("smoke", "base"), ("smoke-file", "base"), ("anon-cycle", "base"), ("anon-cycle", "control:ra-unplugged"),
                      ("pairs/48", "1"), ("random-dirty", "base"), ("random-dirty-ssd", "base"), ("interleave", "base"),
                      ("fio", "base"))])
def test_blktally_agrees_with_blkparse(guests: Guests, run: str, step: str) -> None:
    folder = guests.folder(run) / step / "1"
    theirs = command("blkparse", "-f", "", "-i", "trace", cwd=folder, env={"LC_ALL": "C"})
    assert theirs.returncode == 0, theirs.stderr
    assert "Total" in theirs.stdout or "CPU0" in theirs.stdout
    ours = command(BIN / "blktally", "--format", "blkparse", "trace", cwd=folder)
    assert ours.returncode == 0, ours.stderr
    assert summary_blocks(ours.stdout) == summary_blocks(theirs.stdout)


@pytest.mark.guest("smoke")
def test_the_record_agrees_with_blkparse(guests: Guests) -> None:
    """By another way than our own reader: counts of single events in blkparse's text."""
    folder = guests.folder("smoke") / "base" / "1"
    record = guests.record("smoke")
    text = command("blkparse", "-f", "%a %d %N\n", "-q", "-i", "trace", cwd=folder)
    # blkparse's own filter for the kernel's actions: C, D, Q; d holds R or W.
    seen: dict[tuple[str, str], int] = {}
    for line in text.stdout.splitlines():
        if m := re.match(r"\s*([CDQ])\s+(\S+)\s+(\d+)$", line):
            way = "read" if "R" in m[2] else "write" if "W" in m[2] else ""
            if way and int(m[3]):
                seen[m[1], way] = seen.get((m[1], way), 0) + 1
    for action, field in (("Q", "queued"), ("D", "dispatched"), ("C", "completed")):
        for way in ("read", "write"):
            assert record["block"][way][field]["count"] == seen.get((action, way), 0), (field, way)


@pytest.mark.guest("fio")
def test_the_real_fio_is_in_the_record(guests: Guests) -> None:
    record = guests.record("fio")
    job = record["fio"]["jobs"][0]
    assert job["error"] == 0 and job["write"]["io_bytes"] > 0


@pytest.mark.guest("smoke")
def test_the_record_says_how_it_was_made(guests: Guests) -> None:
    record = guests.record("smoke")
    assert record["schema"] == "pageout-run/1" and record["status"] == "PASS"
    environment = record["environment"]
    for name in ("kernel_release", "compiler", "config_digest", "qemu_version"):
        assert environment[name], name
    assert record["clock_check"] == {"clocksource": "tsc", "resolution_ns": 1}
    assert record["block"]["identity_residue"] == {"read": 0, "write": 0}
    assert record["memory"]["programs_rss_bytes"] > 0
    assert str(ROOT) not in json.dumps({k: v for k, v in record.items() if k != "host"}), "a record names no path of its host"


@pytest.mark.guest("random-dirty", "smoke")
def test_the_disk_keeps_its_modelled_time(guests: Guests) -> None:
    """To 1 us in virtual time: every request of a disk that serves one at a time. A disk that serves many
    at once adds the model's own work, some microseconds, when one is submitted as another is due."""
    one = guests.record("random-dirty")["simdisk"]["swap"]
    assert one["requests"] > 10_000 and one["early"] == 0
    assert one["late_over_1us"] == 0, f"late by up to {one['late_max_ns']} ns"
    many = guests.record("smoke")["simdisk"]["swap"]
    assert many["requests"] > 1_000 and many["early"] == 0
    assert many["late_over_1us"] <= many["requests"] // 100 and many["late_max_ns"] < 5_000, many


@pytest.mark.guest("let-go")
def test_the_disk_lets_go_by_itself(guests: Guests) -> None:
    """Fire once stood still for good: the task that was to let go of the requests waited for one of them."""
    assert guests.record("let-go")["status"] == "PASS"


@pytest.mark.guest("random-dirty")
def test_the_table(guests: Guests) -> None:
    result = bench("compare", guests.folder("random-dirty"))
    assert result.returncode == 0, result.stderr
    assert "base" in result.stdout and "random-dirty" in result.stdout
    for word in ("Reads Queued", "Read Dispatches", "Read Merges"):
        assert word in result.stdout, f"{word} of the 2012 message is not in the table"
