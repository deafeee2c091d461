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
import tempfile
import tomllib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from . import kconfig, series
from .build import build_env
from .common import (ROOT, Failure, Progress, cache_root, clean_env, digest, locked, need_space, run, run_ticking, say,
                     stream, write_atomic)
from .source import Base, git

# Raise it when results of an older version of this file must not be used.
CHECK_VERSION = 2
# What CONFIG_PAGEOUT_CLUSTER=n must leave as the step before has it.
VANILLA = ("mm/vmscan.o", "mm/page_io.o", "mm/swap_state.o", "mm/swap.o", "mm/swapfile.o")
# Whoever includes a touched header is looked for among these: the files of page-out and what they lean on.
USERS = tuple(f"mm/{n}.c" for n in ("vmscan", "page_io", "swap_state", "swapfile", "swap", "vmstat", "memcontrol", "rmap",
                                    "memory", "shmem", "page_alloc", "pageout", "madvise", "zswap"))
# Functions that differ nevertheless, each with the reason.
EXPLAINED = Path(__file__).with_name("vanilla.toml")
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

    notes: list[str] = field(default_factory=list)  # of a check that passed: what it let pass, and why

    def cell(self) -> str:
        return "-" if self.ok is None else ("ok*" if self.notes else "ok") if self.ok else "FAIL"


def without_places(lines: list[str]) -> set[str]:
    """Warnings with line numbers taken off, which move with every patch."""
    return {without_place(line) for line in lines}


def without_place(line: str) -> str:
    return re.sub(r":\d+(:\d+)?:", ":", line)


def context_of_others(here: list[str], there: list[str], new: set[str], touched: set[str]) -> set[str]:
    """Of the new warnings those of sparse that are not the patch's: helpers of the kernel that take or drop a lock
    without saying so, about which sparse complains in each function that uses them.

    Either the place is in a header that the patch does not touch, and the parent has the same warning for
    other users; or a file has no more of them than before, and a function has got another name.
    """
    def form(line: str) -> str:
        return re.sub(r"'\w+'", "''", line)

    before, now = Counter(form(w) for w in map(without_place, there)), Counter(form(w) for w in map(without_place, here))
    found = set()
    for line in new:
        file, kind = line.partition(":")[0], form(line)
        if "context imbalance" in line and before[kind] and (file.endswith(".h") and file not in touched or now[kind] <= before[kind]):
            found.add(line)
    return found


class Checker:
    # Configurations in which the series' options cannot be on.
    WITHOUT = ("swap-n",)

    def __init__(self, base: Base, lock_fd: int) -> None:
        self.base = base
        self.lock_fd = lock_fd
        self.home = home(base)
        self.src = self.home / "src"
        self.at = ""
        self.ids: dict[str, str] = {}
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
        # Building an object brings all it needs up to date by itself; from nothing is what
        # takes time, so only where another configuration can come out.
        asked = text + digest(self.base.tree, git(self.base.repo, "rev-parse", *(f"{commit}:{name}" for name in self.kconfigs(commit))))
        if not stamp.exists() or stamp.read_text() != asked:
            stamp.unlink(missing_ok=True)
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
            # What the series is about must be on, or the check would say nothing of it.
            for ask in kconfig.effective(self.base, commit, kconfig.Fragments((), kconfig.fragments([], []).optional)):
                if ask.line() in text.splitlines() and ask.line() not in config and variant.name not in self.WITHOUT:
                    raise Failure(f"configuration {variant.name}: {ask.line()} was not granted: what does it depend on?")
            status, said = self.make(variant, cc, "prepare")
            if status:
                raise Failure(f"make prepare for {variant.name} with {cc}:\n" + "\n".join(said[-12:]))
            write_atomic(stamp, asked)

    def kconfigs(self, commit: str) -> list[str]:
        """The Kconfig files that any patch of the series touches; the rest is the base's."""
        out = git(self.base.repo, "diff", "--name-only", "--diff-filter=d", self.base.commit, commit)
        return [name for name in out.splitlines() if Path(name).name.startswith("Kconfig")]

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
        """What compilers see of a commit: the base, and the files that differ from it, but for documentation."""
        if commit not in self.ids:
            out = git(self.base.repo, "diff-tree", "-r", "--no-renames", self.base.commit, commit)
            self.ids[commit] = digest(self.base.tree, *(line for line in out.splitlines()
                                                        if not line.partition("\t")[2].startswith(("Documentation/", "MAINTAINERS"))))
        return self.ids[commit]

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
        notes = context_of_others(here["messages"], there["messages"], new, set(self.touched(commit)))
        new -= notes
        return Result(not new, sorted(new)[:12], sorted(notes))

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
        return vanilla_result({n: (there[n], here[n]) for n in VANILLA},
                              git(self.base.repo, "show", "-s", "--format=%s", commit))


def vanilla_result(objects: dict[str, tuple[dict, dict]], subject: str) -> Result:
    """Functions that differ (before, after) must be those that vanilla.toml explains for the patch of this subject."""
    try:
        known = [e for e in tomllib.loads(EXPLAINED.read_text())["differs"] if e["patch"] == subject]
    except (OSError, tomllib.TOMLDecodeError, KeyError) as e:
        raise Failure(f"{EXPLAINED}: {e}") from e
    detail: list[str] = []
    notes: list[str] = []
    unused = {(e["object"], f) for e in known for f in e["functions"]}
    for name, (a, b) in objects.items():
        differ = {f for f in a.keys() | b.keys() if a.get(f, [""])[0] != b.get(f, [""])[0]}
        for entry in (e for e in known if e["object"] == name):
            mine = [f for f in entry["functions"] if f in differ]
            unused -= {(name, f) for f in mine}
            if mine:
                grown = sum(b.get(f, ["", 0])[1] - a.get(f, ["", 0])[1] for f in mine)
                notes.append(f"{name}: {', '.join(mine)} ({grown:+d} instructions): {entry['why']}")
                differ -= set(mine)
        for f in sorted(differ):
            before, after = a.get(f, ["", 0])[1], b.get(f, ["", 0])[1]
            detail.append(f"{name}: {f} differs ({before} instructions, {after} after the patch)")
    for name, f in sorted(unused):
        detail.append(f"{name}: {f} is the same; take it out of {EXPLAINED.name}")
    return Result(not detail, detail, notes)


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


# -- other releases -------------------------------------------------------------------


def releases(package: str) -> list[str]:
    """The versions of a package that Debian offers, the oldest first."""
    out = run(["apt-cache", "madison", package]).stdout
    found = list(dict.fromkeys(line.split("|")[1].strip() for line in out.splitlines() if line.count("|") == 2))
    found.sort(key=lambda v: [int(n) for n in re.findall(r"\d+", v)])
    if not found:
        raise Failure(f"apt-cache knows no version of {package}\n  remedy: apt-get update")
    return found


def release_tarball(package: str, version: str, folder: Path, tick: Callable[[], None]) -> Path:
    """The source of that version, downloaded once; only the package's tarball is kept."""
    kept = folder / f"{package}_{version}.tar.xz"
    if kept.is_file():
        return kept
    need_space(folder, 1 << 30, f"{package} {version}")
    with tempfile.TemporaryDirectory(dir=folder, prefix=".download-") as temp:
        run_ticking(["apt-get", "-q", "download", f"{package}={version}"], tick, cwd=Path(temp), env=clean_env())
        packages = list(Path(temp).glob("*.deb"))
        if len(packages) != 1:
            raise Failure(f"apt-get download {package}={version} left no package")
        run_ticking(["sh", "-c", f'dpkg-deb --fsys-tarfile "$1" | tar -xOf - ./usr/src/{package}.tar.xz >tarball', "sh", str(packages[0])],
                    tick, cwd=Path(temp), env=clean_env())
        if not (Path(temp) / "tarball").stat().st_size:
            raise Failure(f"{packages[0].name} has no /usr/src/{package}.tar.xz")
        os.replace(Path(temp) / "tarball", kept)
    return kept


def applies_to_release(tarball: Path, patches: list[series.Patch], tick: Callable[[], None]) -> Result:
    """git am of the whole series onto a repository that holds the files it touches, as that release has them."""
    files = sorted({f for p in patches for f in p.files})
    with tempfile.TemporaryDirectory(dir=tarball.parent, prefix=".tree-") as temp:
        tree, env = Path(temp), clean_env()
        # The name of the folder inside differs between packages; new files are not there.
        names = [w for f in files for w in ("--wildcards", f"*/{f}")]
        stream(["tar", "-xJf", str(tarball), "--strip-components=1", "--no-wildcards-match-slash", *names], lambda _line: None, tick, cwd=tree, env=env)
        if not (tree / "mm/vmscan.c").is_file():
            return Result(False, [f"{tarball.name} has no mm/vmscan.c"])
        who = ["-c", "user.name=series-check", "-c", "user.email=series-check@example.com", "-c", "gc.auto=0"]
        run(["git", "init", "-q"], cwd=tree, env=env)
        run(["git", "add", "-A"], cwd=tree, env=env)
        run(["git", *who, "commit", "-q", "-m", tarball.name], cwd=tree, env=env)
        for patch in patches:
            p = run(["git", *who, "am", "-q", str(patch.path.resolve())], cwd=tree, env=env, check=False)
            if p.returncode:
                return Result(False, [patch.path.name, *(p.stdout + p.stderr).splitlines()[:6]])
    return Result(True)


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
                # rmap.c: it has what users of its header's helpers are measured by.
                result = checker.judged(by_name["default"], "gcc", commit, sorted({*sources, "mm/rmap.c"}), "C=2", "CHECK=sparse") \
                    if sources else Result(None)
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
