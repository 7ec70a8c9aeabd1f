#!/bin/sh
# A positive cpu-used makes the stream of libvpx's VP8 depend on how busy the machine is.
#
# Version:   libvpx 1.16.0, as PyAV 18.1.0 brings it (PyPI).
# Behaviour: with `-deadline realtime`, the sign of cpu-used is a mode, not a direction. A negative
#            value is the speed. A positive one is a share of the frame's time: the encoder measures
#            how long its pictures took, and changes its speed by that. So the same film under the
#            same settings has other bytes in each run. 16 leaves no time, and so is fixed again.
# Output:    8: 3 different streams of 4 (2 to 4, by the load)
#            -8: 1 different streams of 4
# Exits with 1 if a negative speed varies, or a positive one no longer does.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --only-binary :all: av==18.1.0
"$folder/venv/bin/python" - <<'END'
import fractions
import hashlib
import multiprocessing
import os

import av

FILM = "testsrc2=s=1280x720:r=30,noise=alls=12:allf=t,trim=end_frame=40"
RATE = 300_000


def stream(speed):
    encoder = av.CodecContext.create("libvpx", "w")
    encoder.width, encoder.height, encoder.pix_fmt = 1280, 720, "yuv420p"
    encoder.bit_rate, encoder.thread_count = RATE, 1
    encoder.time_base = fractions.Fraction(1, 30)
    encoder.options = {
        **{"deadline": "realtime", "cpu-used": str(speed), "lag-in-frames": "0"},
        **{"minrate": str(RATE), "maxrate": str(RATE), "bufsize": str(RATE)},
    }
    found = hashlib.sha256()
    for frame in [*av.open(FILM, format="lavfi").decode(video=0), None]:
        for packet in encoder.encode(frame):
            found.update(bytes(packet))
    return found.hexdigest()


def burn():
    while True:
        pass


def streams(speed):
    """Streams of four runs, the last two of them beside other work on the same core."""
    found = [stream(speed), stream(speed)]
    others = [multiprocessing.Process(target=burn, daemon=True) for _ in range(2)]
    for other in others:
        other.start()
    found += [stream(speed), stream(speed)]
    for other in others:
        other.kill()
    return len(set(found))


os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
positive, negative = streams(8), streams(-8)
print(f"8: {positive} different streams of 4")
print(f"-8: {negative} different streams of 4")
if positive == 1 or negative != 1:
    raise SystemExit("changed: a positive speed varied in 1.16.0, and a negative one did not")
END
