"""A controller of Weir for one video sender of aiortc.

aiortc's packets leave at the pacing rate, and the receiver's transport-wide feedback drives the target:

    offer_transport_wide()                      # before the offer is made
    ...                                         # the usual negotiation
    control = await Congestion.attach(rtp_sender, "sluice", on_target=set_encoder)   # when the call is up

aiortc has no place for this, so the parts of it that are replaced are private: tested with 1.16.0.
"""

import asyncio
import logging
import struct
import time
from collections.abc import Callable

from aiortc import RTCRtpSender
from aiortc.codecs import CODECS, HEADER_EXTENSIONS
from aiortc.rtcrtpparameters import RTCRtcpFeedback, RTCRtpHeaderExtensionParameters
from aiortc.rtp import HeaderExtensionsMap, RtpPacket, is_rtcp

from . import Change, Metrics, Sender, load

logger = logging.getLogger(__name__)

__all__ = ["Congestion", "load", "offer_transport_wide"]

TRANSPORT_WIDE = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
# A number that aiortc does not use for another extension.
EXTENSION_ID = 5
# IPv4, UDP, and the authentication tag of SRTP.
OVERHEAD_BYTES = 20 + 8 + 10
# The loop's timers are late by up to a millisecond.
SHORTEST_WAIT = 0.001
# A change of what the encoder may make is told from this share of it on.
WORTH_TELLING = 0.02
# aiortc says that a connection is up a moment before its senders know what was agreed. In seconds.
PATIENCE = 5.0
# States of a transport, after which there is no other.
ENDED = ("closed", "failed")
POLL = 0.01


def offer_transport_wide() -> None:
    """Lets all later offers and answers of this process ask for transport-wide feedback of video.

    Only for processes that send video: aiortc as a receiver sends no such feedback, for which its peer would wait.
    """
    extensions = HEADER_EXTENSIONS["video"]
    if all(one.uri != TRANSPORT_WIDE for one in extensions):
        extensions.append(RTCRtpHeaderExtensionParameters(id=EXTENSION_ID, uri=TRANSPORT_WIDE))
    feedback = RTCRtcpFeedback(type="transport-cc")
    for codec in CODECS["video"]:
        if codec.rtcpFeedback and feedback not in codec.rtcpFeedback:
            codec.rtcpFeedback.append(feedback)


class Congestion:
    """Takes over what a sender sends. The peer must have agreed to RTX and to transport-wide feedback.

    `on_target` gets each `Change` of the target, of what the encoder may make of it (`media_bps`): what was sent again
    in the last second, and what waits, is taken off; and of whether it should make pictures at all (`wants_frame`). All bitrates include headers. Attach it before the sender has sent anything. A
    transport has one at a time. It ends with its transport, or by `close`.
    """

    @classmethod
    async def attach(cls, rtp_sender: RTCRtpSender, algorithm: str, **options) -> "Congestion":
        """Waits until the sender knows what was agreed, and takes it over.

        Raises `ConnectionError` if the transport has ended, and `TimeoutError` if the call does not begin.
        """
        end = time.monotonic() + PATIENCE
        while not rtp_sender._RTCRtpSender__started and rtp_sender.transport.state not in ENDED:
            if time.monotonic() > end:
                raise TimeoutError(f"the sender has not started within {PATIENCE:.0f} s")
            await asyncio.sleep(POLL)
        return cls(rtp_sender, algorithm, **options)

    def __init__(
        self,
        rtp_sender: RTCRtpSender,
        algorithm: str,
        *,
        on_target: Callable[[Change], None] | None = None,
        **limits: int,
    ) -> None:
        if rtp_sender.transport.state in ENDED:
            raise ConnectionError(f"the transport is {rtp_sender.transport.state}")
        self._on_target = on_target
        self._media, self._repeats = rtp_sender._ssrc, rtp_sender._rtx_ssrc
        self._extensions: HeaderExtensionsMap = rtp_sender._RTCRtpSender__rtp_header_extensions_map
        payload_type = rtp_sender._RTCRtpSender__rtx_payload_type
        extension_id = self._extensions._HeaderExtensionsMap__ids.transport_sequence_number
        if extension_id is None:
            raise ValueError("the peers have not agreed to transport-wide feedback")
        if payload_type is None:
            raise ValueError("the peers have not agreed to RTX, which carries probes")
        self._weir = Sender(
            algorithm,
            time.monotonic(),
            ssrc=self._media,
            padding_ssrc=self._repeats,
            padding_payload_type=payload_type,
            transport_sequence_number_id=extension_id,
            overhead_bytes=OVERHEAD_BYTES,
            **limits,
        )
        self._media_bps, self._wants_frame = self._weir.media_bitrate, True
        self._frame: list[bytes] = []
        self._sender, self._transport = rtp_sender, rtp_sender.transport
        if "_send_rtp" in vars(self._transport):
            raise ValueError("this transport has a controller: close it first")
        # Repeats and padding share a stream, so their numbers are given here, from where the stack is.
        self._number = rtp_sender._RTCRtpSender__rtx_sequence_number
        self._send, self._hear = self._transport._send_rtp, self._transport._handle_rtcp_data
        self._transport._send_rtp, self._transport._handle_rtcp_data = self._take, self._on_rtcp
        self._news = asyncio.Event()
        self._transport.on("statechange", self._on_state)
        self._is_closed = False
        self._task = asyncio.ensure_future(self._run())
        self._task.add_done_callback(self._on_end)

    @property
    def bitrate(self) -> int:
        """The target, headers included."""
        return self._weir.bitrate

    @property
    def media_bitrate(self) -> int:
        """What the encoder may make of the target: what was sent again in the last second, and what waits, is taken off."""
        return self._weir.media_bitrate

    @property
    def wants_frame(self) -> bool:
        """Whether a picture that is taken now should be encoded. It would be late if too much waits."""
        return self._weir.wants_frame

    @property
    def source_bitrate(self) -> int:
        """The target for a source that can leave pictures out: lower while too much is in flight."""
        return self._weir.source_bitrate

    @property
    def metrics(self) -> Metrics:
        """The controller's internals, for a log."""
        return self._weir.metrics

    def set_limits(
        self, *, min_bitrate: int, start_bitrate: int | None = None, max_bitrate: int
    ) -> None:
        """The application changed the range of the target."""
        self._weir.set_limits(
            time.monotonic(),
            min_bitrate=min_bitrate,
            start_bitrate=start_bitrate,
            max_bitrate=max_bitrate,
        )
        self._news.set()

    def on_route_change(self) -> None:
        """Packets take another route from now on, as after an ICE restart."""
        self._weir.on_route_change(time.monotonic())
        self._news.set()

    def set_desired_bitrate(self, bitrate: int | None) -> None:
        """The most that the source could use now; `None` for an unknown amount."""
        self._weir.set_desired_bitrate(time.monotonic(), bitrate)
        self._news.set()

    def clear_queue(self) -> None:
        """Discards what waits, as when a newer picture replaces it. Ask for a key frame then."""
        self._frame = []
        self._weir.clear_queue(time.monotonic())

    async def close(self) -> None:
        """Gives the sender back. Packets in the queue are lost."""
        self._end()
        if self._task is not asyncio.current_task():
            await asyncio.gather(self._task, return_exceptions=True)

    def _end(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        # The transport's own methods are those of its class.
        del self._transport._send_rtp, self._transport._handle_rtcp_data
        self._transport.remove_listener("statechange", self._on_state)
        self._sender._RTCRtpSender__rtx_sequence_number = self._number
        self._task.cancel()

    def _on_state(self) -> None:
        if self._transport.state in ENDED:
            self._end()

    def _on_end(self, task: asyncio.Task) -> None:
        if not task.cancelled() and task.exception() is not None:
            logger.error("the pacer ended, and packets leave without it", exc_info=task.exception())
        self._end()

    async def _take(self, data: bytes) -> None:
        """A packet that aiortc wants to send. Those of other streams leave at once."""
        ssrc = None if is_rtcp(data) else struct.unpack_from("!L", data, 8)[0]
        if ssrc not in (self._media, self._repeats):
            await self._send(data)
            return
        packet = RtpPacket.parse(data, self._extensions)
        # The number is filled in when the packet leaves.
        packet.extensions.transport_sequence_number = 0
        data = packet.serialize(self._extensions)
        if ssrc == self._repeats:
            self._weir.enqueue_urgent(time.monotonic(), [data])
        else:
            # The controller hears of a frame at once, so its packets are kept until the last one.
            self._frame.append(data)
            if packet.marker:
                self._weir.enqueue(time.monotonic(), self._frame)
                self._frame = []
        self._news.set()

    async def _on_rtcp(self, data: bytes) -> None:
        self._weir.on_rtcp(time.monotonic(), data)
        self._news.set()
        await self._hear(data)

    async def _run(self) -> None:
        """Sends what may leave, and waits until more may."""
        while not self._is_closed:
            self._news.clear()
            now = time.monotonic()
            self._weir.on_timeout(now)
            while packet := self._weir.next_packet(now):
                await self._leave(packet.data)
                now = time.monotonic()
            self._tell()
            due = self._weir.next_timeout()
            wait = None if due is None else max(due - time.monotonic(), SHORTEST_WAIT)
            try:
                async with asyncio.timeout(wait):
                    await self._news.wait()
            except TimeoutError:
                pass

    def _tell(self) -> None:
        """Tells of a change. What the application raises is its own, and does not end the pacer."""
        rate, media, wants = self._weir.bitrate, self._weir.media_bitrate, self._weir.wants_frame
        change = self._weir.take_change()
        moved = abs(media - self._media_bps) > WORTH_TELLING * self._media_bps
        if change is None and (moved or wants != self._wants_frame):
            change = Change(rate, rate, "encoder's part", "", media, wants)
        if change is None or self._on_target is None:
            return
        self._media_bps, self._wants_frame = change.media_bps, change.wants_frame
        try:
            self._on_target(change)
        except Exception:
            logger.exception("on_target failed")

    async def _leave(self, data: bytes) -> None:
        if struct.unpack_from("!L", data, 8)[0] == self._repeats:
            data = data[:2] + struct.pack("!H", self._number) + data[4:]
            self._number = (self._number + 1) & 0xFFFF
        try:
            await self._send(data)
        except ConnectionError:
            pass  # The call is ending.
        except Exception:
            logger.exception("a packet did not leave")
