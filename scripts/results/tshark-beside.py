#!/usr/bin/env python3
"""Streams of captures by `weir analyze` beside those of tshark: packets, losses, jitter.

    tshark-beside.py FOLDER        prints a line for each difference, and the totals

Needs tshark, and weir in PATH or in WEIR. A stream is the same in both if addresses, ports and SSRC are. Streams of fewer than
20 packets, copies aside, are left out: tshark takes much for RTP that only looks like it. Where tshark knows no clock of a
payload type, it has no jitter to compare.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

WEIR = os.environ.get("WEIR", "weir")
#: Streams of fewer packets are no calls: `weir analyze` does not name them.
FEWEST = 20
#: Two jitters are equal within this share, or so many ms: tshark prints microseconds.
SHARE, MS = 0.01, 0.002
LINE = re.compile(
    r"\s*[\d.]+\s+[\d.]+\s+(\S+)\s+(\d+)\s+(\S+)\s+(\d+)\s+(0x[0-9A-F]+)\s+(.+?)\s+(\d+)\s+(-?\d+) \(-?[\d.]+%\)"
    r"\s+(-?[\d.]+)\s+(-?[\d.]+)\s+(-?[\d.]+)\s+(-?[\d.]+)\s+(-?[\d.]+)\s+(-?[\d.]+)"
)


def of_tshark(capture):
    """(from, to, SSRC) of each stream: packets, lost, mean jitter in ms, which is None without a clock."""
    command = ["tshark", "-r", capture, "-q", "-z", "rtp,streams", "--enable-heuristic", "rtp_udp"]
    printed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    found = {}
    for line in printed.splitlines():
        match = LINE.match(line)
        if not match:
            continue
        host, port, to, to_port, ssrc, _, packets, lost, *_, jitter, largest = match.groups()
        key = (f"{host}:{port}", f"{to}:{to_port}", int(ssrc, 16))
        found[key] = (int(packets), int(lost), float(jitter) if float(largest) > 0 else None)
    return found


def of_weir(capture):
    printed = subprocess.run(
        [WEIR, "analyze", capture, "--json"], capture_output=True, text=True, check=False
    )
    if not printed.stdout.strip():
        return {}, printed.stderr.strip()
    found = {}
    for stream in json.loads(printed.stdout)[0]["streams"]:
        packets = stream["packets"]
        if packets:
            key = (
                stream["from"].replace("[", "").replace("]", ""),
                stream["to"].replace("[", "").replace("]", ""),
                stream["ssrc"],
            )
            found[key] = (packets["packets"], packets["lost"], packets["jitter_ms"])
    return found, ""


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    captures = sorted(it for it in Path(sys.argv[1]).rglob("*") if it.is_file())
    counted = dict.fromkeys(
        ["captures", "streams", "missing", "packets", "lost", "clocks", "jitter"], 0
    )
    for capture in captures:
        theirs = of_tshark(capture)
        # A packet that was captured twice is a negative loss there.
        theirs = {key: of for key, of in theirs.items() if of[0] + min(of[1], 0) >= FEWEST}
        if not theirs:
            continue
        ours, error = of_weir(capture)
        counted["captures"] += 1
        for key, (packets, lost, jitter) in theirs.items():
            counted["streams"] += 1
            name = f"{capture.name} {key[0]} {key[1]} {key[2]:#x}"
            if key not in ours:
                counted["missing"] += 1
                print(f"{name}: not in weir's: {packets} packets, {lost} lost {error[:80]}")
                continue
            own = ours[key]
            counted["packets"] += own[0] == packets
            counted["lost"] += own[1] == lost
            is_near = jitter is None
            if jitter is not None:
                is_near = own[2] is not None and abs(own[2] - jitter) <= max(MS, SHARE * jitter)
                counted["clocks"] += 1
                counted["jitter"] += is_near
            if (own[0], own[1]) != (packets, lost) or not is_near:
                print(
                    f"{name}: tshark {packets}, {lost} lost, jitter {jitter}; weir {own[0]}, {own[1]} lost, jitter {own[2]}"
                )
    print(
        f"{counted['captures']} captures, {counted['streams']} streams of tshark, {counted['missing']} not named by weir; "
        f"equal: packets {counted['packets']}, lost {counted['lost']}, jitter {counted['jitter']} of {counted['clocks']} with a clock"
    )


if __name__ == "__main__":
    main()
