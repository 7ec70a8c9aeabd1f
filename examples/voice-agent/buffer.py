"""How much of the received sound aiortc's jitter buffer hands over: prints a Markdown table.

Packets of 20 ms go into the buffer that aiortc's receiver has for sound, without network and call. Some are
lost at random.
"""

import random

from aiortc.jitterbuffer import JitterBuffer
from aiortc.rtp import RtpPacket

#: The buffer of RTCRtpReceiver for sound, in packets.
CAPACITY, PREFETCH = 16, 4
PACKETS, RUNS = 1000, 20
SAMPLES = 960


def handed_over(loss, seed):
    """The share of the sent packets that is received, and that is handed over."""
    chance = random.Random(seed)
    buffer = JitterBuffer(capacity=CAPACITY, prefetch=PREFETCH)
    received = given = 0
    for number in range(PACKETS):
        if chance.random() < loss:
            continue
        received += 1
        packet = RtpPacket(sequence_number=number, timestamp=number * SAMPLES)
        # What RTCRtpReceiver puts there before the buffer.
        packet._data = b"sound"
        given += buffer.add(packet)[1] is not None
    return received / PACKETS, given / PACKETS


def main():
    print("| lost (%) | received (%) | handed over (%) |\n|---:|---:|---:|")
    for loss in (0.0, 0.01, 0.02, 0.05, 0.1):
        runs = [handed_over(loss, seed) for seed in range(RUNS)]
        received, given = (100 * sum(share) / RUNS for share in zip(*runs))
        print(f"| {100 * loss:.0f} | {received:.1f} | {given:.1f} |")


if __name__ == "__main__":
    main()
