# SPDX-License-Identifier: GPL-2.0-only
"""Kernels and modules of a step, built once for each content and kept in the cache."""

from __future__ import annotations

import json
import os
import re
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path

from . import kconfig, series
from .common import (ROOT, Failure, Progress, cache_root, clean_env, digest, duration, entry_info, explain_oserror,
                     locked, need_space, publish, run, run_ticking, say, stream)
from .source import Base, git

# Raise it when a kernel built by an older version of this file must not be used.
BUILD_VERSION = 1
# make's own lines, each of which is one finished piece of work.
WORK_LINE = re.compile(r"^\s+(CC|AS|LD|AR|HOSTCC|GEN|OBJCOPY|LDS|MODPOST|BTF|VOFFSET|ZOFFSET|ZSTD22|BUILD)\b")
# About as many lines as a build of the plain test kernel prints; used until this cache has seen one.
FIRST_GUESS = 1250


@dataclass
class Request:
    base: Base
    step: series.Step
    profiles: list[str] = field(default_factory=list)
    extra: list[Path] = field(default_factory=list)
    kunit: bool = False  # the KUnit suites too, beside the bench's own modules

    def __post_init__(self) -> None:
        self.wanted = kconfig.fragments(self.profiles, self.extra)
        self.make_words = kconfig.make_words(self.profiles)
        self.commit = series.apply(self.base, self.step.patches)
        self.asked = kconfig.effective(self.base, self.commit, self.wanted)
        self.inputs = {
            # The tree that base and patches give: a patch whose message alone changed builds nothing.
            "source": git(self.base.repo, "rev-parse", f"{self.commit}^{{tree}}"),
            "config": digest(kconfig.text(self.asked)),
            "compiler": compiler(),
            "build_version": BUILD_VERSION,
        }
        if self.make_words:
            self.inputs["make"] = " ".join(self.make_words)
        self.key = digest(json.dumps(self.inputs, sort_keys=True))[:32]
        slot = digest("work", self.base.lineage, *self.profiles)[:20]
        self.work = cache_root() / "work" / slot
        self.kernel_dir = cache_root() / "kernels" / self.key


_compiler: str | None = None


def compiler() -> str:
    """What decides the code that comes out: compiler, assembler and linker, with Debian's versions."""
    global _compiler
    if _compiler is None:
        _compiler = "; ".join(run([tool, "--version"]).stdout.splitlines()[0].strip() for tool in ("gcc", "ld"))
    return _compiler


def build_env() -> dict[str, str]:
    """No date, user, host, locale or setting of the caller enters a kernel."""
    return clean_env(KBUILD_BUILD_TIMESTAMP="2020-01-01", KBUILD_BUILD_USER="pageout", KBUILD_BUILD_HOST="bench",
                     KBUILD_BUILD_VERSION="1", LOCALVERSION="", CCACHE_DIR=str(cache_root() / "ccache"),
                     CCACHE_NOHASHDIR="1")


def make_argv(*targets: str) -> list[str]:
    if not shutil.which("ccache"):
        raise Failure("ccache is not installed\n  remedy: scripts/setup")
    return ["make", f"-j{os.cpu_count() or 2}", "CC=ccache gcc", "HOSTCC=ccache gcc", *targets]


def why_build(req: Request) -> str:
    """"" where the kernel is in the cache and whole; else the reason for building it."""
    info, why = entry_info(req.kernel_dir)
    if info is not None:
        return ""
    if why != "not in the cache":
        return why
    nearest: tuple[int, list[str], str] | None = None
    for path in sorted((cache_root() / "kernels").glob("*/info.json")):
        try:
            other = json.loads(path.read_text())
            theirs = other["inputs"]
            differs = [k for k in req.inputs if theirs.get(k) != req.inputs[k]]
        except (OSError, ValueError, KeyError, TypeError):
            continue
        rank = len(differs) + (0 if other.get("step") == req.step.name else 10)
        if differs and (nearest is None or rank < nearest[0]):
            nearest = (rank, differs, str(other.get("step")))
    if nearest is None:
        return "no kernel is in the cache"
    words = {"source": "the source (base and patches)", "config": "the configuration asked for", "make": "what make is told",
             "compiler": "the compiler", "build_version": "the build script"}
    return f"not in the cache; the nearest one (step {nearest[2]}) differs in {', '.join(words[d] for d in nearest[1])}"


def module_folders(kunit: bool) -> list[Path]:
    """Folders that are built into modules, each with a Kbuild or Makefile of its own."""
    candidates = [*sorted((ROOT / "module").glob("*")), *([ROOT / "kunit"] if kunit else [])]
    return [p for p in candidates if (p / "Kbuild").is_file() or (p / "Makefile").is_file()]


def source_files(kunit: bool) -> list[Path]:
    """Every source of those folders; a developer's build products there are none."""
    found = []
    for folder in module_folders(kunit):
        for p in sorted(folder.rglob("*")):
            if p.is_file() and (p.suffix in (".c", ".h", ".S") or p.name in ("Kbuild", "Makefile", "Kconfig")) \
                    and not p.name.endswith(".mod.c") and not p.name.startswith("."):
                found.append(p)
    return found


def modules_entry(req: Request) -> Path:
    sources = (x for p in source_files(req.kunit) for x in (str(p.relative_to(ROOT)), p.read_bytes()))
    return cache_root() / "modules" / digest(req.key, "kunit" if req.kunit else "", *sources)[:32]


class Builder:
    """Builds in one working tree, whose lock the caller holds."""

    def __init__(self, req: Request, lock_fd: int) -> None:
        self.req = req
        self.lock_fd = lock_fd
        self.tree = req.work / "tree"
        self.log = req.work / "build.log"
        self.commit = req.commit

    def checkout(self) -> None:
        """Bring the working tree to the step's commit; git rewrites only files that differ."""
        env = clean_env()
        if not (self.tree / ".git").exists():
            need_space(self.req.work, 4 << 30, "a working tree with its objects")
            shutil.rmtree(self.tree, ignore_errors=True)
            run(["git", "clone", "-q", "--shared", "--no-checkout", str(self.req.base.repo), str(self.tree)], env=env)
            run(["git", "config", "gc.auto", "0"], cwd=self.tree, env=env)
        # Left by a checkout that was killed; nobody else is here, we hold the lock.
        (self.tree / ".git" / "index.lock").unlink(missing_ok=True)
        progress = Progress(f"checking out {self.req.step.name} of Linux {self.req.base.version}")

        def git(*args: str) -> str:
            return run_ticking(["git", *args], progress.tick, cwd=self.tree, env=env, keep_fd=self.lock_fd).strip()

        head = run(["git", "rev-parse", "-q", "--verify", "HEAD^{commit}"], cwd=self.tree, env=env, check=False).stdout.strip()
        if head != self.commit or git("status", "--porcelain", "--untracked-files=no"):
            git("-c", "advice.detachedHead=false", "checkout", "-q", "-f", "--detach", self.commit)
        git("clean", "-fdq")
        progress.done()

    def fail(self, what: str, said: list[str]) -> None:
        text = "\n".join(said)
        if "No space left on device" in text:
            raise explain_oserror(OSError(28, "No space left on device", str(self.req.work)))
        errors = [line for line in said if re.search(r"\berror\b|\bError \d|undefined reference|\*\*\*", line)]
        shown = "\n".join("  " + line for line in (errors or said)[-12:])
        raise Failure(f"{what} failed for step {self.req.step.name} ({self.req.step.subject}):\n{shown}\n  log: {self.log}")

    def make(self, what: str, total: int | None, *args: str) -> int:
        """Run make in the tree; returns the number of pieces of work it did."""
        progress = Progress(what)
        count = 0
        said: list[str] = []

        def on_line(line: str) -> None:
            nonlocal count
            if WORK_LINE.match(line):
                count += 1
            else:
                said.append(line)
                del said[:-400]

        def detail() -> str:
            if total is None:
                return f"{count} objects"
            return f"{count} of about {max(total, count)} objects"

        with self.log.open("a") as f:
            f.write(f"\n== {what}\n")
        status = stream(make_argv(*self.req.make_words, *args), on_line, lambda: progress.tick(detail()), cwd=self.tree, env=build_env(),
                        log=self.log, keep_fd=self.lock_fd)
        if status:
            self.fail(what, said)
        progress.done(f"{count} objects")
        return count

    def configure(self) -> str:
        text = kconfig.configure(self.tree, self.req.base, self.commit, self.req.asked)
        for ask in self.req.wanted.optional:
            known = ask in self.req.asked
            say(f"step {self.req.step.name}: {ask.line()}: {'asked for' if known else 'left out, unknown to this tree'}")
        return text

    def kernel(self) -> dict:
        """Build and publish the kernel of the step."""
        start = time.monotonic()
        need_space(self.req.work, 1 << 30, "building a kernel")
        self.log.unlink(missing_ok=True)
        self.checkout()
        config = self.configure()
        total_note = self.req.work / "objects"
        if (self.tree / "vmlinux").exists():
            total = None  # an incremental build: how much depends on what changed
        else:
            total = int(total_note.read_text()) if total_note.exists() else FIRST_GUESS
        count = self.make(f"building step {self.req.step.name}", total, "bzImage", "modules")
        if total is not None:
            total_note.write_text(str(count))
        release = (self.tree / "include/config/kernel.release").read_text().strip()

        def fill(temp: Path) -> dict:
            shutil.copy(self.tree / "arch/x86/boot/bzImage", temp / "bzImage")
            (temp / "config").write_text(config)
            for name in ("Module.symvers", "System.map"):
                shutil.copy(self.tree / name, temp / name)
            # Where the profile measures coverage: what gcov needs to read the kernel's counts.
            for path in sorted(self.tree.glob("mm/*.gcno")):
                (temp / "gcov").mkdir(exist_ok=True)
                shutil.copy(path, temp / "gcov" / path.name)
            (temp / "modules").mkdir()
            for line in (self.tree / "modules.order").read_text().split():
                built = self.tree / re.sub(r"\.o$", ".ko", line)
                shutil.copy(built, temp / "modules" / built.name)
            return {
                "schema": "pageout-kernel/1", "key": self.req.key, "inputs": self.req.inputs, "step": self.req.step.name,
                "subject": self.req.step.subject, "base": {"tree": self.req.base.tree, "version": self.req.base.version,
                         "origin": self.req.base.origin},
                "patches": [p.path.name for p in self.req.step.patches], "profiles": self.req.profiles,
                "kernel_release": release, "config_digest": digest(config)[:32], "compiler": compiler(),
                "asked": kconfig.text(self.req.asked), "build_s": round(time.monotonic() - start, 1),
            }

        return publish(self.req.kernel_dir, fill)

    def modules(self, target: Path, kernel_built: bool) -> dict:
        """Build and publish module/ and kunit/ for the step's kernel."""
        if not kernel_built:
            self.checkout()
            self.configure()
            # The symbols of the very kernel that is in the cache.
            shutil.copy(self.req.kernel_dir / "Module.symvers", self.tree / "Module.symvers")
            self.make(f"preparing step {self.req.step.name} for modules", None, "modules_prepare")
        scratch = self.req.work / "modules"
        wanted = {p.relative_to(ROOT): p for p in source_files(self.req.kunit)}
        for old in [p for p in scratch.rglob("*") if p.is_file()]:
            rel = old.relative_to(scratch)
            if rel not in wanted:
                # Products of another kernel: modules are few and small, build them afresh.
                old.unlink()
        for rel, source in wanted.items():
            copy = scratch / rel
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, copy)
        built: list[Path] = []
        for name in (p.relative_to(ROOT) for p in module_folders(self.req.kunit)):
            folder = scratch / name
            self.make(f"building {name} for step {self.req.step.name}", None, f"M={folder}", "modules")
            built += sorted(folder.glob("*.ko"))

        def fill(temp: Path) -> dict:
            own = sorted((self.req.kernel_dir / "modules").glob("*.ko")) if self.req.kunit else []
            for path in [*own, *built]:
                shutil.copy(path, temp / path.name)
            return {"schema": "pageout-modules/1", "kernel": self.req.key, "step": self.req.step.name}

        return publish(target, fill)


def initramfs(modules_dir: Path) -> Path:
    """The kernel's initramfs, made by scripts/image.py."""
    import importlib.util
    import sys

    path = ROOT / "scripts" / "image.py"
    if not path.is_file():
        raise Failure(f"{path} is missing: it makes the guest's initramfs")
    spec = importlib.util.spec_from_file_location("pageout_image", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["pageout_image"] = module
    spec.loader.exec_module(module)
    return Path(module.initramfs(modules_dir))


def build(req: Request, with_images: bool = True) -> dict:
    """Make what is missing of a step; the description that `kernel.py build` prints."""
    info, _ = entry_info(req.kernel_dir)
    modules_dir = modules_entry(req)
    modules_info, modules_why = entry_info(modules_dir)
    if info is None or modules_info is None:
        with locked(req.work / "lock", f"the working tree of {req.base.origin}") as fd:
            # Whoever held the lock may have built just this.
            info, _ = entry_info(req.kernel_dir)
            builder = Builder(req, fd)
            kernel_built = False
            if info is None:
                say(f"step {req.step.name}: building the kernel: {why_build(req)}")
                info = builder.kernel()
                kernel_built = True
                say(f"step {req.step.name}: kernel {req.key} built in {duration(info['build_s'])}")
            modules_info, modules_why = entry_info(modules_dir)
            if modules_info is None:
                if not kernel_built:
                    say(f"step {req.step.name}: building the modules: {modules_why}")
                builder.modules(modules_dir, kernel_built)
    result = {
        "step": req.step.name, "subject": req.step.subject, "key": req.key,
        "bzimage": str(req.kernel_dir / "bzImage"),
        "initramfs": str(initramfs(modules_dir)) if with_images else None,
        "config_digest": info["config_digest"], "compiler": info["compiler"], "kernel_release": info["kernel_release"],
        "modules_dir": str(modules_dir), "config": str(req.kernel_dir / "config"), "profiles": req.profiles,
        "base": {"tree": req.base.tree, "version": req.base.version, "origin": req.base.origin},
    }
    return result


def explain(req: Request) -> dict:
    """What `build` would do and why, without doing it."""
    why = why_build(req)
    modules_dir = modules_entry(req)
    modules_why = entry_info(modules_dir)[1]
    return {"step": req.step.name, "key": req.key, "kernel": why or "in the cache",
            "modules": modules_why or "in the cache", "inputs": req.inputs, "work": str(req.work)}
