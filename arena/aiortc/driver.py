"""Driver of the arena for aiortc, and for libraries with its interface: sends the video of one call, or receives it.

    driver.py [--module MODULE] [--controller NAME] [--as-decoded] [--version]

The lab talks to it in lines of JSON (docs/guide/arena.md). MODULE is `aiortc`, or `webrtc.aiortc` for the
package wrtc, which has libwebrtc under the same interface. Both encode themselves. With a controller of Weir,
the pictures of aiortc come from ../encoder.py, which obeys each target. --as-decoded is for a finding. Only aiortc
receives, and decodes itself.
"""

import argparse
import asyncio
import fractions
import importlib
import importlib.metadata
import json
import pathlib
import re
import sys
import time

import av
from peer import Peer, since_start, tell, write

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent / "library" / "python")]

VIDEO_CLOCK = 90_000
PACKAGES = {"aiortc": "aiortc", "webrtc.aiortc": "wrtc"}
LIMITS = ("min", "start", "max")


def read_pictures(settings):
    """The frames of the camera's file, decoded. They stay in memory."""
    if settings["camera"] is None:
        raise ValueError("the camera has no file; install ffmpeg")
    with av.open(settings["camera"]) as file:
        return [frame for frame in file.decode(video=0)]


def camera_class(rtc, as_decoded):
    """A track that plays the pictures in a loop, each at its time. `as_decoded` leaves their types."""

    class Camera(rtc.MediaStreamTrack):
        kind = "video"

        def __init__(self, pictures, rate):
            super().__init__()
            self._pictures, self._rate = pictures, rate
            self._began, self._count = None, 0

        async def recv(self):
            now = time.monotonic()
            if self._began is None:
                self._began = now
            due = self._began + self._count / self._rate
            if due > now:
                await asyncio.sleep(due - now)
            else:
                # A camera does not deliver the pictures of a time that has passed.
                self._count = int((now - self._began) * self._rate)
            frame = self._pictures[self._count % len(self._pictures)]
            if not as_decoded:
                # Each is marked as a key frame, and aiortc's encoder would obey.
                frame.pict_type = av.video.frame.PictureType.NONE
            frame.pts = self._count * VIDEO_CLOCK // self._rate
            frame.time_base = fractions.Fraction(1, VIDEO_CLOCK)
            self._count += 1
            return frame

    return Camera


class Sender(Peer):
    """The end that sends the video."""

    def __init__(self, rtc, call, settings, controller, as_decoded):
        super().__init__(rtc, call, settings)
        self._controller, self._congestion = controller, None
        self._target_bps = settings["startBitrate"]
        if controller is None:
            pictures = read_pictures(settings)
            self._camera = camera_class(rtc, as_decoded)(pictures, settings["frameRate"])
        else:
            # Only these calls need aiortc itself and libweir.
            weir = importlib.import_module("weir_sender.aiortc")
            weir.load()
            weir.offer_transport_wide()
            self._congestion_class = weir.Congestion
            self._camera = importlib.import_module("encoded").Encoded(settings)
        self._sender = self._connection.addTrack(self._camera)
        self._setup["camera"] = since_start()

    async def receive(self, message):
        """Handles a message of the call's protocol. Returns whether the call goes on."""
        kind = message["type"]
        if kind == "config":
            tell(self._call, "ready")
        elif kind == "start":
            await self._offer()
        elif kind == "answer":
            await self._describe("answer", self._limited(message["sdp"]))
        elif kind == "candidate":
            await self._on_candidate(message["candidate"])
        elif kind in ("stop", "refused"):
            write(self._call, left={})
            if self._congestion is not None:
                await self._congestion.close()
                self._camera.end()
            await self._connection.close()
            return False
        return True

    async def _offer(self):
        self._setup["start"] = since_start()
        # Only VP8, as all stacks of the arena.
        transceiver = self._connection.getTransceivers()[0]
        codecs = self._rtc.RTCRtpSender.getCapabilities("video").codecs
        wanted = [one for one in codecs if one.mimeType in ("video/VP8", "video/rtx")]
        transceiver.setCodecPreferences(wanted)
        transceiver.direction = "sendonly"
        await self._connection.setLocalDescription(await self._connection.createOffer())
        # The description has its candidates.
        tell(self._call, "offer", sdp=self._connection.localDescription.sdp)

    def _limited(self, sdp):
        """The answer with the limits of the rate, in the words that libwebrtc knows. Others ignore them."""
        limits = ";".join(
            f"x-google-{name}-bitrate={self._settings[name + 'Bitrate'] // 1000}" for name in LIMITS
        )
        number = re.search(r"a=rtpmap:(\d+) VP8/90000\r\n", sdp)
        return sdp.replace(number[0], f"{number[0]}a=fmtp:{number[1]} {limits}\r\n")

    def _begin(self):
        if self._controller is not None:
            self._task = asyncio.ensure_future(self._control())

    async def _control(self):
        """Lets the controller pace the packets and set the encoder's rate from now on."""
        limits = {f"{name}_bitrate": self._settings[f"{name}Bitrate"] for name in LIMITS}
        try:
            self._congestion = await self._congestion_class.attach(
                self._sender, self._controller, on_target=self._on_target, **limits
            )
        except (ValueError, AttributeError) as error:
            tell(self._call, "failed", cause=f"{type(error).__name__}: {error}")
            return
        # aiortc tells its own encoder of a request for a key frame, so this is where to hear of it.
        self._sender._send_keyframe = lambda: self._camera.say("key")
        self._camera.target(self._congestion.media_bitrate)
        self._camera.say("start")

    def _on_target(self, change):
        if change.to_bps != self._target_bps:
            write(
                self._call,
                target={
                    "timeNs": time.clock_gettime_ns(time.CLOCK_MONOTONIC),
                    "fromBps": self._target_bps,
                    "targetBps": change.to_bps,
                    "reason": "told by the stack",
                    "state": "unknown",
                    "signals": {},
                },
            )
            self._target_bps = change.to_bps
        self._camera.target(change.media_bps)
        self._camera.say("take" if change.wants_frame else "skip")


async def serve(rtc, controller, as_decoded):
    """Serves the call of the first line until the lab ends it."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=1 << 22)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    (one,) = json.loads(await reader.readline())["calls"]
    call, settings = one["call"], one["settings"]
    if settings.get("role") == "receiver":
        peer = importlib.import_module("receiver").Receiver(rtc, call, settings)
    else:
        peer = Sender(rtc, call, settings, controller, as_decoded)
    while line := await reader.readline():
        try:
            if not await peer.receive(json.loads(line)["message"]):
                return
        except Exception as error:  # noqa: BLE001 - the lab must learn of any failure
            tell(call, "failed", cause=f"{type(error).__name__}: {error}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--module", choices=PACKAGES, default="aiortc")
    parser.add_argument("--controller")
    parser.add_argument("--as-decoded", action="store_true")
    parser.add_argument("--version", action="store_true")
    options = parser.parse_args()
    # Before the version: a package without what it needs is not installed.
    rtc = importlib.import_module(options.module)
    importlib.import_module(f"{options.module}.sdp")
    if options.version:
        name = PACKAGES[options.module]
        print(name, importlib.metadata.version(name))
        return
    asyncio.run(serve(rtc, options.controller, options.as_decoded))


if __name__ == "__main__":
    main()
