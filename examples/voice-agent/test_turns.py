"""What turns.py finds in conversations that are known."""

import unittest

import numpy
from turns import heard_as_said, turns

RATE = 16_000


def speech(seconds):
    """Noise with the spectrum and the loudness of a voice that changes all the time."""
    noise = numpy.random.default_rng(1).standard_normal(seconds * RATE)
    smooth = numpy.convolve(noise, numpy.hanning(12), "same")
    return 0.2 * smooth / numpy.abs(smooth).max()


class Turns(unittest.TestCase):
    def test_a_gap_is_from_the_end_of_a_phrase_to_the_next_answer(self):
        gaps, interruptions, unanswered = turns([(0, 2), (5, 7), (11, 12)], [2.8, 5.5, 7.9])
        self.assertAlmostEqual(gaps[0], 0.8)
        self.assertAlmostEqual(gaps[1], 0.9)
        self.assertEqual((interruptions, unanswered), (1, 1))

    def test_what_came_late_and_whole_was_heard_as_said(self):
        said = speech(4)
        heard = numpy.concatenate([numpy.zeros(RATE // 10), said])
        self.assertEqual(heard_as_said(said, heard, RATE), (0.0, 0.0, 0.0))

    def test_a_piece_that_was_taken_out_is_missing_and_so_is_its_time(self):
        said = speech(4)
        heard = numpy.concatenate([said[: 2 * RATE], said[2 * RATE + RATE // 5 :]])
        lost, taken_out, added = heard_as_said(said, heard, RATE)
        # 0.2 s of 4 s, and pieces that reach into it.
        self.assertTrue(0.045 < lost < 0.075, lost)
        self.assertAlmostEqual(taken_out, 0.2, delta=0.005)
        self.assertEqual(added, 0.0)

    def test_silence_in_place_of_speech_takes_no_time_out(self):
        said = speech(4)
        heard = said.copy()
        heard[RATE : RATE + RATE // 2] = 0.0
        lost, taken_out, added = heard_as_said(said, heard, RATE)
        self.assertTrue(0.1 < lost < 0.15, lost)
        self.assertEqual((taken_out, added), (0.0, 0.0))

    def test_nothing_that_was_heard_is_all_lost(self):
        self.assertEqual(heard_as_said(speech(2), numpy.zeros(0), RATE), (1.0, 0.0, 0.0))


if __name__ == "__main__":
    unittest.main()
