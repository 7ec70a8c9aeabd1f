"""Scores of recorded speech: the models of the extra `quality`."""

import wave
from pathlib import Path

import pytest
from weir_rtc import WeirError, speech

SPEECH = Path(__file__).parents[3] / "lab/call/content/sense-and-sensibility.wav"


def record(folder, lost):
    """A record in which every `lost`-th packet of 20 ms of the speech is silent at the listener."""
    with wave.open(str(SPEECH), "rb") as file:
        frames = file.readframes(file.getnframes())
    packet = 2 * speech.RATE // 50
    pieces = [frames[at : at + packet] for at in range(0, len(frames), packet)]
    heard = [
        piece if lost is None or at % lost else bytes(len(piece)) for at, piece in enumerate(pieces)
    ]
    for name, data in [("spoken", frames), ("heard", b"".join(heard))]:
        with wave.open(str(folder / f"{name}-1-a-b.wav"), "wb") as file:
            file.setparams((1, 2, speech.RATE, 0, "NONE", ""))
            file.writeframes(data)
    return folder


def test_a_folder_without_recordings_is_refused(tmp_path):
    with pytest.raises(WeirError, match="--quality"):
        speech.scores(tmp_path)


def test_lost_speech_scores_less_than_whole_speech(tmp_path):
    for name in ("visqol", "speechmos"):
        pytest.importorskip(
            name, reason=f"skipped: {name} is missing: pip install 'weir-rtc[quality]'"
        )
    for name in ("whole", "lossy"):
        (tmp_path / name).mkdir()
    [whole] = speech.scores(record(tmp_path / "whole", None), skip_s=0)
    [lossy] = speech.scores(record(tmp_path / "lossy", 5), skip_s=0)
    assert whole.name == "1-a-b"
    # PLCMOS begins at random places.
    assert whole.visqol > 4.5 and whole.plcmos == pytest.approx(whole.plcmos_spoken, abs=0.1)
    assert lossy.visqol < whole.visqol - 0.5 and lossy.plcmos < whole.plcmos - 0.5


def test_a_recognizer_makes_more_errors_in_lossy_speech_and_none_between_equal_recordings(tmp_path):
    pytest.importorskip(
        "pocketsphinx", reason="skipped: pocketsphinx is missing: pip install 'weir-rtc[quality]'"
    )
    for name in ("whole", "lossy"):
        (tmp_path / name).mkdir()
    [whole] = speech.word_errors(record(tmp_path / "whole", None), skip_s=0)
    [lossy] = speech.word_errors(record(tmp_path / "lossy", 3), skip_s=0)
    assert whole.said == whole.heard and whole.errors == 0
    # Ten seconds of a reader.
    assert len(whole.said) > 15
    assert lossy.said == whole.said and lossy.ratio > 0.2


def test_changes_of_words_are_counted_as_the_fewest():
    words = ["he", "was", "not", "an", "ill", "disposed", "young", "man"]
    assert speech._changes(words, words) == 0
    assert speech._changes(words, []) == len(words)
    assert speech._changes(words, ["he", "was", "an", "ill", "disposed", "old", "man", "then"]) == 3
