# SPDX-License-Identifier: GPL-2.0-only
"""Base kernels: one bare repository in the cache that holds each base as one commit.

A base comes from Debian's linux-source-6.12 package or from a user's tree. The user's
tree is only read: its content, uncommitted changes included, is added to our
repository with an index of ours. The base's name is its git tree id, so the same
content is the same base wherever it came from.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path

from .common import (Failure, Progress, cache_root, clean_env, digest, file_digest, locked, need_space, run, say,
                     stream, write_atomic)

SERIES_FOR = "6.12"
PACKAGE = "linux-source-6.12"
# Fixed, so that one content gives one commit id everywhere.
IDENTITY = {
    "GIT_AUTHOR_NAME": "pageout", "GIT_AUTHOR_EMAIL": "bench@pageout.invalid", "GIT_AUTHOR_DATE": "2020-01-01T00:00:00Z",
    "GIT_COMMITTER_NAME": "pageout", "GIT_COMMITTER_EMAIL": "bench@pageout.invalid",
    "GIT_COMMITTER_DATE": "2020-01-01T00:00:00Z",
}


@dataclass(frozen=True)
class Base:
    """A base kernel: `commit` and `tree` in `repo`, `version` as its Makefile says."""

    repo: Path
    commit: str
    tree: str
    version: str
    origin: str  # what the user would call it: a package and its version, or a folder
    lineage: str  # bases of one lineage share a working tree (one folder, edited over time)


def repository() -> Path:
    """The bare repository of all bases and series; made on first use."""
    repo = cache_root() / "source" / "linux.git"
    if not (repo / "HEAD").exists():
        with locked(cache_root() / "source" / "lock", "the kernel source"):
            if not (repo / "HEAD").exists():
                run(["git", "init", "-q", "--bare", str(repo)])
                for key, value in (("gc.auto", "0"), ("core.looseCompression", "1"), ("pack.compression", "1"),
                                   ("core.compression", "1"), ("maintenance.auto", "false")):
                    run(["git", "-C", str(repo), "config", key, value])
    return repo


def git(repo: Path, *args: str, check: bool = True, **env: str) -> str:
    return run(["git", f"--git-dir={repo}", *args], env=clean_env(**IDENTITY, **env), check=check).stdout.strip()


def kernel_version(makefile: str) -> str | None:
    """6.12.117 from the head of a kernel's top Makefile; None where it is not one."""
    found = dict(re.findall(r"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION)[ \t]*=[ \t]*(\S*)$", makefile[:2000], re.M))
    if not {"VERSION", "PATCHLEVEL", "SUBLEVEL"} <= found.keys():
        return None
    return f"{found['VERSION']}.{found['PATCHLEVEL']}.{found['SUBLEVEL']}{found.get('EXTRAVERSION', '')}"


def commit_base(repo: Path, tree: str, origin: str) -> tuple[str, str]:
    """Commit and version of a base whose tree is in the repository."""
    ref = f"refs/bases/{tree}"
    makefile = git(repo, "cat-file", "blob", f"{tree}:Makefile", check=False)
    version = kernel_version(makefile)
    if version is None:
        raise Failure(f"{origin} is not a kernel source tree: its Makefile names no VERSION, PATCHLEVEL and SUBLEVEL")
    commit = git(repo, "rev-parse", "-q", "--verify", f"{ref}^{{commit}}", check=False)
    if not commit:
        commit = git(repo, "commit-tree", "-m", f"Linux {version}", tree)
        git(repo, "update-ref", ref, commit)
    return commit, version


def package_tarball() -> Path:
    """Debian's source of the kernel, as the package installs it."""
    named = os.environ.get("PAGEOUT_LINUX_TARBALL")
    path = Path(named) if named else Path("/usr/src") / f"{PACKAGE}.tar.xz"
    if not path.is_file():
        raise Failure(
            f"{path} is missing: the kernel source comes from Debian's package {PACKAGE}\n"
            "  remedy: scripts/setup, or bring a tree of your own with --linux DIR (or LINUX=DIR)"
        )
    return path


def fast_import(repo: Path, tarball: Path, ref: str) -> None:
    """Import a tar archive's files, one leading folder taken off, as one commit at `ref`."""
    need_space(repo, 3 << 29, f"importing {tarball}")
    progress = Progress(f"importing {tarball.name}")
    p = subprocess.Popen(["git", f"--git-dir={repo}", "-c", "pack.compression=1", "fast-import", "--quiet",
                          "--depth=0", "--force", "--done"], stdin=subprocess.PIPE, stderr=subprocess.PIPE,
                         env=clean_env(**IDENTITY))
    assert p.stdin is not None and p.stderr is not None
    out = p.stdin
    try:
        who = f"{IDENTITY['GIT_AUTHOR_NAME']} <{IDENTITY['GIT_AUTHOR_EMAIL']}> 1577836800 +0000"
        message = b"import\n"
        out.write(f"commit {ref}\ncommitter {who}\ndata {len(message)}\n".encode() + message + b"deleteall\n")
        count = 0
        with tarfile.open(tarball, "r|*") as tar:
            for member in tar:
                name = member.name.partition("/")[2]
                if member.isdir() or not name:
                    continue
                if member.issym():
                    mode, data = "120000", member.linkname.encode()
                elif member.isfile():
                    handle = tar.extractfile(member)
                    assert handle is not None
                    mode, data = ("100755" if member.mode & 0o100 else "100644"), handle.read()
                else:
                    raise Failure(f"{tarball}: {member.name} is neither file, folder nor symbolic link")
                quoted = '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
                out.write(f"M {mode} inline {quoted}\ndata {len(data)}\n".encode() + data + b"\n")
                count += 1
                progress.tick(f"{count} files")
        out.write(b"done\n")
        out.close()
        if p.wait():
            raise Failure(f"git fast-import of {tarball} failed:\n{p.stderr.read().decode(errors='replace')[-2000:]}")
        progress.done(f"{count} files")
    except tarfile.TarError as e:
        raise Failure(f"{tarball} cannot be read: {e}\n  remedy: apt-get install --reinstall {PACKAGE}") from e
    except BrokenPipeError as e:
        p.wait()
        said = p.stderr.read().decode(errors="replace")[-2000:]
        hint = "the disk is full: free some space or set PAGEOUT_CACHE\n" if "No space left" in said else ""
        raise Failure(f"git fast-import of {tarball} failed: {hint}{said}") from e
    finally:
        if p.poll() is None:
            p.kill()
            p.wait()


def from_package() -> Base:
    """The base of Debian's package, imported once for each of its versions."""
    tarball = package_tarball()
    repo = repository()
    stat = tarball.stat()
    # The digest of 150 MB is taken once for each state of the file, not at each run.
    note = repo.parent / "package" / digest(str(tarball), str(stat.st_size), str(stat.st_mtime_ns))[:20]
    with locked(repo.parent / "lock", "the kernel source"):
        try:
            sha, tree = json.loads(note.read_text())
            known = bool(git(repo, "rev-parse", "-q", "--verify", f"refs/bases/{tree}^{{commit}}", check=False))
        except (OSError, ValueError):
            sha, tree, known = file_digest(tarball), "", False
        if not known:
            ref = f"refs/imports/{sha[:20]}"
            tree = git(repo, "rev-parse", "-q", "--verify", f"{ref}^{{tree}}", check=False)
            if not tree:
                fast_import(repo, tarball, ref)
                tree = git(repo, "rev-parse", f"{ref}^{{tree}}")
            commit_base(repo, tree, str(tarball))
            git(repo, "update-ref", "-d", ref)
            write_atomic(note, json.dumps([sha, tree]))
        commit, version = commit_base(repo, tree, str(tarball))
    package = run(["dpkg-query", "-W", "-f", "${Version}", PACKAGE], check=False).stdout if shutil.which("dpkg-query") else ""
    origin = f"{PACKAGE} {package}".strip() if "PAGEOUT_LINUX_TARBALL" not in os.environ else str(tarball)
    return Base(repo, commit, tree, version, origin, "package")


# Debian's kernel trees ignore everything outside debian/ by a line "/*". For those: what make leaves at
# the top of a tree, which their .gitignore does not name apart.
TOP_PRODUCTS = ("!/*", "/.*", "!/.gitignore", "!/.gitattributes", "!/.mailmap", "!/.clang-format", "!/.clippy.toml",
                "!/.cocciconfig", "!/.editorconfig", "!/.get_maintainer.ignore", "!/.rustfmt.toml", "*.o", "*.a", "/vmlinux*",
                "/System.map*", "/Module*.symvers", "/modules.*", "/modules-only.symvers", "/tags", "/TAGS", "/cscope*",
                "*.ko", "*.mod", "*.mod.c", "*.cmd", "*.orig", "*.rej")


def names_in(folder: Path, state: Path) -> set[str]:
    """The source files of a user's tree, relative: all that its .gitignore files do not leave out, and
    whatever its own git tracks."""
    env = clean_env(GIT_DIR=str(repository()), GIT_WORK_TREE=str(folder), GIT_INDEX_FILE=str(state / "none"),
                    GIT_OPTIONAL_LOCKS="0")
    words = ["--exclude-per-directory=.gitignore"]
    ignore = folder / ".gitignore"
    if ignore.is_file() and "/*" in ignore.read_text(errors="replace").split():
        words += [w for pattern in TOP_PRODUCTS for w in ("-x", pattern)]
    found = run(["git", "-c", "core.bare=false", "ls-files", "-z", "--others", *words], cwd=folder, env=env).stdout.split("\0")
    if (folder / ".git").exists():
        env = clean_env(GIT_OPTIONAL_LOCKS="0")
        tracked = run(["git", "-c", f"safe.directory={folder}", "ls-files", "-z", "--cached"], cwd=folder, env=env).stdout.split("\0")
        found += [n for n in tracked if (folder / n).is_symlink() or (folder / n).is_file()]
    # A name that ends in a slash is a repository within the tree, which is none of the kernel.
    return {n for n in found if n and not n.endswith("/")}


def from_folder(folder: Path) -> Base:
    """The base of a user's tree as it stands now, uncommitted and untracked files included.

    What the tree's own .gitignore leaves out (build products) stays out. Nothing is
    written into the folder.
    """
    if not folder.is_dir():
        raise Failure(f"--linux {folder}: no such folder")
    folder = folder.resolve()
    try:
        head = (folder / "Makefile").read_text(errors="replace")
    except OSError as e:
        raise Failure(f"--linux {folder}: not a kernel source tree: Makefile: {e.strerror}") from e
    version = kernel_version(head)
    if version is None:
        raise Failure(f"--linux {folder}: not a kernel source tree: its Makefile names no VERSION and PATCHLEVEL")
    if not (version + ".").startswith(SERIES_FOR + "."):
        say(f"note: {folder} is Linux {version}; the series is for {SERIES_FOR}, so patches may not apply")
    repo = repository()
    lineage = digest("folder", str(folder))[:20]
    state = repo.parent / "folders" / lineage
    state.mkdir(parents=True, exist_ok=True)
    with locked(repo.parent / "lock", "the kernel source"):
        (state / "index.lock").unlink(missing_ok=True)
        fresh = not (state / "index").exists()
        if fresh:
            need_space(repo, 1 << 30, f"reading {folder}")
        progress = Progress(f"reading {folder}")
        # Our repository and our index: the user's object database and index stay as they are.
        env = clean_env(**IDENTITY, GIT_DIR=str(repo), GIT_WORK_TREE=str(folder), GIT_INDEX_FILE=str(state / "index"))
        git_words = ["git", "-c", "core.bare=false", "-c", "core.fileMode=true", "update-index", "-z"]
        wanted = names_in(folder, state)
        progress.tick(f"{len(wanted)} files")
        before = set() if fresh else set(run(["git", "ls-files", "-z"], env=env, cwd=folder).stdout.split("\0")) - {""}
        if gone := before - wanted:
            run([*git_words, "--force-remove", "--stdin"], env=env, cwd=folder, stdin="\0".join(gone) + "\0")
        (state / "names").write_text("\0".join(sorted(wanted)) + "\0")
        count = 0
        said: list[str] = []

        def on_line(line: str) -> None:
            nonlocal count
            if line.startswith("add '"):
                count += 1
            else:
                said.append(line)

        status = stream([*git_words, "--add", "--verbose", "--stdin"], on_line,
                        lambda: progress.tick(f"{count} of {len(wanted)} files"), cwd=folder, env=env, stdin=state / "names")
        if status:
            raise Failure(f"reading {folder} failed:\n" + "\n".join(said)[-2000:])
        tree = run(["git", "write-tree"], env=env, cwd=folder).stdout.strip()
        if fresh:
            git(repo, "repack", "-d", "-q", check=False)
        progress.done(f"{len(wanted)} files")
        commit, version = commit_base(repo, tree, str(folder))
    return Base(repo, commit, tree, version, str(folder), lineage)


def base_of(linux: str | None) -> Base:
    """The base that `--linux DIR` or LINUX=DIR names, or Debian's."""
    named = linux or os.environ.get("LINUX")
    return from_folder(Path(named)) if named else from_package()
