"""The sender of a call: a camera, an encoder and webrtcbin, under a controller of Weir.

Started by the lab inside a host of the emulated network. The first line of its input is the
configuration, the others are messages (see lines.py). All times are of CLOCK_MONOTONIC.
"""

import json
import os
import socket
import sys
import time
from functools import partial

import gi

gi.require_version("Gst", "1.0")
for library in ("GstSdp", "GstVideo", "GstWebRTC"):
    gi.require_version(library, "1.0")

import camera
from gi.repository import GLib, Gst, GstSdp, GstWebRTC
from lines import Lines
from reports import AUDIO_SSRC, Reporter
from scaling import Scaler
from tags import Sightings
from vp8 import SETTINGS as VP8_SETTINGS

# The header extension with the transport-wide sequence number. It stands in the capabilities behind
# the payloader, and not only in the payloader: the offer is made before the first packet.
TWCC_URI = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
PAYLOAD_TYPE = 96
# Far from the video's: webrtcbin takes the next numbers for its retransmissions.
AUDIO_PAYLOAD_TYPE = 111
# The sound. It is not part of the flow that the controller controls, because its packets have no
# transport-wide number.
AUDIO = (
    "audiotestsrc is-live=true wave=ticks ! audio/x-raw,rate=48000,channels=1 "
    f"! opusenc bitrate=32000 ! rtpopuspay pt={AUDIO_PAYLOAD_TYPE} ssrc={AUDIO_SSRC} "
    f"! application/x-rtp,media=audio,encoding-name=OPUS,payload={AUDIO_PAYLOAD_TYPE},"
    "clock-rate=48000,encoding-params=(string)2 ! webrtc."
)
# An RTP packet with this much leaves room for IP, UDP, SRTP and extensions in 1280 bytes.
MTU = 1200
# What waits in the pacer is sampled as often as records have rows.
SAMPLE_MS = 50


def now_ms():
    """The time now in ms."""
    return time.monotonic_ns() / 1e6


class Sender:
    """One call in which this process sends video to a browser."""

    DIRECTION = GstWebRTC.WebRTCRTPTransceiverDirection.SENDONLY

    def __init__(self, lines, call, settings):
        self._lines, self._call, self._settings = lines, call, settings
        self._setup = {"joined": now_ms() - STARTED_MS}
        self._connected = False
        self._negotiated = False
        self._early_candidates = []
        self._build()
        self._reporter = Reporter(self._webrtc, self._encoder, self._controller, settings)

    def _build(self):
        extension = "" if self._settings["ccfb"] else f",extmap-1=(string){TWCC_URI}"
        self._pipeline = Gst.parse_launch(
            f"{self._describe_source()} ! vp8enc name=encoder {VP8_SETTINGS} "
            f"! rtpvp8pay pt={PAYLOAD_TYPE} mtu={MTU} picture-id-mode=15-bit "
            f"! application/x-rtp,media=video,encoding-name=VP8,payload={PAYLOAD_TYPE},"
            f"clock-rate=90000{extension} "
            "! webrtcbin name=webrtc bundle-policy=max-bundle latency=0 "
            f"{AUDIO if self._settings['audio'] else ''}"
        )
        named = self._pipeline.get_by_name
        self._webrtc, self._encoder = named("webrtc"), named("encoder")
        self._encoder.set_property("target-bitrate", self._settings["startBitrate"])
        self._camera = self._open_source()
        self._setup["camera"] = now_ms() - STARTED_MS
        self._controller = self._make_controller()
        self._scaler = self._make_scaler()
        self._webrtc.connect("request-aux-sender", lambda *_: self._controller)
        self._webrtc.connect("on-ice-candidate", self._on_own_candidate)
        self._webrtc.connect("notify::ice-connection-state", self._on_ice_state)
        self._webrtc.connect("notify::connection-state", self._on_connection_state)
        bus = self._pipeline.get_bus()
        bus.add_signal_watch()
        bus.connect("message::error", self._on_error)

    def _describe_source(self):
        """The source of the pictures, as text of a pipeline."""
        return f"{camera.description(self._settings)} ! videoscale ! capsfilter name=size"

    def _open_source(self):
        source, sightings = self._pipeline.get_by_name("camera"), None
        if self._settings["quality"]:
            width, height = self._settings["width"], self._settings["height"]
            sightings = Sightings(partial(self._lines.tell, self._call), width, height)
        return camera.open_camera(source, self._settings, sightings)

    def _make_scaler(self):
        size = self._pipeline.get_by_name("size")
        return Scaler(size, self._encoder, self._controller, self._settings)

    def _make_controller(self):
        controller = Gst.ElementFactory.make("weircc", "controller")
        for name in ("algorithm", "min-bitrate", "start-bitrate", "max-bitrate"):
            key = name.split("-")[0] + "Bitrate" if name.endswith("bitrate") else name
            controller.set_property(name, self._settings[key])
        controller.set_property("ecn", self._settings["ecn"])
        controller.set_property("encoder", self._encoder)
        controller.connect("target-changed", self._on_target)
        return controller

    def receive(self, message):
        """Handles a message of the call's protocol."""
        handlers = {
            "config": lambda _: self._lines.tell(self._call, "ready"),
            "start": self._start,
            "answer": self._on_answer,
            "candidate": self._on_candidate,
            "stop": self._stop,
            "refused": self._stop,
        }
        handlers[message["type"]](message)

    def _start(self, _):
        self._setup["start"] = now_ms() - STARTED_MS
        self._pipeline.set_state(Gst.State.PLAYING)
        video = self._webrtc.emit("get-transceiver", 0)
        # The browser asks for lost packets, and webrtcbin sends them again.
        video.set_property("do-nack", True)
        video.set_property("direction", self.DIRECTION)
        if self._settings["audio"]:
            self._webrtc.emit("get-transceiver", 1).set_property("direction", self.DIRECTION)
        self._webrtc.emit("create-offer", None, Gst.Promise.new_with_change_func(self._on_offer))

    def _on_offer(self, promise):
        # The reply stays in a variable: the description lives in it.
        reply = promise.get_reply()
        offer = reply.get_value("offer")
        # The description is told before its candidates, which come once it is set.
        text = offer.sdp.as_text()
        if self._settings["ccfb"]:
            text = with_ccfb(text)
        self._lines.tell(self._call, "offer", sdp=text)
        self._webrtc.emit("set-local-description", offer, Gst.Promise.new())

    def _on_answer(self, message):
        _, sdp = GstSdp.SDPMessage.new_from_text(message["sdp"])
        answer = GstWebRTC.WebRTCSessionDescription.new(GstWebRTC.WebRTCSDPType.ANSWER, sdp)
        promise = Gst.Promise.new_with_change_func(lambda _: GLib.idle_add(self._on_described))
        self._webrtc.emit("set-remote-description", answer, promise)

    def _on_described(self):
        self._setup["described"] = now_ms() - STARTED_MS
        self._negotiated = True
        for candidate in self._early_candidates:
            self._add_candidate(candidate)
        return GLib.SOURCE_REMOVE

    def _on_candidate(self, message):
        if self._negotiated:
            self._add_candidate(message["candidate"])
        else:
            self._early_candidates.append(message["candidate"])

    def _add_candidate(self, candidate):
        if is_udp(candidate["candidate"]):
            line = candidate["sdpMLineIndex"] or 0
            self._webrtc.emit("add-ice-candidate", line, candidate["candidate"])

    def _on_own_candidate(self, _, line, candidate):
        if is_udp(candidate):
            entry = {"candidate": candidate, "sdpMid": None, "sdpMLineIndex": line}
            entry["usernameFragment"] = None
            self._lines.tell(self._call, "candidate", candidate=entry)

    def _on_ice_state(self, *_):
        state = self._webrtc.get_property("ice-connection-state")
        states = GstWebRTC.WebRTCICEConnectionState
        if state in (states.CONNECTED, states.COMPLETED):
            self._setup.setdefault("ice", now_ms() - STARTED_MS)

    def _on_connection_state(self, *_):
        GLib.idle_add(self._check_connection)

    def _check_connection(self):
        state = self._webrtc.get_property("connection-state")
        if state == GstWebRTC.WebRTCPeerConnectionState.FAILED:
            self._lines.fail(self._call, "no connection to the other peer")
        if state == GstWebRTC.WebRTCPeerConnectionState.CONNECTED and not self._connected:
            self._connected = True
            if self._settings["ecnBits"]:
                set_ecn(self._settings["ecnBits"])
            self._setup["connected"] = now_ms() - STARTED_MS
            self._lines.tell(self._call, "connected", setup=self._setup)
            # Pictures of an earlier time would wait for the connection in a queue.
            self._camera.start()
            self._scaler.start()
            self._report()
            GLib.timeout_add(self._settings["statsInterval"], self._report)
            GLib.timeout_add(SAMPLE_MS, self._sample)
        return GLib.SOURCE_REMOVE

    def _sample(self):
        self._reporter.sample()
        return self._goes_on()

    def _report(self):
        self._reporter.report(lambda report: self._lines.tell(self._call, "stats", report=report))
        return self._goes_on()

    def _goes_on(self):
        return GLib.SOURCE_CONTINUE if self._connected else GLib.SOURCE_REMOVE

    def _on_target(self, _, change):
        members = {
            change.nth_field_name(index): change.get_value(change.nth_field_name(index))
            for index in range(change.n_fields())
        }
        target = {
            "timeNs": members.pop("time"),
            "fromBps": members.pop("from"),
            "targetBps": members.pop("target"),
            "reason": members.pop("reason"),
            "state": members.pop("state"),
            "signals": members,
        }
        self._lines.write(self._call, target=target)

    def _on_error(self, _, message):
        error, _ = message.parse_error()
        self._lines.fail(self._call, f"{message.src.get_name()}: {error.message}")

    def _stop(self, _):
        if self._connected:
            self._report()
            self._scaler.stop()
        self._connected = False
        self._camera.stop()
        self._pipeline.set_state(Gst.State.NULL)
        self._lines.write(self._call, left={})


def with_ccfb(sdp):
    """An offer that asks for the feedback of RFC 8888 in place of the transport-wide one.

    webrtcbin writes the one line by itself and cannot write the other.
    """
    line = f"a=rtcp-fb:{PAYLOAD_TYPE} transport-cc"
    return sdp.replace(line, "a=rtcp-fb:* ack ccfb")


def set_ecn(bits):
    """Sets the ECN bits of all UDP sockets of this process; webrtcbin has no property for them."""
    for name in os.listdir("/proc/self/fd"):
        try:
            one = socket.socket(fileno=os.dup(int(name)))
        except OSError:
            continue  # Not a socket, or the folder that was read.
        with one:
            if one.family == socket.AF_INET and one.type == socket.SOCK_DGRAM:
                one.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, bits)


def is_udp(candidate):
    """Whether a candidate's transport is UDP, which alone crosses the emulated path."""
    words = candidate.split()
    return len(words) > 2 and words[2].lower() == "udp"


def serve(make):
    """Serves the calls of the configuration until the lab closes the input. `make(lines, call,
    settings)` makes the peer of a call."""
    Gst.init(None)
    calls = json.loads(sys.stdin.readline())["calls"]
    loop = GLib.MainLoop()
    lines = Lines(loop)
    peers = {one["call"]: make(lines, one["call"], one["settings"]) for one in calls}
    lines.read(lambda call, message: peers[call].receive(message))
    loop.run()
    # Elements of webrtcbin that still close their sockets are of no use to anyone.
    sys.stdout.flush()
    os._exit(0)


STARTED_MS = now_ms()

if __name__ == "__main__":
    serve(Sender)
