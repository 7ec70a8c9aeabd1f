#!/usr/bin/env python3
"""Prints what the packets of the lab's speech have, for lab/sim/src/audio/recording.rs.

    scripts/speech-packets.py

Needs libopus (`apt-get install libopus0`). The encoder has the settings of libwebrtc: voip, 32
kbit/s, complexity 9, with FEC for 10 % of losses. A line for each run of packets that are empty
with DTX, and for each run of packets without a copy of the one before, of three rounds of the loop.
"""

import array
import ctypes
import itertools
import wave
from pathlib import Path

RECORDING = Path(__file__).parent.parent / "lab/call/content/sense-and-sensibility.wav"
ROUNDS = 3
RATE = 48_000
VOIP = 2048
#: Bitrate, DTX, FEC, expected losses, complexity.
SETTINGS = {4002: 32_000, 4016: 1, 4012: 1, 4014: 10, 4010: 9}
#: A packet with nothing but a header.
EMPTY = 2


def samples():
    """The rounds at 48 kHz, by interpolation between the samples at 16 kHz."""
    with wave.open(str(RECORDING)) as file:
        loop = array.array("h", file.readframes(file.getnframes()))
        between = RATE // file.getframerate()
    spoken = loop * ROUNDS
    result = array.array("h")
    for this, following in itertools.pairwise(spoken):
        result.extend((this * (between - k) + following * k) // between for k in range(between))
    return result


def encoder(opus):
    opus.opus_encoder_create.restype = ctypes.c_void_p
    made = ctypes.c_void_p(opus.opus_encoder_create(RATE, 1, VOIP, None))
    for request, value in SETTINGS.items():
        if opus.opus_encoder_ctl(made, request, ctypes.c_int(value)) != 0:
            raise SystemExit(f"libopus refuses {request}")
    return made


def packets(opus, speech, milliseconds):
    """Each packet as bytes."""
    made, count = encoder(opus), RATE * milliseconds // 1000
    out = (ctypes.c_ubyte * 4000)()
    for at in range(0, len(speech) - count + 1, count):
        block = (ctypes.c_short * count)(*speech[at : at + count])
        yield bytes(out[: opus.opus_encode(made, block, count, out, len(out))])


def is_empty(packet):
    return len(packet) <= EMPTY


def has_no_copy(packet):
    """Whether the only frame of 20 ms has no copy [RFC6716 §4.2.3, §4.2.4]. SILK's flags come first."""
    is_celt, flags = packet[0] & 0x80, packet[1] if len(packet) > 1 else 0
    return bool(is_celt) or not flags & 0x40


def runs(found, packets, milliseconds):
    """Where runs of packets begin for which `found` holds, in ms, and their lengths."""
    number = 0
    for holds, run in itertools.groupby(packets, found):
        count = len(list(run))
        if holds:
            yield number * milliseconds, count
        number += count


def main():
    opus = ctypes.CDLL("libopus.so.0")
    opus.opus_get_version_string.restype = ctypes.c_char_p
    print(opus.opus_get_version_string().decode())
    speech = samples()
    print("| packet (ms) | from (ms) | packets | what |")
    print("|---:|---:|---:|---|")
    for milliseconds, found, what in [
        (20, is_empty, "empty"),
        (60, is_empty, "empty"),
        (20, has_no_copy, "no copy of the one before"),
    ]:
        for start, count in runs(found, packets(opus, speech, milliseconds), milliseconds):
            print(f"| {milliseconds} | {start} | {count} | {what} |")


main()
