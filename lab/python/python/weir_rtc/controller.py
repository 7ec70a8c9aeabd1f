"""Congestion controllers that are written in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._weir import Report


class Controller:
    """A congestion controller: a state machine without a clock.

    Override the events that you need, and change the attributes below. They are read after each
    event. Times are in µs and never go backwards; sizes are whole IP packets in bytes. The same
    events must give the same results. An exception ends the run.
    """

    #: Name in tables and records.
    name = "python"

    #: Bitrate that the media source should produce, in bit/s. It is limited to the limits.
    target_bps: float
    #: The receiver's limit in bit/s; `None`: none. After each event, a higher `target_bps` is lowered to it.
    limit_bps: float | None = None
    #: Rate at which packets leave, in bit/s; `None`: 1.5 times the target.
    pacing_bps: float | None = None
    #: Congestion window and its unused part in bytes; `None`: no window.
    window_bytes: tuple[int, int] | None = None
    #: When `on_timeout` is due, in µs; `None`: never. Later than the time of the event.
    next_timeout_us: int | None = None
    #: Why the target changed last: one of the reasons of the record format.
    reason: str = "start"
    #: The controller's state, in your own words.
    state: str = ""
    #: Up to eight values for the report. Their names contain the unit.
    signals: dict[str, float]

    def __init__(self, min_bps: int, start_bps: int, max_bps: int) -> None:
        self.min_bps = min_bps
        self.max_bps = max_bps
        self.target_bps = start_bps
        self.signals = {}

    def on_feedback(self, now_us: int, report: Report) -> None:
        """A feedback report arrived: `packets`, `missing_feedback`, `is_new_clock`.

        Each packet has `sequence_number`, `size_bytes`, `send_time_us`, `arrival_time_us` (on the
        receiver's clock; `None` if it did not arrive), `is_marked` and `is_recovered`.
        """

    def on_media_queued(self, now_us: int, added_bytes: int, queued_bytes: int) -> None:
        """The source put bytes into the send queue, which now contains `queued_bytes`."""

    def on_packet_sent(
        self, now_us: int, sequence_number: int, size_bytes: int, queued_bytes: int
    ) -> None:
        """A packet left the pacer."""

    def on_round_trip_time(self, now_us: int, rtt_us: int) -> None:
        """A receiver report gave this round-trip time."""

    def on_receiver_limit(self, now_us: int, limit_bps: int | None) -> None:
        """The receiver set or lifted its limit. By default it becomes `limit_bps`, so that the target obeys it from
        now on."""
        self.limit_bps = limit_bps
        if limit_bps is not None and self.target_bps > limit_bps:
            self.target_bps = max(self.min_bps, limit_bps)
            self.reason = "receiver limit"

    def on_limits(self, now_us: int, min_bps: int, max_bps: int) -> None:
        """The application changed the range of the target."""
        self.min_bps = min_bps
        self.max_bps = max_bps
        if not min_bps <= self.target_bps <= max_bps:
            self.target_bps = min(max(self.target_bps, min_bps), max_bps)
            self.reason = "limits"

    def on_desired_bitrate(self, now_us: int, desired_bps: int | None) -> None:
        """The source can use at most this rate now, ``None`` for an unknown amount. The target may be higher."""

    def on_route_change(self, now_us: int) -> None:
        """Packets take another route: what was measured, above all the base delay, holds no longer."""

    def on_shared_rate(self, now_us: int, share_bps: int) -> None:
        """The coupled flows of the sender gave this flow a new share."""
        self.target_bps = share_bps
        self.reason = "coupled"

    def on_timeout(self, now_us: int) -> None:
        """The time of `next_timeout_us` has passed."""
        self.next_timeout_us = None
