#!/usr/bin/env python3
"""Prints the error of the picture model (lab/sim/src/source/picture_model.rs) on measured encodings.

    scripts/results/picture-model.py

Reads docs/results/picture-model.tsv, which scripts/results/measure-vmaf.py makes, and the model's
constants. The film is what the constants were fitted to; the other clip was not used.
"""

import csv
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = (ROOT / "lab/sim/src/source/picture_model.rs").read_text()
K = {name: float(value) for name, value in re.findall(r"const (\w+): f64 = ([\d.]+);", SOURCE)}
#: Curves of a content and a codec: bits a pixel for half of the ceiling, steepness, ceiling.
CURVE = r"const (\w+): Curve = Curve::new\(([\d.]+), ([\d.]+), ([\d.]+)\);"
CURVES = {name: tuple(map(float, values)) for name, *values in re.findall(CURVE, SOURCE)}
CODECS = {"vp8": 1, "vp9": K["VP9_BITS"], "av1": K["AV1_BITS"]}


def constants(row):
    """The curve of a row's content and codec, and the exponents of pixels and frame rate. A content
    that has none gets those of the film."""
    curve = CURVES.get(f"{row['clip']}_{row['codec']}".upper())
    if curve is not None:
        name = row["clip"].upper()
        return *curve, K[f"{name}_PIXEL_EXPONENT"], K[f"{name}_RATE_EXPONENT"]
    ceiling = K["VP8_CEILING"] if row["codec"] == "vp8" else 100
    half = K["FILM_BITS"] * CODECS[row["codec"]]
    return half, K["STEEPNESS"], ceiling, K["PIXEL_EXPONENT"], K["RATE_EXPONENT"]


def vmaf(row):
    pixels = row["height"] ** 2 * row["camera_width"] / row["camera_height"]
    share = (row["height"] / row["camera_height"]) ** 2
    half, steepness, ceiling, pixel_exponent, rate_exponent = constants(row)
    half *= (pixels / (640 * 360)) ** -pixel_exponent
    half *= (row["fps"] / K["FRAME_RATE"]) ** -rate_exponent
    half *= share ** -K["ENLARGED_BITS_EXPONENT"]
    coded = ceiling / (1 + (half / row["bits_a_pixel"]) ** steepness)
    return coded * share ** K["ENLARGED_EXPONENT"]


def typed(row):
    return {key: value if key in ("clip", "codec") else float(value) for key, value in row.items()}


def main():
    with (ROOT / "docs/results/picture-model.tsv").open() as file:
        rows = [typed(row) for row in csv.DictReader(file, delimiter="\t")]
    groups = {
        "all": lambda row: True,
        "VP8, 30 frames a second": lambda row: (
            row["codec"] == "vp8" and row["fps"] == 30 and whole(row)
        ),
        "7.5 to 15 frames a second": lambda row: row["fps"] < 30,
        "VP9": lambda row: row["codec"] == "vp9",
        "AV1": lambda row: row["codec"] == "av1",
        "enlarged": lambda row: not whole(row),
    }
    print("| clip | encodings | number | mean error | rms | worst |")
    print("|---|---|---:|---:|---:|---:|")
    for clip in dict.fromkeys(row["clip"] for row in rows):
        for name, belongs in groups.items():
            errors = [
                vmaf(row) - row["vmaf"] for row in rows if row["clip"] == clip and belongs(row)
            ]
            if not errors:
                continue
            rms = (sum(error**2 for error in errors) / len(errors)) ** 0.5
            worst = max(errors, key=abs)
            mean = sum(errors) / len(errors)
            print(f"| {clip} | {name} | {len(errors)} | {mean:+.1f} | {rms:.1f} | {worst:+.1f} |")


def whole(row):
    return row["height"] == row["camera_height"]


if __name__ == "__main__":
    main()
