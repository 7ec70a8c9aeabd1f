#!/usr/bin/env python3
"""What large files cost: a capture of 1,200,000 packets, and records of runs over a trace of 213 MB.

    scripts/results/large-files.py WEIR FOLDER [OTHER]

Makes both in FOLDER, reads them with the program WEIR, and prints a table: processor time, time that passed and peak memory of
each command, the shortest of three (one for the runs), and the bytes of the records. The program OTHER, of another revision, does
what concerns the records, too, each command after that of WEIR; it runs once. The capture has 40 streams of ten calls in ten minutes; of
what is received one packet in a hundred is missing, and the script fails if another number is found.
"""

import json
import os
import random
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

PACKETS, STREAMS, SECONDS = 1_200_000, 40, 600
OPPORTUNITIES, EACH_MS = 30_000_000, 24
KEPT = 74
ROUNDS = 3
SCENARIO = """title = "A long trace"
source = "self-made"
description = "d"
duration = "60s"

[network.up]
capacity = { trace = "long.mahi" }
queue = "1MB"
delay = "20ms"

[network.down]
delay = "20ms"

[[flow]]
"""


class Cost(NamedTuple):
    """What a command took."""

    processor_s: float
    passed_s: float
    peak_mb: float


def frame(stream: int, number: int, ticks: float) -> tuple[bytes, int]:
    """A frame's kept bytes, and its length."""
    sent, is_video = stream % 2 == 0, stream % 4 < 2
    near, far = bytes((10, 0, 0, 5)), bytes((203, 0, 113, 10 + stream // 4))
    ports = (40_000 + stream // 2, 50_000 + stream // 2)
    ends, ports = (near + far, ports) if sent else (far + near, ports[::-1])
    length = 20 + 8 + 12 + (1_100 if is_video else 120)
    link = bytes((2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0))
    ip = (
        struct.pack(
            "!BBHHHBBH", 0x45, 0, length, number & 0xFFFF, 0x4000, 64 if sent else 51, 17, 0
        )
        + ends
    )
    udp = struct.pack("!HHHH", *ports, length - 20, 0)
    units = int(ticks * (90_000 if is_video else 48_000)) & 0xFFFFFFFF
    rtp = struct.pack(
        "!BBHII", 0x80, 98 if is_video else 111, number & 0xFFFF, units, 1_000 + stream
    )
    return (link + ip + udp + rtp).ljust(KEPT, b"\0"), 14 + length


def write_capture(path: Path) -> int:
    """Writes the capture. Returns how many packets of it are missing."""
    chance, missing, written, turn = random.Random(1), 0, 0, 0
    numbers = [chance.randrange(65_536) for _ in range(STREAMS)]
    last: list[int] = [0] * STREAMS
    waiting = [0] * STREAMS
    with path.open("wb") as out:
        out.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, KEPT, 1))
        while written < PACKETS:
            stream, at = turn % STREAMS, turn * SECONDS / PACKETS
            turn += 1
            numbers[stream] += 1
            if stream % 2 and last[stream] and chance.random() < 0.01:
                waiting[stream] += 1
                continue
            # What is missing at the end of a stream is not known.
            missing, waiting[stream], last[stream] = missing + waiting[stream], 0, 1
            data, length = frame(stream, numbers[stream], at)
            now = 1_761_000_000 + at
            out.write(struct.pack("<IIII", int(now), int(now % 1 * 1e6), KEPT, length) + data)
            written += 1
    return missing


def write_trace(path: Path) -> None:
    """Writes the opportunities."""
    with path.open("w") as out:
        for begin in range(0, OPPORTUNITIES, 240_000):
            out.write("".join(f"{at // EACH_MS + 1}\n" for at in range(begin, begin + 240_000)))


def cost(command: list[str], output: Path) -> Cost:
    """Runs a command."""
    begin = time.monotonic()
    with output.open("w") as out:
        process = subprocess.Popen(command, stdout=out)
        _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) != 0:
        sys.exit(f"{command} failed")
    passed = time.monotonic() - begin
    return Cost(usage.ru_utime + usage.ru_stime, passed, usage.ru_maxrss / 1e3)


def row(name: str, command: list[str], output: Path, rounds: int = ROUNDS) -> None:
    """Prints the shortest of some rounds."""
    best = min(cost(command, output) for _ in range(rounds))
    print(
        f"| {name} | {best.processor_s:.2f} | {best.passed_s:.2f} | {best.peak_mb:.0f} |",
        flush=True,
    )


def main() -> None:
    """Makes the files, and prints the table."""
    weir, folder = sys.argv[1], Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    capture, answer = folder / "many.pcap", folder / "answer"
    missing = write_capture(capture)
    print("| command | processor s | passed s | peak MB |\n|---|---:|---:|---:|")
    row("`weir analyze`, a capture of 108 MB", [weir, "analyze", str(capture)], answer)
    row("the same with `--json`", [weir, "analyze", str(capture), "--json"], answer)
    streams = json.loads(answer.read_text())
    streams = (streams[0] if isinstance(streams, list) else streams)["streams"]
    found = [sum(stream["packets"][key] for stream in streams) for key in ("packets", "lost")]
    if found != [PACKETS, missing]:
        sys.exit(f"found {found}, not {[PACKETS, missing]}")
    write_trace(folder / "long.mahi")
    (folder / "long.toml").write_text(SCENARIO)
    programs = [("", weir, ROUNDS), *((", the other", other, 1) for other in sys.argv[3:])]
    for label, program, _ in programs:
        run = [
            program,
            "run",
            str(folder / "long.toml"),
            "--controller",
            "gcc,nada",
            "--seeds",
            "2",
        ]
        out = ["--out", str(folder / f"runs{len(label)}")]
        row(f"`weir run --out`, four runs{label}", [*run, *out], answer, rounds=1)
    for label, program, rounds in programs:
        page = ["-o", str(folder / "report.html")]
        command = [program, "report", str(folder / f"runs{len(label)}"), *page]
        row(f"`weir report`{label}", command, answer, rounds)
    for label, program, rounds in programs:
        runs = str(folder / f"runs{len(label)}")
        row(f"`weir compare`{label}", [program, "compare", runs, runs], answer, rounds)
    sizes = []
    for label, _, _ in programs:
        files = (folder / f"runs{len(label)}").rglob("*")
        sizes.append(f"{sum(file.stat().st_size for file in files if file.is_file()) / 1e6:.1f} MB")
    print(f"\nRecords of the four runs: {', of the other '.join(sizes)}.")


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    main()
