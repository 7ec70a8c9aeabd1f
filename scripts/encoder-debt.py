#!/usr/bin/env python3
"""How long the arena's encoder pays back what it made too much.

usage: scripts/encoder-debt.py LOW

Asks ./arena/encoder.py for 400 kbit/s for 6 s, for LOW bit/s for 8 s, and for 600 kbit/s for 14 s, and prints what it makes
in each second, in kbit/s. The picture, ffmpeg's mandelbrot, takes some 420 kbit/s at the worst quality.
"""

import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import threading
import time

ENCODER = pathlib.Path(__file__).resolve().parent.parent / "arena" / "encoder.py"
PICTURE = "mandelbrot=s=640x360:r=30"
SECONDS = 28


def count(frames, kbps):
    """Adds up the frames of each second until the encoder ends."""
    start = time.monotonic()
    while len(length := frames.read(4)) == 4:
        (size,) = struct.unpack(">I", length)
        frames.read(size)
        second = min(int(time.monotonic() - start), SECONDS - 1)
        kbps[second] += size * 8 / 1000


def main():
    if len(sys.argv) != 2 or not sys.argv[1].isdigit():
        sys.exit(__doc__)
    low, kbps = sys.argv[1], [0.0] * SECONDS
    with tempfile.TemporaryDirectory() as folder:
        film = f"{folder}/film.y4m"
        source = ["-f", "lavfi", "-i", PICTURE, "-t", "6", "-pix_fmt", "yuv420p"]
        subprocess.run(["ffmpeg", "-v", "error", *source, film], check=True)
        settings = {"width": 640, "height": 360, "frameRate": 30, "startBitrate": 400_000}
        command = ["/usr/bin/python3", ENCODER, json.dumps({**settings, "camera": film})]
        encoder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        threading.Thread(target=count, args=(encoder.stdout, kbps), daemon=True).start()
        for line, wait in (("start", 6), (f"rate {low}", 8), ("rate 600000", 14)):
            encoder.stdin.write(f"{line}\n".encode())
            encoder.stdin.flush()
            time.sleep(wait)
        encoder.kill()
        encoder.wait()
    print(*(round(rate) for rate in kbps))


if __name__ == "__main__":
    main()
