"""How the speech of a call sounds: scores of what was heard beside what was said.

`weir call --quality --out DIR` keeps both recordings of each speech in the record's folder. The scores need
`pip install weir-rtc[quality]` and no network:

- ViSQOL in its speech mode compares both recordings: 1 (bad) to 5.
- PLCMOS v2 listens to one alone, for how losses were concealed: 1 (bad) to 5. Its value for what was said is the best
  that the same speech could have. It begins at random places of the recording, so it differs by some hundredths each time.

`word_errors` lets a small recognizer (pocketsphinx) write down both recordings, and counts the words that differ. It mishears
many words of a perfect recording, too, so only the difference between the two means anything.
"""

from __future__ import annotations

import wave
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ._weir import WeirError

SPOKEN, HEARD = "spoken", "heard"
#: Rate of the recordings, which both models need.
RATE = 16_000
SAMPLE_BYTES = 2
LOUDEST = 32_768.0


@dataclass(frozen=True)
class Score:
    """The scores of one speech."""

    #: Name of the recording without its first word, such as `1-a-b`: call, who speaks, who hears it.
    name: str
    #: ViSQOL of what was heard beside what was said.
    visqol: float
    #: PLCMOS of what was heard.
    plcmos: float
    #: PLCMOS of what was said.
    plcmos_spoken: float


def scores(record: str | Path, skip_s: float = 5.0) -> list[Score]:
    """Scores each speech of a record's folder, without the first `skip_s` seconds, in which the receiver adapts.

    It takes about a second for each second of speech. Raises `WeirError` if the folder has no recordings, and
    `ImportError` with what to install if the models are missing.
    """
    folder = Path(record)
    spoken = sorted(folder.glob(f"{SPOKEN}-*.wav"))
    if not spoken:
        raise WeirError(f"{folder} has no recordings of speech: make the call with --quality")
    visqol, plcmos = _models()
    found = []
    for said in spoken:
        name = said.stem.removeprefix(f"{SPOKEN}-")
        pair = [_samples(said, skip_s), _samples(folder / f"{HEARD}-{name}.wav", skip_s)]
        found.append(
            Score(
                name,
                round(float(visqol.measure_from_arrays(*pair, RATE).moslqo), 3),
                round(float(plcmos.run(pair[1], RATE)["plcmos"]), 3),
                round(float(plcmos.run(pair[0], RATE)["plcmos"]), 3),
            )
        )
    return found


@dataclass(frozen=True)
class WordErrors:
    """What a recognizer made of one speech."""

    #: As in `Score`.
    name: str
    #: The words in what was said, as the recognizer heard them.
    said: list[str]
    #: Those in what was heard.
    heard: list[str]
    #: Words to change, add or leave out, until both are equal.
    errors: int

    @property
    def ratio(self) -> float:
        """Share of the words of what was said."""
        return self.errors / max(1, len(self.said))


def word_errors(record: str | Path, skip_s: float = 5.0) -> list[WordErrors]:
    """Recognizes each speech of a record's folder at both ends, without the first `skip_s` seconds.

    It takes a second or two for each second of speech. Raises `WeirError` if the folder has no recordings, and `ImportError`
    with what to install if the recognizer is missing.
    """
    folder = Path(record)
    spoken = sorted(folder.glob(f"{SPOKEN}-*.wav"))
    if not spoken:
        raise WeirError(f"{folder} has no recordings of speech: make the call with --quality")
    found = []
    for said in spoken:
        name = said.stem.removeprefix(f"{SPOKEN}-")
        own = _words(said, skip_s)
        others = _words(folder / f"{HEARD}-{name}.wav", skip_s)
        found.append(WordErrors(name, own, others, _changes(own, others)))
    return found


def _words(path: Path, skip_s: float) -> list[str]:
    """The words of a recording. Its model lies inside the recognizer's package."""
    try:
        from pocketsphinx import Decoder
    except ImportError as error:
        raise ImportError(f"{error}: pip install 'weir-rtc[quality]'") from error
    decoder = Decoder(samprate=RATE, loglevel="FATAL")
    decoder.start_utt()
    decoder.process_raw(_bytes(path, skip_s), no_search=False, full_utt=True)
    decoder.end_utt()
    guess = decoder.hyp()
    return guess.hypstr.split() if guess else []


def _changes(one: list[str], other: list[str]) -> int:
    """The fewest words to change, add or leave out, by Levenshtein's table, row by row."""
    row = list(range(len(other) + 1))
    for at, word in enumerate(one, start=1):
        before, row = row, [at]
        for column, another in enumerate(other, start=1):
            changed = before[column - 1] + (word != another)
            row.append(min(changed, before[column] + 1, row[column - 1] + 1))
    return row[-1]


def _models() -> tuple[Any, Any]:
    try:
        from speechmos import plcmos
        from visqol import VisqolApi
    except ImportError as error:
        raise ImportError(f"{error}: pip install 'weir-rtc[quality]'") from error
    api = VisqolApi()
    # The other mapping needs a runtime of its own.
    api.create(mode="speech", use_lattice_model=False)
    return api, plcmos


def _bytes(path: Path, skip_s: float) -> bytes:
    with wave.open(str(path), "rb") as file:
        shape = (file.getnchannels(), file.getsampwidth(), file.getframerate())
        if shape != (1, SAMPLE_BYTES, RATE):
            raise WeirError(f"{path} is not a recording of weir call")
        file.setpos(min(int(skip_s * RATE), file.getnframes()))
        return file.readframes(file.getnframes())


def _samples(path: Path, skip_s: float) -> Any:
    import numpy

    return numpy.frombuffer(_bytes(path, skip_s), dtype="<i2") / LOUDEST
