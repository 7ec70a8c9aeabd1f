#!/bin/sh
# One lost packet makes aiortc's audio late by 200 ms more until the end of the call.
#
# Version:   aiortc 1.16.0 (PyPI).
# Behaviour: its receiver puts audio into a jitter buffer of 16 packets. Behind a hole it waits
#            until the buffer is full, then leaves the hole out. From there on it gives one packet
#            out for each that comes in, so the packets that piled up stay there: nothing ever plays
#            faster. A packet of 20 ms is then given out when the 14th after it comes, instead of
#            the 4th. Later losses add nothing, because the buffer is already full.
# Output:    before the loss: packet 95 of 20 ms leaves 4 packets later
#            after the loss: packet 2985 of 20 ms leaves 14 packets later
# Exits with 1 if the delay after a loss is not larger than before it.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --only-binary :all: aiortc==1.16.0 av==18.1.0
"$folder/venv/bin/python" - <<'END'
from aiortc.jitterbuffer import JitterBuffer
from aiortc.rtp import RtpPacket

LOST, PACKETS, SAMPLES = 100, 3000, 960
#: As RTCRtpReceiver makes it for audio.
buffer = JitterBuffer(capacity=16, prefetch=4)
waited = {}
for number in range(PACKETS):
    if number == LOST:
        continue
    packet = RtpPacket(payload_type=96, sequence_number=number, timestamp=number * SAMPLES)
    packet._data = b"speech"
    _, frame = buffer.add(packet)
    if frame:
        given = frame.timestamp // SAMPLES
        waited[given] = number - given
before, last = waited[LOST - 5], max(waited)
print(f"before the loss: packet {LOST - 5} of 20 ms leaves {before} packets later")
print(f"after the loss: packet {last} of 20 ms leaves {waited[last]} packets later")
if (before, waited[last]) != (4, 14):
    raise SystemExit("changed: 4 before the loss, 14 until the end")
END
