#!/usr/bin/env python3
"""Prints how each content of the camera looks at which rate, and what the model says of the film beyond its fit.

    scripts/picture-contents.py contents|beyond

Reads docs/results/picture-contents.tsv and, of the film, picture-model.tsv, which scripts/measure-vmaf.py makes.
"""

import csv
import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
WIDTH, HEIGHT, RATE = 640, 360, 30


def model():
    spec = importlib.util.spec_from_file_location("model", ROOT / "scripts/picture-model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def kbps(row):
    pixels = row["height"] ** 2 * row["camera_width"] / row["camera_height"]
    return row["bits_a_pixel"] * pixels * row["fps"] / 1e3


def contents(rows):
    """A line for each content and codec at 360p and 30 frames a second."""
    columns = 9
    print("| content | codec |" + " VMAF @ kbit/s |" * columns)
    print("|---|---|" + "---:|" * columns)
    rows = [row for row in rows if row["height"] == row["camera_height"] == HEIGHT]
    rows = [row for row in rows if row["fps"] == RATE]
    for key in dict.fromkeys((row["clip"], row["codec"]) for row in rows):
        own = sorted((row for row in rows if (row["clip"], row["codec"]) == key), key=kbps)
        cells = dict.fromkeys(f"{row['vmaf']:.0f} @ {kbps(row):.0f}" for row in own)
        cells = [*cells, *[""] * columns][:columns]
        print(f"| {' | '.join([*key, *cells])} |")


def beyond(rows):
    """A line for each content, size and frame rate: the model's error, which knows only the film."""
    vmaf = model().vmaf
    print("| content | picture | encodings | mean error | rms | worst |")
    print("|---|---|---:|---:|---:|---:|")
    rows = [row for row in rows if row["codec"] == "vp8"]
    for key in dict.fromkeys((row["clip"], row["height"], row["fps"]) for row in rows):
        errors = []
        for row in rows:
            if (row["clip"], row["height"], row["fps"]) == key:
                errors.append(vmaf(row) - row["vmaf"])
        rms = (sum(error**2 for error in errors) / len(errors)) ** 0.5
        mean, worst = sum(errors) / len(errors), max(errors, key=abs)
        name = f"{key[1]:.0f}p, {key[2]:g} a second"
        print(f"| {key[0]} | {name} | {len(errors)} | {mean:+.1f} | {rms:.1f} | {worst:+.1f} |")


def table(name):
    with (ROOT / "docs/results" / name).open() as file:
        return [model().typed(row) for row in csv.DictReader(file, delimiter="\t")]


def main():
    parts = {"contents": contents, "beyond": beyond}
    if len(sys.argv) != 2 or sys.argv[1] not in parts:
        raise SystemExit(__doc__)
    rows = table("picture-contents.tsv")
    if sys.argv[1] == "contents":
        rows = [row for row in table("picture-model.tsv") if row["clip"] == "film"] + rows
    parts[sys.argv[1]](rows)


main()
