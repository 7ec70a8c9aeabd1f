"""What the agent and its caller share: a voice, an ear, and the way in which they find each other.

`--module` names the WebRTC stack: `aiortc`, or `webrtc.aiortc` of the package wrtc, which is libwebrtc
behind the same interface.
"""

import argparse
import asyncio
import fractions
import importlib
import json
import time
import wave
from pathlib import Path

import av
import numpy

#: Samples a second of everything here.
RATE = 48_000
#: Samples of one packet, 20 ms.
BLOCK = RATE // 50
#: Root mean square from which on a block is sound, of 1. The speech's own pauses are below it.
LOUD = 0.01
#: Rate of the written recordings, that of the speech.
FILE_RATE = 16_000


def options(what):
    """The options of both programs."""
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("folder", type=Path, help="where both write, and meet")
    parser.add_argument("--module", default="aiortc", help="aiortc or webrtc.aiortc")
    return parser


def stack(arguments):
    """The WebRTC stack, a module with the interface of aiortc."""
    return importlib.import_module(arguments.module)


def is_loud(samples):
    """Whether these samples are sound."""
    return numpy.sqrt(numpy.mean(numpy.square(samples))) > LOUD


def voice_class(rtc):
    """A microphone: blocks of 20 ms, each at its time. It is silent unless it was told to speak."""

    class Voice(rtc.MediaStreamTrack):
        kind = "audio"

        def __init__(self):
            super().__init__()
            self._waiting, self._count, self._began = numpy.zeros(0), 0, None
            self.said = []

        def speak(self, samples):
            """Speaks after what was to be said before. Returns when it begins and ends, in s of
            time.monotonic."""
            ahead = len(self._waiting)
            self._waiting = numpy.concatenate([self._waiting, samples])
            begin = self._began + (self._count * BLOCK + ahead) / RATE
            return begin, begin + len(samples) / RATE

        async def recv(self):
            if self._began is None:
                self._began = time.monotonic()
            # A block is recorded when its last sample is.
            due = self._began + (self._count + 1) * BLOCK / RATE
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            block, self._waiting = self._waiting[:BLOCK], self._waiting[BLOCK:]
            block = numpy.pad(block, (0, BLOCK - len(block)))
            self.said.append(block)
            samples = (block * 32767).astype("<i2").reshape(1, -1)
            frame = av.AudioFrame.from_ndarray(samples, format="s16", layout="mono")
            frame.sample_rate, frame.pts = RATE, self._count * BLOCK
            frame.time_base = fractions.Fraction(1, RATE)
            self._count += 1
            return frame

    return Voice


class Ear:
    """Takes what a track delivers, as mono, and says what came when."""

    def __init__(self, on_block=None):
        self._resampler = av.AudioResampler(format="s16", layout="mono", rate=RATE)
        self._on_block = on_block
        #: Blocks of samples.
        self.heard = []

    async def listen(self, track):
        """Until the track ends."""
        while True:
            try:
                frame = await track.recv()
            except Exception:  # noqa: BLE001 - each stack has its own error for the end
                return
            now = time.monotonic()
            # A frame without time stands where it came.
            frame.pts = None
            for part in self._resampler.resample(frame):
                samples = part.to_ndarray().reshape(-1) / 32768
                self.heard.append(samples)
                if self._on_block is not None:
                    self._on_block(now, samples)


async def connected(connection, seconds=20):
    """Waits for the connection."""
    for _ in range(seconds * 50):
        if connection.connectionState == "connected":
            return
        await asyncio.sleep(0.02)
    raise TimeoutError(f"no connection: {connection.connectionState}")


def described(rtc, text):
    """A description that came as text."""
    return rtc.RTCSessionDescription(**json.loads(text))


def text_of(connection):
    """The own description, with its candidates."""
    own = connection.localDescription
    return json.dumps({"type": own.type, "sdp": own.sdp})


async def concealed(connection):
    """The counters of the receiver's buffer, of stacks that have them."""
    # Behind aiortc's interface, wrtc gives the reports of aiortc, which has no such counters.
    native = getattr(connection, "_native", None)
    if native is None:
        return {}
    counters = {}
    for entry in (await native.get_stats()).values():
        for name in (
            "totalSamplesReceived",
            "concealedSamples",
            "removedSamplesForAcceleration",
            "insertedSamplesForDeceleration",
        ):
            value = getattr(entry, name, None)
            if value is not None:
                counters[name] = value
    return counters


def read_speech(path):
    """A recording with one channel."""
    with wave.open(str(path), "rb") as file:
        rate = file.getframerate()
        samples = numpy.frombuffer(file.readframes(file.getnframes()), dtype="<i2") / 32768
    places = numpy.arange(0, len(samples), rate / RATE)
    return numpy.interp(places, numpy.arange(len(samples)), samples)


def write_speech(path, blocks):
    """Blocks of samples as a file. Each of its samples is the mean of three."""
    samples = numpy.concatenate([numpy.zeros(0), *blocks])
    samples = samples[: len(samples) // 3 * 3].reshape(-1, 3).mean(axis=1)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(FILE_RATE)
        file.writeframes((samples * 32767).astype("<i2").tobytes())
