#!/bin/sh
# x264's zerolatency cuts each picture into as many slices as the machine has threads for it.
#
# Version:   x264 (core 165), as PyAV 18.1.0 brings it (PyPI).
# Behaviour: `tune=zerolatency` sets sliced threads: to use four cores without a delay, each picture
#            becomes four slices. So the same film under the same settings has other bytes, more NAL
#            units (and RTP packets), and other losses on a machine with other cores.
#            `x264-params=sliced-threads=0` or one thread makes streams comparable.
# Output:    1 thread: 1 slices a picture
#            2 threads: 2 slices a picture
#            4 threads: 4 slices a picture
#            4 threads, sliced-threads=0: 1 slices a picture
# Exits with 1 if the slices no longer follow the threads.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --only-binary :all: av==18.1.0
"$folder/venv/bin/python" - <<'END'
import fractions

import av

FILM = "testsrc2=s=640x360:r=30,noise=alls=20:allf=t,trim=end_frame=30"
#: NAL unit types of slices: not IDR, and IDR [ITU-T H.264, table 7-1].
SLICES = (1, 5)


def slices(threads, **options):
    """Slices of the last picture."""
    encoder = av.CodecContext.create("libx264", "w")
    encoder.width, encoder.height, encoder.pix_fmt = 640, 360, "yuv420p"
    encoder.bit_rate, encoder.thread_count = 800_000, threads
    encoder.framerate, encoder.time_base = 30, fractions.Fraction(1, 30)
    encoder.options = {"tune": "zerolatency", "preset": "ultrafast", **options}
    last = b""
    for frame in av.open(FILM, format="lavfi").decode(video=0):
        for packet in encoder.encode(frame):
            last = bytes(packet)
    return sum(part[0] & 31 in SLICES for part in last.split(b"\0\0\1")[1:])


found = [slices(threads) for threads in (1, 2, 4)]
whole = slices(4, **{"x264-params": "sliced-threads=0:rc-lookahead=0:sync-lookahead=0"})
for threads, count in zip((1, 2, 4), found):
    print(f"{threads} thread{'s' * (threads > 1)}: {count} slices a picture")
print(f"4 threads, sliced-threads=0: {whole} slices a picture")
if (found, whole) != ([1, 2, 4], 1):
    raise SystemExit("changed: there were as many slices as threads")
END
