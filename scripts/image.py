#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-only
"""The guest's images: the programs' ext4 and the initramfs, built once for each content.

Both are the same to the byte wherever they are made from the same files: no time, no
order of a folder and no random number enters them.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import stat
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from pageout.common import (  # noqa: E402
    ROOT, Failure, Progress, cache_root, clean_env, digest, entry_info, explain_oserror, file_digest, locked, need_space,
    publish, run, say, stream)

# Raise it when an image made by an older version of this file must not be used.
IMAGE_VERSION = 1
# What is built of the harness for the guest, and what of the tree that depends on.
PROGRAMS = ("pageout-guest", "pageout-init", "pageout-load", "pageout-lock.so")
SOURCES = ("VERSION", "harness/CMakeLists.txt", "harness/guest", "harness/load")
# Debian's programs in the image: name there, where they may be here, package.
TOOLS = (
    ("blktrace", ("/usr/sbin/blktrace", "/usr/bin/blktrace"), "blktrace"),
    ("fio", ("/usr/bin/fio",), "fio"),
    ("mke2fs", ("/usr/sbin/mke2fs", "/sbin/mke2fs"), "e2fsprogs"),
    ("busybox", ("/bin/busybox", "/usr/bin/busybox"), "busybox-static"),
)
# Folders that others are mounted on, or that hold files.
FOLDERS = ("bin", "dev", "etc", "jobs", "lib", "lib64", "mnt", "modules", "proc", "sys", "tmp")
BLOCK = 4096
# Fixed: a file system has a name and an order of its directories' hashes.
UUID = "70616765-6f75-4074-8070-726f6772616d"


@dataclass(frozen=True)
class Entry:
    """A file of an image: where it comes from, or what it points to."""

    path: str  # in the image, without a leading slash
    source: Path | None = None
    target: str = ""
    mode: int = 0o755

    def identity(self) -> str:
        return f"{self.path} {self.mode:o} " + (file_digest(self.source) if self.source else "-> " + self.target)


def source_files(parts: Iterable[str]) -> list[Path]:
    found: list[Path] = []
    for part in parts:
        path = ROOT / part
        if path.is_dir():
            found += [p for p in sorted(path.rglob("*")) if p.is_file() and "tests" not in p.relative_to(path).parts]
        elif path.is_file():
            found.append(path)
        else:
            raise Failure(f"{path} is missing: it is part of the guest's programs\n  remedy: check out the whole project")
    return found


def toolchain() -> str:
    """What decides the code that comes out, beside our sources."""
    lines = [run([tool, "--version"]).stdout.splitlines()[0] for tool in ("g++", "ld")]
    packages = run(["dpkg-query", "-W", "-f", "${Package} ${Version}\n", "libc6-dev", "libcli11-dev", "libfmt-dev",
                    "nlohmann-json3-dev", "libstdc++-*-dev"], check=False).stdout
    return "; ".join(lines + sorted(packages.split("\n")))


def built_programs() -> Path:
    """The folder of the cache with the static programs of the harness, stripped."""
    files = source_files(SOURCES)
    key = digest(str(IMAGE_VERSION), toolchain(), *(x for p in files for x in (str(p.relative_to(ROOT)), p.read_bytes())))[:32]
    entry = cache_root() / "images" / f"build-{key}"
    with locked(cache_root() / "images" / "build.lock", "the guest's programs"):
        info, why = entry_info(entry)
        if info is None:
            if why != "not in the cache":
                say(why)
            publish(entry, lambda temp: build_programs(temp, key))
    return entry


def build_programs(temp: Path, key: str) -> dict:
    need_space(temp, 1 << 29, "building the guest's programs")
    work = temp / "work"
    progress = Progress("building the guest's programs")
    env = clean_env(CCACHE_DIR=str(cache_root() / "ccache"), CCACHE_NOHASHDIR="1")
    said: list[str] = []
    steps = [0]

    def on_line(line: str) -> None:
        if re.match(r"\[\d+/\d+\]", line):
            steps[0] += 1
        said.append(line)

    # The folder's name must not enter the programs.
    flags = f"-O2 -DNDEBUG -ffile-prefix-map={ROOT}=. -ffile-prefix-map={work}=."
    configure = ["cmake", "-S", str(ROOT / "harness"), "-B", str(work), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                 f"-DCMAKE_CXX_FLAGS_RELEASE={flags}", f"-DCMAKE_C_FLAGS_RELEASE={flags}", "-DPAGEOUT_TESTS=OFF",
                 "-DPAGEOUT_SANITIZE=OFF", "-DPAGEOUT_PARTS=load;guest"]
    if shutil.which("ccache"):
        configure += ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache", "-DCMAKE_C_COMPILER_LAUNCHER=ccache"]
    for argv in (configure, ["cmake", "--build", str(work), "--target", *PROGRAMS_TARGETS]):
        if stream(argv, on_line, lambda: progress.tick(f"{steps[0]} steps"), cwd=temp, env=env):
            text = "\n".join(said[-30:])
            if "No space left on device" in text:
                raise explain_oserror(OSError(28, "No space left on device", str(temp)))
            raise Failure(f"building the guest's programs failed:\n{text}\n  remedy: scripts/setup installs what it needs")
    for name in PROGRAMS:
        run(["strip", "-o", str(temp / name), str(work / "bin" / name)])
    shutil.rmtree(work)
    progress.done(f"{steps[0]} steps")
    return {"key": key, "toolchain": toolchain()}


PROGRAMS_TARGETS = tuple(name.removesuffix(".so") for name in PROGRAMS)


def libraries(program: Path) -> list[Entry]:
    """The shared libraries of a program, where its loader looks for them; none for a static one."""
    result = run(["ldd", str(program)], check=False)
    said = result.stdout + result.stderr
    if "not a dynamic executable" in said or "statically linked" in said:
        return []
    found = []
    for line in result.stdout.splitlines():
        if "linux-vdso" in line:
            continue
        m = re.match(r"\s*(?:(\S+) => )?(/\S+) \(0x[0-9a-f]+\)$", line)
        if not m:
            raise Failure(f"{program}: a library is missing: {line.strip()}\n  remedy: scripts/setup")
        name, path = m[1], m[2]
        # The loader itself is named by its path; it looks for the others in /lib, which it
        # searches by default, so that no cache of libraries is needed.
        where = path.lstrip("/") if name is None else f"lib/{name}"
        found.append(Entry(where, Path(path)))
    return found


def program_entries() -> list[Entry]:
    """Everything in the programs' image."""
    built = built_programs()
    entries: dict[str, Entry] = {}

    def add(entry: Entry) -> None:
        entries.setdefault(entry.path, entry)

    for name in ("pageout-guest", "pageout-load"):
        add(Entry(f"bin/{name}", built / name))
    add(Entry("lib/pageout-lock.so", built / "pageout-lock.so"))
    for name, places, package in TOOLS:
        path = next((Path(p) for p in places if os.access(p, os.X_OK)), None)
        if path is None:
            raise Failure(f"{places[0]} is missing: it goes into the guest\n  remedy: scripts/setup, or apt-get install {package}")
        add(Entry(f"bin/{name}", path))
        for library in libraries(path):
            add(library)
    add(Entry("bin/sh", target="busybox"))
    jobs = sorted((ROOT / "fio-jobs").glob("*.fio"))
    if not jobs:
        raise Failure(f"{ROOT / 'fio-jobs'}: no *.fio file\n  remedy: check out the whole project")
    for job in jobs:
        add(Entry(f"jobs/{job.name}", job, mode=0o644))
    return [entries[path] for path in sorted(entries)]


def mke2fs() -> str:
    return next((p for p in TOOLS[2][1] if os.access(p, os.X_OK)), "mke2fs")


def debugfs_name(path: str | Path) -> str:
    """A file's name as debugfs reads it; quotes cannot be quoted there."""
    text = str(path)
    if '"' in text or "\n" in text:
        raise Failure(f"{text}: a name with a quote or a line feed cannot go into an image\n  remedy: move the checkout or the cache")
    return f'"{text}"'


def make_ext4(image: Path, entries: list[Entry]) -> None:
    """An ext4 of just the size that the entries need.

    Written by mke2fs and debugfs with their clock stopped, file by file: `mke2fs -d` would
    take times and the order of files from the folder it reads.
    """
    files = [e for e in entries if e.source]
    folders = sorted({str(Path(*Path(e.path).parts[:n])) for e in entries for n in range(1, len(Path(e.path).parts))}
                     | set(FOLDERS))
    data = sum(-(-e.source.stat().st_size // BLOCK) + 1 for e in files if e.source)
    # Inodes of 256 bytes, folders, and as much again as the group tables take.
    inodes = -(-(len(entries) + len(folders) + 32) // 16) * 16
    blocks = data + len(folders) + inodes // 16 + 64 + data // 512
    need_space(image.parent, 2 * blocks * BLOCK, "the programs' image")
    env = clean_env(E2FSPROGS_FAKE_TIME="1577836800", MKE2FS_CONFIG="/dev/null")
    run([mke2fs(), "-q", "-F", "-t", "ext4", "-b", str(BLOCK), "-N", str(inodes), "-m", "0", "-L", "pageout-programs",
         "-O", "none,extent,filetype,dir_index,sparse_super,large_file,huge_file,extra_isize,flex_bg", "-I", "256", "-U", UUID,
         "-E", f"hash_seed={UUID},lazy_itable_init=0,nodiscard,root_owner=0:0", str(image), str(blocks)], env=env)
    script = []
    for folder in folders:
        script.append(f"mkdir {debugfs_name(folder)}")
    for entry in entries:
        if entry.source:
            script += [f"write {debugfs_name(entry.source)} {debugfs_name(entry.path)}",
                       f"set_inode_field {debugfs_name(entry.path)} mode 0{stat.S_IFREG | entry.mode:o}",
                       f"set_inode_field {debugfs_name(entry.path)} uid 0",
                       f"set_inode_field {debugfs_name(entry.path)} gid 0"]
        else:
            script.append(f"symlink {debugfs_name(entry.path)} {debugfs_name(entry.target)}")
    result = run(["/usr/sbin/debugfs", "-w", "-f", "-", str(image)], env=env, stdin="\n".join(script) + "\n")
    # debugfs ends with status 0 whatever happened; it says what did.
    said = [line for line in result.stderr.splitlines() if line and not line.startswith("debugfs ")]
    said += [line for line in result.stdout.splitlines() if line and not re.match(r"debugfs:|Allocated inode:", line)]
    if said:
        raise Failure(f"filling {image} failed:\n" + "\n".join(said[:10]))
    check = run(["/usr/sbin/e2fsck", "-f", "-n", str(image)], env=env, check=False)
    if check.returncode:
        raise Failure(f"{image} is not sound:\n{check.stdout[-2000:]}")


def programs() -> dict:
    """The programs' image: {"image": path, "bytes": n, "key": ..}."""
    entries = program_entries()
    version = run([mke2fs(), "-V"]).stderr
    key = digest(str(IMAGE_VERSION), version, *(e.identity() for e in entries))[:32]
    entry = cache_root() / "images" / key
    with locked(cache_root() / "images" / f"{key}.lock", "the programs' image"):
        info, why = entry_info(entry)
        if info is None:
            if why != "not in the cache":
                say(why)

            def fill(temp: Path) -> dict:
                progress = Progress("making the programs' image")
                make_ext4(temp / "programs.ext4", entries)
                os.chmod(temp / "programs.ext4", 0o444)
                progress.done()
                return {"key": key, "contents": [e.identity() for e in entries]}

            publish(entry, fill)
    image = entry / "programs.ext4"
    return {"image": str(image), "bytes": image.stat().st_size, "key": key}


class Cpio:
    """Writes a cpio archive in the format that the kernel unpacks ("newc")."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.inode = 0

    def add(self, name: str, mode: int, content: bytes = b"", device: tuple[int, int] = (0, 0), links: int = 1) -> None:
        self.inode += 1
        encoded = name.encode() + b"\0"
        fields = (self.inode, mode, 0, 0, links, 0, len(content), 0, 0, device[0], device[1], len(encoded), 0)
        self.data += b"070701" + b"".join(b"%08X" % f for f in fields) + encoded
        self._pad()
        self.data += content
        self._pad()

    def finish(self) -> bytes:
        self.inode = -1
        self.add("TRAILER!!!", 0)
        self.data += bytes(-len(self.data) % 512)
        return bytes(self.data)

    def _pad(self) -> None:
        self.data += bytes(-len(self.data) % 4)


def initramfs(modules: Path | Iterable[Path]) -> Path:
    """The initramfs with these modules (*.ko, or a folder of them)."""
    paths = sorted(modules.glob("*.ko")) if isinstance(modules, Path) else sorted(modules, key=lambda p: p.name)
    names = [p.name for p in paths]
    if "simdisk.ko" not in names:
        where = modules if isinstance(modules, Path) else ", ".join(names) or "an empty list"
        raise Failure(f"{where}: no simdisk.ko; the guest's disks are simdisk's\n  remedy: build the modules first")
    if len(set(names)) != len(names):
        raise Failure(f"two modules of one name: {', '.join(names)}")
    init = built_programs() / "pageout-init"
    contents = {p.name: p.read_bytes() for p in paths}
    key = digest(str(IMAGE_VERSION), init.read_bytes(), *(x for n, c in sorted(contents.items()) for x in (n, c)))[:32]
    entry = cache_root() / "images" / key
    with locked(cache_root() / "images" / f"{key}.lock", "an initramfs"):
        info, why = entry_info(entry)
        if info is None:
            if why != "not in the cache":
                say(why)

            def fill(temp: Path) -> dict:
                archive = Cpio()
                for folder in ("dev", "modules", "proc", "root", "sys"):
                    archive.add(folder, stat.S_IFDIR | 0o755, links=2)
                # The kernel opens it for /init before anything is mounted.
                archive.add("dev/console", stat.S_IFCHR | 0o600, device=(5, 1))
                archive.add("init", stat.S_IFREG | 0o755, init.read_bytes())
                for name, content in sorted(contents.items()):
                    archive.add(f"modules/{name}", stat.S_IFREG | 0o644, content)
                (temp / "initramfs.cpio").write_bytes(archive.finish())
                os.chmod(temp / "initramfs.cpio", 0o444)
                return {"key": key, "modules": names}

            publish(entry, fill)
    return entry / "initramfs.cpio"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="example: scripts/image.py programs\n"
               "prints one JSON line on standard output; progress and errors go to standard error")
    parser.add_argument("--version", action="version", version="image.py " + (ROOT / "VERSION").read_text().strip())
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("programs", help="the ext4 image of the guest's programs")
    c = commands.add_parser("initramfs", help="the initramfs of one kernel's modules")
    c.add_argument("modules", nargs="+", type=Path, help="*.ko files, or one folder of them")
    args = parser.parse_args()
    try:
        if args.command == "programs":
            print(json.dumps(programs()))
        else:
            one = args.modules[0]
            path = initramfs(one if len(args.modules) == 1 and one.is_dir() else args.modules)
            print(json.dumps({"initramfs": str(path), "bytes": path.stat().st_size, "key": path.parent.name}))
        return 0
    except Failure as e:
        say(f"image.py: {e}")
    except OSError as e:
        say(f"image.py: {explain_oserror(e)}")
    except KeyboardInterrupt:
        say("image.py: interrupted; nothing half-made was left, run the same command again")
        return 130
    return 1


if __name__ == "__main__":
    sys.exit(main())
