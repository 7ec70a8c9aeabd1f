#!/bin/sh
# In a pause, Opus with DTX sends something every 410, 420 or 400 and 440 ms, by the packets' length.
#
# Version:   libopus 1.6.1, as PyAV 18.1.0 brings it (PyPI); 1.3.1 does the same.
# Behaviour: RFC 6716 (section 2.1.9) and RFC 7587 (section 3.1.3) say one frame every 400 ms. The
#            encoder counts 400 ms of left-out frames and then sends one. So the interval is 400 ms
#            and a packet: 410 ms with packets of 10 ms, 420 ms with 20 and 60 ms. With 40 ms, the
#            half packet alternates: 400 and 440 ms. A receiver that takes a gap above 400 ms as a
#            loss is wrong at each.
# Output:    10 ms: 410; 20 ms: 420; 40 ms: 400, 440; 60 ms: 420
# Exits with 1 if the intervals are others.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --only-binary :all: av==18.1.0
"$folder/venv/bin/python" - <<'END'
import ctypes
import itertools
import pathlib
import random

import av

[path] = (pathlib.Path(av.__file__).parents[1] / "av.libs").glob("libopus-*")
opus = ctypes.CDLL(str(path))
opus.opus_encoder_create.restype = ctypes.c_void_p
RATE, VOIP, BITRATE, DTX = 48_000, 2048, 4002, 4016
#: A packet with nothing but a header is not sent.
EMPTY = 2
#: Voice before the pause, and how much of the pause the encoder takes to be sure.
VOICE, SETTLED, SECONDS = 1, 4, 12

chance = random.Random(1)
speech = [int(9000 * (2 * (number * 130 / RATE % 1) - 1)) for number in range(VOICE * RATE)]
speech += [chance.randint(-10, 10) for _ in range((SECONDS - VOICE) * RATE)]


def intervals(milliseconds):
    """All times between two packets of the pause that are sent."""
    count = RATE * milliseconds // 1000
    encoder = ctypes.c_void_p(opus.opus_encoder_create(RATE, 1, VOIP, None))
    opus.opus_encoder_ctl(encoder, BITRATE, ctypes.c_int(32_000))
    opus.opus_encoder_ctl(encoder, DTX, ctypes.c_int(1))
    out, sent = (ctypes.c_ubyte * 4000)(), []
    for at in range(0, len(speech) - count + 1, count):
        block = (ctypes.c_short * count)(*speech[at : at + count])
        if opus.opus_encode(encoder, block, count, out, len(out)) > EMPTY and at > SETTLED * RATE:
            sent.append(at * 1000 // RATE)
    return sorted({later - earlier for earlier, later in itertools.pairwise(sent)})


found = {milliseconds: intervals(milliseconds) for milliseconds in (10, 20, 40, 60)}
print("; ".join(f"{ms} ms: {', '.join(map(str, every))}" for ms, every in found.items()))
if found != {10: [410], 20: [420], 40: [400, 440], 60: [420]}:
    raise SystemExit("changed: 410, 420, 400 and 440, 420")
END
