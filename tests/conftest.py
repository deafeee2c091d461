# SPDX-License-Identifier: GPL-2.0-only
"""What the tests share: paths, commands, and guest runs made beside the other tests."""

from __future__ import annotations

import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "build" / "check"
sys.path.insert(0, str(ROOT / "scripts"))
sys.path.insert(0, str(ROOT / "tests"))

from pageout.common import BIN  # noqa: E402
from runs import RUNS  # noqa: E402


def command(*argv: str | Path, env: dict[str, str] | None = None, timeout_s: float = 600, cwd: Path = ROOT,
            stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; both streams are captured, the environment is ours plus `env`."""
    return subprocess.run([str(a) for a in argv], cwd=cwd, env={**os.environ, **(env or {})}, input=stdin,
                          stdin=subprocess.DEVNULL if stdin is None else None, capture_output=True, text=True,
                          errors="replace", timeout=timeout_s, check=False)


def soon(is_so: Callable[[], bool], within_s: float = 60) -> bool:
    """Wait until that is so; False if it does not become so in time."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if is_so():
            return True
        time.sleep(0.1)
    return False


def kernel_py(*argv: str | Path, **more: object) -> subprocess.CompletedProcess[str]:
    return command("/usr/bin/python3", ROOT / "scripts/kernel.py", *argv, **more)  # type: ignore[arg-type]


def bench(*argv: str | Path, **more: object) -> subprocess.CompletedProcess[str]:
    return command(BIN / "pageout-bench", *argv, **more)  # type: ignore[arg-type]


def lines_of(result: subprocess.CompletedProcess[str]) -> list[dict]:
    """The JSON lines that a command printed; a failed command is quoted."""
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


class Guests:
    """Guest runs, as many at a time as there are CPUs, started in the order of the tests."""

    def __init__(self, names: list[str]) -> None:
        self.pool = concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count() or 2)
        # A folder of an earlier session must not pass for this one's.
        shutil.rmtree(OUT / "runs", ignore_errors=True)
        self.futures = {name: self.pool.submit(self._run, name) for name in names}

    @staticmethod
    def _run(name: str) -> subprocess.CompletedProcess[str]:
        run = RUNS[name]
        result = bench("run", "--scenario", run.scenario, "--steps", run.steps, "--jobs", "1", *run.words, "--out",
                       OUT / "runs" / name, timeout_s=5400)
        log = OUT / "runs" / name
        log.mkdir(parents=True, exist_ok=True)
        (log / "pageout-bench.log").write_text(result.stdout + result.stderr)
        return result

    def result(self, name: str) -> subprocess.CompletedProcess[str]:
        """The finished `pageout-bench run`; a test that asks must carry @pytest.mark.guest(name)."""
        return self.futures[name].result()

    def folder(self, name: str) -> Path:
        """The folder of a run that ended as its scenario expects."""
        result = self.result(name)
        assert result.returncode == 0, f"{OUT / 'runs' / name}:\n{result.stdout}{result.stderr}"
        return OUT / "runs" / name

    def record(self, name: str, step: str = "base") -> dict:
        return json.loads((self.folder(name) / step / "1" / "record.json").read_text())

    def stop(self) -> None:
        self.pool.shutdown(wait=True, cancel_futures=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs no guest goes first: it runs while the guests do."""
    items.sort(key=lambda item: (item.get_closest_marker("guest") is not None))


@pytest.fixture(scope="session")
def guests(request: pytest.FixtureRequest, tools: None) -> Iterator[Guests]:
    names: list[str] = []
    for item in request.session.items:
        for mark in item.iter_markers("guest"):
            names += [n for n in mark.args if n not in names]
    pool = Guests([n for n in RUNS if n in names])
    yield pool
    pool.stop()


@pytest.fixture(scope="session")
def tools() -> None:
    missing = [n for n in ("pageout-bench", "blktally", "pageout-load") if not (BIN / n).exists()]
    if missing:
        pytest.exit(f"{', '.join(missing)} not in {BIN}: run scripts/tools first (scripts/check does)", 1)


@pytest.fixture(scope="session", autouse=True)
def guests_from_the_start(request: pytest.FixtureRequest) -> None:
    """Start the guests before the first test where any test is going to ask for them."""
    if any(item.get_closest_marker("guest") for item in request.session.items):
        request.getfixturevalue("guests")


@pytest.fixture(scope="session")
def real_cache() -> Path:
    from pageout.common import cache_root

    return cache_root()


@pytest.fixture
def cache_with(tmp_path: Path, real_cache: Path) -> Callable[..., Path]:
    """A cache of one's own that shares the named parts of the real one."""

    def make(*shared: str) -> Path:
        cache = tmp_path / "cache"
        cache.mkdir()
        for name in shared:
            (real_cache / name).mkdir(exist_ok=True)
            (cache / name).symlink_to(real_cache / name)
        return cache

    return make
