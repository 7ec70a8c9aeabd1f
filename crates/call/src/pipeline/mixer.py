"""A mixer (MCU): every participant gets one picture of all the others.

Started by the lab inside a host of the emulated network. The first line of its input is the
configuration, the others are messages (see lines.py). Each call is one participant, and has a leg
here: a pipeline of its own with a webrtcbin. A leg decodes what its participant sends and shows it
to the other legs. This is leg 0 of three:

    webrtcbin > depayloader > decoder > intervideosink "0"
    intervideosrc "1" > queue \
    intervideosrc "2" > queue > compositor > encoder > payloader > webrtcbin

Decoded pictures go from leg to leg through the channels of intervideosink and intervideosrc. So a
leg starts, fails and ends without the others, and a participant who sends nothing is a black tile.
"""

import json
import math
import os
import sys
import time

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstSdp", "1.0")
gi.require_version("GstWebRTC", "1.0")
from gi.repository import GLib, Gst, GstSdp, GstWebRTC  # noqa: E402

from lines import Lines  # noqa: E402

# The header extension without which a browser sends no transport-wide feedback.
TWCC = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
# How long the jitter buffer waits for a lost packet, in ms: a retransmission over 50 ms and the
# scheduling of a busy machine.
JITTER_BUFFER_MS = 100
# RTP payload size that leaves space for headers in an Ethernet frame.
MTU = 1200
# RTP header, and the extension with the transport-wide sequence number.
HEADER_BYTES = 12 + 8
# Frames between key frames. Receivers ask for one when they need it.
KEY_FRAME_DISTANCE = 1_000_000


def now_ms():
    """Time of this process's clock."""
    return time.monotonic() * 1e3


class Leg:
    """The mixer's end of one call."""

    def __init__(self, lines, call, calls):
        self.lines = lines
        self.call = call
        self.others = [other for other in calls if other != call]
        self.config = None
        self.opened = now_ms()
        self.setup = {"camera": None, "ice": None}
        self.pipeline = None
        self.webrtc = None
        self.encoder = None
        self.decoder = None
        self.frames_in = 0
        self.frames_out = 0
        self.is_over = False

    def receive(self, message):
        """Handles a message of the lab."""
        if not self.is_over:
            getattr(self, f"on_{message['type']}")(message)

    # Messages of the lab, by their type.

    def on_config(self, message):
        self.config = message
        self.mark("joined")
        self.tell("ready")

    def on_start(self, _):
        self.mark("start")

    def on_offer(self, message):
        offer = parse_sdp(message["sdp"])
        self.build(Vp8(offer))
        description = GstWebRTC.WebRTCSessionDescription.new(GstWebRTC.WebRTCSDPType.OFFER, offer)
        promise = Gst.Promise.new_with_change_func(self.on_offer_set)
        self.webrtc.emit("set-remote-description", description, promise)

    def on_candidate(self, message):
        candidate = message["candidate"]
        line = candidate["sdpMLineIndex"] or 0
        self.webrtc.emit("add-ice-candidate", line, candidate["candidate"])

    def on_stop(self, _):
        if "connected" in self.setup:
            self.report()
        self.end()

    # Building the pipeline.

    def build(self, vp8):
        """The pipeline, for an offer with this form of VP8."""
        width, height, fps = (self.config[key] for key in ("width", "height", "frameRate"))
        tiles = layout(len(self.others), width, height)
        pads = " ".join(
            f"sink_{pad}::xpos={x} sink_{pad}::ypos={y} sink_{pad}::width={w} "
            f"sink_{pad}::height={h} sink_{pad}::sizing-policy=keep-aspect-ratio"
            for pad, (x, y, w, h) in enumerate(tiles)
        )
        sources = " ".join(
            f"intervideosrc channel={call} ! video/x-raw,framerate={fps}/1 ! "
            f"queue max-size-buffers=2 leaky=downstream ! mix.sink_{pad}"
            for pad, call in enumerate(self.others)
        )
        text = (
            f"webrtcbin name=webrtc bundle-policy=max-bundle latency={JITTER_BUFFER_MS} "
            f"compositor name=mix background=black {pads} ! "
            f"video/x-raw,format=I420,width={width},height={height},framerate={fps}/1 ! "
            f"queue max-size-buffers=2 leaky=downstream ! "
            f"vp8enc name=encoder deadline=1 cpu-used=8 end-usage=cbr lag-in-frames=0 threads=1 "
            f"keyframe-max-dist={KEY_FRAME_DISTANCE} target-bitrate={self.config['maxBitrate']} ! "
            f"rtpvp8pay pt={vp8.payload} mtu={MTU} picture-id-mode=15-bit ! {vp8.caps} ! webrtc. "
            f"{sources}"
        )
        self.pipeline = Gst.parse_launch(text)
        self.webrtc = self.pipeline.get_by_name("webrtc")
        self.encoder = self.pipeline.get_by_name("encoder")
        self.encoder.get_static_pad("src").add_probe(Gst.PadProbeType.BUFFER, self.on_encoded)
        transceiver = self.webrtc.emit("get-transceiver", 0)
        transceiver.set_property("codec-preferences", Gst.Caps.from_string(vp8.caps))
        transceiver.set_property("do-nack", True)
        self.webrtc.connect("on-ice-candidate", self.on_own_candidate)
        self.webrtc.connect("notify::connection-state", self.on_connection_state)
        self.webrtc.connect("pad-added", self.on_pad_added)
        bus = self.pipeline.get_bus()
        bus.add_signal_watch()
        bus.connect("message::error", self.on_error)
        self.pipeline.set_state(Gst.State.PLAYING)

    def on_offer_set(self, promise):
        promise.wait()
        answered = Gst.Promise.new_with_change_func(self.on_answer_made)
        self.webrtc.emit("create-answer", None, answered)

    def on_answer_made(self, promise):
        promise.wait()
        # The reply must outlive the value that is read from it.
        reply = promise.get_reply()
        answer = reply.get_value("answer")
        self.webrtc.emit("set-local-description", answer, Gst.Promise.new())
        self.mark("described")
        self.tell("answer", sdp=answer.sdp.as_text())

    def on_own_candidate(self, _, line, candidate):
        fields = {"candidate": candidate, "sdpMid": None, "sdpMLineIndex": line}
        self.tell("candidate", candidate={**fields, "usernameFragment": None})

    def on_connection_state(self, webrtc, _):
        state = webrtc.get_property("connection-state")
        if state == GstWebRTC.WebRTCPeerConnectionState.CONNECTED and "connected" not in self.setup:
            self.mark("connected")
            self.tell("connected", setup=self.setup)
            GLib.idle_add(self.start_reports)
        elif state == GstWebRTC.WebRTCPeerConnectionState.FAILED:
            self.fail("no connection to the participant")

    def on_pad_added(self, _, pad):
        if pad.get_direction() != Gst.PadDirection.SRC:
            return
        text = f"rtpvp8depay ! vp8dec name=decoder ! intervideosink channel={self.call} sync=false"
        receiver = Gst.parse_bin_from_description(text, True)
        self.decoder = receiver.get_by_name("decoder")
        self.decoder.get_static_pad("src").add_probe(Gst.PadProbeType.BUFFER, self.on_decoded)
        self.pipeline.add(receiver)
        receiver.sync_state_with_parent()
        pad.link(receiver.get_static_pad("sink"))

    # What the pipeline does.

    def on_encoded(self, _, __):
        self.frames_out += 1
        return Gst.PadProbeReturn.OK

    def on_decoded(self, _, __):
        self.frames_in += 1
        if self.frames_in == 1:
            self.tell("playing", firstFrame=now_ms() - self.opened)
        return Gst.PadProbeReturn.OK

    def on_error(self, _, message):
        error, _ = message.parse_error()
        self.fail(error.message)

    def start_reports(self):
        self.report()
        GLib.timeout_add(self.config["statsInterval"], self.report)
        return False

    def report(self):
        """Reports the statistics. Whether more reports shall follow."""
        if self.is_over:
            return False
        promise = Gst.Promise.new()
        self.webrtc.emit("get-stats", None, promise)
        promise.wait()
        reply = promise.get_reply()
        self.tell("stats", report=self.statistics(objects_of(reply)))
        return True

    def statistics(self, objects):
        """A report with the members of the W3C's getStats."""
        report = {}
        sent = find(objects, "outbound-rtp")
        if sent:
            report["outbound"] = {
                "timestamp": sent["timestamp"],
                "ssrc": sent["ssrc"],
                "packetsSent": sent["packets-sent"],
                "bytesSent": sent["bytes-sent"],
                "headerBytesSent": sent["packets-sent"] * HEADER_BYTES,
                "targetBitrate": self.encoder.get_property("target-bitrate"),
                "framesEncoded": self.frames_out,
                "encoderImplementation": "vp8enc",
                "mimeType": "video/VP8",
                **self.picture(self.encoder),
            }
        received = find(objects, "inbound-rtp")
        if received and self.decoder:
            report["inbound"] = {
                "timestamp": received["timestamp"],
                "ssrc": received["ssrc"],
                "packetsReceived": received["packets-received"],
                "packetsLost": received["packets-lost"],
                "bytesReceived": received["bytes-received"],
                "headerBytesReceived": received["packets-received"] * HEADER_BYTES,
                "jitter": received["jitter"],
                "framesDecoded": self.frames_in,
                **self.picture(self.decoder),
            }
        far = find(objects, "remote-inbound-rtp")
        if far:
            report["remoteInbound"] = {
                "timestamp": far["timestamp"],
                "roundTripTime": far["round-trip-time"],
                "fractionLost": far["fraction-lost"],
            }
        pair = find(objects, "candidate-pair")
        if pair:
            report["pair"] = {
                "timestamp": pair["timestamp"],
                # webrtcbin does not count them.
                "bytesSent": 0,
                "bytesReceived": 0,
                "local": candidate(objects, pair["local-candidate-id"]),
                "remote": candidate(objects, pair["remote-candidate-id"]),
            }
        return report

    def picture(self, element):
        """The size of the pictures that leave an element."""
        caps = element.get_static_pad("src").get_current_caps()
        if not caps:
            return {}
        structure = caps.get_structure(0)
        return {
            "frameWidth": structure.get_value("width"),
            "frameHeight": structure.get_value("height"),
        }

    # Telling the lab.

    def mark(self, step):
        self.setup[step] = now_ms() - self.opened

    def tell(self, kind, **members):
        self.lines.tell(self.call, kind, **members)

    def fail(self, cause):
        if not self.is_over:
            self.tell("failed", cause=cause)
            self.end()

    def end(self):
        self.is_over = True
        if self.pipeline:
            self.pipeline.set_state(Gst.State.NULL)
        self.lines.write(self.call, left={})


class Vp8:
    """VP8 as an offer has it: the payload type, and the header extension of the feedback."""

    def __init__(self, offer):
        media = offer.get_media(0)
        self.payload = next(
            media.get_format(index)
            for index in range(media.formats_len())
            if "VP8/90000" in str(attribute(media, "rtpmap", media.get_format(index)))
        )
        extension = attribute_with(media, "extmap", TWCC)
        extmap = f",extmap-{extension.split()[0]}=(string){TWCC}" if extension else ""
        self.caps = (
            f"application/x-rtp,media=video,encoding-name=VP8,payload={self.payload},"
            f"clock-rate=90000{extmap}"
        )


def objects_of(reply):
    """The objects of a statistics reply, each as a dictionary."""
    objects = []
    for index in range(reply.n_fields()):
        value = reply.get_value(reply.nth_field_name(index))
        if isinstance(value, Gst.Structure):
            names = [value.nth_field_name(field) for field in range(value.n_fields())]
            objects.append({name: value.get_value(name) for name in names})
    return objects


def find(objects, kind):
    """The first object of a kind."""
    return next((one for one in objects if one["type"].value_nick == kind), None)


def candidate(objects, name):
    """The candidate with this name, with the members of getStats."""
    found = next(one for one in objects if one["id"] == name)
    return {
        "address": found["address"],
        "port": found["port"],
        "protocol": found["protocol"],
        "candidateType": found["candidate-type"],
    }


def attributes(media, key):
    return [
        media.get_attribute(index).value
        for index in range(media.attributes_len())
        if media.get_attribute(index).key == key
    ]


def attribute(media, key, first):
    """The value of an attribute that begins with this word."""
    return next((value for value in attributes(media, key) if value.split()[0] == first), None)


def attribute_with(media, key, word):
    """The value of an attribute that contains this word."""
    return next((value for value in attributes(media, key) if word in value.split()), None)


def layout(tiles, width, height):
    """Places of the tiles in a picture, row by row: x, y, width and height of each."""
    columns = math.ceil(math.sqrt(tiles))
    rows = math.ceil(tiles / columns) if tiles else 0
    return [
        (
            tile % columns * (width // columns),
            tile // columns * (height // rows),
            width // columns,
            height // rows,
        )
        for tile in range(tiles)
    ]


def parse_sdp(text):
    result, message = GstSdp.SDPMessage.new_from_text(text)
    if result != GstSdp.SDPResult.OK:
        raise ValueError("the offer is not a session description")
    return message


def main():
    """Serves the calls of the configuration until the lab closes the input."""
    Gst.init(None)
    calls = json.loads(sys.stdin.readline())["calls"]
    loop = GLib.MainLoop()
    lines = Lines(loop)
    legs = {call: Leg(lines, call, calls) for call in calls}
    lines.read(lambda call, message: legs[call].receive(message))
    loop.run()
    sys.stdout.flush()
    # webrtcbin may still close its sockets, which nobody waits for.
    os._exit(0)


if __name__ == "__main__":
    main()
