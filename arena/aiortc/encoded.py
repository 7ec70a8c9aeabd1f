"""A track of aiortc whose pictures come encoded from a process of ../encoder.py."""

import asyncio
import fractions
import json
import math
import pathlib
import struct
import subprocess

import av
from aiortc import MediaStreamTrack

SCRIPT = pathlib.Path(__file__).resolve().parent.parent / "encoder.py"
VIDEO_CLOCK = 90_000
# aiortc's packets, and what stands around them: IPv4, UDP, RTP with three extensions, SRTP's tag, VP8's descriptor.
PAYLOAD_BYTES = 1_300
HEADER_BYTES = 20 + 8 + 32 + 10 + 4


class Encoded(MediaStreamTrack):
    """The camera. It begins with `say("start")`."""

    kind = "video"

    def __init__(self, settings):
        super().__init__()
        self._rate = settings["frameRate"]
        self._count = 0
        # Debian's Python, which has the binding of GStreamer.
        self._process = subprocess.Popen(
            ["/usr/bin/python3", SCRIPT, json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._reader = None

    def say(self, line):
        """Sends a line to the encoder."""
        try:
            self._process.stdin.write(f"{line}\n".encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            pass  # It has ended, and said why on standard error.

    def target(self, bitrate):
        """Sets the encoder's part of a target that includes headers."""
        packets = math.ceil(bitrate / 8 / self._rate / PAYLOAD_BYTES)
        headers = 8 * packets * HEADER_BYTES * self._rate
        self.say(f"rate {max(bitrate - headers, bitrate // 2)}")

    def end(self):
        self._process.kill()

    async def recv(self):
        if self._reader is None:
            loop = asyncio.get_running_loop()
            self._reader = asyncio.StreamReader(limit=1 << 22)
            protocol = asyncio.StreamReaderProtocol(self._reader)
            await loop.connect_read_pipe(lambda: protocol, self._process.stdout)
        length = 0
        # An empty frame is a picture that was left out.
        while length == 0:
            (length,) = struct.unpack(">I", await self._reader.readexactly(4))
            self._count += 1
        packet = av.Packet(await self._reader.readexactly(length))
        packet.pts = (self._count - 1) * VIDEO_CLOCK // self._rate
        packet.time_base = fractions.Fraction(1, VIDEO_CLOCK)
        return packet
