# SPDX-License-Identifier: GPL-2.0-only
"""Each status, provoked for real: what the run is called, and that it says why."""

from __future__ import annotations

import json

import pytest
from conftest import OUT, Guests
from runs import STATUS, STATUS_FULL

# A word that the reason has to hold: a status without its reason helps nobody.
REASON = {
    "corrupt-page": "page", "panic": "panic", "hang": "", "hang-disk": "SIGKILL", "hang-kernel": "blocked", "timeout": "time-out", "oom": "", "fail": "",
    "workload-absent": "no-such-program", "no-debugfs": "debugfs", "trace-dropped": "dropped", "coarse-clock": "ns",
    "no-boot": "", "skipped": "1000", "no-blktrace": "",
}


def check(guests: Guests, name: str, expected: str) -> dict:
    result = guests.result(f"status/{name}")
    path = OUT / "runs" / "status" / name / "base" / "1" / "record.json"
    assert path.exists(), result.stderr
    record = json.loads(path.read_text())
    assert record["status"] == expected, f"{path}: {record['status']}: {record['reason']}"
    assert result.returncode == 0, "the scenario expects this status, and the command says otherwise:\n" + result.stderr
    assert record["reason"].strip(), f"{path}: no reason"
    assert REASON[name].lower() in record["reason"].lower(), record["reason"]
    assert record["partial"] is True
    return record


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.guest(f"status/{n}")) for n in STATUS])
def test_status(guests: Guests, name: str) -> None:
    record = check(guests, name, STATUS[name])
    if name == "corrupt-page":
        for word in ("page", "pass", "offset", "expected", "found"):
            assert word in record["reason"], record["reason"]


@pytest.mark.full
@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.guest(f"status/{n}")) for n in STATUS_FULL])
def test_status_of_another_kernel(guests: Guests, name: str) -> None:
    check(guests, name, STATUS_FULL[name])


@pytest.mark.guest("status/fail")
def test_nothing_but_a_pass_enters_a_comparison(guests: Guests) -> None:
    from conftest import bench

    guests.result("status/fail")
    result = bench("compare", OUT / "runs" / "status" / "fail")
    assert result.returncode != 0
    assert "PASS" in result.stderr
