"""What both ends of a call have in a driver of aiortc: lines to the lab, and the connection."""

import json
import time

STARTED = time.monotonic()


def since_start():
    """In ms."""
    return (time.monotonic() - STARTED) * 1000


def tell(call, kind, **members):
    """Sends a message of the call's protocol."""
    write(call, message={"type": kind, **members})


def write(call, **content):
    print(json.dumps({"call": call, **content}, separators=(",", ":")), flush=True)


class Peer:
    """What both ends of a call have."""

    def __init__(self, rtc, call, settings):
        self._rtc, self._call, self._settings = rtc, call, settings
        self._setup = {"joined": since_start()}
        self._connection = rtc.RTCPeerConnection(rtc.RTCConfiguration(iceServers=[]))
        self._connection.on("connectionstatechange", self._on_state)
        self._candidates = []
        self._is_described = False

    async def _describe(self, kind, sdp):
        """Sets the other peer's description, and adds the candidates that came before it."""
        description = self._rtc.RTCSessionDescription(sdp=sdp, type=kind)
        await self._connection.setRemoteDescription(description)
        self._setup["described"] = since_start()
        self._is_described = True
        for candidate in self._candidates:
            await self._add(candidate)

    async def _on_candidate(self, candidate):
        if self._is_described:
            await self._add(candidate)
        else:
            self._candidates.append(candidate)

    async def _add(self, candidate):
        text = candidate["candidate"].removeprefix("candidate:")
        if not text or text.split()[2].lower() != "udp":
            return
        parsed = self._rtc.sdp.candidate_from_sdp(text)
        parsed.sdpMid, parsed.sdpMLineIndex = candidate["sdpMid"], candidate["sdpMLineIndex"]
        await self._connection.addIceCandidate(parsed)

    def _on_state(self, *_):
        state = self._connection.connectionState
        if state == "connected":
            self._setup["ice"] = self._setup["connected"] = since_start()
            tell(self._call, "connected", setup=self._setup)
            self._begin()
        elif state == "failed":
            tell(self._call, "failed", cause="no connection to the other peer")
