# SPDX-License-Identifier: GPL-2.0-only
"""The series: it applies in both usual ways, is what it says, and refuses with a reason."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from conftest import ROOT, bench, command, kernel_py, lines_of
from pageout import series, source

PATCHES = ROOT / "patches" / source.SERIES_FOR


@pytest.fixture(scope="session")
def base() -> source.Base:
    return source.base_of(None)


@pytest.fixture
def small_tree(base: source.Base, tmp_path: Path) -> Path:
    """A user's tree with only what the patches touch: enough to apply them, quick to copy."""
    tree = tmp_path / "linux"
    files = {f for step in series.all_steps() for p in step.patches for f in p.files} | {"Makefile", ".gitignore"}
    tree.mkdir()
    present = source.git(base.repo, "ls-tree", "-r", "--name-only", base.commit, "--", *sorted(files)).splitlines()
    archive = tmp_path / "a.tar"
    source.git(base.repo, "archive", f"--output={archive}", base.commit, *present)
    assert command("tar", "-xf", archive, "-C", tree).returncode == 0
    return tree


def test_every_step_applies_with_git_am(base: source.Base) -> None:
    steps = lines_of(kernel_py("series"))
    names = [s["step"] for s in steps]
    assert "base" in names and "control:ra-unplugged" in names and "1" in names
    commits = {s["step"]: s["commit"] for s in steps}
    assert commits["base"] == base.commit
    assert len(set(commits.values())) == len(commits)


def test_steps_are_listed_alike_everywhere() -> None:
    ours = lines_of(kernel_py("steps"))[0]["steps"]
    theirs = bench("steps")
    assert theirs.returncode == 0, theirs.stderr
    for step in ours:
        assert step["name"] in theirs.stdout and step["subject"] in theirs.stdout


def test_patches_and_commits_agree(base: source.Base, tmp_path: Path) -> None:
    """What git format-patch makes of the commits is what stands in patches/, but for the lines at which another 6.12.y has it."""
    patches = series.read_series(PATCHES)
    commit = series.apply(base, tuple(patches))
    source.git(base.repo, "format-patch", "-q", "--zero-commit", "-N", "-o", str(tmp_path), f"{base.commit}..{commit}")
    written = sorted(tmp_path.glob("*.patch"))
    assert [p.path.name for p in patches] == [p.name for p in written]

    def essence(text: str) -> str:
        text = re.sub(r"(?s)\n-- \n[^\n]*\n*$", "\n", text)  # git's version
        text = re.sub(r"^Subject: \[PATCH[^]]*\] ", "Subject: ", text, flags=re.M)
        # Where it is depends on the release; the function that it is in takes git's attributes.
        text = re.sub(r"^@@ -\d+((?:,\d+)?) \+\d+((?:,\d+)?) @@.*$", r"@@ -\1 +\2 @@", text, flags=re.M)
        text = re.sub(r"^index [0-9a-f]+\.\.[0-9a-f]+", "index", text, flags=re.M)
        text = re.sub(r"\n[ \t]+", " ", text.partition("\n\n")[0]) + "\n\n" + text.partition("\n\n")[2]
        return text.rstrip() + "\n"

    for patch, again in zip(patches, written):
        assert essence(patch.content.decode()) == essence(again.read_text()), patch.name


def test_it_applies_with_quilt(small_tree: Path) -> None:
    env = {"QUILT_PATCHES": str(PATCHES), "QUILT_SERIES": str(PATCHES / "series"), "QUILTRC": "/dev/null"}
    pushed = command("quilt", "push", "-a", cwd=small_tree, env=env)
    assert pushed.returncode == 0, pushed.stdout + pushed.stderr
    # An offset is what the next 6.12.y brings; fuzz is context that has changed.
    assert "fuzz" not in pushed.stdout, pushed.stdout
    popped = command("quilt", "pop", "-a", cwd=small_tree, env=env)
    assert popped.returncode == 0, popped.stdout + popped.stderr


def test_a_patch_that_does_not_apply_is_named_with_file_and_hunk(small_tree: Path) -> None:
    patch = series.read_series(PATCHES)[0]
    victim = next(f for f in patch.files if f.endswith(".c") and f.startswith("mm/"))
    part = re.split(r"^diff --git ", patch.content.decode(), flags=re.M)
    hunks = next(p for p in part if p.split("\n", 1)[0].endswith(f"b/{victim}"))
    # A line that the second hunk (or the only one) looks for goes away.
    heads = re.findall(r"^@@ -(\d+),\d+ .*$", hunks, re.M)
    number = min(2, len(heads))
    lines = (small_tree / victim).read_text().splitlines(keepends=True)
    lines[int(heads[number - 1]) - 1] = "this line is another one\n"
    (small_tree / victim).write_text("".join(lines))

    result = kernel_py("series", "--linux", small_tree)
    assert result.returncode == 1
    assert patch.path.name in result.stderr
    assert f"{victim} hunk {number} (@@ -" in result.stderr, result.stderr
    assert "remedy" in result.stderr


def test_a_file_that_is_missing_is_named(small_tree: Path) -> None:
    patch = series.read_series(PATCHES)[0]
    victim = next(f for f in patch.files if f.endswith(".c"))
    (small_tree / victim).unlink()
    result = kernel_py("series", "--linux", small_tree)
    assert result.returncode == 1
    assert patch.path.name in result.stderr and victim in result.stderr


def test_a_user_s_tree_is_read_with_its_changes_and_never_written(small_tree: Path) -> None:
    command("git", "init", "-q", cwd=small_tree)
    (small_tree / "mm").mkdir(exist_ok=True)
    (small_tree / "mm" / "untracked.c").write_text("/* new */\n")
    (small_tree / "mm" / "product.o").write_text("an object\n")

    def state() -> list[tuple]:
        return sorted((str(p), p.lstat().st_mtime_ns, p.lstat().st_size, p.lstat().st_mode) for p in small_tree.rglob("*"))

    before = state()
    first = lines_of(kernel_py("source", "--linux", small_tree))[0]
    assert state() == before
    names = source.git(Path(first["repository"]), "ls-tree", "-r", "--name-only", first["tree"]).splitlines()
    assert "mm/untracked.c" in names and "mm/product.o" not in names

    again = lines_of(kernel_py("source", env={"LINUX": str(small_tree)}))[0]
    assert again["tree"] == first["tree"], "the same content is the same base"
    (small_tree / "mm" / "untracked.c").write_text("/* changed */\n")
    changed = lines_of(kernel_py("source", "--linux", small_tree))[0]
    assert changed["tree"] != first["tree"]


def test_what_is_no_kernel_is_refused(tmp_path: Path) -> None:
    result = kernel_py("series", "--linux", tmp_path)
    assert result.returncode == 1 and "not a kernel source tree" in result.stderr and str(tmp_path) in result.stderr
    result = kernel_py("series", "--linux", tmp_path / "none")
    assert result.returncode == 1 and "no such folder" in result.stderr


@pytest.mark.parametrize(("fault", "words"), [
    ("missing", ("series:1", "0001-gone.patch")),
    ("level", ("series:1", "-p0")),
    ("no-subject", ("0001-x.patch", "Subject")),
    ("no-diff", ("0001-x.patch", "no diff")),
    ("no-folder", ("no such folder",)),
])
def test_a_faulty_series_is_named(tmp_path: Path, fault: str, words: tuple[str, ...]) -> None:
    folder = tmp_path / "patches"
    if fault != "no-folder":
        folder.mkdir()
        (folder / "series").write_text({"missing": "0001-gone.patch\n", "level": "0001-x.patch -p0\n"}.get(fault, "0001-x.patch\n"))
        whole = series.read_series(PATCHES)[0].content.decode()
        head, _, rest = whole.partition("\n\n")
        text = {"no-subject": head.replace("Subject:", "X-Subject:") + "\n\n" + rest,
                "no-diff": head + "\n\nbody\n"}.get(fault, whole)
        (folder / "0001-x.patch").write_text(text)
    result = kernel_py("steps", env={"PAGEOUT_PATCHES": str(folder)})
    assert result.returncode == 1
    for word in words:
        assert word in result.stderr, result.stderr


def test_a_series_of_one_s_own(tmp_path: Path, base: source.Base) -> None:
    """A user's patch is a step like the others."""
    folder = tmp_path / "patches"
    shutil.copytree(PATCHES, folder)
    names = (folder / "series").read_text()
    (folder / "9999-mine.patch").write_text(
        "From: A User <user@example.com>\nDate: Mon, 1 Jan 2024 00:00:00 +0000\nSubject: [PATCH] mm: mine\n\nSay why.\n---\n"
        "diff --git a/mm/mine.c b/mm/mine.c\nnew file mode 100644\n--- /dev/null\n+++ b/mm/mine.c\n@@ -0,0 +1 @@\n+/* mine */\n")
    (folder / "series").write_text(names.rstrip("\n") + "\n9999-mine.patch\n")
    env = {**os.environ, "PAGEOUT_PATCHES": str(folder)}
    last = lines_of(kernel_py("steps", env=env))[0]["steps"][-1]
    assert last["subject"] == "mm: mine"
    applied = lines_of(kernel_py("series", "--step", last["name"], env=env))[0]
    assert source.git(base.repo, "show", f"{applied['commit']}:mm/mine.c") == "/* mine */"


def test_an_unknown_step_lists_what_there_is() -> None:
    result = kernel_py("key", "--step", "control:none")
    assert result.returncode == 1 and "control:ra-unplugged" in result.stderr


def test_the_quick_checks_of_a_maintainer(base: source.Base) -> None:
    result = command(ROOT / "scripts/series-check", "--checks", "am,signed-off,whitespace,checkpatch,kernel-doc", timeout_s=1800)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "0 failed" in result.stdout


@pytest.mark.full
def test_all_checks_of_a_maintainer() -> None:
    result = command(ROOT / "scripts/series-check", "--releases", timeout_s=6 * 3600)
    print(result.stdout)
    assert result.returncode == 0, result.stdout + result.stderr
