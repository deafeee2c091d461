# SPDX-License-Identifier: GPL-2.0-only
"""Kernels: built once for each content, verified, and safe from whatever interrupts a build."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import ROOT, command, kernel_py, lines_of

STEPS = ("base", "control:ra-unplugged", "1", "full")


@pytest.fixture(scope="module")
def kernels() -> dict[str, dict]:
    words = [w for s in STEPS for w in ("--step", s)]
    return {k["step"]: k for k in lines_of(kernel_py("build", *words, timeout_s=7200))}


def test_every_kernel_is_whole(kernels: dict[str, dict]) -> None:
    for step, kernel in kernels.items():
        for name in ("bzimage", "initramfs", "config"):
            assert Path(kernel[name]).stat().st_size > 1000, (step, name)
        modules = sorted(p.name for p in Path(kernel["modules_dir"]).glob("*.ko"))
        assert {"pageout_probe.ko", "simdisk.ko"} <= set(modules)
        assert kernel["kernel_release"].startswith("6.12."), kernel["kernel_release"]
    assert len({kernels[s]["key"] for s in ("base", "control:ra-unplugged", "1")}) == 3


def test_nothing_is_built_twice(kernels: dict[str, dict]) -> None:
    for step in STEPS:
        told = lines_of(kernel_py("build", "--explain", "--step", step))[0]
        assert told["kernel"] == "in the cache" and told["modules"] == "in the cache", told
    start = time.monotonic()
    again = lines_of(kernel_py("build", "--step", "base"))[0]
    assert again == kernels["base"]
    assert time.monotonic() - start < 60


def test_all_that_was_asked_of_the_configuration_is_there(kernels: dict[str, dict]) -> None:
    for kernel in kernels.values():
        config = Path(kernel["config"]).read_text().splitlines()
        for line in (ROOT / "Kconfig.snippet").read_text().splitlines():
            if re.match(r"CONFIG_\w+=[^n]", line):
                assert line in config, line
            elif m := re.match(r"# (CONFIG_\w+) is not set", line):
                assert not any(c.startswith(m[1] + "=") for c in config), line


@pytest.mark.parametrize(("line", "words"), [
    ("CONFIG_KASAN_HW_TAGS=y", ("CONFIG_KASAN_HW_TAGS", "is not set", "depends on")),
    ("CONFIG_NO_SUCH_OPTION=y", ("CONFIG_NO_SUCH_OPTION", "no such option")),
    ("# CONFIG_X86 is not set", ("CONFIG_X86", "asked for is not set", "=y")),
    ("CONFIG_NR_CPUS=1000000", ("CONFIG_NR_CPUS", "=1000000")),
])
def test_an_option_that_is_not_granted_is_named(tmp_path: Path, kernels: dict[str, dict], line: str, words: tuple[str, ...]) -> None:
    fragment = tmp_path / "mine.config"
    fragment.write_text("# a comment\n" + line + "\n")
    result = kernel_py("build", "--step", "base", "--config", fragment)
    assert result.returncode == 1
    for word in (*words, "mine.config:2"):
        assert word in result.stderr, result.stderr


def test_a_faulty_fragment_is_named(tmp_path: Path) -> None:
    fragment = tmp_path / "mine.config"
    fragment.write_text("CONFIG_SWAP=y\nCONFIG SWAP\n")
    result = kernel_py("build", "--step", "base", "--config", fragment)
    assert result.returncode == 1 and f"{fragment}:2" in result.stderr
    result = kernel_py("build", "--step", "base", "--config", tmp_path / "none")
    assert result.returncode == 1 and "none" in result.stderr
    result = kernel_py("build", "--step", "base", "--profile", "none")
    assert result.returncode == 1 and "debug" in result.stderr, "it lists what there is"


def test_a_corrupt_entry_is_found_named_and_built_again(kernels: dict[str, dict], cache_with: Callable[..., Path]) -> None:
    cache = cache_with("source", "work", "ccache", "images")
    env = {"PAGEOUT_CACHE": str(cache)}
    for kind, path in (("kernels", Path(kernels["base"]["bzimage"]).parent), ("modules", Path(kernels["base"]["modules_dir"]))):
        shutil.copytree(path, cache / kind / path.name)
    image = cache / "kernels" / kernels["base"]["key"] / "bzImage"
    assert image.resolve().is_relative_to(cache.resolve()), "the copy is damaged, not the real cache"
    data = bytearray(image.read_bytes())
    good = bytes(data)
    data[1000] ^= 1
    image.write_bytes(data)
    told = lines_of(kernel_py("build", "--explain", "--step", "base", env=env))[0]["kernel"]
    assert "corrupt" in told and "bzImage" in told and str(image.parent) in told
    built = kernel_py("build", "--step", "base", "--no-initramfs", env=env, timeout_s=3600)
    assert built.returncode == 0, built.stderr
    assert "corrupt" in built.stderr
    assert image.read_bytes() == good, "the same inputs give the same kernel, to the byte"

    module = next((cache / "modules").glob("*/simdisk.ko"))
    assert module.resolve().is_relative_to(cache.resolve())
    module.unlink()
    told = lines_of(kernel_py("build", "--explain", "--step", "base", env=env))[0]["modules"]
    assert "corrupt" in told and "simdisk.ko" in told
    assert kernel_py("build", "--step", "base", "--no-initramfs", env=env, timeout_s=3600).returncode == 0
    assert module.exists()


def test_why_it_would_build_is_told(kernels: dict[str, dict], tmp_path: Path) -> None:
    fragment = tmp_path / "mine.config"
    fragment.write_text("CONFIG_NR_CPUS=7\n")
    told = lines_of(kernel_py("build", "--dry-run", "--step", "base", "--config", fragment))[0]["kernel"]
    assert "the configuration asked for" in told, told


def test_two_at_once_take_turns(kernels: dict[str, dict], cache_with: Callable[..., Path]) -> None:
    cache = cache_with("source", "work", "ccache", "images")
    argv = ["/usr/bin/python3", str(ROOT / "scripts/kernel.py"), "build", "--step", "base", "--no-initramfs"]
    env = {**os.environ, "PAGEOUT_CACHE": str(cache)}
    both = [subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [p.communicate(timeout=3600) for p in both]
    assert [p.returncode for p in both] == [0, 0], "\n".join(out + err for out, err in said)
    assert said[0][0] == said[1][0]
    assert sum("waiting for" in err for _, err in said) >= 1
    assert sum("building the kernel" in err for _, err in said) == 1, "the second finds what the first has built"


def test_an_interrupted_build_goes_on(kernels: dict[str, dict], cache_with: Callable[..., Path]) -> None:
    cache = cache_with("source", "ccache", "images")
    argv = ["/usr/bin/python3", str(ROOT / "scripts/kernel.py"), "build", "--step", "base", "--no-initramfs"]
    env = {**os.environ, "PAGEOUT_CACHE": str(cache)}
    build = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 900
    while not list(cache.glob("work/*/tree/mm/*.o")):
        assert build.poll() is None and time.monotonic() < deadline, build.communicate()
        time.sleep(0.2)
    build.send_signal(signal.SIGTERM)
    _, said = build.communicate(timeout=60)
    assert build.returncode == 128 + signal.SIGTERM, said
    assert "goes on from here" in said
    tree = str(next(cache.glob("work/*/tree")))
    time.sleep(1)
    for entry in Path("/proc").glob("[0-9]*/cwd"):
        try:
            assert not os.readlink(entry).startswith(tree), f"{entry} is still at work"
        except OSError:
            continue
    assert not list(cache.glob("kernels/*")), "no half entry"
    objects = {p: p.stat().st_mtime_ns for p in cache.glob("work/*/tree/lib/*.o")}
    result = command(*argv, env=env, timeout_s=3600)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["key"] == kernels["base"]["key"]
    assert all(p.stat().st_mtime_ns == t for p, t in list(objects.items())[:3]) or not objects, "what was built is kept"
    same = Path(json.loads(result.stdout)["bzimage"]).read_bytes() == Path(kernels["base"]["bzimage"]).read_bytes()
    assert same, "a kernel does not depend on where it was built"


def test_a_cache_that_cannot_be_written_is_named() -> None:
    result = kernel_py("source", env={"PAGEOUT_CACHE": "/proc/pageout"})
    assert result.returncode == 1
    assert "/proc/pageout" in result.stderr and "PAGEOUT_CACHE" in result.stderr


def test_a_full_disk_is_named(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    if command("mount", "-t", "tmpfs", "-o", "size=64m", "none", small).returncode:
        pytest.skip("mounting a small tmpfs is not allowed here")
    try:
        result = kernel_py("source", env={"PAGEOUT_CACHE": str(small)})
        assert result.returncode == 1
        assert str(small) in result.stderr and "free" in result.stderr and "PAGEOUT_CACHE" in result.stderr
    finally:
        command("umount", small)


def test_a_missing_source_is_named(tmp_path: Path) -> None:
    result = kernel_py("source", env={"PAGEOUT_LINUX_TARBALL": str(tmp_path / "linux.tar.xz")})
    assert result.returncode == 1
    assert "linux-source-6.12" in result.stderr and "--linux" in result.stderr


def test_a_damaged_source_is_named(tmp_path: Path) -> None:
    tarball = tmp_path / "linux.tar.xz"
    tarball.write_bytes(b"\xfd7zXZ\x00 and then no more")
    result = kernel_py("source", env={"PAGEOUT_LINUX_TARBALL": str(tarball)})
    assert result.returncode == 1 and str(tarball) in result.stderr, result.stderr
