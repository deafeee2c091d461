# SPDX-License-Identifier: GPL-2.0-only
"""blktally: the golden captures, the same captures through the real blkparse, what the two are known to differ in, random captures
through both, all ways in and out, damage, memory, speed, and the fuzzer for a while."""

from __future__ import annotations

import difflib
import gzip
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from conftest import BIN, ROOT, command

sys.path.insert(0, str(ROOT / "tests" / "tally"))

from cases import CASES, GOLDEN, Case, sample, starts_of, transcript  # noqa: E402
from trace import COMPLETE, FS, ISSUE, QUEUE, READ, WRITE, Machine, Trace  # noqa: E402

BLKTALLY = BIN / "blktally"
KIB = 1024


@pytest.fixture(scope="session", autouse=True)
def programs() -> None:
    for program in (BLKTALLY, BIN / "tally-generate"):
        if not program.exists():
            pytest.exit(f"{program} is not there: run scripts/tools first (scripts/check does)", 1)


def tally(*words: str | Path, **more: object) -> subprocess.CompletedProcess[str]:
    return command(BLKTALLY, *words, **more)  # type: ignore[arg-type]


def counts(*words: str | Path, **more: object) -> dict:
    result = tally("--format", "json", *words, **more)
    return json.loads(result.stdout)


# A message, which blkparse prints whatever its format, is no part of the blocks.
MESSAGE = re.compile(rb"^ *\d+,\d+ +-?\d+ +0 +\d+\.\d{9} +0  m   N .*\n", re.MULTILINE)


def blkparse(*, cwd: Path, base: str | None = None, stdin: Path | None = None, locale: Path | None = None) -> tuple[str, str]:
    """The real blkparse's summary blocks and its standard error."""
    env = {**os.environ, "LOCPATH": str(locale)} if locale else {**os.environ, "LOCPATH": "/nowhere"}
    # Into a file: what it says of its input files goes to standard output through another buffer, and may come in the middle.
    with (stdin or Path("/dev/null")).open("rb") as f, tempfile.TemporaryDirectory() as place:
        result = subprocess.run(["blkparse", "-f", "", "-o", f"{place}/out", "-i", base or "-"], cwd=cwd, stdin=f, env=env, capture_output=True,
                                check=False)
        out = MESSAGE.sub(b"", Path(place, "out").read_bytes())
    return out.decode(), result.stderr.decode(errors="replace")


def same(theirs: str, ours: str) -> None:
    assert ours == theirs, "".join(difflib.unified_diff(theirs.splitlines(True), ours.splitlines(True), "blkparse", "blktally"))


# ---- golden captures ----

@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_golden(case: Case) -> None:
    folder = GOLDEN / case.name
    for name, data in case.files.items():
        assert (folder / name).read_bytes() == data, f"{folder / name} is not what tests/tally/cases.py makes"
    expected = (folder / "expected").read_text()
    got = transcript(case, BLKTALLY)
    assert got == expected, "".join(difflib.unified_diff(expected.splitlines(True), got.splitlines(True), "expected", "got"))
    assert f"exit status {case.status}\n" in got


def test_no_golden_folder_without_a_case() -> None:
    assert {p.name for p in GOLDEN.iterdir()} == set(CASES)


@pytest.mark.parametrize("case", [c for c in CASES.values() if c.blkparse], ids=[c.name for c in CASES.values() if c.blkparse])
def test_golden_through_blkparse(case: Case) -> None:
    folder = GOLDEN / case.name
    if case.stdin:
        theirs, _ = blkparse(cwd=folder, stdin=folder / case.stdin)
        with (folder / case.stdin).open("rb") as f:
            ours = subprocess.run([BLKTALLY, "--format", "blkparse", "--grouping", "no", *case.words], stdin=f, capture_output=True, check=False)
        same(theirs, ours.stdout.decode())
    else:
        theirs, _ = blkparse(cwd=folder, base="in")
        same(theirs, tally("--format", "blkparse", "--grouping", "no", *case.words, cwd=folder).stdout)


@pytest.fixture(scope="session")
def en_us(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the locale en_US, for LOCPATH."""
    folder = tmp_path_factory.mktemp("locale")
    made = command("localedef", "-i", "en_US", "-f", "UTF-8", folder / "en_US")
    assert (folder / "en_US" / "LC_NUMERIC").exists(), f"localedef made no locale (package locales): {made.stderr}"
    return folder


@pytest.mark.parametrize("name", ["merges", "discards", "four-cpus", "model-3"])
def test_commas_where_the_locale_has_them(name: str, en_us: Path) -> None:
    folder = GOLDEN / name
    theirs, _ = blkparse(cwd=folder, base="in", locale=en_us)
    if name in ("discards", "model-3"):
        assert re.search(r"\d,\d\d\d", theirs)
    same(theirs, tally("--format", "blkparse", "in", cwd=folder, env={"LOCPATH": str(en_us)}).stdout)
    same(theirs, tally("--format", "blkparse", "--grouping", "yes", "in", cwd=folder, env={"LOCPATH": "/nowhere"}).stdout)


# ---- random captures through both ----

SEEDS = int(os.environ.get("TALLY_SEEDS", "60"))


# 4611: equal times on both sides of one of the batches that blkparse sorts.
@pytest.mark.parametrize("seed", [*range(SEEDS), *([4611] if SEEDS <= 4611 else [])])
def test_random_captures_through_both(seed: int, tmp_path: Path) -> None:
    """More with TALLY_SEEDS=1000. Byte orders, numbers of CPUs and lengths vary with the seed."""
    machine = Machine(seed, cpus=seed % 5 + 1, events=seed % 7 * 500 + 20, plain=True, endian="<>"[seed % 3 == 0])
    trace = machine.run()
    if seed % 2:
        trace = machine.finish()
    trace.write(tmp_path / "t")
    theirs, errors = blkparse(cwd=tmp_path, base="t")
    ours = tally("--format", "blkparse", "--grouping", "no", "t", cwd=tmp_path)
    assert ours.returncode == 0, ours.stderr
    same(theirs, ours.stdout)
    assert not errors
    # The same records in one stream, in order.
    (tmp_path / "stream").write_bytes(trace.merged())
    theirs, _ = blkparse(cwd=tmp_path, stdin=tmp_path / "stream")
    ours = tally("--format", "blkparse", "--grouping", "no", "stream", cwd=tmp_path)
    assert ours.returncode == 0, ours.stderr
    same(theirs, ours.stdout)


@pytest.mark.parametrize("before", [509, 510, 511, 512, 1023])
def test_ties_between_the_batches_of_blkparse(before: int, tmp_path: Path) -> None:
    """blkparse sorts a stream 512 events at a time. A dispatch and a completion of the same nanosecond on two CPUs come in the order of their
    numbers, unless they are of different batches; the depth tells which was first."""
    trace = Trace()
    request = dict(sector=0, nbytes=4 * KIB, flags=WRITE | FS)
    trace.event(1_000_000_000, ISSUE, cpu=0, **request)
    for n in range(before - 1):
        trace.event(1_000_000_001 + n, QUEUE, cpu=1, nbytes=4 * KIB, flags=READ)
    tie = 1_000_000_001 + before
    trace.event(tie, ISSUE, cpu=1, **request)
    trace.event(tie, COMPLETE, cpu=0, **request)
    (tmp_path / "t").write_bytes(trace.merged())
    theirs, _ = blkparse(cwd=tmp_path, stdin=tmp_path / "t")
    assert max(numbers(theirs, "Write depth")) == (2 if before % 512 == 511 else 1)
    same(theirs, tally("--format", "blkparse", "--grouping", "no", "t", cwd=tmp_path).stdout)


@pytest.mark.parametrize("seed", range(20))
def test_what_blkparse_cannot_say(seed: int, tmp_path: Path) -> None:
    """On sound captures the identity holds, or the difference is explained to the last request, and no event lacks its other half but
    where two requests of one place were under way at once."""
    machine = Machine(seed, cpus=seed % 4 + 1, events=1500, ties=False)
    machine.run()
    trace = machine.finish() if seed % 2 else machine.trace
    trace.write(tmp_path / "t")
    result = counts(tmp_path / "t")
    assert result["verdict"] == "ok"
    for way in ("read", "write"):
        identity = result["total"]["identity"][way]
        assert identity["residue"] == identity["waiting"] + identity["ended_early"] - identity["started_before"]
        block = result["total"][way]
        assert block["queued"]["count"] + block["split"]["count"] == block["allocated"]["count"] + block["merged_bio"]["count"] + (
            identity["residue"] - (block["allocated"]["count"] - block["merged_request"]["count"] - block["dispatched"]["count"] +
                                   block["requeued"]["count"]))
    # The order in which CPUs' buffers were read makes no difference.
    chunked = tmp_path / "chunked"
    chunked.write_bytes(trace.chunked(50))
    again = counts(chunked)
    assert again["total"] == result["total"]


# ---- what the two are known to differ in: blkparse 1.2.0's side is asserted, too, and blktally says so ----

def told(text: str, *words: str | Path, cwd: Path) -> None:
    """--format blkparse has a note of the difference; without one, there is no such note."""
    assert text in tally("--format", "blkparse", *words, cwd=cwd).stderr
    assert text not in tally("--format", "blkparse", "in", cwd=GOLDEN / "plain").stderr


def numbers(blocks: str, label: str) -> list[int]:
    return [int(m) for m in re.findall(rf"{label}: +(\d+)", blocks)]


def test_difference_cgroup_events() -> None:
    folder = GOLDEN / "cgroup-events"
    theirs, errors = blkparse(cwd=folder, base="in")
    assert "Bad fs action" in errors and numbers(theirs, "Writes Queued") == [0]
    assert counts(folder / "in")["total"]["write"]["queued"] == {"count": 3, "bytes": 12 * KIB}
    assert counts(folder / "in")["total"]["unplugs"] == 3
    told("blkparse 1.2.0 does not count the 15 events that have a cgroup's number", "in", cwd=folder)


def test_difference_hole_in_the_cpus() -> None:
    folder = GOLDEN / "hole"
    theirs, errors = blkparse(cwd=folder, base="in")
    assert numbers(theirs, "Reads Queued") == [1] and not errors
    assert counts(folder / "in")["total"]["read"]["queued"]["count"] == 2
    told("blkparse reads in up to the first CPU without a file only", "in", cwd=folder)


def test_difference_wrong_cpu() -> None:
    folder = GOLDEN / "wrong-cpu"
    theirs, errors = blkparse(cwd=folder, base="in")
    assert not numbers(theirs, "Reads Queued") and errors.count("has error cpu") == 20
    assert counts(folder / "in")["total"]["read"]["queued"]["count"] == 4
    told("blkparse drops the events of other CPUs in in.blktrace.0", "in", cwd=folder)


@pytest.mark.parametrize(("name", "theirs_has", "ours_has"), [
    ("first-magic", None, 21), ("version-6", None, 0), ("magic-in-the-middle", 6, 20), ("junk-inside", 3, 20), ("bad-length", 5, 21)])
def test_difference_damage(name: str, theirs_has: int | None, ours_has: int) -> None:
    """blkparse stops, mostly in silence and always with success; blktally says where, goes on, and fails."""
    folder = GOLDEN / name
    theirs, _ = blkparse(cwd=folder, base="in")
    entries = re.search(r"Events \(in\): (\d+) entries", theirs)
    assert entries and int(entries[1]) == (theirs_has or 0), theirs
    result = tally("--format", "json", "in", cwd=folder)
    assert result.returncode == 3 and "in.blktrace.0: record " in result.stderr
    assert json.loads(result.stdout)["total"]["events"] == ours_has
    assert json.loads(result.stdout)["partial"] is True
    if ours_has:
        told("blkparse stops where in.blktrace.0 is damaged", "in", cwd=folder)


def test_difference_order_of_a_stream(tmp_path: Path) -> None:
    """A later chunk of the stream holds the earlier events of another CPU: blkparse's depth is wrong then, since it sorts its batches
    of 512 only."""
    trace = Trace()
    for n in range(1500):
        request = dict(sector=n * 8, nbytes=4 * KIB, flags=READ | FS)
        trace.event(1_000_000_000 + n * 1000, ISSUE, cpu=0, **request)
        trace.event(1_000_000_500 + n * 1000, COMPLETE, cpu=1, **request)
    (tmp_path / "t").write_bytes(trace.chunked(1500))
    theirs, _ = blkparse(cwd=tmp_path, stdin=tmp_path / "t")
    assert max(numbers(theirs, "Read depth")) > 1
    assert counts(tmp_path / "t")["total"]["read"]["depth_max"] == 1
    told("events come after later ones of other CPUs, further than blkparse sorts a stream", "t", cwd=tmp_path)


def test_difference_out_of_order(tmp_path: Path) -> None:
    """blkparse subtracts the first time from an earlier one and gets 584 years; blktally reports it and counts."""
    folder = GOLDEN / "out-of-order"
    shutil.copy(folder / "in.blktrace.0", tmp_path / "t.blktrace.0")
    text = command("blkparse", "-i", "t", cwd=tmp_path).stdout
    assert re.search(r"\d{9,}\.\d{9}", text)
    result = tally("t", cwd=tmp_path)
    assert result.returncode == 3 and "time goes back by 1000 ns" in result.stderr


def test_difference_errors_and_requeues() -> None:
    """blkparse counts a failed completion as a completion and takes a requeued request's bytes away from the dispatches."""
    block = counts(GOLDEN / "errors-and-parts" / "in")["total"]["read"]
    assert block["completed"] == block["failed"] == {"count": 1, "bytes": 4 * KIB}
    block = counts(GOLDEN / "requeue" / "in")["total"]["read"]
    assert block["dispatched"] == {"count": 2, "bytes": 16 * KIB} and block["requeued"] == {"count": 1, "bytes": 8 * KIB}


# ---- ways in ----

def test_every_form_of_input(tmp_path: Path) -> None:
    trace = Machine(7, cpus=3, events=900, ties=False).run()
    trace.write(tmp_path / "t")
    plain = counts("t", cwd=tmp_path)
    plain.pop("input_bytes")

    def check(*words: str | Path, **more: object) -> None:
        got = counts(*words, cwd=tmp_path, **more)
        got.pop("input_bytes")
        for one in (got, plain):
            for d in one["devices"]:
                d["input"] = ""
        assert got == plain

    (tmp_path / "stream").write_bytes(trace.merged())
    check("stream")
    with (tmp_path / "stream").open("rb") as f:
        out = subprocess.run([BLKTALLY, "--format", "json", "-"], stdin=f, capture_output=True, check=True).stdout
    assert json.loads(out)["total"] == plain["total"]
    os.mkfifo(tmp_path / "fifo")
    with subprocess.Popen(["cp", "stream", "fifo"], cwd=tmp_path):
        check("fifo")
    # Compressed, all or some of them.
    for pack, ending in ((lambda p: command("gzip", "-k", p), ".gz"), (lambda p: command("zstd", "-q", p), ".zst")):
        for cpu in range(3):
            for old in tmp_path.glob(f"p.blktrace.{cpu}*"):
                old.unlink()
            shutil.copy(tmp_path / f"t.blktrace.{cpu}", tmp_path / f"p.blktrace.{cpu}")
            if cpu != 1:
                assert pack(tmp_path / f"p.blktrace.{cpu}").returncode == 0
                (tmp_path / f"p.blktrace.{cpu}").unlink()
                assert (tmp_path / f"p.blktrace.{cpu}{ending}").exists()
        check("p")
        command("sh", "-c", f"{'gzip' if ending == '.gz' else 'zstd -q'} -c stream > s{ending}", cwd=tmp_path)
        check(f"s{ending}")
    # One CPU's file by its own name, which says that there are more.
    one = tally("--format", "json", "t.blktrace.1", cwd=tmp_path)
    assert one.returncode == 0 and "give t to read them all" in one.stderr
    assert [c["cpu"] for c in json.loads(one.stdout)["devices"][0]["cpus"]] == [1]
    # All of them one by one are the basename; none is read twice.
    check("t.blktrace.2", "t.blktrace.0", "t.blktrace.1")
    again = tally("--format", "json", "t", "t.blktrace.1", cwd=tmp_path)
    assert again.returncode == 0 and "read once" in again.stderr
    assert json.loads(again.stdout)["total"] == plain["total"]
    # From another folder, and several basenames at once.
    for words in ((tmp_path / "t",), (tmp_path / "t", tmp_path / "p")):
        got = counts(*words)
        assert len(got["devices"]) == len(words)
        assert got["total"]["events"] == plain["total"]["events"] * len(words)


def test_what_blkparse_merges(tmp_path: Path) -> None:
    """blkparse -d subtracts the first event's time from the others' but not from the notes'."""
    Machine(9, cpus=3, events=900, ties=False).run().write(tmp_path / "t")
    assert command("blkparse", "-i", "t", "-O", "-d", "merged", cwd=tmp_path).returncode == 0
    plain, merged = counts(tmp_path / "t"), counts(tmp_path / "merged")
    for one in (plain, merged):
        one["total"].pop("notes")  # blkparse keeps one note of a process
    assert merged["verdict"] == "ok" and [d["code"] for d in merged["diagnostics"]] == ["relative-times"]
    assert merged["wall_start"] is None and plain["wall_start"]
    assert merged["total"] == plain["total"]


def test_two_basenames_are_two_blocks(tmp_path: Path) -> None:
    for name, device in (("sda", 8 << 20), ("sdb", 8 << 20 | 16)):
        trace = Machine(11, cpus=2, events=300, plain=True, device=device).run()
        trace.write(tmp_path / name)
    subprocess.run(["blkparse", "-f", "", "-o", "out", "-i", "sda", "-i", "sdb"], cwd=tmp_path, capture_output=True, check=True,
                   env={**os.environ, "LOCPATH": "/nowhere"})
    theirs = MESSAGE.sub(b"", (tmp_path / "out").read_bytes()).decode()
    same(theirs, tally("--format", "blkparse", "--grouping", "no", "sda", "sdb", cwd=tmp_path).stdout)


@pytest.mark.parametrize("length", [1, 30, 31, 32, 46, 47, 48, 200])
def test_names_are_cut_as_blkparse_cuts_them(length: int, tmp_path: Path) -> None:
    name = "n" * length
    Machine(12, cpus=2, events=100, plain=True).run().write(tmp_path / name)
    theirs, _ = blkparse(cwd=tmp_path, base=name)
    same(theirs, tally("--format", "blkparse", "--grouping", "no", name, cwd=tmp_path).stdout)


def test_a_file_twice_is_read_once(tmp_path: Path) -> None:
    sample().write(tmp_path / "t")
    command("gzip", "-k", "t.blktrace.0", cwd=tmp_path)
    result = tally("--format", "json", "t", cwd=tmp_path)
    assert json.loads(result.stdout)["total"]["events"] == 21 and "is there already" in result.stderr


@pytest.mark.parametrize(("words", "says"), [
    (["nowhere"], "no files nowhere.blktrace.N"),
    (["."], "this is a directory"),
    (["text"], "text, not a blktrace capture"),
    (["btt"], "btt's text output"),
    (["summary"], "blkparse's text output"),
    (["trace.dat"], "trace-cmd"),
    (["x.xz"], "xz data"),
    (["x.tar"], "tar archive"),
    (["twice.gz"], "compressed twice"),
    (["-", "-"], "once only"),
])
def test_refusals(words: list[str], says: str, tmp_path: Path) -> None:
    sample().write(tmp_path / "t")
    (tmp_path / "text").write_text("Dear reader,\n")
    (tmp_path / "btt").write_text("==================== All Devices ====================\n\n ALL MIN AVG MAX N\n")
    (tmp_path / "summary").write_text("CPU0 (sda):\n Reads Queued:           0,        0KiB\n")
    (tmp_path / "trace.dat").write_bytes(b"\x17\x08\x44tracing6\0" + bytes(100))
    command("sh", "-c", "xz -c t.blktrace.0 > x.xz; tar cf x.tar t.blktrace.0; gzip -c t.blktrace.0 | gzip -c > twice.gz", cwd=tmp_path)
    result = tally(*words, cwd=tmp_path)
    assert result.returncode == 1 and says in result.stderr, result.stderr
    assert words[0] in result.stderr or "<stdin>" in result.stderr
    assert not result.stdout or words == ["-", "-"]


def test_what_may_not_be_read(tmp_path: Path) -> None:
    sample().write(tmp_path / "t")
    (tmp_path / "t.blktrace.0").chmod(0)
    program = shutil.copy(BLKTALLY, tmp_path)
    for p in (tmp_path, *tmp_path.parents):
        if p.owner() == "root" and p != Path("/") and "pytest" in str(p):
            p.chmod(0o755)
    drop = ["setpriv", "--reuid", "65534", "--clear-groups"] if os.getuid() == 0 else []
    result = command(*drop, program, tmp_path / "t")
    assert result.returncode == 1 and "t.blktrace.0: cannot open it: Permission denied" in result.stderr, result.stderr


def test_a_read_error_is_told() -> None:
    result = tally("/proc/self/mem")
    assert result.returncode == 3 and "reading ended here: Input/output error" in result.stderr


@pytest.mark.parametrize("cut", [10, 1000])
def test_cut_compressed_captures(cut: int, tmp_path: Path) -> None:
    trace = Machine(3, events=2000).run()
    packed = gzip.compress(trace.merged())
    (tmp_path / "t.gz").write_bytes(packed[:-cut])
    result = tally("--format", "json", "t.gz", cwd=tmp_path)
    assert result.returncode == 3 and "gzip data ends too early" in result.stderr
    got = json.loads(result.stdout)
    assert 0 < got["total"]["events"] <= 2100
    # Where it ended, and after how many records.
    told = {d["code"]: d for d in got["diagnostics"]}["unreadable"]
    assert told["record"] == got["records"] + 1 and told["offset_bytes"] == got["input_bytes"]


# ---- ways out ----

@pytest.mark.parametrize("form", [["--format", f] for f in ("text", "json", "csv", "blkparse")] + [["--check"]])
def test_a_full_disk_is_an_error(form: list[str], tmp_path: Path) -> None:
    sample().write(tmp_path / "t")
    with Path("/dev/full").open("w") as full:
        result = subprocess.run([BLKTALLY, *form, "t"], cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert result.returncode == 1 and "cannot write standard output: No space left on device" in result.stderr


def test_a_closed_pipe_is_an_error(tmp_path: Path) -> None:
    Machine(3, cpus=2, events=2000).run().write(tmp_path / "t")
    result = command("bash", "-c", f"{BLKTALLY} --format json --per-process t | true; echo ${{PIPESTATUS[0]}}", cwd=tmp_path)
    assert result.stdout.strip() in ("0", "1")  # the pipe may take all of it
    result = command("bash", "-c", f"{{ sleep 0.3; {BLKTALLY} --format json t; }} | true; echo ${{PIPESTATUS[0]}}", cwd=tmp_path)
    assert result.stdout.strip() == "1" and "Broken pipe" in result.stderr


def test_an_output_file_is_whole_or_not_there(tmp_path: Path) -> None:
    sample().write(tmp_path / "t")
    assert tally("-o", "out.json", "--format", "json", "t", cwd=tmp_path).returncode == 0
    assert json.loads((tmp_path / "out.json").read_text())["schema"] == "blktally/1"
    assert {p.name for p in tmp_path.iterdir()} == {"t.blktrace.0", "out.json"}
    result = tally("-o", "no/such/folder/out", "t", cwd=tmp_path)
    assert result.returncode == 1 and "cannot write no/such/folder/out" in result.stderr
    (tmp_path / "folder").mkdir()
    result = tally("-o", "folder", "t", cwd=tmp_path)
    assert result.returncode == 1 and "cannot write folder" in result.stderr
    assert {p.name for p in tmp_path.iterdir()} == {"t.blktrace.0", "out.json", "folder"}


def test_output_to_what_is_no_file(tmp_path: Path) -> None:
    """A pipe stays a pipe (and /dev/null a device), and a link stays a link."""
    sample().write(tmp_path / "t")
    os.mkfifo(tmp_path / "fifo")
    with subprocess.Popen(["cat", "fifo"], cwd=tmp_path, stdout=subprocess.PIPE, text=True) as reader:
        assert tally("-o", "fifo", "--format", "json", "t", cwd=tmp_path).returncode == 0
        assert json.loads(reader.communicate(timeout=60)[0])["schema"] == "blktally/1"
    assert (tmp_path / "fifo").is_fifo()
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "file").write_text("old")
    (tmp_path / "link").symlink_to("there/file")
    assert tally("-o", "link", "--format", "json", "t", cwd=tmp_path).returncode == 0
    assert (tmp_path / "link").is_symlink() and json.loads((tmp_path / "there" / "file").read_text())["schema"] == "blktally/1"
    assert {p.name for p in (tmp_path / "there").iterdir()} == {"file"}


@pytest.mark.parametrize("words", [[], ["--format", "xml", "t"], ["--interval", "1", "t"], ["--interval", "0", "--format", "csv", "t"],
                                   ["--counts-only", "--format", "csv", "t"], ["--window", "0", "t"], ["--dropped", "-1", "t"],
                                   ["--no-such", "t"]])
def test_wrong_command_lines(words: list[str]) -> None:
    result = tally(*words)
    assert result.returncode == 2 and result.stderr.strip()


def test_csv_adds_up_to_the_totals(tmp_path: Path) -> None:
    Machine(5, cpus=3, events=3000).run().write(tmp_path / "t")
    total = counts(tmp_path / "t")["total"]
    for interval in ("0.001", "0.05", "1000"):
        lines = tally("--format", "csv", "--interval", interval, "t", cwd=tmp_path).stdout.splitlines()
        names = lines[0].split(",")
        rows = [dict(zip(names, line.split(","), strict=True)) for line in lines[1:]]
        for way in ("read", "write", "discard", "flush"):
            for what in ("queued", "merged_back", "merged_request", "dispatched", "completed"):
                assert sum(int(r[f"{way}_{what}"]) for r in rows) == total[way][what]["count"]
                assert sum(int(r[f"{way}_{what}_bytes"]) for r in rows) == total[way][what]["bytes"]
        assert max(int(r["read_depth_max"]) for r in rows) == total["read"]["depth_max"]
        starts = [float(r["start_s"]) for r in rows]
        assert starts == [round(n * float(interval), 9) for n in range(len(rows))]


def test_every_key_of_the_json_is_documented() -> None:
    docs = (ROOT / "docs" / "blktally.md").read_text()

    def keys(value: object) -> set[str]:
        if isinstance(value, dict):
            return set(value) | {k for v in value.values() for k in keys(v)}
        return {k for v in value for k in keys(v)} if isinstance(value, list) else set()

    all_keys: set[str] = set()
    for name in ("plain", "merges", "partitions", "strange-names", "first-magic"):
        all_keys |= keys(counts("--per-process", "--per-partition", GOLDEN / name / "in"))
    missing = {k for k in all_keys if f"`{k}`" not in docs}
    assert not missing, f"docs/blktally.md does not explain {sorted(missing)}"


def test_every_diagnostic_is_documented() -> None:
    docs = (ROOT / "docs" / "blktally.md").read_text()
    source = "".join(p.read_text() for p in (ROOT / "harness/tally/src").glob("*.cpp"))
    codes = set(re.findall(r'(?:damage|refuse|remark)\((?:[^"()]*, )?"([a-z-]+)",', source)) | set(
        re.findall(r'std::nullopt, "([a-z-]+)",', source)) | set(re.findall(r'\+ 1, "([a-z-]+)",', source))
    assert len(codes) >= 20
    missing = {c for c in codes if f"`{c}`" not in docs}
    assert not missing, f"docs/blktally.md does not explain {sorted(missing)}"


# ---- size and speed ----

def usage_of(*argv: str | Path, cwd: Path) -> tuple[float, int]:
    """CPU seconds and the largest resident size in KiB of a command that must succeed."""
    kib = 0
    with subprocess.Popen([str(a) for a in argv], cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as p:
        while not (done := os.wait4(p.pid, os.WNOHANG))[0]:
            # Not ru_maxrss: it remembers how large pytest was when it forked.
            peak = re.search(r"VmHWM:\s+(\d+)", Path(f"/proc/{p.pid}/status").read_text())
            kib = max(kib, int(peak[1]) if peak else 0)
            time.sleep(0.001)
        _, status, rusage = done
        p.returncode = os.waitstatus_to_exitcode(status)
    assert p.returncode == 0, argv
    assert kib > 1000, f"{argv} ended before it could be measured"
    return rusage.ru_utime + rusage.ru_stime, kib


@pytest.fixture(scope="session")
def big(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A million events on 8 CPUs."""
    folder = tmp_path_factory.mktemp("big")
    made = command(BIN / "tally-generate", "--events", "1000000", folder / "t")
    assert made.returncode == 0, made.stderr
    yield folder
    shutil.rmtree(folder)


def test_a_million_events_through_both(big: Path) -> None:
    theirs, _ = blkparse(cwd=big, base="t")
    same(theirs, tally("--format", "blkparse", "--grouping", "no", "t", cwd=big).stdout)


def test_ten_times_faster_than_blkparse(big: Path) -> None:
    """CPU time, which other work on the machine does not change much; the least of some runs. scripts/tally-compare measures more."""
    ours = min(usage_of(BLKTALLY, "--no-latency", "t", cwd=big)[0] for _ in range(5))
    theirs = min(usage_of("blkparse", "-f", "", "-i", "t", cwd=big)[0] for _ in range(2))
    assert theirs / ours >= 10, f"blkparse {theirs} s, blktally {ours} s"


def test_memory_does_not_grow_with_the_capture(big: Path) -> None:
    for words in ([], ["--format", "json", "--per-process"], ["--counts-only"]):
        _, kib = usage_of(BLKTALLY, *words, "t", cwd=big)
        assert kib < 64 * KIB, f"{words}: {kib} KiB"


def test_a_thousand_cpus(tmp_path: Path) -> None:
    made = command(BIN / "tally-generate", "--events", "200000", "--cpus", "1000", tmp_path / "t")
    assert made.returncode == 0, made.stderr
    theirs, _ = blkparse(cwd=tmp_path, base="t")
    same(theirs, tally("--format", "blkparse", "--grouping", "no", "t", cwd=tmp_path).stdout)
    _, kib = usage_of(BLKTALLY, "t", cwd=tmp_path)
    assert kib < 200 * KIB

    def few_files() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))

    result = subprocess.run([BLKTALLY, "t"], cwd=tmp_path, preexec_fn=few_files, capture_output=True, text=True, check=False)
    assert result.returncode == 1 and "raise the limit with ulimit -n" in result.stderr


def test_percentiles_are_exact_beyond_memory(tmp_path: Path) -> None:
    """Latencies of known values, more of them than are kept in memory, against a sorted list."""
    trace = Trace()
    values = []
    at = 1_000_000_000
    for n in range(30000):
        value = (n * 7919) % 100_000 + 1
        values.append(value)
        trace.event(at, QUEUE, sector=n * 8, nbytes=4 * KIB, flags=WRITE)
        trace.event(at + value, COMPLETE, sector=n * 8, nbytes=4 * KIB, flags=WRITE)
        at += 200_000
    trace.write(tmp_path / "t")
    values.sort()
    latency = counts(tmp_path / "t")["total"]["write"]["latency"]["q2c"]
    assert latency["exact"] and latency["samples"] == len(values) and latency["sum_ns"] == sum(values)
    for key, share in (("p50_ns", 500), ("p90_ns", 900), ("p99_ns", 990), ("p99_9_ns", 999)):
        assert latency[key] == values[(len(values) * share + 999) // 1000 - 1], key


# ---- damage, at random, through the whole program ----

def test_noise_never_passes_for_a_capture(tmp_path: Path) -> None:
    data = sample().of_cpu(0)
    starts = starts_of(data)
    for n, at in enumerate(starts):
        broken = bytearray(data)
        broken[at] ^= 0xff
        (tmp_path / "t.blktrace.0").write_bytes(broken)
        result = tally("--format", "json", "t", cwd=tmp_path)
        assert result.returncode == 3, n
        assert json.loads(result.stdout)["records"] == 22
        assert f"record {n + 1}, byte {at}: " in result.stderr


def test_under_the_sanitizers_and_the_fuzzer() -> None:
    """The unit tests with every prefix and every damaged header byte, then a fixed number of the fuzzer's executions."""
    result = command(ROOT / "scripts" / "tally-fuzz", os.environ.get("TALLY_FUZZ", "100000"), timeout_s=3600)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "fuzzer: no report" in result.stdout
