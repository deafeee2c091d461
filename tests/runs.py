# SPDX-License-Identifier: GPL-2.0-only
"""Every guest run that tests look at, once each: name, and the words for `pageout-bench run`.

A test asks for one with the fixture `guests`; tests that look at the same run share it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pageout.series import all_steps

HERE = Path(__file__).resolve().parent
# The numbers of the patches, which are the steps after base.
STEPS = tuple(step.name for step in all_steps() if step.name.isdigit())


@dataclass(frozen=True)
class Run:
    scenario: str
    steps: str = "base"
    words: tuple[str, ...] = ()
    full: bool = False


def status(name: str, full: bool = False) -> Run:
    return Run(str(HERE / "scenarios" / f"{name}.toml"), full=full)


STATUS = {
    "corrupt-page": "CORRUPTION", "panic": "PANIC", "hang": "HANG", "hang-disk": "HANG", "hang-kernel": "HANG", "timeout": "TIMEOUT", "oom": "OOM",
    "fail": "WORKLOAD-FAILED", "workload-absent": "WORKLOAD-FAILED", "no-debugfs": "NO-TRACING", "trace-dropped": "TRACE-DROPPED",
    "coarse-clock": "COARSE-CLOCK", "no-boot": "NO-BOOT", "skipped": "SKIPPED",
}
# These need another kernel, or the long way.
STATUS_FULL = {"no-blktrace": "NO-TRACING"}

# The same small workload at neighbouring sizes of memory: what differs between two kernels there by
# chance (which page is the victim decides which is the next one) evens out.
PAIRS = tuple(range(44, 53))
PAIRS_FULL = tuple(range(54, 78))

RUNS = {
    # Cheap ones first: they tell soonest that something is broken.
    "smoke": Run("smoke"),
    "smoke-again": Run("smoke"),
    "smoke-file": Run("smoke-file"),
    **{f"pairs/{mib}": Run("smoke", "base,1", ("--mem", f"{mib}M")) for mib in PAIRS},
    "anon-cycle": Run("anon-cycle", "control:ra-unplugged,base"),
    "random-dirty": Run("random-dirty"),
    "random-dirty-ssd": Run("random-dirty", "base", ("--disk", "ssd-850pro")),
    "interleave": Run("interleave"),
    "fio": Run("fio-mmap-dirty"),
    "let-go": Run(str(HERE / "proof" / "let-go.toml"), "base"),
    **{name: Run(str(HERE / "proof" / f"{name}.toml"), "base,full") for name in ("invariants", "disk-errors", "disk-stalls", "fragmented")},
    **{name: Run(str(HERE / "proof" / f"{name}.toml"), "full") for name in ("truncate", "under-write", "vmpressure", "swap-limit", "pinned", "in-flight",
                                                                             "kept-order")},
    # A disk with many requests in hand at a time stands still with more of them.
    "disk-stalls-ssd": Run(str(HERE / "proof" / "disk-stalls.toml"), "base,full", ("--disk", "ssd-850pro", "--passes", "20"), full=True),
    "disk-stalls-mglru": Run(str(HERE / "proof" / "disk-stalls.toml"), "base,full", ("--lru", "mglru"), full=True),
    **{f"status/{name}": status(name) for name in STATUS},
    **{f"status/{name}": status(name, full=True) for name in STATUS_FULL},
    "steps-on": Run("smoke", ",".join(STEPS), full=True),
    "steps-off": Run("smoke", ",".join(STEPS), ("--config", str(HERE / "data" / "option-off.config")), full=True),
    "fire": Run("fire", "base,full", ("--seconds", "60"), full=True),
    "fire-read-errors": Run("fire-read-errors", "base,full", ("--seconds", "120"), full=True),
    **{f"status/{name}": status(name, full=True) for name in ("splat-warning", "splat-kasan")},
    **{f"pairs/{w}-{mib}": Run(w, "base,1", ("--mem", f"{mib}M"), full=True) for w in ("anon-cycle", "interleave") for mib in PAIRS_FULL},
}
