# SPDX-License-Identifier: GPL-2.0-only
"""The host side under fire: killed, interrupted, two at once, without a tool, without room."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import BIN, ROOT, Guests, bench, command, soon

SMOKE = ("run", "--scenario", "smoke", "--steps", "base")


def start(out: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([BIN / "pageout-bench", *SMOKE, "--out", out], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, start_new_session=True)


def descendants(pid: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue
        if parent == pid:
            child = int(stat.parent.name)
            found += [child, *descendants(child)]
    return found


def emulator_of(process: subprocess.Popen[str]) -> int:
    """Wait until the run has an emulator that runs, and return its pid."""
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()
        for pid in descendants(process.pid):
            try:
                if "qemu" in Path(f"/proc/{pid}/comm").read_text() and b"-kernel" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    return pid
            except OSError:
                continue
        time.sleep(0.2)
    raise AssertionError("no emulator within ten minutes")


def ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def gone(pid: int, within_s: float = 15) -> bool:
    return soon(lambda: ended(pid), within_s)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_killed_it_leaves_no_record_and_no_emulator(tmp_path: Path, how: signal.Signals) -> None:
    process = start(tmp_path)
    emulator = emulator_of(process)
    time.sleep(2)
    process.send_signal(how)
    _, said = process.communicate(timeout=60)
    assert process.returncode != 0
    assert gone(emulator), f"the emulator {emulator} outlives a bench that got {how.name}"
    assert not list(tmp_path.rglob("record.json"))
    if how != signal.SIGKILL:
        assert "interrupted" in said.lower(), said
        assert not [p for p in tmp_path.rglob(".*") if p.is_dir()], "its scratch folder is gone too"


def test_a_run_after_a_kill_and_two_at_once(tmp_path: Path) -> None:
    killed = start(tmp_path)
    emulator_of(killed)
    killed.kill()
    killed.communicate(timeout=60)
    both = [start(tmp_path), start(tmp_path)]
    said = [p.communicate(timeout=1800) for p in both]
    assert [p.returncode for p in both] == [0, 0], "\n".join(out + err for out, err in said)
    record = json.loads((tmp_path / "base" / "1" / "record.json").read_text())
    assert record["status"] == "PASS"
    assert sorted(p.name for p in (tmp_path / "base").iterdir()) == ["1"], "nothing else is left"


def processes_with(word: str) -> list[int]:
    """Processes whose command line has the word, this one's own test runner aside."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if word.encode() in path.read_bytes() and int(path.parent.name) not in (os.getpid(), os.getppid()):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("after_s", [0.01, 0.05, 0.2, 0.7, 2.0, 5.0])
def test_killed_at_any_moment_it_leaves_nothing_half_done(tmp_path: Path, after_s: float) -> None:
    """SIGKILL, which no program can prepare for: before the emulator is there, while it boots, while it runs."""
    process = start(tmp_path)
    time.sleep(after_s)
    process.kill()
    process.communicate(timeout=60)
    # The emulator's console is a file in the folder of the run.
    soon(lambda: not processes_with(str(tmp_path)), 15)
    left = processes_with(str(tmp_path))
    assert not left, [Path(f"/proc/{p}/cmdline").read_bytes().replace(b"\0", b" ")[:200] for p in left]
    assert not list(tmp_path.rglob("record.json"))
    assert not (tmp_path / "base" / "1").exists(), "a folder under its final name is a whole one"


def test_ctrl_c_ends_all_of_it(tmp_path: Path) -> None:
    """A terminal sends SIGINT to the bench and to the emulator alike."""
    process = start(tmp_path)
    emulator = emulator_of(process)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode != 0 and "interrupted" in said.lower(), said
    assert gone(emulator)
    assert not list(tmp_path.rglob("record.json"))
    assert not [p for p in tmp_path.rglob(".*") if p.is_dir()]


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A folder that even root cannot write to."""
    folder = tmp_path / "read-only"
    folder.mkdir()
    if command("mount", "-t", "tmpfs", "-o", "ro,size=64k", "none", folder).returncode:
        pytest.skip("mounting a tmpfs is not allowed here")
    yield folder
    command("umount", folder)


def test_results_in_a_read_only_folder_are_named(read_only: Path) -> None:
    result = bench(*SMOKE, "--out", read_only / "results")
    assert result.returncode != 0 and str(read_only) in result.stderr and re.search(r"read-only", result.stderr, re.I), result.stderr


def test_a_read_only_cache_is_named(read_only: Path, tmp_path: Path) -> None:
    result = bench(*SMOKE, "--out", tmp_path / "out", env={"PAGEOUT_CACHE": str(read_only)})
    assert result.returncode != 0 and str(read_only) in result.stderr and "PAGEOUT_CACHE" in result.stderr, result.stderr


def test_a_corrupt_image_is_named_and_made_again(cache_with: Callable[..., Path], real_cache: Path) -> None:
    image_py = ("/usr/bin/python3", ROOT / "scripts/image.py", "programs")
    made = json.loads(command(*image_py, timeout_s=1800).stdout)
    cache = cache_with("ccache")
    for entry in (real_cache / "images").iterdir():
        if (entry / "info.json").is_file() and not (entry / "initramfs.cpio").exists() and \
                (entry.name == made["key"] or not (entry / "programs.ext4").exists()):
            shutil.copytree(entry, cache / "images" / entry.name)
    image = cache / "images" / made["key"] / "programs.ext4"
    assert image.resolve().is_relative_to(cache.resolve()), "the copy is damaged, not the real cache"
    good = image.read_bytes()
    image.chmod(0o644)
    with image.open("r+b") as f:
        f.seek(5000)
        f.write(bytes([good[5000] ^ 1]))
    again = command(*image_py, env={"PAGEOUT_CACHE": str(cache)}, timeout_s=1800)
    assert again.returncode == 0, again.stderr
    assert "corrupt" in again.stderr and "programs.ext4" in again.stderr
    assert json.loads(again.stdout)["key"] == made["key"] and image.read_bytes() == good, "the same to the byte"


def without(tmp_path: Path, *missing: str) -> dict[str, str]:
    """A PATH with everything but some programs: a folder of one-line scripts that start the real ones."""
    folder = tmp_path / "path"
    folder.mkdir()
    for place in ("/usr/sbin", "/usr/bin"):
        for real in Path(place).iterdir():
            path = folder / real.name
            if real.name not in missing and not path.exists():
                # Python looks beside its own name for its library, so the real name is kept.
                path.write_text(f'#!/bin/sh\nexec {real} "$@"\n')
                path.chmod(0o755)
    return {"PATH": str(folder)}


@pytest.mark.parametrize(("argv", "tool"), [
    (("scripts/kernel.py", "build", "--step", "base", "--config", "{fragment}"), "ccache"),
    (("scripts/kernel.py", "source"), "git"),
    (("scripts/kunit.py", "--way", "guest", "--step", "base"), "qemu-system-x86_64"),
])
def test_a_vanished_tool_is_named(tmp_path: Path, argv: tuple[str, ...], tool: str) -> None:
    fragment = tmp_path / "new.config"
    fragment.write_text(f"CONFIG_LOG_BUF_SHIFT={16 + os.getpid() % 2}\nCONFIG_DEFAULT_HOSTNAME=\"{tmp_path.name}\"\n")
    words = [w.format(fragment=fragment) for w in argv]
    result = command("/usr/bin/python3", ROOT / words[0], *words[1:], env=without(tmp_path, tool), timeout_s=1800)
    assert result.returncode == 1, result.stdout + result.stderr
    assert tool in result.stderr and "scripts/setup" in result.stderr and "Traceback" not in result.stderr, result.stderr


@pytest.mark.full
def test_the_programs_under_the_sanitizers(tmp_path: Path) -> None:
    """All C++ suites, and these tests again, on programs built with AddressSanitizer and UndefinedBehaviorSanitizer."""
    build = ROOT / "build" / "sanitize"
    for argv in (("cmake", "-S", ROOT / "harness", "-B", build, "-G", "Ninja", "-DPAGEOUT_SANITIZE=ON", "-DCMAKE_BUILD_TYPE=Debug",
                  "-DCMAKE_CXX_FLAGS_DEBUG=-O1 -g1", "-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"), ("cmake", "--build", build)):
        built = command(*argv, timeout_s=3600)
        assert built.returncode == 0, (built.stdout + built.stderr)[-4000:]
    strict = {"ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0", "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1"}
    suites = command("ctest", "--test-dir", build, "--output-on-failure", env=strict, timeout_s=3600)
    assert suites.returncode == 0, suites.stdout[-6000:]
    again = command("/usr/bin/python3", "-m", "pytest", "-p", "no:cacheprovider", "-q", "-m", "not full", "test_host.py", "test_tally.py",
                    cwd=ROOT / "tests", env={**strict, "PAGEOUT_BIN": str(build / "bin")}, timeout_s=2 * 3600)
    assert again.returncode == 0, again.stdout[-6000:]
    assert not re.search(r"ERROR: AddressSanitizer|runtime error:", again.stdout)


def test_a_missing_emulator_is_named(tmp_path: Path) -> None:
    result = bench(*SMOKE, "--out", tmp_path, env={"PAGEOUT_QEMU": "no-such-qemu"})
    assert result.returncode != 0
    assert "no-such-qemu" in result.stderr and "qemu-system-x86" in result.stderr
    assert not list(tmp_path.rglob("record.json"))


def test_an_emulator_that_vanishes_midway_is_no_pass(tmp_path: Path) -> None:
    """Killed from outside, as the host's own OOM killer does."""
    process = start(tmp_path)
    os.kill(emulator_of(process), signal.SIGKILL)
    _, said = process.communicate(timeout=60)
    assert process.returncode != 0
    record = json.loads((tmp_path / "base" / "1" / "record.json").read_text())
    assert record["status"] in ("NO-BOOT", "NO-RESULT") and "signal 9" in record["reason"], (record["status"], record["reason"], said)


def test_an_unwritable_cache_is_named(tmp_path: Path) -> None:
    result = bench(*SMOKE, "--out", tmp_path, env={"PAGEOUT_CACHE": "/proc/pageout"})
    assert result.returncode != 0 and "/proc/pageout" in result.stderr


def test_results_that_cannot_be_written_are_named() -> None:
    result = bench(*SMOKE, "--out", "/proc/results")
    assert result.returncode != 0 and "/proc/results" in result.stderr


def test_results_on_a_full_disk(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    if command("mount", "-t", "tmpfs", "-o", "size=64k", "none", small).returncode:
        pytest.skip("mounting a small tmpfs is not allowed here")
    try:
        result = bench(*SMOKE, "--out", small, timeout_s=1800)
        assert result.returncode != 0
        assert re.search(r"no space left", result.stderr, re.I) and str(small) in result.stderr, result.stderr
        assert not list(small.rglob("record.json"))
    finally:
        command("umount", small)


def with_kvm(kind: str, *argv: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command that sees a /dev of its own, whose kvm is absent or a dead file."""
    devices = "; ".join(f"mknod -m 666 /dev/{n} c 1 {minor}" for n, minor in (("null", 3), ("zero", 5), ("random", 8), ("urandom", 9)))
    kvm = {"absent": ":", "dead": ": >/dev/kvm; chmod 666 /dev/kvm"}[kind]
    script = f"mount -t tmpfs none /dev; {devices}; ln -s /proc/self/fd /dev/fd; mkdir -m 1777 /dev/shm; {kvm}; exec \"$@\""
    if command("unshare", "-m", "true").returncode:
        pytest.skip("a mount namespace of one's own is not allowed here")
    return command("unshare", "-m", "sh", "-ec", script, "sh", *argv, timeout_s=1800)


@pytest.mark.parametrize(("kind", "words"), [("absent", "is absent"), ("dead", "is present but dead")])
def test_a_kvm_that_does_not_work_is_told(tmp_path: Path, kind: str, words: str) -> None:
    """Asked for, it is an error; left to the bench, emulation goes on in its place."""
    argv = (BIN / "pageout-bench", *SMOKE, "--clock", "host", "--out", tmp_path)
    asked = with_kvm(kind, *argv, "--accel", "kvm")
    assert asked.returncode != 0
    assert f"/dev/kvm {words}" in asked.stderr and "--accel tcg" in asked.stderr, asked.stderr
    left = with_kvm(kind, *argv, "--accel", "auto")
    assert left.returncode == 0, left.stderr
    assert f"/dev/kvm {words}" in left.stderr
    record = json.loads((tmp_path / "base" / "1" / "record.json").read_text())
    assert words in record["host"]["accel_finding"] and record["environment"]["accel"] == "tcg"


def test_what_kvm_is_here_is_told(tmp_path: Path) -> None:
    """Whatever this host has: the bench names it, and uses it only where a guest has answered."""
    result = bench(*SMOKE, "--clock", "host", "--accel", "auto", "--out", tmp_path, timeout_s=1800)
    assert result.returncode == 0, result.stderr
    found = re.search(r"/dev/kvm (is absent|is unreadable|is present but dead)|/dev/kvm: a probe guest answered", result.stderr)
    assert found, result.stderr
    record = json.loads((tmp_path / "base" / "1" / "record.json").read_text())
    assert record["environment"]["accel"] == ("kvm" if "answered" in found[0] else "tcg")


@pytest.mark.guest("smoke")
def test_a_truncated_record_is_named(guests: Guests, tmp_path: Path) -> None:
    text = (guests.folder("smoke") / "base" / "1" / "record.json").read_text()
    place = tmp_path / "base" / "1"
    place.mkdir(parents=True)
    (place / "record.json").write_text(text[: len(text) // 2])
    for words in (("compare", tmp_path), ("report", tmp_path)):
        result = bench(*words)
        assert result.returncode != 0 and str(place / "record.json") in result.stderr, result.stderr


@pytest.mark.guest("smoke")
def test_a_truncated_trace_is_named(guests: Guests, tmp_path: Path) -> None:
    trace = (guests.folder("smoke") / "base" / "1" / "trace.blktrace.0").read_bytes()
    (tmp_path / "t.blktrace.0").write_bytes(trace[:-7])
    result = command(BIN / "blktally", tmp_path / "t")
    assert result.returncode == 3, (result.returncode, result.stderr)
    assert "t.blktrace.0" in result.stderr + result.stdout


@pytest.mark.parametrize("tool", ["pageout-bench", "blktally", "pageout-load"])
def test_help_and_version(tool: str) -> None:
    text = command(BIN / tool, "--help")
    assert text.returncode == 0 and "xample" in text.stdout, text.stdout
    version = command(BIN / tool, "--version")
    assert version.returncode == 0 and (ROOT / "VERSION").read_text().strip() in version.stdout
    wrong = command(BIN / tool, "--no-such-option")
    assert wrong.returncode not in (0, -11, -6) and wrong.stderr.strip()
