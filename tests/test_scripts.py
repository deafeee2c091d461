# SPDX-License-Identifier: GPL-2.0-only
"""The scripts: tidy, documented, and clear when something they need is not there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, command
from pageout.common import Failure, put_between


def project_files() -> list[Path]:
    """Every file of the project, with git or, from an archive, without."""
    result = command("git", "-c", f"safe.directory={ROOT}", "ls-files", "-z")
    if result.returncode == 0 and result.stdout:
        return [ROOT / n for n in result.stdout.split("\0") if n and (ROOT / n).is_file()]
    skip = {"build", "results", ".git", "__pycache__", ".pytest_cache"}
    return [p for p in ROOT.rglob("*") if p.is_file() and not skip & set(p.relative_to(ROOT).parts)]


FILES = project_files()


def shell_scripts() -> list[Path]:
    found = []
    for path in FILES:
        with path.open("rb") as f:
            if re.match(rb"#!\s*\S*(/sh|/bash|env bash)\b", f.readline(100)):
                found.append(path)
    return found


def test_shell_is_clean() -> None:
    scripts = shell_scripts()
    assert len(scripts) >= 5
    result = command("shellcheck", *scripts)
    assert result.returncode == 0, result.stdout


def test_python_is_clean() -> None:
    result = command("pyflakes3", *(p for p in FILES if p.suffix == ".py" or p.read_bytes()[:40].startswith(b"#!/usr/bin/python3")))
    assert result.returncode == 0, result.stdout


def test_every_file_says_its_licence() -> None:
    """The SPDX line, except in what others' tools wrote or cannot hold a comment."""
    exempt = re.compile(r"(^|/)(COPYING|VERSION|series|\.gitignore)$|\.(patch|json|log|png|html|ko|txt\.in)$|/(data|golden|corpus|fixtures)/"
                        r"|\.blktrace\.\d+$")
    bare = [str(p.relative_to(ROOT)) for p in FILES if not exempt.search(str(p.relative_to(ROOT)))
            and b"SPDX-License-Identifier: " not in p.read_bytes()[:400]]
    assert not bare


def test_no_path_of_a_machine_is_named() -> None:
    bad = []
    for path in FILES:
        if path.suffix in (".md", ".py", ".cc", ".cpp", ".h", ".c", ".sh", ".toml", "") and re.search(rb"/(root/\.|home/\w|work/)", path.read_bytes()):
            bad.append(str(path.relative_to(ROOT)))
    bad = [b for b in bad if b != "tests/test_scripts.py"]
    assert not bad


@pytest.mark.parametrize("name", ["bench", "check", "setup", "tools", "kernel.py", "series-check"])
def test_help_of_scripts(name: str) -> None:
    path = ROOT / "scripts" / name
    argv = ["/usr/bin/python3", str(path)] if name.endswith(".py") else [str(path)]
    result = command(*argv, "--help")
    assert result.returncode == 0 and "xample" in result.stdout, result.stdout + result.stderr


def test_wrong_words_are_refused() -> None:
    for name in ("bench", "setup"):
        result = command(ROOT / "scripts" / name, "--no-such-option")
        assert result.returncode == 2 and "usage" in result.stderr


# What scripts/setup calls and cannot harm the host; all else of a fake PATH is a stand-in.
HARMLESS = ("sh", "sed", "grep", "cat", "dirname", "env", "printf", "date", "id", "true")


def fake_system(folder: Path, **programs: str) -> dict[str, str]:
    """A PATH of stand-ins only; an empty text takes a program away.

    These tests run as root too, so nothing in the folder leads to a file of the host: what is real
    is reached through a script of one line, never a link (writing to a link writes over the
    host's own program), and what could change the host fails unless a test says what it does.
    """
    folder.mkdir()
    texts = {name: f'exec {shutil.which(name)} "$@"\n' for name in HARMLESS}
    texts |= {name: f"echo {name}: not in this test >&2; exit 99\n" for name in ("apt-get", "dpkg-query", "sudo")}
    texts |= {name.replace("_", "-"): text for name, text in programs.items()}
    for name, text in texts.items():
        if text:
            with (folder / name).open("x") as f:  # "x" fails where the name exists
                # Not "env sh": the PATH is this folder, whose sh is such a script itself.
                f.write("#!/bin/sh\n" + text)
            (folder / name).chmod(0o755)
    return {"PATH": str(folder), "PAGEOUT_YES": "1"}


def test_stand_ins_lead_nowhere(tmp_path: Path) -> None:
    """What a test writes into its PATH must not reach the host's programs."""
    env = fake_system(tmp_path / "bin", apt_get="exit 7\n", sudo="")
    for path in (tmp_path / "bin").iterdir():
        assert not path.is_symlink() and path.stat().st_nlink == 1, path
        assert path.resolve().is_relative_to(tmp_path.resolve()), path
    assert not (tmp_path / "bin" / "sudo").exists()
    for name, status in (("apt-get", 7), ("dpkg-query", 99)):
        found = shutil.which(name, path=env["PATH"])
        assert found and command(found, "install").returncode == status
    assert command(tmp_path / "bin" / "printf", "%s", "a b", env=env).stdout == "a b"


def test_no_test_writes_where_a_link_leads() -> None:
    """Links in fixtures lead to folders of the cache, which are shared on purpose, or to names beside them, and to nothing else."""
    links = {f"{p.relative_to(ROOT)}: {line.strip()}" for p in FILES if p.suffix == ".py" and p.is_relative_to(ROOT / "tests")
             for line in p.read_text().splitlines() if re.search(r"symlink_to\(|os\.(sym)?link\(|hardlink_to\(", line)
             and "re.search" not in line and "assert" not in line
             and not re.search(r'symlink_to\("(?!/)[^"{]*"\)', line.replace("..", "/"))}
    assert links == {"tests/conftest.py: (cache / name).symlink_to(real_cache / name)"}, links


def run_setup(env: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return command("/bin/sh", ROOT / "scripts/setup", *words, env=env)


def test_setup_is_silent_where_all_is_there(tmp_path: Path) -> None:
    log = tmp_path / "apt.log"
    env = fake_system(tmp_path / "bin", apt_get=f"echo \"$*\" >>{log}\n",
                      dpkg_query='for p; do case $p in -*|*{*) ;; *) echo "ii  $p";; esac; done\n')
    result = run_setup(env, "full")
    assert result.returncode == 0 and not result.stderr and not log.exists()


def test_setup_asks_apt_for_exactly_what_is_missing(tmp_path: Path) -> None:
    log, done = tmp_path / "apt.log", tmp_path / "done"
    env = fake_system(tmp_path / "bin", id="echo 0\n", apt_get=f"echo \"$*\" >>{log}; case \"$*\" in *install*) : >{done};; esac\n",
                      dpkg_query=f'for p; do case $p in -*|*{{*) ;; git|fio) [ -e {done} ] && echo "ii  $p";; *) echo "ii  $p";; esac; done; true\n')
    result = run_setup(env, "bench")
    assert result.returncode == 0, result.stderr
    install = [line for line in log.read_text().splitlines() if "install" in line]
    assert len(install) == 1 and install[0].split()[-2:] == ["git", "fio"]


def test_setup_without_root_and_sudo_says_what_to_do(tmp_path: Path) -> None:
    env = fake_system(tmp_path / "bin", id="echo 1000\n", sudo="", dpkg_query="exit 1\n")
    result = run_setup(env, "bench")
    assert result.returncode == 1
    assert "root" in result.stderr and "sudo" in result.stderr and "apt-get install" in result.stderr and "linux-source-6.12" in result.stderr


def test_setup_uses_sudo_where_it_is_not_root(tmp_path: Path) -> None:
    log, done = tmp_path / "sudo.log", tmp_path / "done"
    env = fake_system(tmp_path / "bin", id="echo 1000\n", sudo=f"echo \"$*\" >>{log}; : >{done}\n",
                      dpkg_query=f'[ -e {done} ] && for p; do echo "ii  $p"; done; true\n')
    result = run_setup(env, "bench")
    assert result.returncode == 0, result.stderr
    assert "apt-get" in log.read_text()


def test_setup_tells_when_apt_fails(tmp_path: Path) -> None:
    env = fake_system(tmp_path / "bin", id="echo 0\n", apt_get="echo no network >&2; exit 100\n", dpkg_query="exit 1\n")
    result = run_setup(env, "bench")
    assert result.returncode == 1 and "no network" in result.stderr and "failed" in result.stderr


def test_packages_are_named_in_one_place_only() -> None:
    text = (ROOT / "scripts/packages.txt").read_text()
    names = re.findall(r"^(?:bench|check|full) (\S+)$", text, re.M)
    assert len(names) == len(set(names)) and len(names) > 30
    others = [str(p.relative_to(ROOT)) for p in FILES
              if p.suffix in ("", ".sh", ".py") and "apt-get install -y" in p.read_text(errors="replace")]
    assert set(others) <= {"tests/test_scripts.py"}, others


def test_the_project_works_without_git(tmp_path: Path) -> None:
    """From an archive, without .git, and from a folder with a space in its name."""
    copy = tmp_path / "page out"
    for path in FILES:
        target = copy / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
        target.chmod(path.stat().st_mode)
    result = command("/usr/bin/python3", copy / "scripts/kernel.py", "series", cwd="/")
    assert result.returncode == 0, result.stderr
    explain = command("/usr/bin/python3", copy / "scripts/kernel.py", "key", "--step", "full", cwd="/")
    here = command("/usr/bin/python3", ROOT / "scripts/kernel.py", "key", "--step", "full", cwd="/")
    assert explain.stdout == here.stdout, "the same content is the same kernel in every clone"


def test_the_readme_s_commands_exist() -> None:
    text = (ROOT / "README.md").read_text()
    for name in re.findall(r"scripts/([\w.-]+)", text):
        assert (ROOT / "scripts" / name).exists(), name
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"`make ([\w-]+)`", text):
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_scripts_that_a_user_starts_are_executable() -> None:
    for name in ("bench", "check", "setup", "tools", "series-check", "kernel.py", "coverage", "oom-sweep", "mutations"):
        assert os.access(ROOT / "scripts" / name, os.X_OK), name
    assert os.access(ROOT / ".ci/run", os.X_OK)


def test_what_stands_between_marks_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    doc = tmp_path / "doc.md"
    doc.write_text("head\n<!-- t: begin (by hand) -->\nold\nolder\n<!-- t: end -->\ntail\n")
    put_between(doc, "<!-- t: begin", "<!-- t: end -->", "new\n")
    assert doc.read_text() == "head\n<!-- t: begin (by hand) -->\nnew\n<!-- t: end -->\ntail\n"
    before = doc.read_text()
    with pytest.raises(Failure, match="doc.md: the marks"):
        put_between(doc, "<!-- u: begin", "<!-- t: end -->", "new")
    assert doc.read_text() == before
