#!/usr/bin/env python3
"""Prints how each content of the camera looks at which rate, and the model's error on it.

    scripts/results/picture-contents.py contents|beyond

Reads docs/results/picture-contents.tsv and, of the film, picture-model.tsv, which scripts/results/measure-vmaf.py makes.
"""

import csv
import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
WIDTH, HEIGHT, RATE = 640, 360, 30


def model():
    spec = importlib.util.spec_from_file_location(
        "model", ROOT / "scripts/results/picture-model.py"
    )
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


#: What the constants of the head were fitted to. Those of the film were fitted to another table.
FITTED = {("head", 360, 30), ("head", 180, 30), ("head", 360, 10)}


def beyond(rows):
    """A line for each content, codec, size and frame rate: the model's error."""
    vmaf = model().vmaf
    print("| content | codec | picture | fitted | encodings | mean error | rms | worst |")
    print("|---|---|---|---|---:|---:|---:|---:|")
    keys = dict.fromkeys((row["clip"], row["codec"], row["height"], row["fps"]) for row in rows)
    for clip, codec, height, fps in sorted(keys):
        errors = {}
        for row in rows:
            if (row["clip"], row["codec"], row["height"], row["fps"]) == (clip, codec, height, fps):
                # A rate that an encoder cannot go below is measured several times.
                errors[row["bits_a_pixel"], row["vmaf"]] = vmaf(row) - row["vmaf"]
        errors = list(errors.values())
        rms = (sum(error**2 for error in errors) / len(errors)) ** 0.5
        mean, worst = sum(errors) / len(errors), max(errors, key=abs)
        fitted = "yes" if (clip, height, fps) in FITTED else "no"
        name = f"{height:.0f}p, {fps:g} a second"
        print(
            f"| {clip} | {codec} | {name} | {fitted} | {len(errors)} | {mean:+.1f} | {rms:.1f} | {worst:+.1f} |"
        )


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
