#!/bin/sh
# aioquic keeps every datagram until the path has room, and sends the oldest first.
#
# Version:   aioquic 1.7.2 (PyPI).
# Behaviour: `send_datagram_frame` puts the data into a queue without a limit, an age or an answer,
#            and congestion control empties it in order. Media that asks for twice what the path
#            carries is never lost in the queue and never refused: it comes later and later, half a
#            second a second. Data on a stream overtakes the whole queue. Whoever sends media so has
#            to watch the private `_datagrams_pending`.
# Output:    2.0 Mbit/s over 1.0 Mbit/s: after 10 s datagrams are 5.0 s old, 1136 wait
#            a stream's data, sent at 5 s, takes 0.12 s
# Exits with 1 if a datagram is below one second old after ten.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --only-binary :all: aioquic==1.7.2
"$folder/venv/bin/python" - <<'END'
import datetime
import ssl
import struct

from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import DatagramFrameReceived, StreamDataReceived
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

LINK, QUEUE, ONE_WAY = 1e6, 0.1, 0.025
MEDIA, SIZE, START, END = 2e6, 1100, 1.0, 11.0
STREAM_AT = 6.0


def pair():
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name)
    made = made.public_key(key.public_key()).serial_number(1)
    made = made.not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
    common = {"alpn_protocols": ["x"], "max_datagram_frame_size": 65536}
    asked = QuicConfiguration(is_client=True, verify_mode=ssl.CERT_NONE, **common)
    chain = made.sign(key, hashes.SHA256())
    answers = QuicConfiguration(is_client=False, certificate=chain, private_key=key, **common)
    client = QuicConnection(configuration=asked)
    first = client.original_destination_connection_id
    return client, QuicConnection(configuration=answers, original_destination_connection_id=first)


client, server = pair()
ends = {client: (server, ("10.0.0.1", 1)), server: (client, ("10.0.0.2", 2))}
client.connect(("10.0.0.2", 2), now=0.0)
now, free, next_media, stream_sent, stream_came = 0.0, 0.0, START, None, None
on_the_way, ages, waiting = [], [], 0
while now < END:
    for end, (other, address) in ends.items():
        if end is server and not end._network_paths:
            continue
        for data, _ in end.datagrams_to_send(now):
            leaves = now
            if end is client:
                # The bottleneck: so many bits a second, and a queue of so many seconds.
                if free - now > QUEUE:
                    continue
                leaves = free = max(free, now) + len(data) * 8 / LINK
            on_the_way.append((leaves + ONE_WAY, other, data, address))
    timers = [end.get_timer() for end in ends if end.get_timer() is not None]
    now = max(now, min([next_media, *timers, *(due for due, *_ in on_the_way)]))
    if now >= next_media:
        client.send_datagram_frame(struct.pack("!d", now) + bytes(SIZE - 8))
        next_media += SIZE * 8 / MEDIA
        if now >= STREAM_AT and stream_sent is None:
            stream_sent = now
            client.send_stream_data(client.get_next_available_stream_id(), b"control")
    arrived = [entry for entry in on_the_way if entry[0] <= now]
    on_the_way = [entry for entry in on_the_way if entry[0] > now]
    for _, end, data, address in arrived:
        end.receive_datagram(data, address, now)
    for end in ends:
        if end.get_timer() is not None and end.get_timer() <= now:
            end.handle_timer(now)
        while (event := end.next_event()) is not None:
            if end is server and isinstance(event, DatagramFrameReceived):
                ages.append(now - struct.unpack("!d", event.data[:8])[0])
            if end is server and isinstance(event, StreamDataReceived):
                stream_came = now
print(f"{MEDIA / 1e6} Mbit/s over {LINK / 1e6} Mbit/s: after {END - START:.0f} s datagrams are "
      f"{ages[-1]:.1f} s old, {len(client._datagrams_pending)} wait")
print(f"a stream's data, sent at {stream_sent - START:.0f} s, takes {stream_came - stream_sent:.2f} s")
if ages[-1] < 1:
    raise SystemExit("changed: datagrams waited for seconds")
END
