"""What a conversation was like: prints a Markdown table of the folders that agent.py and caller.py wrote.

python3 turns.py FOLDER...
"""

import json
import statistics
import sys
import wave
from pathlib import Path

import numpy

#: Pieces of speech that are looked for in what was heard, and the step from one to the next, in s.
PIECE, STEP = 0.06, 0.02
#: A piece with a smaller root mean square is a pause.
LOUD = 0.02
#: A piece is found where the normalized correlation is at least this. With Opus and without losses 1 %
#: of the pieces are below 0.59.
ALIKE = 0.5
#: How far from the place of the piece before it may be, in s: the search's own error.
NEAR = 0.002
#: If it is not there, what follows may have moved, earlier or later by so much, in s. Voices repeat
#: themselves every 5 to 10 ms, so a longer piece must agree, and better.
EARLIER, LATER, LONG, VERY_ALIKE = 1.5, 1.0, 0.2, 0.65
STACKS = {"webrtc.aiortc": "libwebrtc"}
COLUMNS = (
    "conversation",
    "stack",
    "phrases",
    "turn gap, median (ms)",
    "largest (ms)",
    "interruptions",
    "without answer",
    "not heard as said (%)",
    "taken out (ms)",
    "added (ms)",
    "made up by the stack (%)",
    "hurried by the stack (%)",
)


def turns(phrases, answers):
    """Gaps in s between each phrase's end and the next answer, the number of answers that began
    within a phrase, and the number of phrases without answer."""
    gaps, interruptions, unanswered = [], 0, 0
    for index, (begin, end) in enumerate(phrases):
        until = phrases[index + 1][0] if index + 1 < len(phrases) else float("inf")
        interruptions += sum(begin <= answer < end for answer in answers)
        after = [answer - end for answer in answers if end <= answer < until]
        if after:
            gaps.append(min(after))
        else:
            unanswered += 1
    return gaps, interruptions, unanswered


def heard_as_said(said, heard, rate):
    """Looks for each piece of speech in what was heard.

    Returns the share that is not there, and the seconds that were taken out and added between
    pieces, by the change of the place at which they are found.
    """
    piece, step = int(PIECE * rate), int(STEP * rate)
    lag, pieces, lost, waiting = None, 0, 0, []
    taken_out = added = 0.0
    for begin in range(0, len(said) - piece, step):
        part = said[begin : begin + piece]
        if numpy.sqrt(numpy.mean(part**2)) < LOUD:
            continue
        pieces += 1
        if lag is not None and is_at(part, heard, begin + lag, rate):
            continue
        waiting.append(begin)
        moved = moved_to(said[begin : begin + int(LONG * rate)], heard, begin, lag, rate)
        if moved is None:
            continue
        # The change may have been before this piece: those since the last one that was found.
        parts = ((one, said[one : one + piece]) for one in waiting)
        lost += sum(not is_at(part, heard, one + moved, rate) for one, part in parts)
        waiting = []
        change = 0.0 if lag is None else (moved - lag) / rate
        taken_out, added = taken_out + max(0.0, -change), added + max(0.0, change)
        lag = moved
    return (lost + len(waiting)) / max(pieces, 1), taken_out, added


def is_at(part, heard, expected, rate):
    """Whether this piece was heard at this place."""
    near = int(NEAR * rate)
    return find(part, heard, expected - near, expected + near)[1] >= ALIKE


def moved_to(longer, heard, begin, lag, rate):
    """The new lag from here on; None if this piece was not heard."""
    # The first one may come late, and not before it was said.
    expected = begin if lag is None else begin + lag
    earlier, later = (EARLIER, LATER) if lag is not None else (1.0, 3.0)
    first, last = expected - int(earlier * rate), expected + int(later * rate)
    place, likeness = find(longer, heard, first, last)
    return place - begin if likeness >= VERY_ALIKE else None


def find(part, heard, first, last):
    """The place between `first` and `last` at which `part` fits best, and how well, up to 1."""
    first = max(0, first)
    around = heard[first : max(first, last) + len(part)]
    if len(around) < len(part):
        return first, 0.0
    size = 1 << (len(around) + len(part)).bit_length()
    spectrum = numpy.fft.rfft(around, size) * numpy.conj(numpy.fft.rfft(part, size))
    products = numpy.fft.irfft(spectrum, size)[: len(around) - len(part) + 1]
    sums = numpy.concatenate([[0.0], numpy.cumsum(around**2)])
    energies = sums[len(part) :] - sums[: len(sums) - len(part)]
    likeness = products / numpy.sqrt(numpy.maximum(energies, 1e-9) * numpy.sum(part**2))
    best = int(numpy.argmax(likeness))
    return first + best, float(likeness[best])


def samples_of(path):
    """The samples of a recording, and their rate."""
    with wave.open(str(path), "rb") as file:
        samples = numpy.frombuffer(file.readframes(file.getnframes()), dtype="<i2") / 32768
        return samples, file.getframerate()


def share(counters, name):
    """A counter as a percentage of all samples; - if the stack has none."""
    total = counters.get("totalSamplesReceived", 0)
    return f"{100 * counters[name] / total:.1f}" if total and name in counters else "-"


def row(folder):
    """The cells of one conversation."""
    log = json.loads((folder / "caller.json").read_text())
    counters = json.loads((folder / "agent.json").read_text())
    gaps, interruptions, unanswered = turns(log["phrases"], log["answers"])
    said, rate = samples_of(folder / "spoken.wav")
    heard, _ = samples_of(folder / "heard.wav")
    lost, taken_out, added = heard_as_said(said, heard, rate)
    return (
        folder.name.removesuffix(f"-{log['module']}").replace("__", "/"),
        STACKS.get(log["module"], log["module"]),
        len(log["phrases"]),
        f"{1000 * statistics.median(gaps):.0f}" if gaps else "-",
        f"{1000 * max(gaps):.0f}" if gaps else "-",
        interruptions,
        unanswered,
        f"{100 * lost:.1f}",
        f"{1000 * taken_out:.0f}",
        f"{1000 * added:.0f}",
        share(counters, "concealedSamples"),
        share(counters, "removedSamplesForAcceleration"),
    )


def main():
    print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
    for folder in sys.argv[1:]:
        print(f"| {' | '.join(str(cell) for cell in row(Path(folder)))} |")


if __name__ == "__main__":
    main()
