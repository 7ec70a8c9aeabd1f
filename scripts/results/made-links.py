#!/usr/bin/env python3
"""Rates of made-up links that are distributed as those of public sets.

    scripts/results/made-links.py measure FOLDER    quantiles of the sets in FOLDER, a clone of each
    scripts/results/made-links.py NAME              the lines of `capacity` of a catalogue's scenario

No value of a set is in what is made. A rate a second is drawn: normal deviates that are correlated from second to second,
or that have a level for each 15 s, become rates by their ranks and the quantiles of the set. Equal seeds give equal rates.
"""

import csv
import io
import itertools
import math
import random
import statistics
import sys
from pathlib import Path
from typing import NamedTuple

SECONDS = 120
SEED = 20_261_130
#: The quantiles that are known of each set.
SHARES = (0.02, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98)
#: A Starlink terminal gets another satellite at these seconds of each minute: 12, 27, 42, 57.
SLOT_S, SLOT_FROM_S = 15, 12


class Link(NamedTuple):
    """What is known of a set: quantiles of its rates of a second in Mbit/s, and how they hang together."""

    quantiles: tuple[float, ...]
    #: Correlation of neighbours, within slots if there are any.
    neighbours: float
    #: Share of the variance that is between slots of 15 s.
    slots: float = 0.0


LINKS = {
    "starlink-drive": Link(
        (0.0, 0.0, 4.715, 10.042, 14.897, 21.222, 28.252, 31.904, 35.396), 0.5, 0.845
    ),
    "5g-drive": Link((0.0, 0.0, 0.0, 28.308, 81.86, 153.222, 221.722, 263.427, 273.467), 0.856),
    "ferry-3g": Link((0.302, 0.436, 0.558, 0.895, 1.314, 1.882, 2.54, 2.889, 3.273), 0.88),
    "train-3g": Link((0.462, 0.633, 0.834, 1.2, 1.726, 2.271, 2.834, 3.247, 3.968), 0.839),
}


def at_share(link: Link, share: float) -> float:
    """The rate below which this share of the seconds is; flat beyond the known quantiles."""
    known = list(zip(SHARES, link.quantiles, strict=True))
    if share <= known[0][0]:
        return known[0][1]
    for (low, a), (high, b) in itertools.pairwise(known):
        if share <= high:
            return a + (b - a) * (share - low) / (high - low)
    return known[-1][1]


def rates(name: str) -> list[float]:
    """Mbit/s of each second. Ranks are mapped: so few seconds have the quantiles of the set, too."""
    link, chance = LINKS[name], random.Random(f"{SEED} {name}")
    keeps = math.sqrt(1 - link.neighbours**2)
    level, value, normals = 0.0, chance.gauss(0, 1), []
    for second in range(SECONDS):
        if second == 0 or (second - SLOT_FROM_S) % SLOT_S == 0:
            level = chance.gauss(0, 1)
        value = link.neighbours * value + keeps * chance.gauss(0, 1)
        normals.append(math.sqrt(link.slots) * level + math.sqrt(1 - link.slots) * value)
    found = [0.0] * SECONDS
    for rank, second in enumerate(sorted(range(SECONDS), key=normals.__getitem__)):
        found[second] = at_share(link, (rank + 0.5) / SECONDS)
    return found


def show(name: str) -> None:
    """Prints a scenario's capacity, a step for each second that has another rate."""
    steps, before = [], None
    for second, mbps in enumerate(rates(name)):
        kbps = round(mbps * 1000)
        if kbps != before:
            steps.append(f'["{second}s", "{kbps}kbps"]' if kbps else f'["{second}s", "0bps"]')
        before = kbps
    print("capacity = [")
    for at in range(0, len(steps), 6):
        print("    " + ", ".join(steps[at : at + 6]) + ",")
    print("]")


def measured(name: str, runs: list[list[float]]) -> None:
    """Prints the quantiles of the rates of several runs, and the correlation of neighbours."""
    values = sorted(rate for run in runs for rate in run)
    mean = statistics.mean(values)
    together = sum((a - mean) * (b - mean) for run in runs for a, b in itertools.pairwise(run))
    spread = sum((rate - mean) ** 2 for rate in values)
    quantiles = ", ".join(f"{values[int(share * len(values))]:.3f}" for share in SHARES)
    print(
        f"{name}: {len(values)} s, mean {mean:.3f}, neighbours {together / spread:.3f}, ({quantiles})"
    )


def cooked(files: list[Path]) -> list[list[float]]:
    """The rates of cooked traces."""
    return [
        [float(line.split()[1]) for line in file.read_text().splitlines() if line.strip()]
        for file in files
    ]


def measure(folder: Path) -> None:
    """Measures the sets."""
    norway = folder / "Real-world-bandwidth-traces" / "cooked_3gp"
    for name in ("ferry", "train"):
        measured(f"{name}-3g", cooked(sorted(norway.glob(f"norway_{name}_*"))))
    gophers = (
        folder
        / "Offloading-FL/trace_data/5Gophers-v1.0/All-Carriers/03-User-Mobility/car-driving-trace-1.csv"
    )
    rows = csv.DictReader(io.StringIO(gophers.read_text()))
    measured("5g-drive", [[float(row["TMobile_throughput_mbps"]) for row in rows]])
    slots: dict[str, list[float]] = {}
    for row in csv.DictReader(
        io.StringIO((folder / "Starlink-on-the-Road/data/iperf.csv").read_text())
    ):
        if float(row["average_speed"] or 0) > 5:
            date, clock = row["timestamp_start"].split()
            hour, minute, second = map(int, clock.split(":"))
            slot = (hour * 3600 + minute * 60 + second - SLOT_FROM_S) // SLOT_S
            slots.setdefault(f"{date} {slot}", []).append(float(row["upload_mbps"] or 0))
    measured("starlink-drive", list(slots.values()))
    long = [slot for slot in slots.values() if len(slot) > SLOT_S // 2]
    everything = [rate for slot in long for rate in slot]
    mean = statistics.mean(everything)
    between = sum(len(slot) * (statistics.mean(slot) - mean) ** 2 for slot in long) / len(
        everything
    )
    print(
        f"starlink-drive: {between / statistics.pvariance(everything):.3f} of the variance between slots of 15 s"
    )


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["measure", folder]:
            measure(Path(folder))
        case [name] if name in LINKS:
            show(name)
        case _:
            sys.exit(__doc__)
