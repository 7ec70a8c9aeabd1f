#!/usr/bin/python3
"""Measures the encoder of a call's pipeline: pipeline-encoder.py > docs/results/pipeline-encoder.tsv

The film in 640x360 is encoded with the settings of lab/call/src/peers/pipeline/vp8.py, for 20 s and
without a network. The encoder is asked for one rate, and after 10 s for another one. In rows with a
key frame it is asked for one at that picture. Each row has the rates in kbit/s, the number of the
picture with the key frame (0: none) and the bytes of all pictures. The model of the simulator
(docs/reference/video.md) is compared with these. Needs ffmpeg, GStreamer and vp8enc.
"""

import sys

import gi

gi.require_version("Gst", "1.0")
from gi.repository import Gst
from vp8_film import FPS, SHARE, encode, film

PICTURES = 20 * FPS
CHANGE = 10 * FPS
KEY_FRAME = 11 * FPS
RATES = [150, 300, 600, 1000, 1500, 2000, 2500]
STEPS = [(300, 600), (300, 1000), (300, 2000), (600, 1200), (1000, 2000)]
WITH_KEY_FRAME = [300, 600, 1000, 2000]


def main():
    if len(sys.argv) > 1:
        print(__doc__)
        sys.exit(0 if "--help" in sys.argv else 2)
    Gst.init(None)
    pictures = film()
    rows = [(rate, rate, 0) for rate in RATES]
    rows += [(rate, rate, KEY_FRAME) for rate in WITH_KEY_FRAME]
    rows += [*((low, high, 0) for low, high in STEPS), *((high, low, 0) for low, high in STEPS)]
    print("from_kbps", "to_kbps", "key_frame", "bytes", sep="\t")
    for before, after, key_frame in rows:
        wanted = [1e3 * (before if number < CHANGE else after) for number in range(PICTURES)]
        bits = encode(pictures, [rate * SHARE for rate in wanted], key_frame=key_frame)
        print(before, after, key_frame, " ".join(str(made // 8) for made in bits), sep="\t")


main()
