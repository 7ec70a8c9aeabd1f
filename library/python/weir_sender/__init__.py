"""The sending half of a media flow: RTP packets and RTCP datagrams in, paced RTP out.

It is `weir_sender` of libweir, by ctypes. The package of a release has the library. Otherwise
`scripts/build/c-library.sh build` of the project makes it; it is found by `WEIR_LIBRARY`, or by the system's loader as
`libweir.so.0`.
"""

import ctypes
import math
import os
import pathlib
from collections.abc import Iterable
from typing import NamedTuple

NOTHING = 1
NO_VALUE = (1 << 64) - 1
NEVER = (1 << 63) - 1
FIRST = -(1 << 63)
NO_TIME = FIRST
NAME_SIZE = 32
KINDS = {"video": 0, "repair": 1, "audio": 2}
RETRANSMIT = 1


class _Settings(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("min_bitrate_bps", ctypes.c_uint64),
        ("start_bitrate_bps", ctypes.c_uint64),
        ("max_bitrate_bps", ctypes.c_uint64),
        ("priority", ctypes.c_double),
        ("ecn", ctypes.c_uint32),
        ("tolerate_random_loss", ctypes.c_uint8),
        ("compete_with_tcp", ctypes.c_uint8),
        ("probe_when_limited", ctypes.c_uint8),
        ("reserved", ctypes.c_uint8),
    ]


class _Config(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("random_seed", ctypes.c_uint64),
        ("ssrc", ctypes.c_uint32),
        ("padding_ssrc", ctypes.c_uint32),
        ("clock_rate_hz", ctypes.c_uint32),
        ("overhead_bytes", ctypes.c_uint32),
        ("transport_sequence_number_id", ctypes.c_uint8),
        ("abs_send_time_id", ctypes.c_uint8),
        ("padding_payload_type", ctypes.c_uint8),
        ("sender_reports", ctypes.c_uint8),
        ("reserved", ctypes.c_uint32),
    ]


class _Bytes(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("length", ctypes.c_size_t)]


class _Packet(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("data", ctypes.c_void_p),
        ("length", ctypes.c_size_t),
        ("sequence_number", ctypes.c_int64),
        ("probe_id", ctypes.c_uint64),
        ("is_padding", ctypes.c_uint8),
        ("reserved", ctypes.c_uint8 * 7),
    ]


class _Target(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("bitrate_bps", ctypes.c_uint64),
        ("source_bitrate_bps", ctypes.c_uint64),
        ("pacing_rate_bps", ctypes.c_uint64),
        ("burst_time_ns", ctypes.c_int64),
        ("congestion_window_bytes", ctypes.c_uint64),
        ("available_bytes", ctypes.c_uint64),
        ("padding_rate_bps", ctypes.c_uint64),
        ("probe_id", ctypes.c_uint64),
        ("probe_rate_bps", ctypes.c_uint64),
        ("probe_size_bytes", ctypes.c_uint64),
        ("probe_packets", ctypes.c_uint32),
        ("burst", ctypes.c_uint32),
    ]


class _Signal(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char * NAME_SIZE), ("value", ctypes.c_double)]


class _Metrics(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("rtt_ns", ctypes.c_int64),
        ("queuing_delay_ns", ctypes.c_int64),
        ("acknowledged_bitrate_bps", ctypes.c_uint64),
        ("loss_ratio", ctypes.c_double),
        ("reason", ctypes.c_uint32),
        ("signal_count", ctypes.c_uint32),
        ("reason_text", ctypes.c_char * NAME_SIZE),
        ("state", ctypes.c_char * NAME_SIZE),
        ("signals", _Signal * 16),
    ]


class _Request(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("kind", ctypes.c_uint32),
        ("media_ssrc", ctypes.c_uint32),
        ("sequence_number", ctypes.c_uint16),
        ("reserved", ctypes.c_uint8 * 6),
    ]


class WeirError(Exception):
    """The library refused a call. The text says why."""


class Packet(NamedTuple):
    """A packet that may leave now."""

    data: bytes
    is_padding: bool


class Request(NamedTuple):
    """What the receiver asks for: a packet that it misses, or a key frame if there is no number."""

    media_ssrc: int
    sequence_number: int | None


class Metrics(NamedTuple):
    """The controller's internals, for a log. Times in seconds and rates in bit/s are `None` before they are known."""

    rtt: float | None
    queuing_delay: float | None
    acked_bps: int | None
    loss_ratio: float
    reason: str
    state: str
    signals: dict[str, float]


class Change(NamedTuple):
    """A change of the target bitrate, in bit/s, and why."""

    from_bps: int
    to_bps: int
    reason: str
    state: str
    # What the encoder may make of it: see `Sender.media_bitrate` and `Sender.wants_frame`.
    media_bps: int
    wants_frame: bool


_loaded: ctypes.PyDLL | None = None


def load() -> ctypes.PyDLL:
    """libweir, loaded once in a process. Raises `WeirError` if there is none."""
    global _loaded
    if _loaded is None:
        packaged = pathlib.Path(__file__).with_name("libweir.so.0")
        usual = str(packaged) if packaged.exists() else "libweir.so.0"
        name = os.environ.get("WEIR_LIBRARY", usual)
        try:
            # It keeps the interpreter's lock: a handle must not be used by two threads at once, and calls are short.
            library = ctypes.PyDLL(name)
        except OSError as error:
            raise WeirError(
                f"there is no libweir ({error}): scripts/build/c-library.sh makes it, WEIR_LIBRARY names it"
            ) from error
        pointer, now = ctypes.c_void_p, ctypes.c_int64
        library.weir_status_text.restype = ctypes.c_char_p
        library.weir_settings_init.argtypes = [pointer, ctypes.c_size_t]
        library.weir_sender_config_init.argtypes = [pointer, ctypes.c_size_t]
        library.weir_sender_new.argtypes = [now, ctypes.c_char_p, pointer, pointer, pointer]
        library.weir_sender_free.argtypes = [pointer]
        library.weir_sender_free.restype = None
        library.weir_sender_enqueue_as.argtypes = [
            pointer,
            now,
            ctypes.c_uint32,
            pointer,
            ctypes.c_size_t,
        ]
        library.weir_sender_next_request.argtypes = [pointer, pointer]
        library.weir_sender_on_receiver_limit.argtypes = [pointer, now, ctypes.c_uint64]
        library.weir_sender_on_route_change.argtypes = [pointer, now]
        library.weir_sender_on_round_trip_time.argtypes = [pointer, now, ctypes.c_int64]
        library.weir_sender_metrics.argtypes = [pointer, pointer]
        library.weir_sender_on_rtcp.argtypes = [pointer, now, ctypes.c_char_p, ctypes.c_size_t]
        library.weir_sender_next_packet.argtypes = [pointer, now, pointer]
        library.weir_sender_on_timeout.argtypes = [pointer, now]
        library.weir_sender_clear_queue.argtypes = [pointer, now]
        library.weir_sender_set_limits.argtypes = [pointer, now, *[ctypes.c_uint64] * 3]
        library.weir_sender_set_desired_bitrate.argtypes = [pointer, now, ctypes.c_uint64]
        library.weir_sender_next_timeout.argtypes = [pointer, pointer]
        library.weir_sender_target.argtypes = [pointer, pointer]
        library.weir_sender_queued.argtypes = [pointer, pointer]
        library.weir_sender_media_bitrate.argtypes = [pointer, pointer]
        library.weir_sender_wants_frame.argtypes = [pointer, pointer]
        library.weir_sender_take_change.argtypes = [pointer, pointer, pointer, pointer]
        _loaded = library
    return _loaded


def _checked(status: int) -> int:
    if status < 0:
        raise WeirError(load().weir_status_text(status).decode())
    return status


class Sender:
    """Controller, history and pacer of one flow.

    It has no clock and no timer: `now` is in seconds from a clock that never goes back, such as
    `time.monotonic()`. Bitrates are in bit/s. `algorithm` is `gcc`, `nada`, `scream`, `scream-v2` or `sluice`.
    """

    def __init__(
        self,
        algorithm: str,
        now: float,
        *,
        min_bitrate: int | None = None,
        start_bitrate: int | None = None,
        max_bitrate: int | None = None,
        ssrc: int = 1,
        padding_ssrc: int = 2,
        padding_payload_type: int = 127,
        transport_sequence_number_id: int = 1,
        overhead_bytes: int = 28,
    ) -> None:
        self._handle = ctypes.c_void_p()
        self._library = library = load()
        settings, config = _Settings(), _Config()
        _checked(library.weir_settings_init(ctypes.byref(settings), ctypes.sizeof(settings)))
        _checked(library.weir_sender_config_init(ctypes.byref(config), ctypes.sizeof(config)))
        rates = {"min": min_bitrate, "start": start_bitrate, "max": max_bitrate}
        for name, rate in rates.items():
            if rate is not None:
                setattr(settings, f"{name}_bitrate_bps", _bps(rate))
        config.ssrc, config.padding_ssrc = _whole(ssrc, 32), _whole(padding_ssrc, 32)
        config.padding_payload_type = _whole(padding_payload_type, 8)
        config.transport_sequence_number_id = _whole(transport_sequence_number_id, 8)
        config.overhead_bytes = _whole(overhead_bytes, 32)
        # The host's RTP stack sends its own reports.
        config.sender_reports = 0
        _checked(
            library.weir_sender_new(
                _ns(now),
                algorithm.encode(),
                ctypes.byref(settings),
                ctypes.byref(config),
                ctypes.byref(self._handle),
            )
        )

    def __del__(self) -> None:
        if self._handle:
            self._library.weir_sender_free(self._handle)

    def enqueue(self, now: float, packets: Iterable[bytes]) -> None:
        """Puts the packets of a picture at the end of the queue. Each has room for the header extension.

        Sound that is passed here waits behind the pictures: use `enqueue_as`.
        """
        self.enqueue_as(now, "video", packets)

    def enqueue_urgent(self, now: float, packets: Iterable[bytes]) -> None:
        """Puts packets that are sent again before the pictures."""
        self.enqueue_as(now, "repair", packets)

    def enqueue_as(self, now: float, kind: str, packets: Iterable[bytes]) -> None:
        """Puts packets of this kind into the queue: `audio` leaves at once, then `repair`, then `video`."""
        if kind not in KINDS:
            raise WeirError(f"a kind of packet is audio, repair or video, not {kind}")
        listed = [_Bytes(packet, len(packet)) for packet in packets]
        array = (_Bytes * len(listed))(*listed)
        enqueue_as = self._library.weir_sender_enqueue_as
        _checked(enqueue_as(self._handle, _ns(now), KINDS[kind], array, len(listed)))

    def next_packet(self, now: float) -> Packet | None:
        """The next packet that may leave now. Ask until there is none, and send each at once."""
        packet = _Packet(struct_size=ctypes.sizeof(_Packet))
        next_packet = self._library.weir_sender_next_packet
        if _checked(next_packet(self._handle, _ns(now), ctypes.byref(packet))) == NOTHING:
            return None
        return Packet(ctypes.string_at(packet.data, packet.length), packet.is_padding == 1)

    def on_rtcp(self, now: float, datagram: bytes) -> bool:
        """An RTCP datagram arrived. Feedback and REMB are used. Returns whether it was RTCP.

        What the receiver asks for, NACK, PLI and FIR, waits for `next_request`.
        """
        on_rtcp = self._library.weir_sender_on_rtcp
        # Bytes of a stranger are no error of the host.
        return on_rtcp(self._handle, _ns(now), datagram, len(datagram)) >= 0

    def next_request(self) -> Request | None:
        """What the receiver asks for next: a packet, to be queued again as `repair`, or a key frame."""
        request = _Request(struct_size=ctypes.sizeof(_Request))
        next_request = self._library.weir_sender_next_request
        if _checked(next_request(self._handle, ctypes.byref(request))) == NOTHING:
            return None
        number = request.sequence_number if request.kind == RETRANSMIT else None
        return Request(request.media_ssrc, number)

    def on_timeout(self, now: float) -> None:
        """Handles what is due."""
        _checked(self._library.weir_sender_on_timeout(self._handle, _ns(now)))

    def next_timeout(self) -> float | None:
        """When `on_timeout` and `next_packet` are due, in seconds. It may lie in the past."""
        due = ctypes.c_int64()
        _checked(self._library.weir_sender_next_timeout(self._handle, ctypes.byref(due)))
        return None if due.value == NEVER else due.value / 1e9

    @property
    def bitrate(self) -> int:
        """The target of all packets, headers included."""
        return self._target().bitrate_bps

    @property
    def source_bitrate(self) -> int:
        """The same for a source that can leave pictures out: lower while too much is in flight."""
        return self._target().source_bitrate_bps

    def _target(self) -> _Target:
        target = _Target(struct_size=ctypes.sizeof(_Target))
        _checked(self._library.weir_sender_target(self._handle, ctypes.byref(target)))
        return target

    @property
    def media_bitrate(self) -> int:
        """What the encoder of the pictures may make: the target less sound and what was sent again in the last second,
        and less what waits in the queue for more than 50 ms."""
        bitrate = ctypes.c_uint64()
        media_bitrate = self._library.weir_sender_media_bitrate
        _checked(media_bitrate(self._handle, ctypes.byref(bitrate)))
        return bitrate.value

    @property
    def wants_frame(self) -> bool:
        """Whether a picture that is taken now should be encoded. It would be late if more than 250 ms wait."""
        wants = ctypes.c_uint8()
        _checked(self._library.weir_sender_wants_frame(self._handle, ctypes.byref(wants)))
        return wants.value == 1

    def take_change(self) -> Change | None:
        """The change of the target since the last call."""
        before, after = ctypes.c_uint64(), ctypes.c_uint64()
        metrics = _Metrics(struct_size=ctypes.sizeof(_Metrics))
        pointers = (ctypes.byref(one) for one in (before, after, metrics))
        if _checked(self._library.weir_sender_take_change(self._handle, *pointers)) == NOTHING:
            return None
        reason, state = metrics.reason_text.decode(), metrics.state.decode()
        now = (self.media_bitrate, self.wants_frame)
        return Change(before.value, after.value, reason, state, *now)

    @property
    def queued(self) -> int:
        """Bytes in the queue."""
        count = ctypes.c_uint64()
        _checked(self._library.weir_sender_queued(self._handle, ctypes.byref(count)))
        return count.value

    def set_limits(
        self,
        now: float,
        *,
        min_bitrate: int,
        start_bitrate: int | None = None,
        max_bitrate: int,
    ) -> None:
        """The application changed the range of the target. What is known of the path stays known.

        The start counts from the next new route. Without it, it is what is nearest to 300,000 in the range.
        """
        set_limits = self._library.weir_sender_set_limits
        rates = (_bps(rate) for rate in (min_bitrate, start_bitrate or 0, max_bitrate))
        _checked(set_limits(self._handle, _ns(now), *rates))

    def on_receiver_limit(self, now: float, bitrate: int | None) -> None:
        """The receiver limits the bitrate by signalling of the host's own; `None` lifts the limit."""
        limit = NO_VALUE if bitrate is None else _bps(bitrate)
        _checked(self._library.weir_sender_on_receiver_limit(self._handle, _ns(now), limit))

    def on_route_change(self, now: float) -> None:
        """Packets take another route from now on, as after an ICE restart: the controller begins at the start."""
        _checked(self._library.weir_sender_on_route_change(self._handle, _ns(now)))

    def on_round_trip_time(self, now: float, rtt: float) -> None:
        """The host's stack measured this round-trip time of the path, in seconds."""
        on_round_trip_time = self._library.weir_sender_on_round_trip_time
        _checked(on_round_trip_time(self._handle, _ns(now), _ns(rtt)))

    @property
    def metrics(self) -> Metrics:
        """The controller's internals."""
        raw = _Metrics(struct_size=ctypes.sizeof(_Metrics))
        _checked(self._library.weir_sender_metrics(self._handle, ctypes.byref(raw)))
        rtt, delay = (
            None if time == NO_TIME else time / 1e9 for time in (raw.rtt_ns, raw.queuing_delay_ns)
        )
        acked = raw.acknowledged_bitrate_bps
        signals = {one.name.decode(): one.value for one in raw.signals[: raw.signal_count]}
        return Metrics(
            rtt,
            delay,
            None if acked == NO_VALUE else acked,
            raw.loss_ratio,
            raw.reason_text.decode(),
            raw.state.decode(),
            signals,
        )

    def set_desired_bitrate(self, now: float, bitrate: int | None) -> None:
        """The most that the source could use now; `None` for an unknown amount."""
        desired = NO_VALUE if bitrate is None else _bps(bitrate)
        _checked(self._library.weir_sender_set_desired_bitrate(self._handle, _ns(now), desired))

    def clear_queue(self, now: float) -> None:
        """Discards what is queued, as when a newer picture replaces it. Ask for a key frame then."""
        _checked(self._library.weir_sender_clear_queue(self._handle, _ns(now)))


def _ns(seconds: float) -> int:
    """Seconds as nanoseconds. What 64 bits cannot hold is the first or the last time: ctypes would let it wrap."""
    nanos = seconds * 1e9
    if math.isnan(nanos):
        raise WeirError(f"a time is a number of seconds, not {seconds}")
    if nanos >= NEVER:
        return NEVER
    return FIRST if nanos <= FIRST else round(nanos)


def _bps(rate: float) -> int:
    """A bitrate as an integer."""
    if not 0 <= rate < NO_VALUE:
        raise WeirError(f"a bitrate is a number of bit/s from 0 to 2^64, not {rate}")
    return round(rate)


def _whole(number: int, bits: int) -> int:
    """An integer that has so many bits at most."""
    if not 0 <= number < 1 << bits:
        raise WeirError(f"{number} is no integer from 0 to {(1 << bits) - 1}")
    return number
