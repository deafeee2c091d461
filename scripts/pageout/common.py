# SPDX-License-Identifier: GPL-2.0-only
"""What every script of the bench needs: errors, progress, the cache, locks, commands."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GIB = 1 << 30
# PAGEOUT_BIN: programs that nobody rebuilds while hours of runs go on, or built otherwise, with sanitizers for one.
BIN = Path(os.environ.get("PAGEOUT_BIN") or ROOT / "build/bin").resolve()


def bench(*words: str) -> list[str]:
    """The command of a pageout-bench that ends, as by Ctrl-C, when its caller is gone, however that came: no stray guest."""
    return ["setpriv", "--pdeathsig", "INT", "--", str(BIN / "pageout-bench"), *words]


class Failure(Exception):
    """An error whose text is meant for the user: what, where, remedy."""


def digest(*parts: str | bytes) -> str:
    """One hex digest of several parts; no two lists of parts give the same input."""
    h = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        h.update(len(data).to_bytes(8, "little"))
        h.update(data)
    return h.hexdigest()


def file_digest(path: Path) -> str:
    with path.open("rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def duration(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 60} min {whole % 60:02d} s" if whole >= 60 else f"{whole} s"


class Progress:
    """Lines on standard error with the time since `what` began, at most 10 s apart.

    On a terminal one line is rewritten each second; elsewhere a plain line comes
    every `plain_s` seconds, so that a log stays short and silence stays short too.
    """

    def __init__(self, what: str, plain_s: float = 9.0) -> None:
        self.what = what
        self.start = time.monotonic()
        self.tty = sys.stderr.isatty()
        self.every = 1.0 if self.tty else plain_s
        self.last = self.start
        self.dirty = False

    def elapsed(self) -> float:
        return time.monotonic() - self.start

    def tick(self, detail: str = "") -> None:
        now = time.monotonic()
        if now - self.last >= self.every:
            self.last = now
            self._put(detail, final=False)

    def done(self, detail: str = "done") -> None:
        if self.dirty or self.elapsed() >= 2.0:
            self._put(detail, final=True)

    def _put(self, detail: str, final: bool) -> None:
        line = f"{self.what}: {detail + ', ' if detail else ''}{duration(self.elapsed())}"
        if self.tty:
            width = shutil.get_terminal_size().columns
            sys.stderr.write("\r" + line[: width - 1] + "\x1b[K" + ("\n" if final else ""))
        else:
            sys.stderr.write(line + "\n")
        sys.stderr.flush()
        self.dirty = True


def say(text: str) -> None:
    """A diagnostic line on standard error."""
    print(text, file=sys.stderr, flush=True)


def cache_root() -> Path:
    """The cache that all clones share; made if missing, proved writable."""
    named = os.environ.get("PAGEOUT_CACHE")
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    root = Path(named) if named else Path(home) / "pageout"
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=root, prefix=".probe-"):
            pass
    except OSError as e:
        raise Failure(
            f"the cache {root} cannot be written: {e.strerror}\n"
            "  remedy: make it writable, or set PAGEOUT_CACHE to a folder that is"
        ) from e
    return root.resolve()


def need_space(folder: Path, need_bytes: int, what: str) -> None:
    free = shutil.disk_usage(folder).free
    if free < need_bytes:
        raise Failure(
            f"{what} needs about {need_bytes / GIB:.1f} GiB and {folder} has {free / GIB:.1f} GiB free\n"
            "  remedy: free some space, or set PAGEOUT_CACHE to a folder on a larger disk"
        )


def explain_oserror(e: OSError) -> Failure:
    """A message that names the file and what to do for the errors that users meet."""
    where = f" ({e.filename})" if e.filename else ""
    if e.errno in (errno.ENOSPC, errno.EDQUOT):
        return Failure(
            f"the disk is full{where}\n  remedy: free some space, or set PAGEOUT_CACHE to a larger disk; "
            "run the same command again, it goes on from here"
        )
    return Failure(f"{e.strerror or e}{where}")


@contextlib.contextmanager
def locked(path: Path, what: str) -> Iterator[int]:
    """Hold an exclusive lock; say who holds it when that means waiting.

    The descriptor is yielded so that children may inherit it: if this process is
    killed, the lock stays held until the last of its children has ended.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(fd, 200, 0).decode(errors="replace").strip() or "another process"
            progress = Progress(f"waiting for {what}, in use by {holder}")
            say(f"{progress.what}")
            while True:
                time.sleep(0.2)
                progress.tick()
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
            progress.done("free now")
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"process {os.getpid()} ({os.path.basename(sys.argv[0])} {' '.join(sys.argv[1:4])})\n".encode(), 0)
        yield fd
    finally:
        os.close(fd)


def write_atomic(path: Path, data: str | bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fd, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(fd, "wb") as f:
            f.write(data.encode() if isinstance(data, str) else data)
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def put_between(path: Path, begin: str, end: str, body: str) -> None:
    """Replace what stands between two marks of a text file; the line that has the first one stays as it is."""
    text = path.read_text()
    first, last = text.find(begin), text.find(end)
    if not 0 <= first < last:
        raise Failure(f"{path}: the marks '{begin}' and '{end}' are not there")
    write_atomic(path, text[: text.index("\n", first) + 1] + body.rstrip("\n") + "\n" + text[last:])


def publish(entry: Path, fill: Callable[[Path], dict]) -> dict:
    """Make the cache entry `entry` whole or not at all.

    `fill` writes the files into the folder it is given and returns the entry's
    description; info.json with every file's digest is added here.
    """
    entry.parent.mkdir(parents=True, exist_ok=True)
    temp = Path(tempfile.mkdtemp(dir=entry.parent, prefix=f".{entry.name}-"))
    try:
        info = fill(temp)
        info["files"] = {
            str(p.relative_to(temp)): file_digest(p) for p in sorted(temp.rglob("*")) if p.is_file()
        }
        (temp / "info.json").write_text(json.dumps(info, indent=1, sort_keys=True) + "\n")
        os.chmod(temp, 0o755)
        if entry.exists():
            doomed = Path(tempfile.mkdtemp(dir=entry.parent, prefix=".doomed-"))
            os.rename(entry, doomed / "entry")
            os.rename(temp, entry)
            shutil.rmtree(doomed, ignore_errors=True)
        else:
            os.rename(temp, entry)
        return info
    except BaseException:
        shutil.rmtree(temp, ignore_errors=True)
        raise


def entry_info(entry: Path) -> tuple[dict | None, str]:
    """The description of a cache entry and, where there is none to use, why."""
    if not entry.is_dir():
        return None, "not in the cache"
    try:
        info = json.loads((entry / "info.json").read_text())
        files = info["files"]
    except (OSError, ValueError, KeyError, TypeError) as e:
        return None, f"cache entry {entry} is corrupt: info.json: {e}"
    for name, want in files.items():
        try:
            have = file_digest(entry / name)
        except OSError as e:
            return None, f"cache entry {entry} is corrupt: {name}: {e.strerror}"
        if have != want:
            return None, f"cache entry {entry} is corrupt: {name} has another digest than when it was built"
    return info, ""


def clean_env(**extra: str) -> dict[str, str]:
    """The environment for tools whose output must depend on nothing of the user's."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "KBUILD_", "CCACHE_", "KCONFIG_"))}
    for name in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "LOCALVERSION", "ARCH", "CROSS_COMPILE", "LLVM", "O", "M", "V",
                 "KCFLAGS", "KAFLAGS", "KCPPFLAGS", "CC", "CFLAGS", "LDFLAGS"):
        env.pop(name, None)
    env.update(LC_ALL="C", TZ="UTC", GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_SYSTEM="/dev/null",
               GIT_TERMINAL_PROMPT="0")
    env.update(extra)
    return env


def run(argv: Sequence[str], *, cwd: Path | None = None, env: dict[str, str] | None = None,
        stdin: str | bytes | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a short command and capture what it says; a failure quotes it."""
    data = stdin.encode() if isinstance(stdin, str) else stdin
    try:
        p = subprocess.run(list(argv), cwd=cwd, env=env or clean_env(), input=data,
                           stdin=subprocess.DEVNULL if data is None else None,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    except FileNotFoundError as e:
        raise Failure(f"{argv[0]} is not installed\n  remedy: scripts/setup full") from e
    result = subprocess.CompletedProcess(p.args, p.returncode, p.stdout.decode(errors="replace"),
                                         p.stderr.decode(errors="replace"))
    if check and p.returncode:
        said = (result.stderr.strip() or result.stdout.strip())[-2000:]
        if "No space left on device" in said:
            raise explain_oserror(OSError(errno.ENOSPC, "No space left on device"))
        raise Failure(f"`{' '.join(argv)}` failed with status {p.returncode}:\n{said}")
    return result


def stream(argv: Sequence[str], on_line: Callable[[str], None], idle: Callable[[], None], *, cwd: Path,
           env: dict[str, str], log: Path | None = None, keep_fd: int | None = None,
           stdin: Path | None = None) -> int:
    """Run a long command; every line goes to `on_line`, and `idle` is called at least each second.

    The command runs in a process group of its own which is ended with this process,
    so that an interrupted build leaves no compiler behind.
    """
    import selectors

    out = log.open("ab") if log else None
    try:
        with open(stdin or os.devnull, "rb") as source:
            p = subprocess.Popen(list(argv), cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 stdin=source, process_group=0, pass_fds=() if keep_fd is None else (keep_fd,))
    except FileNotFoundError as e:
        raise Failure(f"{argv[0]} is not installed\n  remedy: scripts/setup full") from e

    def end_group(signum: int = signal.SIGTERM) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(p.pid, signum)

    def on_term(signum: int, _frame: object) -> None:
        raise KeyboardInterrupt(signum)

    before = signal.signal(signal.SIGTERM, on_term)
    try:
        assert p.stdout is not None
        os.set_blocking(p.stdout.fileno(), False)
        selector = selectors.DefaultSelector()
        selector.register(p.stdout, selectors.EVENT_READ)
        rest = b""
        while True:
            ready = selector.select(timeout=1.0)
            idle()
            if not ready:
                continue
            chunk = p.stdout.read(1 << 16)
            if chunk is None:
                continue
            if not chunk:
                break
            if out:
                out.write(chunk)
                out.flush()
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                on_line(line.decode(errors="replace"))
        if rest:
            on_line(rest.decode(errors="replace"))
        return p.wait()
    except BaseException:
        end_group()
        try:
            p.wait(timeout=10)
        except subprocess.TimeoutExpired:
            end_group(signal.SIGKILL)
            p.wait()
        raise
    finally:
        signal.signal(signal.SIGTERM, before)
        if p.stdout:
            p.stdout.close()
        if out:
            out.close()


def run_ticking(argv: Sequence[str], tick: Callable[[], None], *, cwd: Path, env: dict[str, str],
                keep_fd: int | None = None) -> str:
    """run() for a command that may take long: `tick` is called at least each second."""
    said: list[str] = []
    status = stream(argv, said.append, tick, cwd=cwd, env=env, keep_fd=keep_fd)
    text = "\n".join(said)
    if status:
        if "No space left on device" in text:
            raise explain_oserror(OSError(errno.ENOSPC, "No space left on device", str(cwd)))
        raise Failure(f"`{' '.join(argv)}` failed with status {status}:\n{text[-2000:]}")
    return text
