# SPDX-License-Identifier: GPL-2.0-only
"""Every step boots and swaps, with the series' option on and off."""

from __future__ import annotations

import json

import pytest
from conftest import Guests
from runs import STEPS


@pytest.mark.full
@pytest.mark.guest("steps-on", "steps-off")
@pytest.mark.parametrize("option", ["on", "off"])
def test_every_step_boots_and_swaps(guests: Guests, option: str) -> None:
    """smoke writes every page and verifies its bytes; a warning of the kernel ends the run."""
    folder = guests.folder(f"steps-{option}")
    records = {step: json.loads((folder / step / "1" / "record.json").read_text()) for step in STEPS}
    assert {step: r["status"] for step, r in records.items()} == dict.fromkeys(STEPS, "PASS")
    # The option's counters are what a user sees of it. Patch 1, which counts only, has no option.
    assert {step for step, r in records.items() if r["pageout_stats"]} == (set(STEPS) - {"1"} if option == "on" else set())
