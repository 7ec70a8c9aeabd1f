"""A caller who says one phrase after the other to the agent, and notes when answers begin."""

import asyncio
import json
import time

from talk import (
    RATE,
    Ear,
    connected,
    described,
    is_loud,
    options,
    read_speech,
    stack,
    text_of,
    voice_class,
    write_speech,
)

#: Phrases of the recording, in s. None has a pause of 0.4 s.
PHRASES = ((0.2, 2.7), (4.2, 6.7), (7.36, 9.9))
#: The wait for an answer that does not come, and after one that has ended, in s.
PATIENCE, AFTER = 3.0, 0.5
#: Time for the receiver's buffers to settle before the first phrase, in s.
SETTLE = 2.0


class Answers:
    """When sound of the agent begins."""

    def __init__(self):
        self.onsets, self._last = [], None

    def hear(self, now, samples):
        """A block that came now. Sound after 0.3 s of silence is a new answer."""
        if is_loud(samples):
            if self._last is None or now - self._last > 0.3:
                self.onsets.append(now)
            self._last = now

    def is_over(self, since):
        """Whether an answer came after `since`, and has ended."""
        came = any(onset > since for onset in self.onsets)
        return came and time.monotonic() - self._last > AFTER


async def converse(voice, answers, speech, seconds):
    """Says phrases until the time is over. Returns when each began and ended."""
    await asyncio.sleep(SETTLE)
    phrases, end = [], time.monotonic() + seconds
    while time.monotonic() < end:
        first, last = PHRASES[len(phrases) % len(PHRASES)]
        phrase = voice.speak(speech[int(first * RATE) : int(last * RATE)])
        phrases.append(phrase)
        while not answers.is_over(phrase[1]) and time.monotonic() < phrase[1] + PATIENCE:
            await asyncio.sleep(0.02)
    return phrases


async def main():
    parser = options("Says phrases to the agent and notes when it answers.")
    parser.add_argument("speech", help="a WAV file with one channel")
    parser.add_argument("--seconds", type=float, default=30, help="for how long")
    arguments = parser.parse_args()
    rtc = stack(arguments)
    voice, answers = voice_class(rtc)(), Answers()
    ear, tasks = Ear(answers.hear), []
    connection = rtc.RTCPeerConnection(rtc.RTCConfiguration(iceServers=[]))
    connection.on("track", lambda track: tasks.append(asyncio.ensure_future(ear.listen(track))))
    connection.addTrack(voice)
    await connection.setLocalDescription(await connection.createOffer())
    reader, writer = await meet(arguments.folder / "agent.sock")
    writer.write(text_of(connection).encode() + b"\n")
    await connection.setRemoteDescription(described(rtc, await reader.readline()))
    await connected(connection)
    phrases = await converse(voice, answers, read_speech(arguments.speech), arguments.seconds)
    writer.write_eof()
    # The agent has written its recording when it closes, too.
    await reader.read()
    write_speech(arguments.folder / "spoken.wav", voice.said)
    log = {"module": arguments.module, "phrases": phrases, "answers": answers.onsets}
    (arguments.folder / "caller.json").write_text(json.dumps(log))
    await connection.close()


async def meet(path):
    """Waits until the agent listens."""
    for _ in range(500):
        try:
            return await asyncio.open_unix_connection(path)
        except (FileNotFoundError, ConnectionRefusedError):
            await asyncio.sleep(0.02)
    raise TimeoutError(f"no agent at {path}")


if __name__ == "__main__":
    asyncio.run(main())
