# SPDX-License-Identifier: GPL-2.0-only
"""The captures of the golden folder: one small capture for each thing that the format can hold, and for each way to damage it.

`/usr/bin/python3 tests/tally/cases.py` writes the inputs; with `--expect BLKTALLY` the expected output too, which is then to be read
before it is committed: it is the reviewed truth, not whatever the program prints.
"""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from trace import (BACKMERGE, BOUNCE, C_QUEUE, COMPLETE, DISCARD, DRV_DATA, FLUSH, FRONTMERGE, FS, FUA, GETRQ, INSERT, ISSUE, MAGIC, META, PC, PLUG,
                   QUEUE, READ, REQUEUE, SLEEPRQ, SYNC, WRITE, AHEAD, Machine, Trace, dev)

GOLDEN = Path(__file__).resolve().parent / "golden"
KIB = 1024


@dataclass
class Case:
    name: str
    about: str
    files: dict[str, bytes]
    status: int = 0          # of blktally
    words: list[str] = field(default_factory=lambda: ["in"])
    stdin: str | None = None  # the file that is piped in
    blkparse: bool = True    # blkparse prints the same blocks; where not, test_tally.py has a test of the difference
    runs: list[list[str]] = field(default_factory=lambda: [["--check"], [], ["--format", "blkparse"]])


CASES: dict[str, Case] = {}


def case(about: str, **rest: object) -> Callable[[Callable[[], Trace | dict[str, bytes]]], None]:
    def register(build: Callable[[], Trace | dict[str, bytes]]) -> None:
        name = build.__name__.replace("_", "-")
        made = build()
        if isinstance(made, Trace):
            last = max(made.cpus(), default=0)
            made = {f"in.blktrace.{cpu}": made.of_cpu(cpu) for cpu in range(last + 1)}
        CASES[name] = Case(name, about, made, **rest)  # type: ignore[arg-type]

    return register


def started() -> Trace:
    t = Trace()
    t.timestamp(1_000_000_000, 1_338_328_080, 500_000_000)
    t.process(1_000_000_100, 1, "dd")
    return t


# ---- sound captures ----

@case("one read and one write, each alone", runs=[["--check"], [], ["--format", "blkparse"], ["--format", "json"]])
def plain() -> Trace:
    t = started()
    t.whole(1_000_001_000, 2048, 4 * KIB, flags=READ)
    t.whole(1_000_101_000, 4096, 64 * KIB, flags=WRITE | SYNC)
    return t


@case("back, front and request merges: Q + X = D - R + M with each", runs=[["--check"], ["--histograms"], ["--format", "blkparse"]])
def merges() -> Trace:
    t = started()
    for flags, base in ((READ | AHEAD, 1000), (WRITE, 900000)):
        at = 1_000_001_000 + base
        page = dict(nbytes=4 * KIB, flags=flags)
        t.event(at, PLUG)
        for n, (sector, action) in enumerate(((base + 8, GETRQ), (base + 16, BACKMERGE), (base, FRONTMERGE), (base + 32, GETRQ),
                                              (base + 40, BACKMERGE), (base + 24, BACKMERGE))):
            t.event(at + 100 * n + 10, QUEUE, sector=sector, **page)
            t.event(at + 100 * n + 20, action, sector=sector, **page)
        t.unplug(at + 700, 2)
        t.event(at + 710, BACKMERGE, sector=base + 32, nbytes=8 * KIB, flags=flags | FS)
        t.event(at + 720, INSERT, sector=base, nbytes=24 * KIB, flags=flags | FS)
        t.event(at + 800, ISSUE, sector=base, nbytes=24 * KIB, flags=flags | FS)
        t.event(at + 9800, COMPLETE, sector=base, nbytes=24 * KIB, flags=flags | FS, pid=0)
    return t


@case("a request that the driver gave back: two dispatches, its bytes once in blkparse")
def requeue() -> Trace:
    t = started()
    one = dict(sector=64, nbytes=8 * KIB, flags=READ)
    rq = dict(one, flags=READ | FS)
    t.event(1_000_001_000, QUEUE, **one)
    t.event(1_000_002_000, GETRQ, **one)
    t.event(1_000_003_000, INSERT, **rq)
    t.event(1_000_004_000, ISSUE, **rq)
    t.event(1_000_005_000, REQUEUE, **rq)
    t.event(1_000_006_000, ISSUE, **rq)
    t.event(1_000_016_000, COMPLETE, **rq)
    return t


@case("scheduler none: no I events")
def no_scheduler() -> Trace:
    t = started()
    for n in range(4):
        t.whole(1_000_001_000 + n * 10_000, n * 1000, 4 * KIB, flags=WRITE if n % 2 else READ, insert=False)
    return t


@case("a bio-based device: Q and C only")
def bio_based() -> Trace:
    t = started()
    for n in range(10):
        t.event(1_000_001_000 + n * 1000, QUEUE, sector=n * 8, nbytes=4 * KIB, flags=WRITE)
        t.event(1_000_001_400 + n * 1000, COMPLETE, sector=n * 8, nbytes=4 * KIB, flags=WRITE)
    return t


@case("notes and no event")
def notes_only() -> Trace:
    return started()


@case("a file of no bytes", runs=[["--check"], ["--strict"], ["--format", "blkparse"]])
def empty() -> dict[str, bytes]:
    return {"in.blktrace.0": b""}


@case("discards, one of them of 2 GiB, whose completion blkparse adds as a negative number")
def discards() -> Trace:
    t = started()
    t.whole(1_000_001_000, 1 << 22, 1 << 20, flags=WRITE | DISCARD)
    t.whole(1_000_101_000, 1 << 24, 1 << 31, flags=WRITE | DISCARD)
    t.whole(1_000_201_000, 0, 4 * KIB, flags=WRITE)
    return t


@case("flushes as Linux 5.14 traced them on an NVMe disk: queued as writes, dispatched as reads; the numbers are those of a real capture")
def flushes() -> Trace:
    t = started()
    at = 1_000_001_000
    sector = 1 << 20
    for n in range(119):
        # 119 requests, 106 bios merged into them; one of 2 KiB and one of 512 bytes among 4 KiB ones.
        merged = 1 if n < 106 else 0
        size = 4 * KIB
        t.event(at, QUEUE, sector=sector, nbytes=size, flags=WRITE | SYNC)
        t.event(at + 10, GETRQ, sector=sector, nbytes=size, flags=WRITE | SYNC)
        if merged:
            t.event(at + 20, QUEUE, sector=sector + 8, nbytes=size, flags=WRITE | SYNC)
            t.event(at + 30, BACKMERGE, sector=sector + 8, nbytes=size, flags=WRITE | SYNC)
        whole = size * (1 + merged)
        t.event(at + 40, ISSUE, sector=sector, nbytes=whole, flags=WRITE | SYNC | FS)
        t.event(at + 50_000, COMPLETE, sector=sector, nbytes=whole, flags=WRITE | SYNC | FS, pid=0)
        if n < 23:
            t.event(at + 60_000, QUEUE, flags=WRITE | FLUSH | SYNC)
            t.event(at + 60_100, ISSUE, flags=READ | FLUSH | FS)
            t.event(at + 90_000, COMPLETE, flags=READ | FLUSH | FS, pid=0)
            t.event(at + 90_100, COMPLETE, flags=WRITE | FLUSH | SYNC, pid=0)  # the flush's bio
        at += 100_000
        sector += 4096
    return t


@case("a write with a flush before and FUA: the flush is dispatched by itself")
def preflush_fua() -> Trace:
    t = started()
    flags = WRITE | SYNC | FUA
    t.event(1_000_001_000, QUEUE, sector=8, nbytes=4 * KIB, flags=flags | FLUSH | META)
    t.event(1_000_001_100, GETRQ, sector=8, nbytes=4 * KIB, flags=flags | FLUSH | META)
    t.event(1_000_001_200, ISSUE, flags=READ | FLUSH | FS)
    t.event(1_000_051_200, COMPLETE, flags=READ | FLUSH | FS, pid=0)
    t.event(1_000_051_300, ISSUE, sector=8, nbytes=4 * KIB, flags=flags | META | FS)
    t.event(1_000_099_300, COMPLETE, sector=8, nbytes=4 * KIB, flags=flags | META | FS, pid=0)
    return t


@case("packet commands; blkparse adds the KiB of queued packet reads to the ordinary reads")
def packets() -> Trace:
    t = started()
    cdb = bytes([0x12, 0, 0, 0, 0x24, 0])
    for n, flags in enumerate((READ | PC, WRITE | PC)):
        at = 1_000_001_000 + n * 100_000
        t.event(at, QUEUE, nbytes=4100, flags=flags)
        t.event(at + 1000, INSERT, nbytes=4100, flags=flags, pdu=cdb)
        t.event(at + 2000, ISSUE, nbytes=4100, flags=flags, pdu=cdb)
        t.event(at + 3000, REQUEUE, nbytes=4100, flags=flags)
        t.event(at + 4000, ISSUE, nbytes=4100, flags=flags, pdu=cdb)
        t.event(at + 9000, COMPLETE, nbytes=4100, flags=flags, pid=0)
    return t


@case("a bio split in three; its life ends with its last part")
def splits() -> Trace:
    t = started()
    big, part = 1280 * KIB, 512 * KIB
    # Beyond 2 TiB: the kernel cuts the new sector of the split event to 32 bits.
    base = 1 << 33
    t.event(1_000_001_000, QUEUE, sector=base, nbytes=big, flags=READ)
    for n in range(2):
        t.split(1_000_002_000 + n * 1000, base + n * 1024, part, base + (n + 1) * 1024)
        t.event(1_000_002_100 + n * 1000, GETRQ, sector=base + n * 1024, nbytes=part, flags=READ)
    t.event(1_000_004_000, GETRQ, sector=base + 2048, nbytes=256 * KIB, flags=READ)
    sizes = (part, part, 256 * KIB)
    for n, size in enumerate(sizes):
        t.event(1_000_010_000 + n, ISSUE, sector=base + n * 1024, nbytes=size, flags=READ | FS)
    for n, size in reversed(list(enumerate(sizes))):
        t.event(1_000_020_000 + (3 - n) * 1000, COMPLETE, sector=base + n * 1024, nbytes=size, flags=READ | FS, pid=0)
    return t


@case("completions with an error, and a request completed in two parts")
def errors_and_parts() -> Trace:
    t = started()
    t.whole(1_000_001_000, 0, 4 * KIB, flags=READ, error=-5)
    one = dict(sector=800, flags=WRITE)
    t.event(1_000_101_000, QUEUE, nbytes=16 * KIB, **one)
    t.event(1_000_102_000, GETRQ, nbytes=16 * KIB, **one)
    t.event(1_000_103_000, ISSUE, nbytes=16 * KIB, sector=800, flags=WRITE | FS)
    t.event(1_000_113_000, COMPLETE, nbytes=12 * KIB, sector=800, flags=WRITE | FS)
    t.event(1_000_123_000, COMPLETE, nbytes=4 * KIB, sector=824, flags=WRITE | FS)
    return t


@case("sizes that are no whole KiB, bounces, and waits for a request")
def odd_sizes() -> Trace:
    t = started()
    at = 1_000_001_000
    for n in range(7):
        one = dict(sector=n * 100, nbytes=512 * (n + 1), flags=READ if n % 2 else WRITE)
        rq = dict(one, flags=one["flags"] | FS)
        t.event(at, QUEUE, **one)
        if n == 3:
            t.event(at + 50, BOUNCE, **one)
        if n == 4:
            t.event(at + 60, SLEEPRQ, **one)
        t.event(at + 100, GETRQ, **one)
        t.event(at + 200, ISSUE, **rq)
        t.event(at + 1_000_300, COMPLETE, **rq)
        at += 2_000_000
    return t


@case("plugs flushed by their owner and by the timer")
def unplugs() -> Trace:
    t = started()
    for n, depth in enumerate((1, 1, 2, 16, 17)):
        t.event(1_000_001_000 + n * 1000, PLUG)
        t.unplug(1_000_001_500 + n * 1000, depth, timer=n % 2 == 1)
    return t


@case("the byte order of a big-endian machine")
def big_endian() -> Trace:
    t = Trace(endian=">")
    t.timestamp(1_000_000_000, 1_338_328_080, 500_000_000)
    t.process(1_000_000_100, 1, "dd")
    t.whole(1_000_001_000, 2048, 4 * KIB, flags=READ)
    t.unplug(1_000_050_000, 3)
    t.whole(1_000_101_000, 4096, 64 * KIB, flags=WRITE | SYNC)
    return t


@case("events of four CPUs at the same nanoseconds; CPU 2 saw nothing", runs=[["--check"], ["--per-cpu"], ["--format", "blkparse"]])
def four_cpus() -> Trace:
    t = Trace()
    for n in range(12):
        at = 1_000_000_000 + n // 3 * 1000
        cpu = (n % 3, 3)[n % 3 == 2]
        rq = dict(sector=n * 64, nbytes=4 * KIB, flags=READ | FS, cpu=cpu)
        t.event(at, ISSUE, **rq)
        t.event(at + 1000, COMPLETE, **rq)
    return t


@case("two devices in one stream, kept apart", words=["-"], stdin="in")
def two_devices() -> dict[str, bytes]:
    t = Trace()
    t.whole(1_000_001_000, 0, 4 * KIB, flags=READ, device=dev(8, 0))
    t.whole(1_000_002_500, 0, 8 * KIB, flags=WRITE, device=dev(259, 0x12345))
    t.whole(1_000_201_000, 8, 4 * KIB, flags=READ, device=dev(8, 0))
    return {"in": t.merged()}


@case("device mapper over a disk: the same bios at both, counted once in the total", words=["-"], stdin="in")
def device_mapper() -> dict[str, bytes]:
    t = Trace()
    upper, lower = dev(253, 0), dev(8, 0)
    for n in range(5):
        at = 1_000_001_000 + n * 100_000
        t.event(at, QUEUE, sector=n * 8, nbytes=4 * KIB, flags=WRITE, device=upper)
        t.remap(at + 100, 2048 + n * 8, 4 * KIB, upper, n * 8, to_device=lower, flags=WRITE, device=lower)
        t.whole(at + 200, 2048 + n * 8, 4 * KIB, flags=WRITE, device=lower)
        t.event(at + 9000, COMPLETE, sector=n * 8, nbytes=4 * KIB, flags=WRITE, device=upper)
    return {"in": t.merged()}


@case("three partitions, by the remap events", runs=[["--check"], ["--per-partition"], ["--format", "blkparse"]])
def partitions() -> Trace:
    t = started()
    for n, (minor, start, sector) in enumerate(((1, 2048, 0), (2, 1_000_000, 16), (1, 2048, 900_000), (3, 5_000_000, 0), (2, 1_000_000, 8))):
        at = 1_000_001_000 + n * 10_000
        # Before Linux 5.12 the new device was the disk.
        t.remap(at, start + sector, 4 * KIB, dev(8, minor), sector, to_device=dev(8, 0) if minor == 3 else None)
        t.whole(at + 100, start + sector, 4 * KIB, flags=READ)
    t.whole(1_000_101_000, 64, 512, flags=READ)  # the partition table, of no partition
    return t


@case("driver data and a message")
def driver_data() -> Trace:
    t = started()
    t.event(1_000_001_000, DRV_DATA, sector=8, nbytes=4 * KIB, pdu=bytes(range(40)))
    t.message(1_000_002_000, "cfq1234 slice expired t=0")
    t.whole(1_000_003_000, 8, 4 * KIB, flags=READ)
    return t


@case("cgroup numbers before the payloads of events: blkparse counts none of them", blkparse=False, runs=[["--check"], []])
def cgroup_events() -> Trace:
    t = started()
    for n in range(3):
        at = 1_000_001_000 + n * 10_000
        one = dict(sector=n * 8, nbytes=4 * KIB, cgroup=0x100000001 + n)
        t.event(at, QUEUE, flags=WRITE, **one)
        t.event(at + 100, GETRQ, flags=WRITE, **one)
        t.unplug(at + 200, 5, cgroup=9)
        t.event(at + 300, ISSUE, flags=WRITE | FS, **one)
        t.event(at + 400, COMPLETE, flags=WRITE | FS, **one)
    return t


@case("messages with a cgroup, as every kernel with CONFIG_BLK_CGROUP writes them: blkparse loses them")
def cgroup_messages() -> Trace:
    t = started()
    t.message(1_000_001_000, "bfq [bfq_dispatch] cgroup", cgroup=1)
    t.whole(1_000_002_000, 8, 4 * KIB, flags=READ)
    return t


@case("issue and completion only, as `blktrace -a issue -a complete` captures")
def masked() -> Trace:
    t = started()
    for n in range(5):
        rq = dict(sector=n * 80, nbytes=32 * KIB, flags=READ | FS)
        t.event(1_000_001_000 + n * 10_000, ISSUE, **rq)
        t.event(1_000_004_000 + n * 10_000, COMPLETE, **rq)
    return t


@case("a capture that begins and ends while requests are under way")
def mid_flight() -> Trace:
    t = started()
    rq = dict(sector=8, nbytes=4 * KIB, flags=READ | FS)
    t.event(1_000_001_000, COMPLETE, **rq)
    t.event(1_000_002_000, ISSUE, **dict(rq, sector=16))
    t.event(1_000_003_000, COMPLETE, **dict(rq, sector=16))
    t.whole(1_000_004_000, 24, 4 * KIB, flags=READ)
    t.event(1_000_010_000, QUEUE, sector=32, nbytes=4 * KIB, flags=READ)
    t.event(1_000_011_000, GETRQ, sector=32, nbytes=4 * KIB, flags=READ)
    t.event(1_000_012_000, ISSUE, **dict(rq, sector=32))
    t.event(1_000_013_000, QUEUE, sector=40, nbytes=4 * KIB, flags=READ)
    return t


@case("sectors near the largest number, and the largest device number", words=["-"], stdin="in")
def far_sectors() -> dict[str, bytes]:
    t = Trace(device=0xffffffff)
    t.whole(1_000_001_000, 2**64 - 8, 4 * KIB, flags=READ)
    t.whole(1_000_101_000, 2**64 - 16, 4 * KIB, flags=READ)
    t.whole(1_000_201_000, 0, 4 * KIB, flags=READ)
    return {"in": t.merged()}


@case("event numbers that pass 2^32")
def sequence_wrap() -> Trace:
    t = Trace(first_sequence=2**32 - 7)
    for n in range(4):
        t.whole(1_000_001_000 + n * 10_000, n * 8, 4 * KIB, flags=READ)
    return t


@case("names and messages that are no text", runs=[["--check"], ["--per-process"], ["--format", "json", "--per-process"]])
def strange_names() -> Trace:
    t = Trace()
    t.note(1_000_000_000, 1 << 26, b"\xff\xfe\x1b[31m\x07\x80\x81abcdefgh", pid=1)
    t.note(1_000_000_000, 1 << 26, b"", pid=2)
    t.note(1_000_000_001, (1 << 26) | 2, b"\xc3\x28 \x00 after", pid=1)
    t.whole(1_000_001_000, 8, 4 * KIB, flags=READ, pid=1)
    t.whole(1_000_101_000, 8, 4 * KIB, flags=READ, pid=2)
    t.whole(1_000_201_000, 8, 4 * KIB, flags=READ, pid=2**32 - 1)
    return t


@case("one row for each interval, empty ones too", runs=[["--format", "csv", "--interval", "0.0001"]])
def intervals() -> Trace:
    t = started()
    t.whole(1_000_001_000, 8, 4 * KIB, flags=READ, step=30_000)
    t.whole(1_000_401_000, 16, 4 * KIB, flags=WRITE, step=30_000)
    return t


@case("packet commands and an interval in which only they happen", runs=[["--format", "csv", "--interval", "0.0001"]])
def packet_intervals() -> Trace:
    t = started()
    t.whole(1_000_001_000, 8, 4 * KIB, flags=READ)
    t.event(1_000_201_000, ISSUE, nbytes=36, flags=READ | PC)
    t.event(1_000_202_000, COMPLETE, nbytes=36, flags=READ | PC, pid=0)
    return t


@case("zone appends: dispatched to where their zone begins, completed where they came to stand. The format does not mark them")
def zone_appends() -> Trace:
    t = started()
    zone = 1 << 19
    for n in range(3):
        at = 1_000_001_000 + n * 10_000
        one = dict(nbytes=4 * KIB, flags=WRITE)
        rq = dict(one, flags=WRITE | FS)
        t.event(at, QUEUE, sector=zone, **one)
        t.event(at + 100, GETRQ, sector=zone, **one)
        t.event(at + 200, ISSUE, sector=zone, **rq)
        t.event(at + 5200, COMPLETE, sector=zone + 800 + n * 8, **dict(rq, pid=0))
    t.whole(1_000_101_000, 8, 4 * KIB, flags=WRITE)
    return t


@case("secure erase, which is marked as a discard, and write zeroes, which is marked as a write")
def erase_and_zeroes() -> Trace:
    t = started()
    t.whole(1_000_001_000, 2048, 1 << 20, flags=WRITE | DISCARD)
    t.whole(1_000_101_000, 8192, 16 << 20, flags=WRITE)
    return t


@case("a time so far in the future that with the time of day added it needs 64 bits and no sign", runs=[["--check"], ["--format", "blkparse"]])
def wild_time() -> Trace:
    t = started()
    t.whole(8_678_302_341_524_360_178, 8, 4 * KIB, flags=READ)
    return t


for _seed, _cpus in ((1, 1), (2, 2), (3, 5)):
    _made = Machine(_seed, cpus=_cpus, events=600, plain=True).run()
    CASES[f"model-{_seed}"] = Case(f"model-{_seed}", f"600 events of a modelled block layer on {_cpus} CPUs",
                                   {f"in.blktrace.{cpu}": _made.of_cpu(cpu) for cpu in range(_cpus)},
                                   runs=[["--check"], ["--histograms", "--per-process"], ["--format", "blkparse"]])


# ---- damage ----

def sample() -> Trace:
    """Twenty-one events of one CPU: four whole requests and a queued bio, with two notes before."""
    t = started()
    for n in range(4):
        t.whole(1_000_001_000 + n * 10_000, n * 80, 4 * KIB, flags=WRITE if n % 2 else READ)
    t.event(1_000_051_000, QUEUE, sector=4000, nbytes=4 * KIB, flags=READ)
    return t


def starts_of(data: bytes) -> list[int]:
    starts, at = [], 0
    while at < len(data):
        starts.append(at)
        at += 48 + struct.unpack_from("<H", data, at + 46)[0]
    return starts


@case("the first record's magic is damaged", status=3, blkparse=False, runs=[["--check"], []])
def first_magic() -> dict[str, bytes]:
    data = sample().of_cpu(0)
    return {"in.blktrace.0": b"\xde\xad\xbe\xef" + data[4:]}


@case("version 6", status=3, blkparse=False, runs=[["--check"], []])
def version_6() -> dict[str, bytes]:
    t = Trace()
    return {"in.blktrace.0": b"".join(t.pack(time=n, action=QUEUE | C_QUEUE | READ, nbytes=4096, magic=MAGIC | 6, sequence=n + 1)
                                      for n in range(3))}


@case("version 8, which is coming", status=3, blkparse=False, runs=[["--check"]])
def version_8() -> dict[str, bytes]:
    # struct blk_io_trace2 has a 64-bit action and is longer.
    return {"in.blktrace.0": b"".join(struct.pack("<IIQQIIQIIIHH12x", MAGIC | 8, n + 1, n, 0, 4096, 1, (QUEUE | C_QUEUE | READ), 0, 8 << 20, 0, 0, 0)
                                      for n in range(3))}


@case("the magic of record 9 of 23 is damaged: one record is lost", status=3, blkparse=False, runs=[["--check"], []])
def magic_in_the_middle() -> dict[str, bytes]:
    data = sample().of_cpu(0)
    at = starts_of(data)[8]
    return {"in.blktrace.0": data[:at] + b"\xde\xad\xbe\xef" + data[at + 4:]}


@case("17 bytes of junk inside record 6", status=3, blkparse=False, runs=[["--check"], []])
def junk_inside() -> dict[str, bytes]:
    data = sample().of_cpu(0)
    at = starts_of(data)[5] + 20
    return {"in.blktrace.0": data[:at] + bytes(range(100, 117)) + data[at:]}


@case("the last record lacks 20 bytes", status=3, runs=[["--check"], [], ["--format", "blkparse"]])
def cut_record() -> dict[str, bytes]:
    return {"in.blktrace.0": sample().of_cpu(0)[:-20]}


@case("the last record's payload is cut", status=3, blkparse=False, runs=[["--check"], []])
def cut_payload() -> dict[str, bytes]:
    t = sample()
    t.unplug(1_000_060_000, 4)
    return {"in.blktrace.0": t.of_cpu(0)[:-3]}


@case("a record's length is damaged", status=3, blkparse=False, runs=[["--check"], []])
def bad_length() -> dict[str, bytes]:
    data = bytearray(sample().of_cpu(0))
    at = starts_of(bytes(data))[7] + 46
    data[at:at + 2] = b"\x39\x30"
    return {"in.blktrace.0": bytes(data)}


@case("time goes back within one CPU's events", status=3, blkparse=False, runs=[["--check"], []])
def out_of_order() -> dict[str, bytes]:
    data = sample().of_cpu(0)
    starts = starts_of(data)
    first, second = data[starts[2]:starts[3]], data[starts[3]:starts[4]]
    return {"in.blktrace.0": data[:starts[2]] + second + first + data[starts[4]:]}


@case("the file of CPU 3 under the name of CPU 0: blkparse drops all of it", status=3, blkparse=False, runs=[["--check"], []])
def wrong_cpu() -> dict[str, bytes]:
    t = Trace()
    for n in range(4):
        t.whole(1_000_001_000 + n * 10_000, n * 80, 4 * KIB, flags=READ, cpu=3)
    return {"in.blktrace.0": t.of_cpu(3)}


@case("events are missing from the numbering", status=3, runs=[["--check"], [], ["--format", "blkparse"]])
def sequence_gap() -> dict[str, bytes]:
    data = sample().of_cpu(0)
    starts = starts_of(data)
    return {"in.blktrace.0": data[:starts[7]] + data[starts[12]:]}


@case("the same in a stream: blkparse's Skips line", status=3, words=["-"], stdin="in", runs=[["--check"], ["--format", "blkparse"]])
def sequence_gap_in_a_stream() -> dict[str, bytes]:
    data = sample().of_cpu(0)
    starts = starts_of(data)
    return {"in": data[:starts[7]] + data[starts[12]:]}


@case("an action that the format does not have", status=3, blkparse=False, runs=[["--check"], []])
def bad_action() -> dict[str, bytes]:
    t = sample()
    t.records.append((1_000_061_000, 0, t.pack(time=1_000_061_000, action=77 | C_QUEUE | READ, sequence=22)))
    return {"in.blktrace.0": t.of_cpu(0)}


@case("files of CPUs 0 and 2, none of 1: blkparse reads the first only", blkparse=False, runs=[["--check"], ["--strict", "--check"], []])
def hole() -> dict[str, bytes]:
    t = Trace()
    t.whole(1_000_001_000, 0, 4 * KIB, flags=READ, cpu=0)
    t.whole(1_000_101_000, 8, 4 * KIB, flags=READ, cpu=2)
    return {"in.blktrace.0": t.of_cpu(0), "in.blktrace.2": t.of_cpu(2)}


@case("the kernel says that it dropped events", status=3, words=["--dropped", "12", "in"], runs=[["--check"]])
def dropped() -> Trace:
    return sample()


@case("blkparse's text", status=1, words=["in"], blkparse=False, runs=[["--check"], []])
def blkparse_text() -> dict[str, bytes]:
    return {"in": b"  8,0    1        1     0.000000000  4711  Q   R 2048 + 8 [cat]\n  8,0    1        2     0.000001123  4711  G   R 2048 + 8 [cat]\n"}


@case("an iolog of fio", status=1, words=["in"], blkparse=False, runs=[["--check"]])
def iolog() -> dict[str, bytes]:
    return {"in": b"fio version 2 iolog\n/dev/sda add\n/dev/sda open\n/dev/sda read 0 4096\n"}


@case("nothing that is known", status=3, words=["in"], blkparse=False, runs=[["--check"]])
def noise() -> dict[str, bytes]:
    return {"in": bytes((n * 197 + 13) % 256 for n in range(4000))}


# ---- writing ----

def transcript(case_: Case, program: Path) -> str:
    """What blktally prints for the case, each run with its command line and exit status."""
    out = []
    for run in case_.runs:
        stdin = (GOLDEN / case_.name / case_.stdin).open("rb") if case_.stdin else subprocess.DEVNULL
        result = subprocess.run([str(program), *run, *case_.words], cwd=GOLDEN / case_.name, stdin=stdin, capture_output=True, check=False)
        line = " ".join(["blktally", *run, *case_.words]) + (f" < {case_.stdin}" if case_.stdin else "")
        out.append(f"$ {line}\n" + result.stdout.decode() + "".join(f"stderr: {x}\n" for x in result.stderr.decode().splitlines()) +
                   f"exit status {result.returncode}\n")
    return "\n".join(out)


def main() -> None:
    for c in CASES.values():
        folder = GOLDEN / c.name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "about").write_text(c.about + "\n")
        for name, data in c.files.items():
            (folder / name).write_bytes(data)
        if sys.argv[1:2] == ["--expect"]:
            (folder / "expected").write_text(transcript(c, Path(sys.argv[2]).resolve()))


if __name__ == "__main__":
    main()
