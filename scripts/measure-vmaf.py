#!/usr/bin/env python3
"""Measures VMAF by rate, size, frame rate and codec, for the model of lab/sim/src/source/picture_model.rs.

    scripts/measure-vmaf.py FFMPEG NAME=CLIP... > docs/results/picture-model.tsv

FFMPEG needs libvmaf and libvpx (that of the Python package imageio-ffmpeg has both). Each clip is
encoded in the way of libwebrtc (realtime, constant rate, one key frame) twice in a row. The second
round is measured, because a call's first second is not like the rest. Frames are played at 30 a
second, whatever the clip says, as the lab's camera does; at lower rates frames are left out. A line
has the rate that the encoder made, not the one that was asked for.
"""

import csv
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

FRAMES = 100
CODECS = {
    "vp8": ["libvpx", "-deadline", "realtime", "-cpu-used", "6", "-static-thresh", "1"],
    "vp9": ["libvpx-vp9", "-deadline", "realtime", "-cpu-used", "7", "-aq-mode", "3"],
    "av1": ["libaom-av1", "-usage", "realtime", "-cpu-used", "8", "-row-mt", "0"],
}
# Camera, encoded height, frames a second, codec, and bits a pixel that are asked for.
BITS = [0.01, 0.02, 0.035, 0.06, 0.1, 0.2, 0.4]
PLAN = []
for height in [180, 270, 360, 540, 720]:
    PLAN.append((height, height, 30, "vp8", BITS))
for fps in [7.5, 10, 15]:
    PLAN.append((360, 360, fps, "vp8", [bits * (30 / fps) ** 0.5 for bits in BITS]))
    PLAN.append((720, 720, fps, "vp8", BITS[:4]))
for codec in ["vp9", "av1"]:
    for height in [180, 360, 720]:
        PLAN.append((height, height, 30, codec, BITS[:5]))
    PLAN.append((360, 360, 15, codec, BITS[1:5]))
for camera, height in [(720, 540), (720, 360), (720, 180), (360, 270), (360, 180)]:
    PLAN.append((camera, height, 30, "vp8", [0.03, 0.1, 0.4]))


def run(command):
    subprocess.run(list(map(str, command)), check=True, stdin=subprocess.DEVNULL)


def even(number):
    return round(number / 2) * 2


def frame_bytes(ivf):
    """Bytes of the frames of an IVF file."""
    data, at, sizes = ivf.read_bytes(), 32, []
    while at < len(data):
        (size,) = struct.unpack_from("<I", data, at)
        sizes.append(size)
        at += 12 + size
    return sizes


def reference(ffmpeg, clip, size, fps, folder):
    """The frames as the camera has them, two rounds."""
    once, twice = folder / "once.y4m", folder / "sent.y4m"
    every = round(30 / fps)
    pick = f"select=not(mod(n\\,{every}))," if every > 1 else ""
    scale = f"{pick}scale={size[0]}:{size[1]}:flags=bicubic,setpts=N/{fps}/TB"
    count = ["-frames:v", FRAMES // every]
    quiet = [ffmpeg, "-y", "-v", "error"]
    run([*quiet, "-i", clip, "-vf", scale, "-r", fps, *count, "-pix_fmt", "yuv420p", once])
    run([*quiet, "-stream_loop", "1", "-i", once, "-r", fps, "-pix_fmt", "yuv420p", twice])
    return twice


def measure(ffmpeg, sent, size, height, fps, codec, bits, folder):
    """Bits a pixel and VMAF of the second round, and how many frames it has."""
    width = even(size[0] * height / size[1])
    rate = int(bits * width * height * fps)
    ivf, log = folder / "coded.ivf", folder / "vmaf.csv"
    cbr = ["-b:v", rate, "-minrate", rate, "-maxrate", rate, "-bufsize", rate]
    other = ["-g", "9999", "-lag-in-frames", "0", "-threads", "1"]
    quiet = [ffmpeg, "-y", "-v", "error"]
    smaller = ["-vf", f"scale={width}:{height}"]
    run([*quiet, "-i", sent, *smaller, "-c:v", *CODECS[codec], *cbr, *other, ivf])
    graph = (
        f"[0]scale={size[0]}:{size[1]}:flags=bicubic,settb=1/30,setpts=N[a];[1]settb=1/30,setpts=N[b];"
        f"[a][b]libvmaf=model=version=vmaf_v0.6.1:log_fmt=csv:log_path={log}:shortest=1:n_threads=1"
    )
    run([*quiet, "-i", ivf, "-i", sent, "-lavfi", graph, "-f", "null", "-"])
    scores = [float(row["vmaf"]) for row in csv.DictReader(log.open())]
    sizes = frame_bytes(ivf)
    if len(scores) != len(sizes):
        raise SystemExit(f"{len(scores)} scores of {len(sizes)} frames")
    half = len(scores) // 2
    scores, sizes = scores[half:], sizes[half:]
    coded = 8 * sum(sizes) / len(sizes) / (width * height)
    return coded, sum(scores) / len(scores), len(scores)


def main():
    if len(sys.argv) < 3 or "=" not in "".join(sys.argv[2:]):
        raise SystemExit(__doc__)
    ffmpeg = sys.argv[1]
    print(
        "clip\tcamera_width\tcamera_height\theight\tfps\tcodec\tbits_a_pixel\tvmaf\tframes",
        flush=True,
    )
    for argument in sys.argv[2:]:
        name, clip = argument.split("=", 1)
        with tempfile.TemporaryDirectory() as folder:
            for camera, height, fps, codec, rates in PLAN:
                size = (even(camera * 16 / 9), camera)
                sent = reference(ffmpeg, clip, size, fps, Path(folder))
                for bits in rates:
                    coded, vmaf, count = measure(
                        ffmpeg, sent, size, height, fps, codec, bits, Path(folder)
                    )
                    print(
                        f"{name}\t{size[0]}\t{camera}\t{height}\t{fps}\t{codec}\t{coded:.5f}\t{vmaf:.2f}\t{count}",
                        flush=True,
                    )


main()
