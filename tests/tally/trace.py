# SPDX-License-Identifier: GPL-2.0-only
"""Builds blktrace captures, record by record or from a small model of the block layer.

The format is that of include/uapi/linux/blktrace_api.h, version 7. Records are kept per CPU in the order in which the kernel would
have written them, so that a capture can be written as per-CPU files or as the merged stream of `blktrace -o -`.
"""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass, field
from pathlib import Path

MAGIC = 0x65617400
VERSION = 7

# Actions: the low 16 bits.
QUEUE, BACKMERGE, FRONTMERGE, GETRQ, SLEEPRQ, REQUEUE, ISSUE, COMPLETE = range(1, 9)
PLUG, UNPLUG_IO, UNPLUG_TIMER, INSERT, SPLIT, BOUNCE, REMAP, ABORT, DRV_DATA = range(9, 18)
CGROUP = 1 << 8

# Categories: the high 16 bits.
(READ, WRITE, FLUSH, SYNC, C_QUEUE, C_REQUEUE, C_ISSUE, C_COMPLETE, FS, PC, NOTIFY, AHEAD, META, DISCARD, C_DRV_DATA, FUA) = (
    1 << (bit + 16) for bit in range(16))

NOTE_PROCESS, NOTE_TIMESTAMP, NOTE_MESSAGE = NOTIFY | 0, NOTIFY | 1, NOTIFY | 2

# The category that goes with an action by itself. Split and bounce have none.
CATEGORY = {
    QUEUE: C_QUEUE, BACKMERGE: C_QUEUE, FRONTMERGE: C_QUEUE, GETRQ: C_QUEUE, SLEEPRQ: C_QUEUE, REQUEUE: C_REQUEUE, ISSUE: C_ISSUE,
    COMPLETE: C_COMPLETE, PLUG: C_QUEUE, UNPLUG_IO: C_QUEUE, UNPLUG_TIMER: C_QUEUE, INSERT: C_QUEUE, SPLIT: 0, BOUNCE: 0,
    REMAP: C_QUEUE, ABORT: C_QUEUE, DRV_DATA: C_DRV_DATA,
}

SECTOR = 512


def dev(major: int, minor: int) -> int:
    """A device number as the kernel keeps it."""
    return major << 20 | minor


@dataclass
class Trace:
    """A capture under construction. Times are in nanoseconds, sizes in bytes, sectors of 512 bytes."""

    device: int = dev(8, 0)
    endian: str = "<"
    first_sequence: int = 1
    records: list[tuple[int, int, bytes]] = field(default_factory=list)  # (time, cpu, bytes), as written
    sequence: dict[tuple[int, int], int] = field(default_factory=dict)

    def pack(self, *, time: int, action: int, sector: int = 0, nbytes: int = 0, pid: int = 1, cpu: int = 0, error: int = 0, pdu: bytes = b"",
             sequence: int = 0, device: int | None = None, magic: int = MAGIC | VERSION, pdu_len: int | None = None) -> bytes:
        """One record as it stands in a file."""
        head = struct.pack(self.endian + "IIQQIIIIIHH", magic, sequence & 0xffffffff, time & (2**64 - 1), sector & (2**64 - 1), nbytes, action, pid,
                           self.device if device is None else device, cpu, error & 0xffff, len(pdu) if pdu_len is None else pdu_len)
        return head + pdu

    def event(self, time: int, action: int, *, sector: int = 0, nbytes: int = 0, flags: int = READ, pid: int = 1, cpu: int = 0, error: int = 0,
              pdu: bytes = b"", cgroup: int | None = None, device: int | None = None) -> None:
        """An event of the block layer; flags are the categories besides the action's own."""
        key = (self.device if device is None else device, cpu)
        sequence = self.sequence.get(key, self.first_sequence)
        self.sequence[key] = sequence + 1
        what = action | CATEGORY[action] | flags
        if cgroup is not None:
            what |= CGROUP
            pdu = struct.pack(self.endian + "Q", cgroup) + pdu
        self.records.append((time, cpu, self.pack(time=time, action=what, sector=sector, nbytes=nbytes, pid=pid, cpu=cpu, error=error, pdu=pdu,
                                                  sequence=sequence, device=device)))

    def note(self, time: int, action: int, payload: bytes, *, pid: int = 0, cpu: int = 0, cgroup: int | None = None,
             device: int | None = None) -> None:
        """A note. The kernel leaves four of its fields as they were in the buffer: so does this."""
        if cgroup is not None:
            action |= CGROUP
            payload = struct.pack(self.endian + "Q", cgroup) + payload
        self.records.append((time, cpu, self.pack(time=time, action=action, pid=pid, cpu=cpu, pdu=payload, sequence=0xdeadbeef,
                                                  sector=0x5a5a5a5a5a5a, nbytes=0x77777777, error=0x4242, device=device)))

    def process(self, time: int, pid: int, comm: str, cpu: int = 0) -> None:
        self.note(time, NOTE_PROCESS, comm.encode()[:15].ljust(16, b"\0"), pid=pid, cpu=cpu)

    def timestamp(self, time: int, seconds: int, nanoseconds: int, cpu: int = 0) -> None:
        self.note(time, NOTE_TIMESTAMP, struct.pack(self.endian + "II", seconds, nanoseconds), cpu=cpu)

    def message(self, time: int, text: str, cpu: int = 0, cgroup: int | None = None) -> None:
        self.note(time, NOTE_MESSAGE, text.encode(), pid=0, cpu=cpu, cgroup=cgroup)

    def unplug(self, time: int, depth: int, *, timer: bool = False, pid: int = 1, cpu: int = 0, cgroup: int | None = None) -> None:
        self.event(time, UNPLUG_TIMER if timer else UNPLUG_IO, pid=pid, cpu=cpu, pdu=struct.pack(">Q", depth), cgroup=cgroup)

    def split(self, time: int, sector: int, nbytes: int, new_sector: int, *, flags: int = READ, pid: int = 1, cpu: int = 0) -> None:
        self.event(time, SPLIT, sector=sector, nbytes=nbytes, flags=flags, pid=pid, cpu=cpu, pdu=struct.pack(">Q", new_sector & 0xffffffff))

    def remap(self, time: int, sector: int, nbytes: int, from_device: int, from_sector: int, *, to_device: int | None = None, flags: int = READ,
              pid: int = 1, cpu: int = 0, device: int | None = None) -> None:
        to = from_device if to_device is None else to_device
        self.event(time, REMAP, sector=sector, nbytes=nbytes, flags=flags, pid=pid, cpu=cpu, device=device,
                   pdu=struct.pack(">IIQ", from_device, to, from_sector))

    def whole(self, time: int, sector: int, nbytes: int, *, flags: int = READ, pid: int = 1, cpu: int = 0, step: int = 1000,
              device: int | None = None, insert: bool = True, error: int = 0) -> int:
        """Q, G, I, D, C of one request, a step apart; returns the time of the C."""
        rest = dict(sector=sector, nbytes=nbytes, pid=pid, cpu=cpu, device=device)
        self.event(time, QUEUE, flags=flags, **rest)
        self.event(time + step, GETRQ, flags=flags, **rest)
        if insert:
            self.event(time + 2 * step, INSERT, flags=flags | FS, **rest)
        self.event(time + 3 * step, ISSUE, flags=flags | FS, **rest)
        self.event(time + 4 * step, COMPLETE, flags=flags | FS, error=error, **rest)
        return time + 4 * step

    # How it is written.

    def cpus(self) -> list[int]:
        return sorted({cpu for _, cpu, _ in self.records})

    def of_cpu(self, cpu: int) -> bytes:
        return b"".join(data for _, c, data in self.records if c == cpu)

    def write(self, base: Path, *, all_cpus: bool = True) -> Path:
        """NAME.blktrace.N for every CPU up to the last, as blktrace does for the CPUs that are online."""
        last = max(self.cpus(), default=0)
        for cpu in range(last + 1):
            if all_cpus or cpu in self.cpus():
                Path(f"{base}.blktrace.{cpu}").write_bytes(self.of_cpu(cpu))
        return base

    def merged(self) -> bytes:
        """All records in the order of their time."""
        return b"".join(data for _, _, data in sorted(self.records, key=lambda r: r[0]))

    def chunked(self, chunk: int = 64) -> bytes:
        """As blktrace -o - writes: some records of one CPU, then some of the next."""
        left = {cpu: [data for _, c, data in self.records if c == cpu] for cpu in self.cpus()}
        out = []
        while any(left.values()):
            for cpu, records in left.items():
                out += records[:chunk]
                left[cpu] = records[chunk:]
        return b"".join(out)


@dataclass
class _Bio:
    sector: int
    sectors: int
    flags: int


@dataclass
class _Request:
    sector: int
    sectors: int
    flags: int
    cpu: int
    pid: int

    @property
    def end(self) -> int:
        return self.sector + self.sectors


class Machine:
    """A block layer that behaves: processes on CPUs queue bios, which are split, plugged, merged, inserted, dispatched, sometimes
    requeued, and completed, whole or in parts, on another CPU. What it wrote it also counts, for the tests to compare with."""

    def __init__(self, seed: int, *, cpus: int = 2, events: int = 2000, endian: str = "<", device: int = dev(8, 0), plain: bool = False,
                 ties: bool = True) -> None:
        self.rng = random.Random(seed)
        self.trace = Trace(device=device, endian=endian)
        self.ncpus = cpus
        self.plain = plain  # nothing that blkparse gets wrong
        self.ties = ties    # events of the same nanosecond; between CPUs their order is not known
        self.now = self.rng.randrange(10**9, 10**12)
        self.want = events
        self.queued: list[_Request] = []
        self.driver: list[_Request] = []
        self.waiting: list[tuple[int, list[_Request], int]] = []

    def _tick(self) -> int:
        # Equal times now and then: clocks are coarse somewhere.
        self.now += self.rng.choice((0, 1, 17, 250, 1000, 4000, 90000)) if self.rng.random() < 0.9 else 2_000_000
        self.now += not self.ties
        return self.now

    def _emit(self, action: int, what: _Bio | _Request, *, cpu: int, pid: int, request: bool = False, nbytes: int | None = None, error: int = 0) -> None:
        size = what.sectors * SECTOR if nbytes is None else nbytes
        self.trace.event(self._tick(), action, sector=what.sector, nbytes=size, flags=what.flags | (FS if request else 0), cpu=cpu, pid=pid, error=error)

    def run(self) -> Trace:
        t = self.trace
        if self.rng.random() < 0.9:
            t.timestamp(self.now, 1_700_000_000, 123_456_789, cpu=self.rng.randrange(self.ncpus))
        for pid in range(1, 6):
            if self.rng.random() < 0.8:
                t.process(self.now, pid, f"task-{pid}", cpu=self.rng.randrange(self.ncpus))
        while len(t.records) < self.want:
            self.rng.choices((self._burst, self._dispatch, self._complete, self._flush, self._packet, self._odd), (6, 8, 8, 1, 1, 1))[0]()
        return t

    def finish(self) -> Trace:
        """Lets everything that is in flight end."""
        while self.queued or self.driver:
            self._dispatch()
            self._complete()
        return self.trace

    def _burst(self) -> None:
        rng = self.rng
        cpu, pid = rng.randrange(self.ncpus), rng.randrange(1, 8)
        flags = rng.choice((READ, READ, WRITE)) | rng.choice((0, 0, SYNC, AHEAD, META | SYNC, FUA | SYNC))
        if flags & WRITE:
            flags &= ~AHEAD
        if rng.random() < 0.04:
            flags = WRITE | DISCARD
        plugged: list[_Request] = []
        self.trace.event(self._tick(), PLUG, cpu=cpu, pid=pid)
        sector = rng.randrange(0, 1 << rng.choice((12, 24, 40))) * 8
        for _ in range(rng.randrange(1, 12)):
            if rng.random() < 0.3:
                sector = rng.randrange(0, 1 << 20) * 8
            sectors = rng.choice((1, 2, 8, 8, 8, 16, 64, 256, 2560))
            if rng.random() < 0.15:
                sector = max(0, sector - 2 * sectors)
            bio = _Bio(sector, sectors, flags)
            sector += sectors
            if rng.random() < 0.2:
                start = 2048
                self.trace.remap(self._tick(), bio.sector + start, bio.sectors * SECTOR, dev(8, 1), bio.sector, flags=flags, pid=pid, cpu=cpu)
                bio.sector += start
                sector += start
            self._emit(QUEUE, bio, cpu=cpu, pid=pid)
            if rng.random() < 0.02:
                self._emit(BOUNCE, bio, cpu=cpu, pid=pid)
            while bio.sectors > 128:
                front = _Bio(bio.sector, 128, flags)
                self.trace.split(self._tick(), bio.sector, 128 * SECTOR, bio.sector + 128, flags=flags, pid=pid, cpu=cpu)
                bio = _Bio(bio.sector + 128, bio.sectors - 128, flags)
                self._place(front, plugged, cpu, pid)
            self._place(bio, plugged, cpu, pid)
        self.trace.unplug(self._tick(), len(plugged), timer=rng.random() < 0.1, cpu=cpu, pid=pid)
        for request in plugged:
            self._join(request, cpu, pid)

    def _place(self, bio: _Bio, plugged: list[_Request], cpu: int, pid: int) -> None:
        for request in plugged + self.queued:
            if request.flags & (READ | WRITE | DISCARD) != bio.flags & (READ | WRITE | DISCARD) or request.sectors + bio.sectors > 2048:
                continue
            if request.end == bio.sector:
                self._emit(BACKMERGE, bio, cpu=cpu, pid=pid)
                request.sectors += bio.sectors
                return
            if bio.sector + bio.sectors == request.sector:
                self._emit(FRONTMERGE, bio, cpu=cpu, pid=pid)
                request.sector = bio.sector
                request.sectors += bio.sectors
                return
        if self.rng.random() < 0.02:
            self._emit(SLEEPRQ, bio, cpu=cpu, pid=pid)
        self._emit(GETRQ, bio, cpu=cpu, pid=pid)
        plugged.append(_Request(bio.sector, bio.sectors, bio.flags, cpu, pid))

    def _join(self, request: _Request, cpu: int, pid: int) -> None:
        for other in self.queued:
            if other.end == request.sector and other.flags == request.flags and other.sectors + request.sectors <= 4096:
                self._emit(BACKMERGE, request, cpu=cpu, pid=pid, request=True)
                other.sectors += request.sectors
                return
        if self.rng.random() < 0.9:
            self._emit(INSERT, request, cpu=cpu, pid=pid, request=True)
        self.queued.append(request)

    def _dispatch(self) -> None:
        if not self.queued:
            return
        request = self.queued.pop(self.rng.randrange(len(self.queued)))
        cpu = self.rng.randrange(self.ncpus)
        self._emit(ISSUE, request, cpu=cpu, pid=9, request=True)
        if self.rng.random() < 0.03:
            self._emit(REQUEUE, request, cpu=cpu, pid=9, request=True)
            self.queued.append(request)
            return
        self.driver.append(request)

    def _complete(self) -> None:
        if not self.driver:
            return
        request = self.driver.pop(self.rng.randrange(len(self.driver)))
        cpu = self.rng.randrange(self.ncpus)
        if request.sectors > 8 and self.rng.random() < 0.1:
            part = request.sectors // 2
            self._emit(COMPLETE, request, cpu=cpu, pid=0, request=True, nbytes=part * SECTOR)
            request.sector += part
            request.sectors -= part
            self.driver.append(request)
            return
        self._emit(COMPLETE, request, cpu=cpu, pid=0, request=True, error=-5 if self.rng.random() < 0.02 else 0)

    def _flush(self) -> None:
        cpu, pid = self.rng.randrange(self.ncpus), 3
        self.trace.event(self._tick(), QUEUE, flags=WRITE | FLUSH | SYNC, sector=0, cpu=cpu, pid=pid)
        self.trace.event(self._tick(), ISSUE, flags=READ | FLUSH | FS, cpu=cpu, pid=pid)
        self.trace.event(self._tick(), COMPLETE, flags=READ | FLUSH | FS, cpu=self.rng.randrange(self.ncpus), pid=0)

    def _packet(self) -> None:
        cpu, pid = self.rng.randrange(self.ncpus), 5
        flags = self.rng.choice((READ, WRITE)) | PC
        size = self.rng.choice((0, 36, 252, 4096))
        cdb = bytes(self.rng.randrange(256) for _ in range(self.rng.choice((0, 6, 10, 16))))
        if self.rng.random() < 0.3:
            self.trace.event(self._tick(), QUEUE, flags=flags, nbytes=size, cpu=cpu, pid=pid)
        self.trace.event(self._tick(), INSERT, flags=flags, nbytes=size, cpu=cpu, pid=pid, pdu=cdb)
        self.trace.event(self._tick(), ISSUE, flags=flags, nbytes=size, cpu=cpu, pid=pid, pdu=cdb)
        if self.rng.random() < 0.2:
            self.trace.event(self._tick(), REQUEUE, flags=flags, nbytes=size, cpu=cpu, pid=pid)
            self.trace.event(self._tick(), ISSUE, flags=flags, nbytes=size, cpu=cpu, pid=pid, pdu=cdb)
        self.trace.event(self._tick(), COMPLETE, flags=flags, nbytes=size, cpu=self.rng.randrange(self.ncpus), pid=0)

    def _odd(self) -> None:
        cpu = self.rng.randrange(self.ncpus)
        which = self.rng.randrange(4)
        if which == 0:
            self.trace.message(self._tick(), f"bfq [schedule] {self.rng.randrange(1000)}", cpu=cpu)
        elif which == 1:
            self.trace.event(self._tick(), DRV_DATA, cpu=cpu, nbytes=512, sector=8, pdu=bytes(self.rng.randrange(40)))
        elif which == 2:
            self.trace.process(self._tick(), self.rng.randrange(1, 8), "renamed", cpu=cpu)
        elif not self.plain:
            self.trace.message(self._tick(), "with a cgroup", cpu=cpu, cgroup=1)
