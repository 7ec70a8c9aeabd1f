#!/usr/bin/env python3
"""Measures VMAF by rate, size, frame rate and codec, for the model of lab/sim/src/source/picture_model.rs.

    scripts/results/measure-vmaf.py FFMPEG PART NAME[@RATE]=CLIP...

FFMPEG needs libvmaf and libvpx (that of the Python package imageio-ffmpeg has both). PART is one of
PLANS below. Each clip is encoded in the way of libwebrtc (realtime, constant rate, one key frame)
twice in a row. The second round is measured, because a call's first second is not like the rest.
Frames are played at RATE a second (30), whatever the clip says, as the lab's camera does; at lower
rates frames are left out. A line has the rate that the encoder made, not the one that was asked for.

VP8 has the settings of libwebrtc's LibvpxVp8Encoder: fixed speed 6, quantizers 2 to 56, and the
denoiser "adaptive", which is on unless a page asks for none. ffmpeg cannot turn on the denoiser of
VP9, which libwebrtc uses, too. No frame is dropped, so that low rates show the coarsest quality.
"""

import csv
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

FRAMES = 100
CODECS = {
    "vp8": [
        *("libvpx", "-deadline", "realtime", "-cpu-used", "-6", "-static-thresh", "1"),
        *("-qmin", "2", "-qmax", "56", "-noise-sensitivity", "4"),
        *("-undershoot-pct", "100", "-overshoot-pct", "15"),
    ],
    "vp9": ["libvpx-vp9", "-deadline", "realtime", "-cpu-used", "7", "-aq-mode", "3"],
    "av1": ["libaom-av1", "-usage", "realtime", "-cpu-used", "8", "-row-mt", "0"],
}
CODECS["vp8-plain"] = [*CODECS["vp8"], "-noise-sensitivity", "0"]
# Camera, encoded height, frames a second, codec, and bits a pixel that are asked for.
BITS = [0.01, 0.02, 0.035, 0.06, 0.1, 0.2, 0.4]
SLOW = [10, 15, 7.5]
#: What each part measures.
PLANS = {
    # The clip to which the model is fitted: size, frame rate, and enlarged pictures.
    "fit": [(height, height, 30, "vp8", BITS) for height in [180, 270, 360]]
    + [(360, 360, fps, "vp8", [bits * (30 / fps) ** 0.5 for bits in BITS]) for fps in SLOW]
    + [(360, height, 30, "vp8", [0.03, 0.1, 0.4]) for height in [270, 180]]
    + [(height, height, 30, "vp8", BITS) for height in [540, 720]]
    + [(720, 720, fps, "vp8", BITS[:4]) for fps in SLOW]
    + [(720, height, 30, "vp8", [0.03, 0.1, 0.4]) for height in [540, 360, 180]],
    # What VP8's denoiser takes: the same with and without it.
    "denoiser": [(360, 360, 30, codec, BITS[2:]) for codec in ["vp8", "vp8-plain"]],
    # Codecs without the denoiser.
    "codecs": [
        (height, height, 30, codec, BITS[:5])
        for codec in ["vp9", "av1"]
        for height in [180, 360, 720]
    ]
    + [(360, 360, 15, codec, BITS[1:5]) for codec in ["vp9", "av1"]],
    # Beyond the range of the fit.
    "beyond": [(1080, 1080, 30, "vp8", BITS[:5]), (360, 360, 60, "vp8", BITS[:5])]
    + [(1080, 1080, 10, "vp8", BITS[1:5:2]), (720, 720, 60, "vp8", BITS[1:5:2])],
    # The film at 60 frames a second, which no constant was fitted to.
    "sixty": [(360, 360, 60, "vp8", BITS[:5]), (720, 720, 60, "vp8", BITS[1:5:2])],
    # A curve at 360p alone.
    "curve": [(360, 360, 30, "vp8", [0.0025, 0.005, *BITS])]
    + [(360, 360, 30, codec, BITS[:5]) for codec in ["vp9", "av1"]],
    # Of other contents, a curve at 360p, and a few points of other sizes and rates.
    "content": [(360, 360, 30, "vp8", [0.0025, 0.005, *BITS])]
    + [(360, 360, 30, codec, BITS[:5]) for codec in ["vp9", "av1"]]
    + [(height, height, 30, "vp8", BITS[:5:2]) for height in [180, 720, 1080]]
    + [(360, 360, fps, "vp8", BITS[:5:2]) for fps in [10, 60]],
}


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


def reference(ffmpeg, clip, rate, size, fps, folder):
    """The frames as the camera has them, two rounds."""
    once, twice = folder / "once.y4m", folder / "sent.y4m"
    every = max(1, round(rate / fps))
    pick = f"select=not(mod(n\\,{every}))," if every > 1 else ""
    scale = f"{pick}scale={size[0]}:{size[1]}:flags=bicubic,setpts=N/{fps}/TB"
    count = ["-frames:v", FRAMES * max(1, round(rate / 30)) // every]
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
    if len(sys.argv) < 4 or sys.argv[2] not in PLANS or "=" not in "".join(sys.argv[3:]):
        raise SystemExit(__doc__)
    ffmpeg, plan = sys.argv[1], PLANS[sys.argv[2]]
    for argument in sys.argv[3:]:
        name, clip = argument.split("=", 1)
        name, _, rate = name.partition("@")
        rate = float(rate or 30)
        with tempfile.TemporaryDirectory() as folder:
            for camera, height, fps, codec, rates in plan:
                played = fps if name == "film" and fps > rate else rate
                size = (even(camera * 16 / 9), camera)
                sent = reference(ffmpeg, clip, played, size, fps, Path(folder))
                for bits in rates:
                    coded, vmaf, count = measure(
                        ffmpeg, sent, size, height, fps, codec, bits, Path(folder)
                    )
                    print(
                        f"{name}\t{size[0]}\t{camera}\t{height}\t{fps}\t{codec}\t{coded:.5f}\t{vmaf:.2f}\t{count}",
                        flush=True,
                    )


main()
