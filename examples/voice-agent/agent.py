"""A voice agent: it listens, waits until the caller has ended a phrase, and answers.

Its answer is a tone, and it understands nothing. What it shows is the time that a turn takes and what an
agent hears. `weir link NETWORK --peer 'python3 agent.py OUT' -- python3 caller.py OUT SPEECH.wav` puts a
network between both (README.md).
"""

import asyncio
import json

import numpy
from talk import (
    RATE,
    Ear,
    concealed,
    described,
    is_loud,
    options,
    stack,
    text_of,
    voice_class,
    write_speech,
)

#: So long an answer is, in s.
ANSWER = 0.6
#: Sound that is shorter than this is no phrase, in s.
SHORTEST = 0.2


class Turns:
    """Finds the ends of phrases. A phrase ends when `quiet` seconds were heard without sound."""

    def __init__(self, quiet):
        self._quiet, self._sound, self._silence = quiet, 0.0, 0.0

    def hear(self, samples):
        """Returns whether a phrase has ended with these samples."""
        seconds = len(samples) / RATE
        if is_loud(samples):
            self._sound += seconds
            self._silence = 0.0
            return False
        self._silence += seconds
        has_ended = self._sound >= SHORTEST and self._silence >= self._quiet
        if self._silence >= self._quiet:
            self._sound = 0.0
        return has_ended


class Agent:
    """The agent's side of one call."""

    def __init__(self, arguments):
        self._rtc, self._arguments = stack(arguments), arguments
        self._turns = Turns(arguments.quiet)
        self._voice = voice_class(self._rtc)()
        self._ear = Ear(self._on_block)
        self._tasks = []
        self._over = asyncio.Event()
        places = numpy.arange(int(ANSWER * RATE)) / RATE
        self._answer = 0.3 * numpy.sin(2 * numpy.pi * 440 * places)

    def _on_block(self, _, samples):
        if self._turns.hear(samples):
            self._tasks.append(asyncio.ensure_future(self._reply()))

    async def _reply(self):
        # A real agent thinks here.
        await asyncio.sleep(self._arguments.think)
        self._voice.speak(self._answer)

    async def serve(self):
        """Waits for the caller, and talks with it until it says that it is done."""
        path = self._arguments.folder / "agent.sock"
        path.unlink(missing_ok=True)
        server = await asyncio.start_unix_server(self._meet, path)
        async with server:
            await self._over.wait()
        path.unlink(missing_ok=True)

    async def _meet(self, reader, writer):
        connection = self._rtc.RTCPeerConnection(self._rtc.RTCConfiguration(iceServers=[]))
        connection.on("track", self._on_track)
        offer = described(self._rtc, await reader.readline())
        await connection.setRemoteDescription(offer)
        connection.addTrack(self._voice)
        await connection.setLocalDescription(await connection.createAnswer())
        writer.write(text_of(connection).encode() + b"\n")
        # The caller closes this way at the end.
        await reader.read()
        counters = await concealed(connection)
        (self._arguments.folder / "agent.json").write_text(json.dumps(counters))
        write_speech(self._arguments.folder / "heard.wav", self._ear.heard)
        writer.close()
        await connection.close()
        self._over.set()

    def _on_track(self, track):
        self._tasks.append(asyncio.ensure_future(self._ear.listen(track)))


async def main():
    parser = options("A voice agent that answers each phrase with a tone.")
    parser.add_argument("--quiet", type=float, default=0.4, help="silence after a phrase, in s")
    parser.add_argument("--think", type=float, default=0.3, help="time for an answer, in s")
    await Agent(parser.parse_args()).serve()


if __name__ == "__main__":
    asyncio.run(main())
