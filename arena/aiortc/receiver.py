"""The end of a call that receives the video: aiortc decodes it, and estimates its rate for the sender (REMB)."""

import asyncio

from aiortc.mediastreams import MediaStreamError
from peer import Peer, since_start, tell, write
from pictures import Pictures


class Receiver(Peer):
    """The end that receives."""

    def __init__(self, rtc, call, settings):
        super().__init__(rtc, call, settings)
        self._pictures = Pictures()
        self._tasks = []
        self._connection.on("track", self._on_track)

    async def receive(self, message):
        """Handles a message of the call's protocol. Returns whether the call goes on."""
        kind = message["type"]
        if kind == "config":
            tell(self._call, "ready")
        elif kind == "start":
            self._setup["start"] = since_start()
        elif kind == "offer":
            await self._describe("offer", message["sdp"])
            await self._connection.setLocalDescription(await self._connection.createAnswer())
            # The description has its candidates.
            tell(self._call, "answer", sdp=self._connection.localDescription.sdp)
        elif kind == "candidate":
            await self._on_candidate(message["candidate"])
        elif kind in ("stop", "refused"):
            await self._tell_stats()
            write(self._call, left={})
            for task in self._tasks:
                task.cancel()
            await self._connection.close()
            return False
        return True

    def _on_track(self, track):
        self._tasks.append(asyncio.ensure_future(self._decode(track)))

    async def _decode(self, track):
        try:
            while True:
                frame = await track.recv()
                if self._pictures.count == 0:
                    tell(self._call, "playing", firstFrame=since_start())
                self._pictures.add(frame.width, frame.height)
        except MediaStreamError:
            pass  # The call has ended.

    def _begin(self):
        self._tasks.append(asyncio.ensure_future(self._report()))

    async def _report(self):
        while True:
            await self._tell_stats()
            await asyncio.sleep(self._settings["statsInterval"] / 1000)

    async def _tell_stats(self):
        reports = (await self._connection.getStats()).values()
        transport = next((one for one in reports if one.type == "transport"), None)
        # One for each source: the media, and what is sent again.
        streams = [one for one in reports if one.type == "inbound-rtp"]
        if transport is None or not streams:
            return
        media = max(streams, key=lambda one: one.packetsReceived)
        inbound = {
            "timestamp": since_start(),
            "ssrc": media.ssrc,
            "packetsReceived": sum(one.packetsReceived for one in streams),
            "packetsLost": media.packetsLost,
            # aiortc counts bytes of the whole transport only.
            "bytesReceived": transport.bytesReceived,
            "headerBytesReceived": 0,
            **self._pictures.inbound(),
        }
        tell(self._call, "stats", report={"inbound": inbound})
