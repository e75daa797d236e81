#!/usr/bin/env python3
"""Memory of a machine that shows little at first and more as it is used: what is available is read, or made to grow.

    machine_memory.py --touch BYTES     writes to so much, a piece at a time, and gives it back; prints what was there before and after
"""

import argparse
import mmap
import pathlib
import sys
import time

GIB = 1 << 30
PIECE_BYTES = 256 << 20
SPARE_BYTES = 2 * GIB  # of what is available, this is not taken
PATIENCE_SECONDS = 5.0  # until what is available has grown


def read() -> dict[str, int]:
    """Bytes of each line of /proc/meminfo that counts kibibytes."""
    found = {}
    for line in pathlib.Path("/proc/meminfo").read_text().splitlines():
        words = line.replace(":", " ").split()
        if len(words) == 3 and words[2] == "kB":
            found[words[0]] = int(words[1]) * 1024
    return found


def has_room(patience: float) -> bool:
    """Whether another piece may be taken, now or after a while."""
    end = time.monotonic() + patience
    while read()["MemAvailable"] < SPARE_BYTES + PIECE_BYTES:
        if time.monotonic() >= end:
            return False
        time.sleep(0.1)
    return True


def touch(wanted: int, patience: float = PATIENCE_SECONDS) -> int:
    """Bytes that were written to at once."""
    pieces, ones = [], b"\1" * PIECE_BYTES
    while len(pieces) * PIECE_BYTES < wanted and has_room(patience):
        piece = mmap.mmap(-1, PIECE_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        piece[:] = ones
        pieces.append(piece)
    taken = len(pieces) * PIECE_BYTES
    for piece in pieces:
        piece.close()
    return taken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--touch", type=int, required=True)
    arguments = parser.parse_args()
    before = read()
    if before["MemAvailable"] >= arguments.touch:
        print(f"{before['MemAvailable'] / GIB:.1f} GiB are available, {arguments.touch / GIB:.1f} are wanted")
        return 0
    taken = touch(arguments.touch)
    after = read()
    print(f"{taken / GIB:.1f} of {arguments.touch / GIB:.1f} GiB were written to; MemTotal {before['MemTotal'] / GIB:.1f} to {after['MemTotal'] / GIB:.1f} GiB, "
          f"MemAvailable {before['MemAvailable'] / GIB:.1f} to {after['MemAvailable'] / GIB:.1f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
