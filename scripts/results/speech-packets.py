#!/usr/bin/env python3
"""Prints what the packets of the lab's speech have, for lab/sim/src/audio and lab/scenario/src/opus.rs.

    scripts/results/speech-packets.py places|rates

Needs libopus (`apt-get install libopus0`). The encoder has the settings of libwebrtc: voip, complexity
9, with FEC. `places` (32 kbit/s, FEC for 10 % of losses) has a line for each run of packets that are empty
with DTX, and for each run of packets without a copy of the one before, of three rounds of the loop.
`rates` has a line for each bitrate and length of packets: the share of packets with a copy by expected
losses, and the coding, frames a packet and bytes of most packets at 10 %. It has the recording, which
was made at 16 kHz, and a voice with sound up to 24 kHz: the recording with the images that a resampler
without a filter leaves.
"""

import array
import collections
import ctypes
import itertools
import math
import sys
import wave
from pathlib import Path

RECORDING = Path(__file__).parents[2] / "lab/call/content/sense-and-sensibility.wav"
ROUNDS = 3
RATE = 48_000
VOIP = 2048
BITRATE, DTX, FEC, LOSS, COMPLEXITY = 4002, 4016, 4012, 4014, 4010
#: A packet with nothing but a header.
EMPTY = 2
LENGTHS_MS = (10, 20, 40, 60)
KBPS = (6, 12, 16, 18, 20, 24, 28, 32, 40, 48, 64)
LOSSES = (1, 5, 6, 10)
#: Samples on each side that a resampled one is made of.
SIDE = 24


def window(distance):
    """The low-pass filter of the resampler: a sinc under a Hann window; distance in samples."""
    turn = math.pi * distance
    sinc = math.sin(turn) / turn if distance else 1.0
    return sinc * (0.5 + 0.5 * math.cos(turn / SIDE))


def recorded():
    """The loop at its own rate, and how many samples it needs for each of them."""
    with wave.open(str(RECORDING)) as file:
        loop = array.array("h", file.readframes(file.getnframes()))
        return loop, RATE // file.getframerate()


def resampled():
    """The loop at 48 kHz, as a browser resamples it: without sound above 8 kHz."""
    loop, factor = recorded()
    filters = [[window(at - k / factor) for at in range(1 - SIDE, SIDE + 1)] for k in range(factor)]
    around = loop[-SIDE:] + loop + loop[:SIDE]
    result = array.array("h")
    for at in range(len(loop)):
        near = around[at + 1 : at + 1 + 2 * SIDE]
        for weights in filters:
            value = sum(weight * sample for weight, sample in zip(weights, near))
            result.append(max(-32768, min(32767, round(value))))
    return result


def full_band():
    """The loop at 48 kHz by interpolation along lines, which has images up to 24 kHz."""
    loop, factor = recorded()
    result = array.array("h")
    for this, following in itertools.pairwise(loop + loop[:1]):
        result.extend((this * (factor - k) + following * k) // factor for k in range(factor))
    return result


def encoder(opus, settings):
    opus.opus_encoder_create.restype = ctypes.c_void_p
    made = ctypes.c_void_p(opus.opus_encoder_create(RATE, 1, VOIP, None))
    for request, value in {FEC: 1, COMPLEXITY: 9, **settings}.items():
        if opus.opus_encoder_ctl(made, request, ctypes.c_int(value)) != 0:
            raise SystemExit(f"libopus refuses {request}")
    return made


def packets(opus, speech, milliseconds, settings):
    """Each packet as bytes."""
    made, count = encoder(opus, settings), RATE * milliseconds // 1000
    (address, length), out = speech.buffer_info(), ctypes.create_string_buffer(4000)
    for at in range(0, length - count + 1, count):
        block = ctypes.c_void_p(address + at * speech.itemsize)
        yield out.raw[: opus.opus_encode(made, block, count, out, len(out))]


def is_empty(packet):
    return len(packet) <= EMPTY


def coding(packet):
    """How the packet is coded [RFC6716 §3.1]."""
    number = packet[0] >> 3
    return "SILK" if number < 12 else "hybrid" if number < 16 else "CELT"


def frames(packet):
    """Its frames as bytes [RFC6716 §3.2]. Only the first one's beginning is right for each kind."""
    code, rest = packet[0] & 3, packet[1:]
    if code == 0:
        return [rest]
    if code == 1:
        return [rest[: len(rest) // 2], rest[len(rest) // 2 :]]
    if code == 2:
        return [rest[1 if rest[0] < 252 else 2 :], b""]
    count, varies, padded = rest[0] & 63, rest[0] & 0x80, rest[0] & 0x40
    at = 1
    while padded and rest[at] == 255:
        at += 1
    at += bool(padded)
    for _ in range(count - 1 if varies else 0):
        at += 1 if rest[at] < 252 else 2
    return [rest[at:], *[b""] * (count - 1)]


def has_copy(packet):
    """Whether it has a copy of the end of the one before [RFC6716 §4.2.3, §4.2.4].

    SILK's flags come first: a voice in each 20 ms of the first frame, then a copy.
    """
    if coding(packet) == "CELT" or is_empty(packet):
        return False
    number = packet[0] >> 3
    voices = max(1, number % 4) if number < 12 else 1
    first = frames(packet)[0]
    return bool(first and first[0] & 0x80 >> voices)


def has_no_copy(packet):
    return not has_copy(packet)


def runs(found, packets, milliseconds):
    """Where runs of packets begin for which `found` holds, in ms, and their lengths."""
    number = 0
    for holds, run in itertools.groupby(packets, found):
        count = len(list(run))
        if holds:
            yield number * milliseconds, count
        number += count


def print_places(opus):
    speech, settings = resampled() * ROUNDS, {BITRATE: 32_000, DTX: 1, LOSS: 10}
    print("| packet (ms) | from (ms) | packets | what |")
    print("|---:|---:|---:|---|")
    kinds = [(length, is_empty, "empty") for length in LENGTHS_MS]
    for milliseconds, found, what in [*kinds, (20, has_no_copy, "no copy of the one before")]:
        made = packets(opus, speech, milliseconds, settings)
        for start, count in runs(found, made, milliseconds):
            print(f"| {milliseconds} | {start} | {count} | {what} |")


def print_rates(opus):
    losses = " | ".join(f"at {loss} %" for loss in LOSSES)
    print(f"| voice | packet (ms) | kbit/s | {losses} | coding | frames | bytes |")
    print(f"|---|{'---:|' * (2 + len(LOSSES))}---|---:|---:|")
    for voice, speech in (("recording", resampled()), ("full band", full_band())):
        for length, kbps in itertools.product(LENGTHS_MS, KBPS):
            shares = []
            for loss in LOSSES:
                settings = {BITRATE: kbps * 1000, LOSS: loss}
                made = list(packets(opus, speech, length, settings))
                shares.append(f"{100 * sum(map(has_copy, made)) / len(made):.0f}")
                if loss == 10:
                    kinds = collections.Counter((coding(it), len(frames(it))) for it in made)
                    (kind, count), _ = kinds.most_common(1)[0]
                    size = sum(map(len, made)) / len(made)
            row = [voice, length, kbps, *shares, kind, count, f"{size:.0f}"]
            print("|", " | ".join(map(str, row)), "|", flush=True)


def main():
    prints = {"places": print_places, "rates": print_rates}
    if len(sys.argv) != 2 or sys.argv[1] not in prints:
        print(__doc__)
        sys.exit(0 if sys.argv[1:] == ["--help"] else 2)
    opus = ctypes.CDLL("libopus.so.0")
    opus.opus_get_version_string.restype = ctypes.c_char_p
    print(opus.opus_get_version_string().decode())
    prints[sys.argv[1]](opus)


main()
