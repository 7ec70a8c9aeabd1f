#!/bin/sh
# The copy in a packet of 60 ms restores 20 ms or 60 ms of the lost one, by the encoder's mode.
#
# Version:   libopus 1.6.1, as PyAV 18.1.0 brings it (PyPI); 1.3.1 does the same.
# Behaviour: a frame of SILK may last 60 ms, and its copy covers all of it. A hybrid frame (SILK for
#            the low, CELT for the high part) lasts at most 20 ms, so a packet of 60 ms has three
#            (RFC 6716, section 3.1), each with a copy of the one before. Only the first one's copy
#            is of use to the lost packet, and that is its last frame. `opus_decode(...,
#            decode_fec=1)` fills the rest by concealment and returns 60 ms without a word. A voice
#            at 48 kbit/s so gets a third of what it gets at 24 kbit/s.
# Output:    24 kbit/s: SILK, 1 frame of 60 ms: of 60 ms, 0 ms are concealment
#            48 kbit/s: HYBRID, 3 frames of 20 ms: of 60 ms, 40 ms are concealment
# Exits with 1 if the concealed part is another one.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --only-binary :all: av==18.1.0
"$folder/venv/bin/python" - <<'END'
import array
import ctypes
import math
import pathlib
import random

import av

[path] = (pathlib.Path(av.__file__).parents[1] / "av.libs").glob("libopus-*")
opus = ctypes.CDLL(str(path))
opus.opus_encoder_create.restype = opus.opus_decoder_create.restype = ctypes.c_void_p
RATE, MS, PART_MS, VOIP = 48_000, 60, 20, 2048
SAMPLES = RATE * MS // 1000
BITRATE, FEC, LOSS, COMPLEXITY = 4002, 4012, 4014, 4010


def voice(seconds):
    """Pulses of a voice with breath, whose sound reaches 24 kHz."""
    chance, phase, samples = random.Random(1), 0.0, array.array("h")
    for number in range(seconds * RATE):
        time = number / RATE
        phase += (120 + 20 * math.sin(4.4 * time)) / RATE
        loud = 0.55 + 0.45 * math.sin(19 * time)
        samples.append(int(loud * (9000 * (2 * (phase % 1) - 1) + 600 * chance.gauss(0, 1))))
    return samples


def packets(speech, bitrate):
    encoder = ctypes.c_void_p(opus.opus_encoder_create(RATE, 1, VOIP, None))
    for request, value in ((BITRATE, bitrate), (FEC, 1), (LOSS, 10), (COMPLEXITY, 9)):
        opus.opus_encoder_ctl(encoder, request, ctypes.c_int(value))
    out = (ctypes.c_ubyte * 4000)()
    for at in range(0, len(speech) - SAMPLES + 1, SAMPLES):
        block = (ctypes.c_short * SAMPLES)(*speech[at : at + SAMPLES])
        yield bytes(out[: opus.opus_encode(encoder, block, SAMPLES, out, len(out))])


def decode(decoder, packet, from_copy=0):
    out = (ctypes.c_short * SAMPLES)()
    data = (ctypes.c_ubyte * len(packet))(*packet) if packet else None
    assert opus.opus_decode(decoder, data, len(packet), out, SAMPLES, from_copy) == SAMPLES
    return out[:]


def restored(made, lost, following, from_copy):
    decoder = ctypes.c_void_p(opus.opus_decoder_create(RATE, 1, None))
    for packet in made[:lost]:
        decode(decoder, packet)
    return decode(decoder, following, from_copy)


def shape(packet):
    """Mode, frames and their length [RFC6716 §3.1, §3.2]."""
    number, code = packet[0] >> 3, packet[0] & 3
    count = (1, 2, 2, packet[1] & 63)[code]
    length = (10, 20, 40, 60)[number % 4] if number < 12 else (10, 20)[number % 2]
    return f"{'SILK' if number < 12 else 'HYBRID'}, {count} frame{'s' * (count > 1)} of {length} ms"


speech, concealed_ms = voice(4), {}
for bitrate in (24_000, 48_000):
    made = list(packets(speech, bitrate))
    lost = len(made) // 2
    copied, concealed = restored(made, lost, made[lost + 1], 1), restored(made, lost, b"", 0)
    same = 0
    while same < SAMPLES and copied[same] == concealed[same]:
        same += 1
    concealed_ms[bitrate] = same * 1000 // RATE // PART_MS * PART_MS
    print(f"{bitrate // 1000} kbit/s: {shape(made[lost + 1])}: of {MS} ms, {concealed_ms[bitrate]} ms are concealment")
if concealed_ms != {24_000: 0, 48_000: 40}:
    raise SystemExit("changed: 0 ms at 24 kbit/s and 40 ms at 48 kbit/s")
END
