#!/bin/sh
# aiortc asks again for a lost packet only when another packet is lost.
#
# Version:   aiortc 1.16.0 (PyPI).
# Behaviour: a receiver sends a request (generic NACK) at the packet that shows a new hole, and in
#            it names all holes of the last 128 packets. There is no timer. If this request or its
#            answer is lost, the next request goes out at the next hole, or never. Meanwhile the
#            picture stands: behind a hole, video waits until its buffer of 512 packets is full, and
#            only then is a key frame asked for. That is a number of packets, so the wait depends on
#            the rate: 8.5 s at 60 packets a second.
# Output:    requests for packet 200: 1 in 800 packets
#            a key frame is asked for 510 packets later, frames go on 511 later
#            with a second hole at 260: 2 requests for packet 200
# Exits with 1 if the packet is asked for again without another hole, or the wait is another.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --only-binary :all: aiortc==1.16.0 av==18.1.0
"$folder/venv/bin/python" - <<'END'
from aiortc.jitterbuffer import JitterBuffer
from aiortc.rtcrtpreceiver import NackGenerator
from aiortc.rtp import RtpPacket

LOST, PACKETS, A_FRAME = 200, 800, 2


def receive(lost):
    """Requests for the first lost packet, and when a key frame is asked for and frames go on."""
    # As RTCRtpReceiver makes and uses them for video.
    buffer, holes = JitterBuffer(capacity=512, is_video=True), NackGenerator()
    requests, key_at, goes_on = 0, None, None
    for number in range(PACKETS):
        if number in lost:
            continue
        timestamp = number // A_FRAME * 3000
        packet = RtpPacket(payload_type=96, sequence_number=number, timestamp=timestamp)
        packet._data = b"part of a frame"
        if holes.add(packet):
            requests += lost[0] in holes.missing
        wants_key, frame = buffer.add(packet)
        if wants_key and key_at is None:
            key_at = number
        if frame and frame.timestamp > lost[0] // A_FRAME * 3000 and goes_on is None:
            goes_on = number
    return requests, key_at, goes_on


requests, key_at, goes_on = receive([LOST])
again, _, _ = receive([LOST, 260])
print(f"requests for packet {LOST}: {requests} in {PACKETS} packets")
print(f"a key frame is asked for {key_at - LOST} packets later, frames go on {goes_on - LOST} later")
print(f"with a second hole at 260: {again} requests for packet {LOST}")
if (requests, again) != (1, 2) or min(key_at, goes_on) - LOST < 500:
    raise SystemExit("changed: 1 request, 2 with another hole, and a wait of some 510 packets")
END
