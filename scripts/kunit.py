#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""Runs the KUnit suites: in the QEMU guest on the very kernels that the bench measures, and under UML."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import kunit_ktap  # noqa: E402
from pageout import build, series, source  # noqa: E402
from pageout.common import (ROOT, Failure, Progress, cache_root, clean_env, digest, duration, explain_oserror,  # noqa: E402
                            locked, need_space, run, say, stream, write_atomic)
from pageout.source import git  # noqa: E402

KUNIT = ROOT / "kunit"
WAYS = ("guest", "uml")
EXAMPLES = """examples:
  scripts/kunit.py
  scripts/kunit.py --way uml --step base --step full
  scripts/kunit.py --way guest --step 3 --linux ~/linux --out results/kunit

exit status: 0 all suites ran and passed, 1 anything else, 2 wrong usage
"""


@dataclass
class Suite:
    """One kunit/NAME_test.c; `names` are those of its struct kunit_suite."""

    file: str
    names: list[str]
    needs: list[tuple[str, str]]  # a file of the kernel tree, a word in it or ""

    @property
    def module(self) -> str:
        return f"kunit_{self.file.removesuffix('_test.c')}"


@dataclass
class Outcome:
    way: str
    step: str
    log: Path
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    left_out: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.errors and not self.failed and self.passed > 0


def find_suites(folder: Path = KUNIT) -> list[Suite]:
    """Every suite there is, with what it says it needs of a kernel (the rules are in kunit/Kbuild)."""
    found = []
    for path in sorted(folder.glob("*_test.c")):
        text = path.read_text()
        names = re.findall(r"struct\s+kunit_suite\s+\w+\s*=\s*\{[^}]*?\.name\s*=\s*\"([^\"]+)\"", text)
        if not names:
            raise Failure(f"{path}: no struct kunit_suite with a .name in it\n"
                          "  remedy: give it one, or another file name than *_test.c")
        needs = [(m[1], m[2] or "") for m in re.finditer(r"^ \* Needs: *(\S+)(?: +(\S+))?$", text, re.M)]
        if re.search(r"^#include \"pageout\.h\"", text, re.M):
            needs.append(("mm/pageout.h", ""))
        found.append(Suite(path.name, names, needs))
    if not found:
        raise Failure(f"{folder}: no *_test.c there")
    return found


def unmet(suite: Suite, repo: Path, commit: str) -> str:
    """What the kernel of that commit lacks of a suite's needs, or ""."""
    for file, word in suite.needs:
        blob = git(repo, "cat-file", "blob", f"{commit}:{file}", check=False)
        if not blob:
            return f"has no {file}"
        if word and not re.search(rf"(?<!\w){re.escape(word)}(?!\w)", blob):
            return f"has no {word} in {file}"
    return ""


def divide(suites: list[Suite], repo: Path, commit: str, outcome: Outcome) -> list[Suite]:
    """The suites for this kernel; the others go to the outcome, with the reason."""
    fit = []
    for suite in suites:
        why = unmet(suite, repo, commit)
        if why:
            outcome.left_out.append(f"{suite.file}: this kernel {why}")
        else:
            fit.append(suite)
    return fit


def judge(outcome: Outcome, lines: list[str], expected: list[Suite]) -> None:
    """Read a log into the outcome; every suite expected must have been heard of."""
    report = kunit_ktap.parse(lines)
    outcome.errors += report.errors
    outcome.passed, outcome.failed, outcome.skipped = report.counts()
    for suite in report.suites:
        for name, result in suite.leaves():
            if not result.ok:
                say(f"not ok: {name}")
                for text in report.diagnostics.get(name, []):
                    say(f"    {text}")
            elif result.skipped is not None:
                say(f"skipped: {name}: {result.skipped or 'no reason given'}")
    ran = {s.name for s in report.suites}
    for suite in expected:
        for name in suite.names:
            if name not in ran:
                outcome.errors.append(f"suite {name} of kunit/{suite.file} did not run")


# The guest ------------------------------------------------------------------------------------------------


def cpio(entries: dict[str, tuple[int, bytes]]) -> bytes:
    """A newc archive of `name: (mode, content)`, in the order given; a folder's content is empty."""
    out = bytearray()

    def put(name: str, mode: int, data: bytes, ino: int) -> None:
        path = name.encode() + b"\0"
        numbers = (ino, mode, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(path), 0)
        out.extend(b"070701" + b"".join(b"%08X" % n for n in numbers) + path)
        out.extend(b"\0" * (-len(out) % 4))
        out.extend(data)
        out.extend(b"\0" * (-len(out) % 4))

    for ino, (name, (mode, data)) in enumerate(entries.items(), 1):
        put(name, mode, data, ino)
    put("TRAILER!!!", 0, b"", 0)
    return bytes(out)


def initramfs(modules_dir: Path, modules: list[str]) -> bytes:
    busybox = Path("/bin/busybox")
    if not busybox.is_file():
        raise Failure(f"{busybox} is missing\n  remedy: scripts/setup (package busybox-static)")
    entries = {name: (0o040755, b"") for name in ("bin", "dev", "proc", "sys", "modules")}
    entries["bin/busybox"] = (0o100755, busybox.read_bytes())
    entries["init"] = (0o100755, (ROOT / "scripts/kunit_init").read_bytes())
    for name in ["kunit", *modules]:
        path = modules_dir / f"{name}.ko"
        if not path.is_file():
            raise Failure(f"{path} is missing: the kernel's configuration must have CONFIG_KUNIT=m, and every suite "
                          "must become a module")
        entries[f"modules/{name}.ko"] = (0o100644, path.read_bytes())
    return cpio(entries)


def in_guest(base: source.Base, step: series.Step, suites: list[Suite], args: argparse.Namespace) -> Outcome:
    """Boot the step's kernel and load the suites as modules."""
    outcome = Outcome("guest", step.name, args.out / f"guest-{step.name}.log")
    made = build.build(build.Request(base, step, args.profile, kunit=True), with_images=False)
    commit = series.apply(base, step.patches)
    fit = divide(suites, base.repo, commit, outcome)
    qemu = shutil.which("qemu-system-x86_64")
    if not qemu:
        raise Failure("qemu-system-x86_64 is not installed\n  remedy: scripts/setup (package qemu-system-x86)")
    with tempfile.TemporaryDirectory(prefix="pageout-kunit-") as temp:
        image = Path(temp) / "initramfs.cpio"
        image.write_bytes(initramfs(Path(made["modules_dir"]), [s.module for s in fit]))
        argv = [qemu, "-machine", "pc", "-accel", "tcg", "-cpu", "max", "-m", "512", "-nodefaults",
                # Without sockets=2 the machine tables of a PC tell the kernel of one CPU only.
                "-smp", "2,sockets=2,cores=1,threads=1",
                "-no-user-config", "-display", "none", "-no-reboot", "-serial", "stdio", "-kernel", made["bzimage"],
                "-initrd", str(image), "-append",
                "console=ttyS0 ignore_loglevel panic=-1 oops=panic tsc=reliable nokaslr"]
        lines: list[str] = []
        timed_out = False
        progress = Progress(f"suites in the guest, step {step.name}")

        def idle() -> None:
            nonlocal timed_out
            progress.tick(f"{len(lines)} lines")
            if progress.elapsed() > args.timeout:
                timed_out = True
                raise TimeoutError

        try:
            # The serial line ends lines with CR LF.
            status = stream(argv, lambda line: lines.append(line.rstrip("\r")), idle, cwd=Path(temp), env=clean_env())
        except TimeoutError:
            status = 0
        progress.done()
    write_atomic(outcome.log, "\n".join(lines) + "\n")
    if timed_out:
        outcome.errors.append(f"the guest did not end within {args.timeout} s")
    if status:
        outcome.errors.append(f"{Path(qemu).name} ended with status {status}: {' '.join(lines[-3:])}")
    judge(outcome, lines, fit)
    judge_markers(outcome, lines, ["kunit", *(s.module for s in fit)])
    return outcome


def judge_markers(outcome: Outcome, lines: list[str], modules: list[str]) -> None:
    """Each module must have been begun, loaded with success, and followed by the next one."""
    begun: list[str] = []
    ended: dict[str, int] = {}
    done = False
    for line in lines:
        text = kunit_ktap.STAMP.sub("", line)
        if match := re.match(r"pageout-kunit: begin (\S+)$", text):
            begun.append(match[1])
        elif match := re.match(r"pageout-kunit: end (\S+) (\d+)$", text):
            ended[match[1]] = int(match[2])
        elif text == "pageout-kunit: done":
            done = True
    if not begun:
        outcome.errors.append("the guest did not come up")
        return
    for name in modules:
        if name not in begun:
            outcome.errors.append(f"{name}: was not tried")
        elif name not in ended:
            outcome.errors.append(f"{name}: the guest ended while it ran")
        elif ended[name]:
            outcome.errors.append(f"{name}.ko could not be loaded: insmod ended with status {ended[name]}")
    if not done and all(ended.get(name) == 0 for name in modules):
        outcome.errors.append("the guest ended before it said that it was done")


# UML ------------------------------------------------------------------------------------------------------


def uml_tree(base: source.Base, commit: str, work: Path) -> Path:
    """The step's tree with the suites in lib/pageout_kunit; git rewrites only what differs."""
    tree = work / "tree"
    env = clean_env()
    if not (tree / ".git").exists():
        need_space(work, 3 << 30, "a working tree for UML")
        shutil.rmtree(tree, ignore_errors=True)
        run(["git", "clone", "-q", "--shared", "--no-checkout", str(base.repo), str(tree)], env=env)
        run(["git", "config", "gc.auto", "0"], cwd=tree, env=env)
    (tree / ".git" / "index.lock").unlink(missing_ok=True)
    run(["git", "checkout", "-q", "-f", "--detach", commit], cwd=tree, env=env)
    home = tree / "lib/pageout_kunit"
    wanted: dict[Path, bytes] = {
        home / "Kconfig": b"# SPDX-License-Identifier: GPL-2.0-only\nconfig PAGEOUT_KUNIT\n"
                          b"\tbool \"KUnit suites of page-out\"\n\tdepends on KUNIT=y\n",
        home / "Makefile": b"# SPDX-License-Identifier: GPL-2.0-only\nobj-$(CONFIG_PAGEOUT_KUNIT) += kunit/\n",
    }
    for path in build.source_files(kunit=True):
        wanted[home / path.relative_to(ROOT)] = path.read_bytes()
    for old in [p for p in home.rglob("*") if p.is_file()]:
        if old not in wanted:
            old.unlink()
    wanted[tree / "lib/Kconfig"] = (tree / "lib/Kconfig").read_bytes() + b"\nsource \"lib/pageout_kunit/Kconfig\"\n"
    wanted[tree / "lib/Makefile"] = (tree / "lib/Makefile").read_bytes() + b"\nobj-y += pageout_kunit/\n"
    for path, content in wanted.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        # What has not changed keeps its time, so that make has nothing to do.
        if not path.is_file() or path.read_bytes() != content:
            path.write_bytes(content)
    return tree


def uml_config(tree: Path, step: series.Step, work: Path) -> Path:
    """kunit/.kunitconfig without the options that this kernel has not."""
    known = {"PAGEOUT_KUNIT"}
    for path in tree.rglob("Kconfig*"):
        if path.is_file():
            known |= set(re.findall(r"^\s*(?:menu)?config\s+(\w+)", path.read_text(errors="replace"), re.M))
    kept = []
    for line in (KUNIT / ".kunitconfig").read_text().splitlines():
        match = re.match(r"(?:# )?CONFIG_(\w+)(?:=| is not set)", line)
        if match and match[1] not in known:
            say(f"step {step.name}: no CONFIG_{match[1]} in this kernel, so UML is built without it")
        elif match:
            kept.append(line)
    path = work / "kunitconfig"
    write_atomic(path, "\n".join(kept) + "\n")
    return path


def under_uml(base: source.Base, step: series.Step, suites: list[Suite], args: argparse.Namespace) -> Outcome:
    """Build and run user-mode Linux with the suites in it, by the kernel's own kunit.py."""
    outcome = Outcome("uml", step.name, args.out / f"uml-{step.name}.log")
    commit = series.apply(base, step.patches)
    fit = divide(suites, base.repo, commit, outcome)
    work = cache_root() / "work" / ("uml-" + digest("uml", base.lineage, base.origin)[:16])
    with locked(work / "lock", "the working tree of UML") as fd:
        tree = uml_tree(base, commit, work)
        config = uml_config(tree, step, work)
        out = work / "build"
        out.mkdir(exist_ok=True)
        (out / "test.log").unlink(missing_ok=True)
        env = build.build_env()
        said: list[str] = []
        compilers = ["--make_options=CC=ccache gcc", "--make_options=HOSTCC=ccache gcc"]
        for command, extra in (("build", [*compilers, f"--jobs={args.jobs}"]), ("exec", [f"--timeout={args.timeout}"])):
            argv = [sys.executable, "tools/testing/kunit/kunit.py", command, f"--build_dir={out}",
                    f"--kunitconfig={config}", *extra]
            progress = Progress(f"UML {command}, step {step.name}")
            said = []
            status = stream(argv, said.append, progress.tick, cwd=tree, env=env, keep_fd=fd)
            progress.done()
            if status and command != "exec":
                tail = "\n".join("  " + line for line in said[-25:])
                raise Failure(f"kunit.py {command} failed for step {step.name}:\n{tail}")
        try:
            text = (out / "test.log").read_text(errors="replace")
        except FileNotFoundError:
            tail = "\n".join("  " + line for line in said[-25:])
            raise Failure(f"kunit.py left no test.log for step {step.name}:\n{tail}") from None
        write_atomic(outcome.log, text)
    judge(outcome, text.splitlines(), fit)
    if status and not outcome.errors and not outcome.failed:
        outcome.errors.append("the kernel's kunit.py is not content:\n" + "\n".join(said[-15:]))
    return outcome


# Both -----------------------------------------------------------------------------------------------------


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(prog="kunit.py", description=__doc__, epilog=EXAMPLES,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--version", action="version", version=f"kunit.py (pageout) {(ROOT / 'VERSION').read_text().strip()}")
    p.add_argument("--way", action="append", choices=WAYS, help="guest: as modules under QEMU; uml: built into "
                   "user-mode Linux; may be repeated (default: both)")
    p.add_argument("--step", action="append", metavar="STEP", help="base, 3, full, control:NAME; may be repeated "
                   "(default: full)")
    p.add_argument("--linux", metavar="DIR", help="a kernel tree of your own, read and never written "
                   "(default: LINUX, else Debian's package)")
    p.add_argument("--profile", action="append", default=[], metavar="NAME",
                   help="options of scripts/profiles/NAME.config for the guest's kernel")
    p.add_argument("--out", type=Path, default=ROOT / "results/kunit", metavar="DIR", help="where the logs go")
    p.add_argument("--timeout", type=int, default=600, metavar="S", help="seconds for the suites of one kernel (%(default)s)")
    p.add_argument("--jobs", type=int, default=os.cpu_count() or 2, metavar="N", help="for building UML (%(default)s)")
    p.add_argument("--list", action="store_true", help="name the suites and what they need; run nothing")
    return p


def main(argv: list[str]) -> int:
    args = parser().parse_args(argv)
    suites = find_suites()
    if args.list:
        for suite in suites:
            needs = ", ".join(f"{w} in {f}" if w else f for f, w in suite.needs)
            print(f"{suite.file}: {', '.join(suite.names)}{f' (needs {needs})' if needs else ''}")
        return 0
    args.out = args.out.resolve()
    args.out.mkdir(parents=True, exist_ok=True)
    base = source.base_of(args.linux)
    outcomes: list[Outcome] = []
    for name in args.step or ["full"]:
        step = series.find_step(name, base.version)
        for way in args.way or WAYS:
            progress = Progress("")
            outcome = (in_guest if way == "guest" else under_uml)(base, step, suites, args)
            outcomes.append(outcome)
            for text in outcome.left_out:
                print(f"left out: {text}")
            for text in outcome.errors:
                say(f"{way}, step {step.name}: error: {text}")
            print(f"{way}, step {step.name}: {outcome.passed} passed, {outcome.failed} failed, {outcome.skipped} skipped, "
                  f"{len(outcome.errors)} errors, {duration(progress.elapsed())}{'' if outcome.ok else ', FAILED'} "
                  f"({os.path.relpath(outcome.log)})", flush=True)
    # Errors count as failures here: a suite that could not be heard to its end is not a pass.
    failed = sum(o.failed + len(o.errors) + (0 if o.passed or o.errors or o.failed else 1) for o in outcomes)
    print(f"{sum(o.passed for o in outcomes)} passed, {failed} failed")
    return 0 if all(o.ok for o in outcomes) else 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Failure as e:
        say(f"kunit.py: {e}")
        sys.exit(1)
    except OSError as e:
        say(f"kunit.py: {explain_oserror(e)}")
        sys.exit(1)
    except KeyboardInterrupt:
        say("kunit.py: interrupted")
        sys.exit(130)
    except subprocess.SubprocessError as e:
        say(f"kunit.py: {e}")
        sys.exit(1)
