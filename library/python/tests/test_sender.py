"""The binding to libweir. Without the library, the tests are skipped."""

import math
import struct
import unittest

import weir_sender
from weir_sender import Sender, WeirError

SSRC, PADDING_SSRC = 7, 8

try:
    weir_sender.load()
    MISSING = None
except WeirError as error:
    MISSING = str(error)


def packet(number):
    """An RTP packet of 1,200 bytes with room for the extension of number 1."""
    header = struct.pack("!BBHLL", 0x90, 96, number, 0, SSRC)
    return (header + bytes([0xBE, 0xDE, 0, 1, 0x11, 0, 0, 0])).ljust(1200, b"\0")


def remb(bitrate):
    exponent = max(0, math.ceil(math.log2(bitrate)) - 18)
    rate = 1 << 24 | exponent << 18 | bitrate >> exponent
    return struct.pack("!BBHLL4sLL", 0x8F, 206, 5, 0, 0, b"REMB", rate, SSRC)


def sender(algorithm="gcc", **limits):
    limits = {"start_bitrate": 300_000, "max_bitrate": 1_500_000} | limits
    return Sender(algorithm, 0.0, ssrc=SSRC, padding_ssrc=PADDING_SSRC, **limits)


def leave(from_sender, until):
    """All packets that leave until a time, each after it."""
    left = []
    for step in range(round(until * 200)):
        now = step / 200
        from_sender.on_timeout(now)
        while one := from_sender.next_packet(now):
            left.append((now, one))
    return left


@unittest.skipIf(MISSING, MISSING)
class SenderTest(unittest.TestCase):
    def test_each_controller_has_the_start_bitrate_before_feedback(self):
        for algorithm in ("gcc", "nada", "scream", "scream-v2", "sluice"):
            self.assertEqual(sender(algorithm).bitrate, 300_000, algorithm)

    def test_packets_leave_over_time_and_in_their_order_with_numbers_for_the_feedback(self):
        one = sender()
        one.enqueue(0, [packet(number) for number in range(30)])
        self.assertGreater(one.queued, 30_000)
        media = [(now, it.data) for now, it in leave(one, 2) if not it.is_padding]
        self.assertEqual([data[3] for _, data in media], list(range(30)))
        self.assertGreater(media[-1][0] - media[0][0], 0.1)
        numbers = [struct.unpack_from("!H", data, 17)[0] for _, data in media]
        self.assertEqual(numbers, sorted(set(numbers)))

    def test_what_is_sent_again_leaves_before_the_media_that_waits(self):
        one = sender()
        one.enqueue(0, [packet(number) for number in range(30)])
        self.assertIsNotNone(one.next_packet(0))
        one.enqueue_urgent(0, [packet(200)])
        self.assertIn(200, [it.data[3] for _, it in leave(one, 2)][:3])

    def test_the_receivers_limit_lowers_the_target(self):
        one = sender()
        self.assertTrue(one.on_rtcp(0.01, remb(200_000)))
        self.assertLessEqual(one.bitrate, 200_000)
        change = one.take_change()
        self.assertEqual((change.from_bps, change.reason), (300_000, "receiver limit"))
        self.assertIsNone(one.take_change())

    def test_the_range_of_the_target_what_the_source_can_use_and_the_queue_change_in_a_call(self):
        one = sender()
        one.set_limits(0.01, min_bitrate=500_000, max_bitrate=600_000)
        self.assertEqual(one.bitrate, 500_000)
        with self.assertRaisesRegex(WeirError, "bitrates"):
            one.set_limits(0.02, min_bitrate=500_000, max_bitrate=100_000)
        one.set_desired_bitrate(0.03, 200_000)
        one.set_desired_bitrate(0.04, None)
        one.enqueue(0.05, [packet(0), packet(1)])
        one.clear_queue(0.05)
        self.assertEqual(one.queued, 0)

    def test_sound_leaves_before_the_pictures_that_wait(self):
        one = sender()
        one.enqueue(0, [packet(number) for number in range(30)])
        self.assertIsNotNone(one.next_packet(0))
        one.enqueue_as(0, "audio", [packet(201)])
        self.assertEqual(one.next_packet(0.02).data[3], 201)
        with self.assertRaisesRegex(WeirError, "a kind of packet is"):
            one.enqueue_as(0, "sound", [packet(202)])

    def test_what_the_receiver_asks_for_is_told(self):
        one = sender()
        nack = struct.pack("!BBHIIHH", 0x81, 205, 3, 9, SSRC, 500, 1)
        self.assertTrue(one.on_rtcp(0.01, nack + struct.pack("!BBHII", 0x81, 206, 2, 9, SSRC)))
        asked = iter(one.next_request, None)
        self.assertEqual(list(asked), [(SSRC, 500), (SSRC, 501), (SSRC, None)])

    def test_a_new_route_begins_at_the_start_bitrate_and_signals_are_told(self):
        one = sender()
        one.on_receiver_limit(0.01, 200_000)
        self.assertLessEqual(one.source_bitrate, 200_000)
        one.on_receiver_limit(0.02, None)
        one.on_route_change(0.03)
        self.assertEqual(one.bitrate, 300_000)
        one.on_round_trip_time(0.04, 0.05)
        self.assertEqual((one.metrics.loss_ratio, one.metrics.acked_bps), (0.0, None))

    def test_bytes_of_a_stranger_are_refused_without_an_error(self):
        one = sender()
        self.assertFalse(one.on_rtcp(0.01, b"no RTCP at all"))
        self.assertEqual(one.bitrate, 300_000)

    def test_what_cannot_be_sent_is_an_error_in_one_line(self):
        with self.assertRaisesRegex(WeirError, "no controller has this name"):
            sender("quic")
        with self.assertRaisesRegex(WeirError, "not an RTP packet"):
            sender().enqueue(0, [bytes(20)])
        with self.assertRaisesRegex(WeirError, "bitrates"):
            sender(min_bitrate=500_000, start_bitrate=100_000)

    def test_times_of_any_size_are_taken(self):
        for algorithm in ("gcc", "nada", "scream", "scream-v2", "sluice"):
            one = sender(algorithm)
            for now in (-1e300, -1.0, 0.0, 1e9, 1e300, math.inf):
                one.enqueue(now, [packet(1)])
                one.on_timeout(now)
                one.next_packet(now)
                one.on_rtcp(now, remb(400_000))
            # A clock that goes back counts as one that stands.
            one.on_timeout(5.0)
            self.assertLessEqual(one.bitrate, 400_000, algorithm)

    def test_numbers_that_cannot_be_are_refused(self):
        one = sender()
        for odd in (math.nan, -1, 1 << 64, math.inf):
            with self.assertRaisesRegex(WeirError, "a bitrate is a number"):
                one.set_desired_bitrate(0.0, odd)
            with self.assertRaisesRegex(WeirError, "a bitrate is a number"):
                one.set_limits(0.0, min_bitrate=1, max_bitrate=odd)
            with self.assertRaisesRegex(WeirError, "a bitrate is a number"):
                sender(max_bitrate=odd)
            with self.assertRaisesRegex(WeirError, "no integer"):
                Sender("gcc", 0.0, overhead_bytes=odd)
        with self.assertRaisesRegex(WeirError, "a time is a number"):
            one.on_timeout(math.nan)
        with self.assertRaisesRegex(WeirError, "no integer"):
            Sender("gcc", 0.0, transport_sequence_number_id=257)
        self.assertEqual(one.bitrate, 300_000)


if __name__ == "__main__":
    unittest.main()
