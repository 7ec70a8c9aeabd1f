"""Statistics of a sender, with the member names and the meaning of the W3C's getStats."""

import time

from gi.repository import Gst

# IPv4 and UDP headers of one packet, which rtpsession counts.
IP_UDP_HEADER_BYTES = 20 + 8
# Round-trip times in receiver reports have this unit, in seconds.
RTCP_SECOND = 1 / 65536
# What dtlssrtpenc negotiates unless it is told otherwise; by its IANA name.
SRTP_CIPHER = "SRTP_AES128_CM_HMAC_SHA1_80"
# The SSRC of a sender's sound, which tells it from the video and its repair.
AUDIO_SSRC = 0x536F756E
# What is read of each SSRC.
SOURCE_FIELDS = (
    "ssrc",
    "internal",
    "packets-sent",
    "octets-sent",
    "packets-received",
    "octets-received",
    "bytes-received",
    "packets-lost",
    "jitter",
    "recv-nack-count",
    "recv-pli-count",
    "have-rb",
    "rb-ssrc",
    "rb-lsr",
    "rb-exthighestseq",
    "rb-round-trip",
    "rb-jitter",
    "rb-fractionlost",
    "rb-packetslost",
)


class Reporter:
    """Collects what rtpsession, webrtcbin, the encoder and the controller know about one call."""

    def __init__(self, webrtc, encoder, controller, settings):
        self._webrtc, self._encoder, self._controller = webrtc, encoder, controller
        self._settings = settings
        self._session = None
        self._frames = self._key_frames = 0
        self._queue_ns = 0
        self._round_trips = 0
        self._last_report = None
        encoder.get_static_pad("src").add_probe(Gst.PadProbeType.BUFFER, self._on_frame)
        self._decoder = None
        self._decoded_frames = 0

    def watch_decoder(self, decoder):
        """Reports what this peer receives, too: the video that this element decodes."""
        self._decoder = decoder
        decoder.get_static_pad("src").add_probe(Gst.PadProbeType.BUFFER, self._on_decoded)

    def _on_decoded(self, *_):
        self._decoded_frames += 1
        return Gst.PadProbeReturn.OK

    def _on_frame(self, _, info):
        self._frames += 1
        if not info.get_buffer().has_flags(Gst.BufferFlags.DELTA_UNIT):
            self._key_frames += 1
        return Gst.PadProbeReturn.OK

    def sample(self):
        """Notes what waits in the pacer now. A report contains the largest of these values."""
        self._queue_ns = max(self._queue_ns, self._controller.get_property("pacer-queue"))

    def report(self, then):
        """Calls `then(report)` as soon as webrtcbin has answered."""

        def on_reply(promise):
            # The reply stays in a variable: its values live in it.
            reply = promise.get_reply()
            then(self._convert(_objects(reply)))

        self._webrtc.emit("get-stats", None, Gst.Promise.new_with_change_func(on_reply))

    def _convert(self, objects):
        timestamp = time.monotonic_ns() / 1e6
        report = {
            "transport": {"srtpCipher": SRTP_CIPHER},
            "mediaSource": {
                "width": self._settings["width"],
                "height": self._settings["height"],
                "framesPerSecond": self._settings["frameRate"],
            },
        }
        sources = self._sources()
        own = [source for source in sources if source["internal"] and source["packets-sent"]]
        video = [source for source in own if source["ssrc"] != AUDIO_SSRC]
        audio = [source for source in own if source["ssrc"] == AUDIO_SSRC]
        if audio:
            report["audioOutbound"] = _sent(timestamp, audio, "audio1")
        if video:
            report["outbound"] = self._outbound(timestamp, video)
            remote = self._remote_inbound(timestamp, video[0], sources)
            if remote:
                report["remoteInbound"] = remote
        inbound = self._inbound(timestamp, sources)
        if inbound:
            report["inbound"] = inbound
        pair = self._pair(timestamp, objects)
        if pair:
            report["pair"] = pair
        return report

    def _sources(self):
        """The statistics of each SSRC of the RTP session; the video comes before its repair."""
        if self._session is None:
            self._session = _element_of(self._webrtc, "rtpsession")
        # The statistics stay in a variable: the values live in it.
        stats = self._session.get_property("stats")
        structures = stats.get_value("source-stats")
        sources = [
            {field: structure.get_value(field) for field in SOURCE_FIELDS}
            for structure in structures
        ]
        # The video has more packets than its repair.
        return sorted(sources, key=lambda source: -source["packets-sent"])

    def _outbound(self, timestamp, own):
        repair = own[1:]
        outbound = {
            **_sent(timestamp, own, "video0"),
            "retransmittedPacketsSent": sum(source["packets-sent"] for source in repair),
            "retransmittedBytesSent": sum(source["octets-sent"] for source in repair),
            "targetBitrate": self._encoder.get_property("target-bitrate"),
            **self._picture(),
            "framesEncoded": self._frames,
            "keyFramesEncoded": self._key_frames,
            "pacerQueue": self._queue_ns / 1e6,
            "nackCount": own[0]["recv-nack-count"],
            "pliCount": own[0]["recv-pli-count"],
            "encoderImplementation": self._encoder.get_factory().get_name(),
            "mimeType": "video/VP8",
        }
        if repair:
            outbound["rtxSsrc"] = repair[0]["ssrc"]
        self._queue_ns = 0
        return outbound

    def _picture(self):
        """The size of the encoded picture."""
        caps = self._encoder.get_static_pad("sink").get_current_caps()
        picture = caps and caps.get_structure(0)
        sides = (("frameWidth", "width"), ("frameHeight", "height"))
        return {
            name: picture.get_value(side) if picture else self._settings[side]
            for name, side in sides
        }

    def _remote_inbound(self, timestamp, video, sources):
        """The last receiver report about the video, if there was one."""
        told = [s for s in sources if s["have-rb"] and s["rb-ssrc"] == video["ssrc"]]
        if not told:
            return None
        report = told[0]
        # A report is new if it answers another sender report, or covers more packets.
        identity = (report["rb-lsr"], report["rb-exthighestseq"])
        if report["rb-lsr"] and identity != self._last_report:
            self._last_report = identity
            self._round_trips += 1
        return {
            "timestamp": timestamp,
            "roundTripTime": report["rb-round-trip"] * RTCP_SECOND,
            "roundTripTimeMeasurements": self._round_trips,
            "jitter": report["rb-jitter"] / 90_000,
            "fractionLost": report["rb-fractionlost"] / 256,
            "packetsLost": report["rb-packetslost"],
        }

    def _inbound(self, timestamp, sources):
        """The received video: of the far sources, the one with the most packets."""
        far = [s for s in sources if not s["internal"] and s["packets-received"]]
        caps = self._decoder and self._decoder.get_static_pad("src").get_current_caps()
        if not far or not caps:
            return None
        video = max(far, key=lambda source: source["packets-received"])
        packets, payload = video["packets-received"], video["octets-received"]
        headers = video["bytes-received"] - payload - packets * IP_UDP_HEADER_BYTES
        picture = caps.get_structure(0)
        return {
            "timestamp": timestamp,
            "ssrc": video["ssrc"],
            "mid": "video0",
            "packetsReceived": packets,
            "packetsLost": video["packets-lost"],
            "bytesReceived": payload,
            "headerBytesReceived": headers,
            "jitter": video["jitter"] / 90_000,
            "frameWidth": picture.get_value("width"),
            "frameHeight": picture.get_value("height"),
            "framesDecoded": self._decoded_frames,
        }

    def _pair(self, timestamp, objects):
        """The selected candidate pair. GStreamer 1.22 confuses the types of the two candidates, but
        not their ids."""
        pair = next((o for o in objects.values() if o.has_field("local-candidate-id")), None)
        if pair is None:
            return None
        ends = [objects.get(pair.get_value(f"{end}-candidate-id")) for end in ("local", "remote")]
        if None in ends:
            return None
        local, remote = (
            {
                "address": end.get_value("address"),
                "port": end.get_value("port"),
                "protocol": end.get_value("protocol"),
                "candidateType": end.get_value("candidate-type"),
            }
            for end in ends
        )
        return {
            "timestamp": timestamp,
            # webrtcbin does not count them.
            "packetsSent": 0,
            "bytesSent": 0,
            "packetsReceived": 0,
            "bytesReceived": 0,
            "availableOutgoingBitrate": self._controller.get_property("target-bitrate"),
            "local": local,
            "remote": remote,
        }


def _sent(timestamp, sources, mid):
    """What the sources of one medium have sent, the medium first and its repair after it."""

    def total(name):
        return sum(source[name] for source in sources)

    packets, payload = total("packets-sent"), total("octets-sent")
    return {
        "timestamp": timestamp,
        "ssrc": sources[0]["ssrc"],
        "mid": mid,
        "packetsSent": packets,
        "bytesSent": payload,
        # Of its own packets, rtpsession counts the received bytes with all headers.
        "headerBytesSent": total("bytes-received") - payload - packets * IP_UDP_HEADER_BYTES,
    }


def _objects(reply):
    """The objects of a reply of `get-stats`, by their id."""
    values = (reply.get_value(reply.nth_field_name(index)) for index in range(reply.n_fields()))
    structures = (value for value in values if isinstance(value, Gst.Structure))
    return {structure.get_value("id"): structure for structure in structures}


def _element_of(container, kind):
    """The first element of a kind at any depth of a bin."""
    found = container.iterate_recurse()
    while True:
        result, element = found.next()
        if result != Gst.IteratorResult.OK:
            raise LookupError(f"webrtcbin has no {kind}")
        factory = element.get_factory()
        if factory is not None and factory.get_name() == kind:
            return element
