#!/usr/bin/python3
"""Measures what the buffer of VP8 makes of a call's targets: vp8-buffer.py RECORD...

Each RECORD is the folder of a recorded call of a pipeline. A film of 640x360 is encoded once more
with the targets of that call, at the rate that `weircc` gives the encoder, with the settings of
lab/call/src/pipeline/vp8.py and with other sizes of the buffer. Prints a row for each size, as
means over the records: what was made of the target, the ratio of both in half seconds, and the wait
in a sender that sends at the target. The encoder works as fast as it can, so the table does not
depend on the speed of the machine. Needs ffmpeg, GStreamer and vp8enc.
"""

import csv
import pathlib
import statistics
import sys

import gi

gi.require_version("Gst", "1.0")
from gi.repository import Gst
from vp8_film import FPS, SHARE, encode, film

# Optimal and whole size of the buffer in ms. The first is libwebrtc's.
BUFFERS = [(600, 1000), (200, 1000), (200, 300), (100, 500), (100, 150), (50, 100)]
WINDOW = FPS // 2


def targets(record):
    """The target of each picture of a call, in bit/s."""
    with open(pathlib.Path(record) / "series.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["target_bps"]]
    times = [int(row["time_ms"]) for row in rows]
    found, at = [], 0
    for picture in range(times[-1] * FPS // 1000):
        while at + 1 < len(times) and times[at + 1] <= picture * 1000 / FPS:
            at += 1
        found.append(float(rows[at]["target_bps"]))
    return found


def percentile(values, share):
    """The value below which this share of them is."""
    return sorted(values)[int(share * (len(values) - 1))]


def measure(wanted, bits):
    """Made of the target; its 5th and 95th percentile in half seconds; the wait's 95th in ms."""
    ratios, waits, backlog = [], [], 0.0
    for at in range(FPS, len(bits) - WINDOW, WINDOW):
        ratios.append(sum(bits[at : at + WINDOW]) / sum(wanted[at : at + WINDOW]) * FPS)
    for target, made in zip(wanted, bits, strict=True):
        backlog = max(0.0, backlog + made - target / FPS)
        waits.append(backlog / target * 1000)
    made = sum(bits) / sum(wanted) * FPS
    return made, percentile(ratios, 0.05), percentile(ratios, 0.95), percentile(waits, 0.95)


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        print(__doc__)
        sys.exit(0 if "--help" in sys.argv else 2)
    Gst.init(None)
    pictures = film()
    calls = [targets(record) for record in sys.argv[1:]]
    heads = ["optimal level, whole buffer (ms)", "made / target", "half seconds: 5 %, 95 %"]
    print(f"| {' | '.join(heads)} | wait, p95 (ms) |")
    print("|---|---:|---:|---:|")
    for optimal, whole in BUFFERS:
        buffer = f"buffer-initial-size={optimal} buffer-optimal-size={optimal} buffer-size={whole}"
        measured = []
        for call in calls:
            rates = [target * SHARE for target in call]
            measured.append(measure(call, encode(pictures, rates, buffer)))
        made, low, high, wait = map(statistics.mean, zip(*measured, strict=True))
        print(f"| {optimal}, {whole} | {made:.2f} | {low:.2f}, {high:.2f} | {wait:.0f} |")


main()
