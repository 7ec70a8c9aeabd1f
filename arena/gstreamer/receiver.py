"""The end of a call that receives the video with webrtcbin, which tells the sender transport-wide feedback and asks
for lost packets. vp8dec decodes.
"""

import struct

import pictures
import sender
from gi.repository import GLib, Gst, GstSdp, GstWebRTC

# Packets that come this late are still waited for: webrtcbin's own default.
LATENCY_MS = 200
RTP_HEADER_BYTES = 12


class Packets:
    """Counts packets of RTP."""

    def __init__(self):
        self._ssrc, self._count, self._bytes, self._headers = 0, 0, 0, 0
        self._highest, self._expected = None, 0

    def add(self, packet):
        """A packet is there, which is its bytes."""
        first, sequence, self._ssrc = struct.unpack_from("!BxH4xI", packet)
        header = RTP_HEADER_BYTES + 4 * (first & 0x0F)
        if first & 0x10:
            header += 4 + 4 * int.from_bytes(packet[header + 2 : header + 4], "big")
        if self._highest is None:
            self._highest, self._expected = sequence, 1
        ahead = (sequence - self._highest) & 0xFFFF
        if 0 < ahead < 0x8000:
            self._highest = sequence
            self._expected += ahead
        self._count += 1
        self._headers += header
        self._bytes += len(packet) - header

    def inbound(self):
        """Their part of the statistics of a receiver."""
        return {
            "ssrc": self._ssrc,
            "packetsReceived": self._count,
            "packetsLost": self._expected - self._count,
            "bytesReceived": self._bytes,
            "headerBytesReceived": self._headers,
        }


class Receiver:
    """The end that receives."""

    def __init__(self, lines, call, settings):
        self._lines, self._call, self._settings = lines, call, settings
        self._setup = {"joined": self._since_start()}
        self._connected, self._described, self._early = False, False, []
        self._packets, self._pictures = Packets(), pictures.Pictures()
        self._pipeline = Gst.Pipeline.new()
        self._webrtc = Gst.ElementFactory.make("webrtcbin", "webrtc")
        self._webrtc.set_property("bundle-policy", GstWebRTC.WebRTCBundlePolicy.MAX_BUNDLE)
        self._webrtc.set_property("latency", LATENCY_MS)
        self._pipeline.add(self._webrtc)
        self._webrtc.connect("on-new-transceiver", self._on_transceiver)
        self._webrtc.connect("on-ice-candidate", self._on_own_candidate)
        self._webrtc.connect("notify::connection-state", self._on_connection_state)
        self._webrtc.connect("pad-added", self._on_pad)
        bus = self._pipeline.get_bus()
        bus.add_signal_watch()
        bus.connect("message::error", self._on_error)
        self._pipeline.set_state(Gst.State.PLAYING)

    @staticmethod
    def _since_start():
        return sender.now_ms() - sender.STARTED_MS

    def receive(self, message):
        """Handles a message of the call's protocol."""
        kind = message["type"]
        if kind == "config":
            self._lines.tell(self._call, "ready")
        elif kind == "start":
            self._setup["start"] = self._since_start()
        elif kind == "offer":
            self._on_offer(message["sdp"])
        elif kind == "candidate":
            self._on_candidate(message["candidate"])
        elif kind in ("stop", "refused"):
            self._tell()
            self._connected = False
            self._pipeline.set_state(Gst.State.NULL)
            self._lines.write(self._call, left={})

    def _on_transceiver(self, _, transceiver):
        # Lost packets are asked for.
        transceiver.set_property("do-nack", True)

    def _on_offer(self, text):
        _, sdp = GstSdp.SDPMessage.new_from_text(text)
        offer = GstWebRTC.WebRTCSessionDescription.new(GstWebRTC.WebRTCSDPType.OFFER, sdp)
        promise = Gst.Promise.new_with_change_func(lambda _: GLib.idle_add(self._answer))
        self._webrtc.emit("set-remote-description", offer, promise)

    def _answer(self):
        promise = Gst.Promise.new_with_change_func(self._on_answer)
        self._webrtc.emit("create-answer", None, promise)
        return GLib.SOURCE_REMOVE

    def _on_answer(self, promise):
        # The reply stays in a variable: the description lives in it.
        reply = promise.get_reply()
        answer = reply.get_value("answer")
        # The description is told before its candidates, which come once it is set.
        self._lines.tell(self._call, "answer", sdp=answer.sdp.as_text())
        self._webrtc.emit("set-local-description", answer, Gst.Promise.new())
        GLib.idle_add(self._on_described)

    def _on_described(self):
        self._setup["described"] = self._since_start()
        self._described = True
        for candidate in self._early:
            self._on_candidate(candidate)
        return GLib.SOURCE_REMOVE

    def _on_candidate(self, candidate):
        if not self._described:
            self._early.append(candidate)
        elif sender.is_udp(candidate["candidate"]):
            line = candidate["sdpMLineIndex"] or 0
            self._webrtc.emit("add-ice-candidate", line, candidate["candidate"])

    def _on_own_candidate(self, _, line, candidate):
        if sender.is_udp(candidate):
            entry = {"candidate": candidate, "sdpMid": None, "sdpMLineIndex": line}
            self._lines.tell(self._call, "candidate", candidate={**entry, "usernameFragment": None})

    def _on_connection_state(self, *_):
        GLib.idle_add(self._check_connection)

    def _check_connection(self):
        state = self._webrtc.get_property("connection-state")
        if state == GstWebRTC.WebRTCPeerConnectionState.FAILED:
            self._lines.fail(self._call, "no connection to the other peer")
        if state == GstWebRTC.WebRTCPeerConnectionState.CONNECTED and not self._connected:
            self._connected = True
            self._setup["ice"] = self._setup["connected"] = self._since_start()
            self._lines.tell(self._call, "connected", setup=self._setup)
            GLib.timeout_add(self._settings["statsInterval"], self._report)
        return GLib.SOURCE_REMOVE

    def _on_pad(self, _, pad):
        decoder = Gst.parse_bin_from_description(
            "queue ! rtpvp8depay request-keyframe=true wait-for-keyframe=true ! vp8dec "
            "! fakesink name=pictures sync=false signal-handoffs=true",
            True,
        )
        pad.add_probe(Gst.PadProbeType.BUFFER, self._on_packet)
        decoder.get_by_name("pictures").connect("handoff", self._on_picture)
        self._pipeline.add(decoder)
        decoder.sync_state_with_parent()
        pad.link(decoder.get_static_pad("sink"))

    def _on_packet(self, _, info):
        buffer = info.get_buffer()
        self._packets.add(buffer.extract_dup(0, buffer.get_size()))
        return Gst.PadProbeReturn.OK

    def _on_picture(self, _, __, pad):
        caps = pad.get_current_caps().get_structure(0)
        if self._pictures.count == 0:
            self._lines.tell(self._call, "playing", firstFrame=self._since_start())
        self._pictures.add(caps.get_value("width"), caps.get_value("height"))

    def _report(self):
        self._tell()
        return GLib.SOURCE_CONTINUE if self._connected else GLib.SOURCE_REMOVE

    def _tell(self):
        counted = {**self._packets.inbound(), **self._pictures.inbound()}
        inbound = {"timestamp": self._since_start(), **counted}
        self._lines.tell(self._call, "stats", report={"inbound": inbound})

    def _on_error(self, _, message):
        error, _ = message.parse_error()
        self._lines.fail(self._call, f"{message.src.get_name()}: {error.message}")
