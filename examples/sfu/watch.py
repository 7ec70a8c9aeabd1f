"""Watches a room of the server in examples/sfu with libwebrtc, without a browser: pip install wrtc==0.1.0 av==18.1.0 pyee

    python3 watch.py http://127.0.0.1:8000 [SECONDS]

Prints once a second how many packets of each place have come so far.
"""

import asyncio
import json
import sys
import urllib.request

from webrtc import aiortc as rtc

SLOTS = 8


def post(url, body=""):
    """Sends a request to the server, and returns its answer."""
    with urllib.request.urlopen(
        urllib.request.Request(url, data=body.encode(), method="POST")
    ) as answer:
        return json.loads(answer.read() or b"null")


async def watch(server, seconds):
    connection = rtc.RTCPeerConnection()
    offer = post(f"{server}/subscribe?name=libwebrtc")
    await connection.setRemoteDescription(rtc.RTCSessionDescription(type="offer", sdp=offer["sdp"]))
    await connection.setLocalDescription(await connection.createAnswer())
    post(f"{server}/answer?number={offer['number']}", connection.localDescription.sdp)
    for second in range(seconds):
        await asyncio.sleep(1)
        post(f"{server}/shown?number={offer['number']}", json.dumps([[1280, 720, 0, 0]] * SLOTS))
        print(second + 1, connection.connectionState, packets(await connection.getStats()))
    await connection.close()


def packets(stats):
    """Packets that came so far, of each stream that has any."""
    incoming = [one for one in stats.values() if one.type == "inbound-rtp"]
    return [one.packetsReceived for one in incoming if one.packetsReceived]


asyncio.run(watch(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10))
