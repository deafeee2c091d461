# SPDX-License-Identifier: GPL-2.0-only
"""The checks that a maintainer runs on each patch of the series.

Each check looks at one step: the commit of patch k and its parent. Warnings count
only when the patch brings them: what the parent has too is not the patch's. Results
are kept by content (tree, configuration, compiler, files), so that a second run
repeats nothing.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from . import kconfig, series
from .build import build_env
from .common import (ROOT, Failure, Progress, cache_root, clean_env, digest, locked, need_space, run, run_ticking, say,
                     stream, write_atomic)
from .source import Base, git

# Raise it when results of an older version of this file must not be used.
CHECK_VERSION = 1
# What CONFIG_PAGEOUT_CLUSTER=n must leave as the step before has it.
VANILLA = ("mm/vmscan.o", "mm/page_io.o", "mm/swap_state.o", "mm/swap.o", "mm/swapfile.o")
# Whoever includes a touched header is looked for among these: the files of page-out and what they lean on.
USERS = tuple(f"mm/{n}.c" for n in ("vmscan", "page_io", "swap_state", "swapfile", "swap", "vmstat", "memcontrol", "rmap",
                                    "memory", "shmem", "page_alloc", "pageout", "madvise", "zswap"))
MESSAGE = re.compile(r"\b(warning|error)\b\s*:|^\S+:\d+(:\d+)?: ")


@dataclass(frozen=True)
class Variant:
    """A configuration: the test kernel's, or nothing, with lines that replace it."""

    name: str
    lines: tuple[str, ...] = ()
    arch: str = "x86"
    plain: bool = False  # start from allnoconfig alone

    @property
    def make_arch(self) -> str:
        return {"x86": "x86_64"}.get(self.arch, self.arch)


OFF = Variant("off", ("# CONFIG_PAGEOUT_CLUSTER is not set",))
VARIANTS = (
    Variant("default"),
    OFF,
    Variant("tiny", ("CONFIG_64BIT=y",), plain=True),
    Variant("smp-n", ("# CONFIG_SMP is not set",)),
    Variant("swap-n", ("# CONFIG_SWAP is not set",)),
    Variant("memcg-n", ("# CONFIG_MEMCG is not set",)),
    Variant("thp-n", ("# CONFIG_TRANSPARENT_HUGEPAGE is not set",)),
    Variant("numa-y", ("CONFIG_NUMA=y",)),
    Variant("preempt", ("CONFIG_PREEMPT=y", "# CONFIG_PREEMPT_VOLUNTARY is not set")),
    Variant("lru-gen-n", ("# CONFIG_LRU_GEN is not set",)),
    Variant("events-n", ("CONFIG_EXPERT=y", "# CONFIG_VM_EVENT_COUNTERS is not set")),
    Variant("i386", ("# CONFIG_64BIT is not set", "CONFIG_HIGHMEM4G=y"), arch="i386"),
    Variant("arm64", (), arch="arm64"),
)
COMPILERS = ("gcc", "clang")
TEXT_CHECKS = ("am", "signed-off", "whitespace", "checkpatch", "kernel-doc")
OBJECT_CHECKS = ("headers", "W=1", "sparse", "vanilla")


@dataclass
class Result:
    """`ok` is None where the check does not apply; `detail` says why, or what is wrong."""

    ok: bool | None
    detail: list[str] = field(default_factory=list)

    def cell(self) -> str:
        return "-" if self.ok is None else "ok" if self.ok else "FAIL"


def without_places(lines: list[str]) -> set[str]:
    """Warnings with line numbers taken off, which move with every patch."""
    return {re.sub(r":\d+(:\d+)?:", ":", line) for line in lines}


class Checker:
    def __init__(self, base: Base, lock_fd: int) -> None:
        self.base = base
        self.lock_fd = lock_fd
        self.home = home(base)
        self.src = self.home / "src"
        self.at = ""
        self.progress: Progress | None = None

    # -- the tree -------------------------------------------------------------------

    def checkout(self, commit: str) -> None:
        if self.at == commit:
            return
        env = clean_env()
        if not (self.src / ".git").exists():
            need_space(self.home, 5 << 30, "a tree for the checks with its objects")
            shutil.rmtree(self.src, ignore_errors=True)
            run(["git", "clone", "-q", "--shared", "--no-checkout", str(self.base.repo), str(self.src)], env=env)
            run(["git", "config", "gc.auto", "0"], cwd=self.src, env=env)
        (self.src / ".git" / "index.lock").unlink(missing_ok=True)
        for words in (("-c", "advice.detachedHead=false", "checkout", "-q", "-f", "--detach", commit), ("clean", "-fdxq")):
            run_ticking(["git", *words], self.tick, cwd=self.src, env=env, keep_fd=self.lock_fd)
        self.at = commit

    def tick(self) -> None:
        if self.progress:
            self.progress.tick()

    def touched(self, commit: str) -> list[str]:
        out = git(self.base.repo, "diff-tree", "-r", "--no-commit-id", "--name-only", "--diff-filter=d", commit)
        return out.splitlines()

    # -- configurations and objects -------------------------------------------------

    def argv(self, variant: Variant, cc: str, *targets: str) -> list[str]:
        words = ["make", f"-j{os.cpu_count() or 2}", f"O={self.obj(variant, cc)}", f"ARCH={variant.make_arch}"]
        if cc == "clang":
            words += ["LLVM=1", "CC=ccache clang", "HOSTCC=ccache clang"]
        else:
            cross = "aarch64-linux-gnu-" if variant.arch == "arm64" else ""
            words += [f"CROSS_COMPILE={cross}", f"CC=ccache {cross}gcc", "HOSTCC=ccache gcc"]
        return [*words, *targets]

    def obj(self, variant: Variant, cc: str) -> Path:
        return self.home / "obj" / f"{variant.name}-{cc}"

    def fragment(self, variant: Variant, commit: str) -> str:
        lines = {}
        if not variant.plain:
            wanted = kconfig.fragments([], [])
            for ask in kconfig.effective(self.base, commit, wanted):
                lines[ask.symbol] = ask.line()
        for line in variant.lines:
            m = kconfig.LINE.match(line)
            assert m is not None
            lines[m[1] or m[3]] = line
        return "".join(line + "\n" for line in lines.values())

    def make(self, variant: Variant, cc: str, *targets: str) -> tuple[int, list[str]]:
        said: list[str] = []
        status = stream(self.argv(variant, cc, *targets), said.append, self.tick, cwd=self.src, env=build_env(),
                        keep_fd=self.lock_fd)
        return status, said

    def configure(self, variant: Variant, cc: str, commit: str) -> None:
        """Give the variant's folder its configuration and everything objects need."""
        self.checkout(commit)
        folder = self.obj(variant, cc)
        folder.mkdir(parents=True, exist_ok=True)
        text = self.fragment(variant, commit)
        stamp = folder / ".asked"
        if not stamp.exists() or stamp.read_text() != text + commit:
            (folder / ".fragment").write_text(text)
            status, said = self.make(variant, cc, f"KCONFIG_ALLCONFIG={folder / '.fragment'}", "allnoconfig")
            if status:
                raise Failure(f"configuration {variant.name} with {cc}:\n" + "\n".join(said[-8:]))
            config = (folder / ".config").read_text().splitlines()
            for line in variant.lines:
                # "is not set" is granted by silence too.
                if line not in config and not (line.startswith("# ") and not any(
                        c.startswith(line.split()[1] + "=") for c in config)):
                    raise Failure(f"configuration {variant.name}: {line} was not granted by {variant.make_arch}")
            status, said = self.make(variant, cc, "prepare")
            if status:
                raise Failure(f"make prepare for {variant.name} with {cc}:\n" + "\n".join(said[-12:]))
            write_atomic(stamp, text + commit)

    def objects(self, variant: Variant, cc: str, commit: str, sources: list[str]) -> list[str]:
        """The objects of the sources that this configuration builds."""
        folder = self.obj(variant, cc)
        found: list[str] = []
        for directory in sorted({str(Path(s).parent) for s in sources}):
            makefile = next((self.src / directory / n for n in ("Kbuild", "Makefile")
                             if (self.src / directory / n).is_file()), None)
            if makefile is None:
                continue
            program = (f"-include include/config/auto.conf\nsrctree := {self.src}\nsrc := {self.src / directory}\n"
                       f"obj := {directory}\ninclude {makefile}\n"
                       "pageout-print:\n\t@echo $(foreach v,$(filter %-y %-m,$(.VARIABLES)),$($v))\n")
            out = run(["make", "-s", "-f", "-", "pageout-print"], cwd=folder,
                      env=clean_env(ARCH=variant.make_arch, SRCARCH=variant.arch), stdin=program, check=False).stdout
            enabled = set(out.split())
            found += [s[:-2] + ".o" for s in sources
                      if str(Path(s).parent) == directory and Path(s).name[:-2] + ".o" in enabled]
        return found

    def sources(self, commit: str) -> list[str]:
        """The C files a patch concerns: those it touches, and those of USERS that include a header it touches."""
        touched = self.touched(commit)
        found = {f for f in touched if f.endswith(".c")}
        for header in (f for f in touched if f.endswith(".h")):
            name = header.removeprefix("include/") if header.startswith("include/") else Path(header).name
            users = git(self.base.repo, "grep", "-lF", name, commit, "--", *USERS, check=False)
            direct = [u.partition(":")[2] for u in users.splitlines()]
            # A header that few include directly reaches the rest through others; these few tell.
            found.update(direct or ["mm/vmscan.c", "mm/vmstat.c"])
        return sorted(found)

    # -- what is kept ---------------------------------------------------------------

    def kept(self, name: str, parts: list[str], make: Callable[[], dict]) -> dict:
        path = self.home / "results" / f"{digest(name, str(CHECK_VERSION), *parts)[:40]}.json"
        try:
            value = json.loads(path.read_text())
            assert isinstance(value, dict)
            return value
        except (OSError, ValueError, AssertionError):
            value = make()
            write_atomic(path, json.dumps(value))
            return value

    def tree_id(self, commit: str) -> str:
        return git(self.base.repo, "rev-parse", f"{commit}^{{tree}}")

    def compile(self, variant: Variant, cc: str, commit: str, sources: list[str], *flags: str) -> dict:
        """Build the sources' objects; {"status", "messages", "objects"}."""

        def make() -> dict:
            self.configure(variant, cc, commit)
            objects = self.objects(variant, cc, commit, sources)
            if not objects:
                return {"status": 0, "messages": [], "objects": []}
            for name in objects:  # a warning is printed only when the object is built
                (self.obj(variant, cc) / name).unlink(missing_ok=True)
            status, said = self.make(variant, cc, *flags, *objects)
            messages = [line.replace(str(self.src) + "/", "") for line in said if MESSAGE.search(line)]
            if status and not messages:
                messages = said[-6:]
            return {"status": status, "messages": messages, "objects": objects}

        return self.kept("compile", [self.tree_id(commit), variant.name, self.fragment(variant, commit), cc,
                                     tool_version(cc, variant), *flags, "--", *sources], make)

    def judged(self, variant: Variant, cc: str, commit: str, sources: list[str], *flags: str) -> Result:
        here = self.compile(variant, cc, commit, sources, *flags)
        if here["status"]:
            return Result(False, here["messages"][:12])
        if not here["objects"]:
            return Result(None, ["this configuration builds none of the touched files"])
        if not here["messages"]:
            return Result(True)
        parent = f"{commit}^"
        there = self.compile(variant, cc, git(self.base.repo, "rev-parse", parent),
                             [s for s in sources if self.exists(parent, s)], *flags)
        new = without_places(here["messages"]) - without_places(there["messages"])
        return Result(not new, sorted(new)[:12])

    def exists(self, commit: str, path: str) -> bool:
        return bool(git(self.base.repo, "ls-tree", "--name-only", commit, path, check=False))

    # -- the checks -----------------------------------------------------------------

    def signed_off(self, commit: str) -> Result:
        body = git(self.base.repo, "show", "-s", "--format=%B", commit)
        author = git(self.base.repo, "show", "-s", "--format=%an <%ae>", commit)
        found = re.findall(r"^Signed-off-by: (.+ <\S+@\S+>)$", body, re.M)
        if not found:
            return Result(False, ["no Signed-off-by line"])
        return Result(author in found, [] if author in found else [f"the author, {author}, has not signed off"])

    def whitespace(self, commit: str) -> Result:
        out = git(self.base.repo, "diff-tree", "--check", "--no-commit-id", "-r", commit, check=False)
        return Result(not out, out.splitlines()[:12])

    def checkpatch(self, commit: str, patch: series.Patch) -> Result:
        self.checkout(commit)
        # With the parent checked out it would say of each new file that it is not there; the tree is for
        # Kconfig, MAINTAINERS and the device-tree lists that it looks up.
        p = run(["perl", "scripts/checkpatch.pl", "--strict", "--show-types", "--no-summary", "--terse", str(patch.path.resolve())],
                cwd=self.src, check=False)
        lines = [line.replace(str(patch.path.resolve()), patch.path.name) for line in p.stdout.splitlines()
                 if re.search(r"(ERROR|WARNING|CHECK):", line)]
        if p.returncode and not lines:
            lines = (p.stdout + p.stderr).splitlines()[-6:]
        return Result(not lines and p.returncode == 0, lines[:20])

    def kernel_doc(self, commit: str) -> Result:
        files = [f for f in self.touched(commit) if f.endswith((".c", ".h"))]
        if not files:
            return Result(None, ["no C file is touched"])

        def said(at: str) -> set[str]:
            self.checkout(at)
            present = [f for f in files if (self.src / f).exists()]
            out = run(["perl", "scripts/kernel-doc", "-none", *present], cwd=self.src, check=False) if present else None
            return without_places([line for line in (out.stderr if out else "").splitlines() if "arning:" in line or "rror:" in line])

        new = said(commit)
        if new:
            new -= said(git(self.base.repo, "rev-parse", f"{commit}^"))
        return Result(not new, sorted(new)[:12])

    def headers(self, commit: str) -> Result:
        """Each touched header compiles alone, where it did so before or is new."""
        names = [f for f in self.touched(commit) if f.endswith(".h") and not f.startswith(("arch/", "tools/", "include/uapi/"))
                 and "/trace/" not in f]
        if not names:
            return Result(None, ["no header is touched"])
        variant, cc = VARIANTS[0], "gcc"

        def alone(at: str, wanted: list[str]) -> dict:
            def make() -> dict:
                self.configure(variant, cc, at)
                folder = self.obj(variant, cc)
                probe = "mm/vmscan.o"
                if not (folder / "mm/.vmscan.o.cmd").exists():
                    self.make(variant, cc, probe)
                command = (folder / "mm/.vmscan.o.cmd").read_text().splitlines()[0].partition(":= ")[2].partition(" ; ")[0]
                words = shlex.split(command)
                words = words[: words.index("-c")]
                words = [w for w in words if not w.startswith("-Wp,-MMD")]
                bad = {}
                for name in wanted:
                    # /dev/null includes it first and alone, by the flags of mm/.
                    p = run([*words, "-I", str(self.src / "mm"), "-fsyntax-only", "-include", str(self.src / name), "-x", "c",
                             "/dev/null"], cwd=folder, env=build_env(), check=False)
                    if p.returncode:
                        bad[name] = [line for line in p.stderr.splitlines() if "error" in line][:3] or [p.stderr[-300:]]
                return bad

            return self.kept("headers", [self.tree_id(at), tool_version(cc, variant), *wanted], make)

        bad = alone(commit, names)
        if bad:
            parent = git(self.base.repo, "rev-parse", f"{commit}^")
            before = alone(parent, [n for n in names if self.exists(parent, n)])
            bad = {n: e for n, e in bad.items() if n not in before}
        return Result(not bad, [f"{n}: {e[0]}" for n, e in bad.items()])

    def vanilla(self, commit: str) -> Result:
        """With CONFIG_PAGEOUT_CLUSTER=n the objects are those of the step before."""
        if not kconfig.definition(self.base, commit, "PAGEOUT_CLUSTER"):
            return Result(None, ["this step does not know CONFIG_PAGEOUT_CLUSTER"])
        cc = "gcc"
        parent = git(self.base.repo, "rev-parse", f"{commit}^")

        def code(at: str) -> dict:
            def make() -> dict:
                # The parent may not know the symbol: then it is off there by itself.
                variant = OFF
                self.configure(variant, cc, at)
                for name in VANILLA:
                    (self.obj(variant, cc) / name).unlink(missing_ok=True)
                status, said = self.make(variant, cc, *VANILLA)
                if status:
                    return {"error": said[-6:]}
                return {name: functions(self.obj(variant, cc) / name) for name in VANILLA}

            return self.kept("vanilla", [self.tree_id(at), self.fragment(OFF, at), tool_version(cc, OFF)], make)

        here, there = code(commit), code(parent)
        if "error" in here or "error" in there:
            return Result(False, here.get("error") or there.get("error"))
        detail = []
        for name in VANILLA:
            a, b = there[name], here[name]
            differ = sorted(f for f in a.keys() | b.keys() if a.get(f, [""])[0] != b.get(f, [""])[0])
            if differ:
                sizes = sum(v[1] for v in b.values()) - sum(v[1] for v in a.values())
                detail.append(f"{name}: {len(differ)} of {len(a)} functions differ ({sizes:+d} instructions): "
                              + ", ".join(differ[:8]) + (", .." if len(differ) > 8 else ""))
        return Result(not detail, detail)


def functions(obj: Path) -> dict[str, list]:
    """Each function of an object: digest of its code without addresses, number of instructions.

    Data sections count as functions of their own; those that hold line numbers and
    tables of addresses (bug table, orc, debugging) do not.
    """
    out = run(["objdump", "-dr", "--no-show-raw-insn", str(obj)]).stdout
    found: dict[str, list] = {}
    name, lines = "", []

    def flush() -> None:
        if name:
            found[name] = [digest("\n".join(lines)), sum(not line.startswith("R_") for line in lines)]

    for line in out.splitlines():
        if m := re.match(r"^[0-9a-f]+ <(.+)>:$", line):
            flush()
            # The compiler numbers its own copies of a function; the number says nothing.
            name, lines = re.sub(r"\.(\d+)$", "", m[1]), []
        elif m := re.match(r"^\s+[0-9a-f]+:\s+(.*)$", line):
            text = m[1].strip()
            if text.startswith("R_"):
                # Where in a section of strings or in the bug table something lies moves with what else is there.
                text = re.sub(r"(\.rodata[\w.]*|__bug_table|\.bss|\.data[\w.]*|\.text[\w.]*|\.init[\w.]*)[+-]0x[0-9a-f]+", r"\1", text)
                text = re.sub(r"^(\S+)\s+", r"\1 ", text)
            else:
                text = re.sub(r"\b[0-9a-f]+ (<[^>]+>)", r"\1", text)
            lines.append(text)
    flush()
    sizes = run(["objdump", "-h", str(obj)]).stdout
    for m in re.finditer(r"^\s*\d+ (\.data\S*|\.bss\S*|\.rodata(?!\.str)\S*)\s+([0-9a-f]+)", sizes, re.M):
        found[f"[{m[1]}]"] = [m[2], 0]
    return found


_versions: dict[str, str] = {}


def tool_version(cc: str, variant: Variant) -> str:
    name = "clang" if cc == "clang" else "aarch64-linux-gnu-gcc" if variant.arch == "arm64" else "gcc"
    if name not in _versions:
        _versions[name] = run([name, "--version"]).stdout.splitlines()[0]
    return _versions[name]


def home(base: Base) -> Path:
    return cache_root() / "series-check" / base.lineage


def check_names() -> list[str]:
    return [*TEXT_CHECKS, *OBJECT_CHECKS, *(f"{v.name}/{cc}" for v in VARIANTS for cc in COMPILERS)]


def check_step(checker: Checker, step: series.Step, wanted: list[str]) -> dict[str, Result]:
    """Run the wanted checks on one step; a check that cannot run is a failure that says why."""
    patch = step.patches[-1]
    results: dict[str, Result] = {}
    checker.progress = Progress(f"patch {step.name}: git am")
    try:
        commit = series.apply(checker.base, step.patches)
    except Failure as e:
        return {name: Result(False, str(e).splitlines()) if name == "am" else Result(None, ["the patch does not apply"])
                for name in wanted}
    sources = checker.sources(commit)
    by_name = {v.name: v for v in VARIANTS}
    for name in wanted:
        checker.progress = Progress(f"patch {step.name}: {name}")
        try:
            if name == "am":
                result = Result(True)
            elif name == "signed-off":
                result = checker.signed_off(commit)
            elif name == "whitespace":
                result = checker.whitespace(commit)
            elif name == "checkpatch":
                result = checker.checkpatch(commit, patch)
            elif name == "kernel-doc":
                result = checker.kernel_doc(commit)
            elif name == "headers":
                result = checker.headers(commit)
            elif name == "vanilla":
                result = checker.vanilla(commit)
            elif name == "W=1":
                result = checker.judged(by_name["default"], "gcc", commit, sources, "W=1") if sources else Result(None)
            elif name == "sparse":
                result = checker.judged(by_name["default"], "gcc", commit, sources, "C=2", "CHECK=sparse") if sources else Result(None)
            else:
                variant, _, cc = name.partition("/")
                result = checker.judged(by_name[variant], cc, commit, sources) if sources else Result(None)
        except Failure as e:
            result = Result(False, str(e).splitlines())
        checker.progress.done(result.cell())
        if result.ok is False:
            say(f"patch {step.name}: {name}: FAIL: {result.detail[0] if result.detail else ''}")
        results[name] = result
    return results


def table(rows: list[tuple[series.Step, dict[str, Result]]], wanted: list[str]) -> str:
    """Steps against checks; the two compilers of a configuration share a column."""
    columns: list[str] = []
    for name in wanted:
        column = name.partition("/")[0]
        if column not in columns:
            columns.append(column)

    def cell(results: dict[str, Result], column: str) -> str:
        cells = [results[n].cell() for n in wanted if n.partition("/")[0] == column]
        return cells[0] if len(set(cells)) == 1 else "/".join(cells)

    lines = []
    grid = [["patch", *(s.name for s, _ in rows)]] + [[c, *(cell(r, c) for _, r in rows)] for c in columns]
    widths = [max(len(row[i]) for row in grid) for i in range(len(grid[0]))]
    for number, row in enumerate(grid):
        lines.append("  ".join(word.ljust(width) for word, width in zip(row, widths)).rstrip())
        if number == 0:
            lines.append("  ".join("-" * width for width in widths))
    lines.append("")
    for step, _ in rows:
        lines.append(f"{step.name.rjust(3)}  {step.subject}")
    return "\n".join(lines)


__all__ = ["Checker", "check_names", "check_step", "home", "locked", "table", "ROOT"]
