#!/usr/bin/env python3
"""How fast `weir fleet` is: dumps of five minutes that are analyzed, and a report of a million calls.

    scripts/results/fleet-speed.py DUMP FOLDER

DUMP is a dump of rtcstats with the reports of a browser, such as lab/analyze/tests/dumps/drop.rtcstats.gz. Its reports
are repeated until they are 300, one for each second, in 300 dumps that differ in a note. A lake of more than a
million calls is made of copies of their rows, and its report is written. Machines differ in speed from hour to hour, so a peer
is timed beside: Python's own json reads the same dumps, in a process for each processor, and does nothing with them.
"""

import gzip
import json
import multiprocessing
import sys
import time
from pathlib import Path

import pyarrow
import pyarrow.parquet
from weir_rtc import fleet
from weir_rtc.fleet_report import Asked, write

DUMPS, SECONDS = 300, 300
CALLS, PARTS = 1_200_000, 20


def make_dumps(dump: Path, folder: Path) -> int:
    """Writes the dumps. Returns the bytes of one, unpacked."""
    lines = gzip.decompress(dump.read_bytes()).decode().splitlines()
    reports = [line for line in lines if line.startswith('["getStats"')]
    head = lines[: lines.index(reports[0])]
    repeated = (reports * (SECONDS // len(reports) + 1))[:SECONDS]
    text = "\n".join(head + repeated)
    folder.mkdir(parents=True)
    for number in range(DUMPS):
        note = f'\n["note",null,{number},1]\n'
        (folder / f"{number:03}.gz").write_bytes(gzip.compress((text + note).encode(), 6))
    return len(text)


def multiply(lake: Path, large: Path) -> None:
    """Writes a lake with the rows of this one, again and again."""
    for table in fleet.TABLES:
        (large / table).mkdir(parents=True)
        rows = pyarrow.concat_tables(
            [pyarrow.parquet.read_table(file) for file in (lake / table).glob("*.parquet")]
        )
        part = pyarrow.concat_tables([rows] * (CALLS // PARTS // DUMPS))
        for number in range(1, PARTS + 1):
            pyarrow.parquet.write_table(
                part, large / table / f"part-{number:06}.parquet", compression="zstd"
            )


def parsed(file: Path) -> int:
    """Parses every line of a dump. Returns how many there are."""
    lines = gzip.decompress(file.read_bytes()).decode().splitlines()
    return len([json.loads(line) for line in lines if line.startswith(("[", "{"))])


def peer(dumps: Path) -> float:
    """Dumps a second that Python's json reads."""
    begin = time.monotonic()
    with multiprocessing.Pool() as pool:
        pool.map(parsed, sorted(dumps.iterdir()), chunksize=4)
    return DUMPS / (time.monotonic() - begin)


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    dump, folder = Path(sys.argv[1]), Path(sys.argv[2])
    size = make_dumps(dump, folder / "dumps")
    print(f"{DUMPS} dumps of {size / 1e6:.1f} MB, unpacked")
    begin = time.monotonic()
    print(fleet.analyze([folder / "dumps"], folder / "lake").words())
    rate, peers = DUMPS / (time.monotonic() - begin), peer(folder / "dumps")
    print(
        f"{rate:.0f} dumps/s; Python's json alone {peers:.0f}/s: {rate / peers:.2f} times as many"
    )
    multiply(folder / "lake", folder / "large")
    begin = time.monotonic()
    write(Asked(folder / "large", folder / "fleet.html"))
    print(f"report of {CALLS} calls: {time.monotonic() - begin:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
