# SPDX-License-Identifier: GPL-2.0-only
"""The C++ suites, each of CTest's entries as a test of its own."""

from __future__ import annotations

import json
import subprocess

import pytest
from conftest import ROOT, command

BUILD = ROOT / "build" / "harness"


def entries() -> list[dict]:
    result = subprocess.run(["ctest", "--test-dir", str(BUILD), "--show-only=json-v1"], capture_output=True, text=True,
                            check=False)
    if result.returncode:
        return []
    return [t for t in json.loads(result.stdout)["tests"] if "command" in t]


ENTRIES = entries()


def test_the_suites_are_there() -> None:
    assert ENTRIES, "no C++ test is known to ctest in build/harness: run scripts/tools first"
    for part in ("bench", "tally", "load", "guest"):
        if (ROOT / "harness" / part / "tests").is_dir():
            assert any(f"/{part}" in t["command"][0] or part in t["command"][0].rsplit("/", 1)[1] for t in ENTRIES), f"{part} has no test"


@pytest.mark.parametrize("entry", ENTRIES, ids=[t["name"] for t in ENTRIES])
def test_unit(entry: dict) -> None:
    properties = {p["name"]: p["value"] for p in entry.get("properties", [])}
    result = command(*entry["command"], cwd=properties.get("WORKING_DIRECTORY", BUILD),
                     timeout_s=float(properties.get("TIMEOUT", 1500)))
    text = result.stdout + result.stderr
    skip = properties.get("SKIP_REGULAR_EXPRESSION")
    if skip and any(word in text for word in skip):
        pytest.skip(next(line for line in text.splitlines() if any(word in line for word in skip)))
    assert result.returncode == 0, text[-6000:]
