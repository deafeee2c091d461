# SPDX-License-Identifier: GPL-2.0-only
"""Steps: the base, the base plus the first k patches, and the controls."""

from __future__ import annotations

import contextlib
import email
import email.header
import email.policy
import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from .common import ROOT, Failure, clean_env, digest, locked, run
from .source import IDENTITY, SERIES_FOR, Base, git


@dataclass(frozen=True)
class Patch:
    path: Path
    content: bytes
    subject: str
    files: tuple[str, ...]  # every path it touches, as in its diff headers

    @property
    def name(self) -> str:
        with contextlib.suppress(ValueError):
            return str(self.path.resolve().relative_to(ROOT))
        return str(self.path)


@dataclass(frozen=True)
class Step:
    """`name` is "base", "3" or "control:ra-unplugged"; `patches` go onto the base in order."""

    name: str
    subject: str
    patches: tuple[Patch, ...]


def patches_dir() -> Path:
    """patches/6.12, or PAGEOUT_PATCHES for a series of the user's own."""
    return Path(os.environ.get("PAGEOUT_PATCHES") or ROOT / "patches" / SERIES_FOR)


def read_patch(path: Path) -> Patch:
    try:
        content = path.read_bytes()
    except OSError as e:
        raise Failure(f"{path}: {e.strerror}") from e
    message = email.message_from_bytes(content, policy=email.policy.default)
    subject = " ".join(str(message.get("Subject", "")).split())
    subject = re.sub(r"^\s*(\[[^\]]*\]\s*)+", "", subject)
    if not subject:
        raise Failure(f"{path}: no Subject: line; a patch must be as git format-patch writes it")
    names = re.findall(rb"^diff --git a/(\S+) b/(\S+)$", content, re.M)
    if not names:
        raise Failure(f"{path}: holds no diff; a patch must be as git format-patch writes it")
    files = tuple(sorted({n.decode() for pair in names for n in pair}))
    return Patch(path, content, subject, files)


def read_series(folder: Path) -> list[Patch]:
    """The patches that `series` names, in its order (quilt's format: names, # comments, -p1)."""
    try:
        text = (folder / "series").read_text()
    except FileNotFoundError:
        return []
    except OSError as e:
        raise Failure(f"{folder / 'series'}: {e.strerror}") from e
    found: list[Patch] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if words[1:] not in ([], ["-p1"]):
            raise Failure(f"{folder / 'series'}:{number}: only -p1 patches are understood, not {' '.join(words[1:])}")
        path = folder / words[0]
        if not path.is_file():
            raise Failure(f"{folder / 'series'}:{number}: {words[0]} is named here and missing from {folder}")
        found.append(read_patch(path))
    return found


def all_steps(version: str = SERIES_FOR) -> list[Step]:
    folder = patches_dir()
    if not folder.is_dir():
        raise Failure(f"{folder}: no such folder of patches")
    controls = []
    for path in sorted((folder / "controls").glob("*.patch")):
        patch = read_patch(path)
        controls.append(Step("control:" + re.sub(r"^\d+-", "", path.stem), patch.subject, (patch,)))
    series = read_series(folder)
    steps = [Step("base", f"Linux {version}", ())]
    for k in range(1, len(series) + 1):
        steps.append(Step(str(k), series[k - 1].subject, tuple(series[:k])))
    return controls + steps


def find_step(name: str, version: str = SERIES_FOR) -> Step:
    """The step of that name; "0" is base and "full" the last patch."""
    steps = all_steps(version)
    if name == "full":
        last = steps[-1]
        return Step("full", last.subject, last.patches)
    wanted = "base" if name == "0" else name.lstrip("0") if name.isdigit() else name
    for step in steps:
        if step.name == wanted:
            return step
    raise Failure(f"there is no step {name!r}; there are: {', '.join(s.name for s in steps)}, full")


def series_key(base: Base, patches: tuple[Patch, ...]) -> str:
    return digest(base.tree, *(p.content for p in patches))[:20]


def refused(base: Base, patch: Patch, tree: Path, said: str) -> Failure:
    """The error for a patch that does not apply: patch, file, hunk and what the hunk looked for."""
    probe = run(["git", "apply", "--reject", "--verbose", str(patch.path)], cwd=tree, check=False)
    places: list[str] = []
    current = ""
    for line in probe.stderr.splitlines():
        if m := re.match(r"(?:Checking|Applying) patch (\S+?)(?:\.\.\.| with )", line):
            current = m[1]
        elif m := re.match(r"Rejected hunk #(\d+)\.", line):
            places.append(f"{current} hunk {m[1]}{hunk_header(patch, current, int(m[1]))}")
        elif (m := re.match(r"error: (\S+): (No such file or directory|does not exist in index|already exists in .*)", line)):
            places.append(f"{m[1]}: {m[2]}")
        elif m := re.match(r"error: (corrupt patch at line \d+|patch fragment without header.*)", line):
            places.append(m[1])
    unique = list(dict.fromkeys(places))
    detail = "\n".join(f"  {p}" for p in unique) or "  " + (said.strip() or probe.stderr.strip())[-1500:].replace("\n", "\n  ")
    return Failure(f"{patch.name} does not apply to {base.origin} (Linux {base.version}):\n{detail}\n"
                   "  remedy: bring a tree that the series is for, or rebase the patch onto this one")


def hunk_header(patch: Patch, file: str, number: int) -> str:
    body = re.split(rb"^diff --git ", patch.content, flags=re.M)
    for part in body[1:]:
        if part.split(b"\n", 1)[0].split()[-1].decode() == f"b/{file}":
            heads = re.findall(rb"^@@ .*$", part, re.M)
            if number <= len(heads):
                return f" ({heads[number - 1].decode(errors='replace').strip()})"
    return ""


def apply(base: Base, patches: tuple[Patch, ...]) -> str:
    """The commit that `git am` of the patches onto the base gives; cached by content."""
    if not patches:
        return base.commit
    ref = f"refs/series/{base.tree[:20]}/{series_key(base, patches)}"
    known = git(base.repo, "rev-parse", "-q", "--verify", f"{ref}^{{commit}}", check=False)
    if known:
        return known
    with locked(base.repo.parent / "series.lock", "the patch series"):
        # The nearest prefix that is already applied is where we go on from.
        at, done = base.commit, 0
        for k in range(len(patches) - 1, 0, -1):
            prefix = git(base.repo, "rev-parse", "-q", "--verify",
                         f"refs/series/{base.tree[:20]}/{series_key(base, patches[:k])}^{{commit}}", check=False)
            if prefix:
                at, done = prefix, k
                break
        temp = Path(tempfile.mkdtemp(dir=base.repo.parent, prefix=".am-"))
        tree = temp / "tree"
        env = clean_env(**IDENTITY)
        try:
            # Only the touched files are checked out: git am needs no others.
            run(["git", f"--git-dir={base.repo}", "worktree", "add", "-q", "--no-checkout", "--detach", str(tree), at],
                env=env)
            touched = "".join(f"/{f}\n" for p in patches for f in p.files)
            run(["git", "sparse-checkout", "set", "--no-cone", "--stdin"], cwd=tree, env=env, stdin=touched)
            run(["git", "read-tree", "-m", "-u", "HEAD"], cwd=tree, env=env)
            for k, patch in enumerate(patches[done:], done + 1):
                result = run(["git", "am", "-q", "--keep-cr", "--committer-date-is-author-date", str(patch.path)], cwd=tree,
                             env=env, check=False)
                if result.returncode:
                    run(["git", "am", "--abort"], cwd=tree, env=env, check=False)
                    raise refused(base, patch, tree, result.stderr + result.stdout)
                head = run(["git", "rev-parse", "HEAD"], cwd=tree, env=env).stdout.strip()
                git(base.repo, "update-ref", f"refs/series/{base.tree[:20]}/{series_key(base, patches[:k])}", head)
            return head
        finally:
            shutil.rmtree(temp, ignore_errors=True)
            git(base.repo, "worktree", "prune", check=False)
