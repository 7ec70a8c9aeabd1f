"""How the speech of a call sounds: scores of what was heard beside what was said.

`weir call --quality --out DIR` keeps both recordings of each speech in the record's folder. The scores need
`pip install weir-rtc[quality]` and no network:

- ViSQOL in its speech mode compares both recordings: 1 (bad) to 5.
- PLCMOS v2 listens to one alone, for how losses were concealed: 1 (bad) to 5. Its value for what was said is the best
  that the same speech could have. It begins at random places of the recording, so it differs by some hundredths each time.
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


def _samples(path: Path, skip_s: float) -> Any:
    import numpy

    with wave.open(str(path), "rb") as file:
        shape = (file.getnchannels(), file.getsampwidth(), file.getframerate())
        if shape != (1, SAMPLE_BYTES, RATE):
            raise WeirError(f"{path} is not a recording of weir call")
        file.setpos(min(int(skip_s * RATE), file.getnframes()))
        frames = file.readframes(file.getnframes())
    return numpy.frombuffer(frames, dtype="<i2") / LOUDEST
