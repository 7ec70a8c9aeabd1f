#!/usr/bin/env python3
"""Reads the traces of public sets with `weir trace`, and compares length and mean with its own.

    scripts/results/public-traces.py FOLDER [--weir PROGRAM] [--wrong]

FOLDER has a folder for each set, by the names below. A set that is not there is left out. None of
them is shipped: docs/reference/traces.md says where they are. `--wrong` names the files that are
refused or wrong. A file that holds several runs is read run by run, or until a time steps back.
"""

import argparse
import csv
import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from itertools import pairwise
from pathlib import Path

# Share by which length and mean may differ.
TOLERANCE = 0.005


class Refused(Exception):
    """A file of which Weir should say that it has no one meaning."""


def held(times, values, end=None):
    """Length, and mean of values that hold from their times on; the last as long as the one before."""
    if end is None:
        end = times[-1] + (times[-1] - times[-2] if len(times) > 1 else 1.0)
    bits = sum(v * (b - a) for v, a, b in zip(values, times, [*times[1:], end]))
    return end - times[0], bits / (end - times[0])


def opportunities(path):
    """A trace of mahimahi: 1500 bytes a line."""
    lines = path.read_text().split()
    seconds = int(lines[-1]) / 1e3
    return [([], (seconds, len(lines) * 0.012 / seconds))]


def cooked(path):
    """Two columns, seconds and Mbit/s."""
    rows = [
        list(map(float, line.split())) for line in path.read_text().splitlines() if line.strip()
    ]
    if any(b[0] <= a[0] for a, b in pairwise(rows)):
        raise Refused
    return [([], held([row[0] for row in rows], [row[1] for row in rows]))]


def sabre(path):
    """Rows of milliseconds and kbit/s."""
    rows = json.loads(path.read_text())
    seconds = sum(row["duration_ms"] for row in rows) / 1e3
    bits = sum(row["duration_ms"] * row["bandwidth_kbps"] for row in rows)
    return [([], (seconds, bits / 1e6 / seconds))]


def alphartc(path):
    """Rows of milliseconds and kbit/s, in an object."""
    whole = json.loads(path.read_text())
    found = []
    for way, direction in (("uplink", "up"), ("downlink", "down")):
        rows = whole.get(way, {}).get("trace_pattern", [])
        if rows:
            seconds = sum(row["duration"] for row in rows) / 1e3
            bits = sum(row["duration"] * row["capacity"] for row in rows)
            found.append((["--direction", direction], (seconds, bits / 1e6 / seconds)))
    return found


def iperf3(path):
    """The sums of iperf3 --json, each from its start to its end."""
    sums = [row["sum"] for row in json.loads(path.read_text()).get("intervals", [])]
    sums = [row for row in sums if not row["omitted"]]
    if not sums:
        raise Refused
    seconds = sum(row["end"] - row["start"] for row in sums)
    bits = sum((row["end"] - row["start"]) * row["bits_per_second"] for row in sums)
    return [([], (seconds, bits / 1e6 / seconds))]


def lpp(path):
    """Rows with dates and kbit/s, some without a rate."""
    rows = json.loads(path.read_text())["entries"]
    times = [datetime.fromisoformat(row["dateTime"]).timestamp() for row in rows]
    return [
        (["--direction", "down"], held(times, carried([row.get("dlBw") for row in rows], 1e-3)))
    ]


def carried(values, unit):
    """Values of which one that is missing is that before it, or the first one."""
    found, last = [], next(value for value in values if value is not None)
    for value in values:
        last = last if value is None else value
        found.append(float(last) * unit)
    return found


def gnettrack(path):
    """G-NetTrack's columns: dates and kbit/s. Each part in order is one experiment."""
    with path.open(errors="replace") as file:
        rows = list(csv.DictReader(file))
    parts = []
    for row in rows:
        at = datetime.strptime(row["Timestamp"], "%Y.%m.%d_%H.%M.%S").timestamp()
        value = None if row["DL_bitrate"] in ("", "-") else float(row["DL_bitrate"])
        if parts and parts[-1] and at < parts[-1][-1][0]:
            parts.append([])
        if not parts:
            parts.append([])
        if parts[-1] and parts[-1][-1][0] == at:
            before = parts[-1].pop()[1]
            value = before if value is None else value
        parts[-1].append((at, value))
    if any(b[0] - a[0] > 60 for part in parts for a, b in pairwise(part)):
        raise Refused
    part = parts[0]
    keys = ["--direction", "down"]
    times, values = [row[0] for row in part], carried([row[1] for row in part], 1e-3)
    if len(parts) == 1:
        return [(keys, held(times, values))]
    end = times[-1]
    return [([*keys, f"to={end - times[0]:g}s"], held(times[:-1], values[:-1], end))]


def gophers(path):
    """5Gophers: a run for each value of `run_num`, with its carrier, connections and server."""
    with path.open() as file:
        rows = list(csv.DictReader(file))
    columns = [c for c in ("carrier", "num_tcp_conn", "server_location", "run_num") if c in rows[0]]
    runs = {}
    for row in rows:
        runs.setdefault(tuple(row[c] for c in columns), []).append(row)
    found = []
    for run, its in runs.items():
        times = [float(row["seq_num"]) for row in its]
        if any(b <= a for a, b in pairwise(times)):
            continue
        where = [f"where.{column}={text}" for column, text in zip(columns, run)]
        values = [float(row["throughput_mbps"]) for row in its]
        found.append((["--direction", "down", *where], held(times, values)))
    return found


SETS = [
    ("mahimahi", "mahimahi", "*.up", opportunities),
    ("mahimahi", "mahimahi", "*.down", opportunities),
    ("Cellular-Traces-NYC", "nyc", "trace-[0-9]*", opportunities),
    ("HSDPA, cooked", "cooked/cooked_3gp", "*", cooked),
    ("HSDPA, cooked", "cooked/traces_3gp", "*", cooked),
    ("FCC, cooked", "cooked/fcc_ori", "*", cooked),
    ("FCC and HSDPA, cooked", "cooked/fcc_and_hsdpa", "*", cooked),
    ("Oboe, cooked", "cooked/traces_oboe", "*", cooked),
    ("Puffer, cooked", "cooked/puffer_211017", "*", cooked),
    ("Puffer, cooked", "cooked/puffer_220218", "*", cooked),
    ("SIGCOMM 21, 4G and 5G", "sig/Video-Streaming/Network-Traces/Lumous5G", "*", cooked),
    ("SIGCOMM 21, iperf3", "sig/TCP-Single-Conn-Perf/data/client", "*.json", iperf3),
    ("Sabre", "sabre", "*logs/*.json", sabre),
    ("Sabre, HD", "sabre", "hd_fs/*.json", sabre),
    ("AlphaRTC", "gym", "*.json", alphartc),
    ("Intel's LPP", "lpp", "*.ntrace", lpp),
    ("UCC 5G", "ucc/5G-production-dataset", "*.csv", gnettrack),
    ("5Gophers", "offl", "01-Throughput/data.csv", gophers),
]


def measured(program, path, keys):
    """Length and mean as `weir trace` prints them, or its refusal."""
    command = [program, "trace", str(path), *keys]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"^([\d.]+) s; mean ([\d.]+) Mbit/s", done.stdout, re.MULTILINE)
    return (float(found[1]), float(found[2])) if found else done.stderr.strip()


def near(ours, theirs, printed):
    """Whether two numbers are the same, but for the tolerance and the digits that are printed."""
    return abs(ours - theirs) <= max(TOLERANCE * abs(theirs), printed)


def check(program, path, truth):
    """What became of the parts of a file: right, wrong, refused, or rightly refused."""
    try:
        parts = truth(path)
    except Refused:
        # A part of a file has no meaning of its own.
        return [("rightly refused" if isinstance(measured(program, path, []), str) else "read", "")]
    found = []
    for keys, (seconds, mean) in parts:
        got = measured(program, path, keys)
        if isinstance(got, str):
            found.append(("refused", got))
        elif near(got[0], seconds, 0.051) and near(got[1], mean, 0.00051):
            found.append(("right", ""))
        else:
            found.append(("wrong", f"{path} {keys}: {got}, not {seconds:.2f} s, {mean:.3f} Mbit/s"))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--weir", default="weir", help="the program (default: weir)")
    parser.add_argument("--wrong", action="store_true", help="name what is refused or wrong")
    args = parser.parse_args()
    totals = {}
    for name, place, pattern, truth in SETS:
        folder = args.folder / place
        files = sorted(path for path in folder.rglob(pattern) if path.is_file())
        if not files:
            continue
        with ThreadPoolExecutor(2) as pool:
            each = list(pool.map(lambda path, of=truth: check(args.weir, path, of), files))
        of_set = totals.setdefault(name, [0, []])
        of_set[0] += len(files)
        of_set[1] += [part for parts in each for part in parts]
    print("| set | files | parts | read | right within 0.5 % | refused, as documented |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, (files, parts) in totals.items():
        count = {kind: sum(part[0] == kind for part in parts) for kind, _ in parts}
        right, asked = count.get("right", 0), count.get("rightly refused", 0)
        read = right + count.get("wrong", 0) + count.get("read", 0)
        print(f"| {name} | {files} | {len(parts)} | {read} | {right} | {asked} |")
        for kind, message in parts:
            if args.wrong and kind in ("wrong", "refused"):
                print(f"{kind}: {message}", file=sys.stderr)


if __name__ == "__main__":
    main()
