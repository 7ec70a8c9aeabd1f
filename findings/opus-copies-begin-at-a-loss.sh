#!/bin/sh
# Opus with FEC switched on sends no copies until the expected loss passes a threshold of its own.
#
# Version:   libopus 1.6.1, as PyAV 18.1.0 brings it (PyPI); 1.3.1 does the same.
# Behaviour: in-band FEC is not in addition. The encoder pays for it with bandwidth of the voice, so
#            it decides by bitrate, sound and expected loss (`OPUS_SET_PACKET_LOSS_PERC`, which a
#            browser takes from reports). A full-band voice at 24 kbit/s has no copy at 5 %, and
#            copies in most packets from 6 % on, where the voice falls to wideband (8 kHz of sound).
#            At 16 kbit/s there is none at 20 %. At 32 kbit/s and 6 % most packets are CELT, which
#            cannot carry any. No packet grows. "FEC: on" in a description of a call says nothing
#            about copies.
# Output:    16 kbit/s:  0%: 0% HYBRID-FB   5%: 0% HYBRID-FB   6%: 0% HYBRID-FB  10%: 0% HYBRID-SWB
#            24 kbit/s:  0%: 0% CELT-FB   5%: 0% HYBRID-FB   6%: 70% SILK-WB  10%: 70% SILK-WB
#            32 kbit/s:  0%: 0% CELT-FB   5%: 7% CELT-FB   6%: 7% CELT-FB  10%: 70% HYBRID-FB
#            (expected loss: share of packets with a copy, mode of most packets)
# Exits with 1 if 24 kbit/s has copies at 5 %, or none at 6 %, or packets grow.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --only-binary :all: av==18.1.0
"$folder/venv/bin/python" - <<'END'
import array
import collections
import ctypes
import math
import pathlib
import random

import av

[path] = (pathlib.Path(av.__file__).parents[1] / "av.libs").glob("libopus-*")
opus = ctypes.CDLL(str(path))
opus.opus_encoder_create.restype = ctypes.c_void_p
RATE, SAMPLES, VOIP = 48_000, 960, 2048
BITRATE, FEC, LOSS, COMPLEXITY = 4002, 4012, 4014, 4010
NAMES = ["SILK-NB", "SILK-MB", "SILK-WB", "HYBRID-SWB", "HYBRID-FB", "CELT-NB", "CELT-WB", "CELT-SWB", "CELT-FB"]


def voice(seconds):
    """Pulses of a voice with breath, whose sound reaches 24 kHz."""
    chance, phase, samples = random.Random(1), 0.0, array.array("h")
    for number in range(seconds * RATE):
        time = number / RATE
        phase += (120 + 20 * math.sin(4.4 * time)) / RATE
        loud = 0.55 + 0.45 * math.sin(19 * time)
        samples.append(int(loud * (9000 * (2 * (phase % 1) - 1) + 600 * chance.gauss(0, 1))))
    return samples


def packets(speech, bitrate, loss):
    encoder = ctypes.c_void_p(opus.opus_encoder_create(RATE, 1, VOIP, None))
    for request, value in ((BITRATE, bitrate), (FEC, 1), (LOSS, loss), (COMPLEXITY, 9)):
        opus.opus_encoder_ctl(encoder, request, ctypes.c_int(value))
    out = (ctypes.c_ubyte * 4000)()
    for at in range(0, len(speech) - SAMPLES + 1, SAMPLES):
        block = (ctypes.c_short * SAMPLES)(*speech[at : at + SAMPLES])
        yield bytes(out[: opus.opus_encode(encoder, block, SAMPLES, out, len(out))])


def mode(packet):
    """[RFC6716 §3.1]"""
    number = packet[0] >> 3
    return NAMES[number // 4 if number < 12 else 3 + (number - 12) // 2 if number < 16 else number // 4 + 1]


def has_copy(packet):
    """SILK's flags come first: of the voice, then of the copy [RFC6716 §4.2.3, §4.2.4]."""
    return not mode(packet).startswith("CELT") and bool(packet[1] & 0x40)


speech, shares, sizes = voice(6), {}, {}
for bitrate in (16_000, 24_000, 32_000):
    row = []
    for loss in (0, 5, 6, 10):
        made = list(packets(speech, bitrate, loss))
        shares[bitrate, loss] = share = sum(map(has_copy, made)) / len(made)
        sizes[bitrate, loss] = sum(map(len, made)) / len(made)
        usual = collections.Counter(map(mode, made)).most_common(1)[0][0]
        row.append(f"{loss:2}%: {share:.0%} {usual}")
    print(f"{bitrate // 1000} kbit/s: {'  '.join(row)}")
grows = any(sizes[bitrate, 10] > 1.05 * sizes[bitrate, 0] for bitrate in (16_000, 24_000, 32_000))
if shares[24_000, 5] > 0.01 or shares[24_000, 6] < 0.5 or shares[16_000, 10] > 0.01 or grows:
    raise SystemExit("changed: 24 kbit/s had no copy at 5 % and most at 6 %, and no packet grew")
END
