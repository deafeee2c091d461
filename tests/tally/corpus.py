# SPDX-License-Identifier: GPL-2.0-only
"""Writes the fuzzer's seeds: every golden capture, in several ways to read it.

usage: corpus.py FOLDER
"""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

from cases import CASES


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for case in CASES.values():
        for name, data in case.files.items():
            for how in (0x03, 0xef, 0x1f):
                (folder / f"{case.name}-{name}-{how:02x}").write_bytes(bytes([how]) + data[:550])
    packed = gzip.compress(b"".join(CASES["plain"].files.values()), mtime=0)
    (folder / "plain-gz").write_bytes(b"\x03" + packed)


if __name__ == "__main__":
    main()
