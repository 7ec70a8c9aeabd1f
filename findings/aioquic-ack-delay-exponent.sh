#!/bin/sh
# aioquic reads the ACK delays of every peer with an exponent of 3, whatever the peer announced.
#
# Version:   aioquic 1.7.2 (PyPI).
# Behaviour: a QUIC endpoint announces with `ack_delay_exponent` in which unit its ACK frames give
#            the delay (RFC 9000, sections 18.2 and 19.3). aioquic checks the parameter, then
#            assigns its own variable to itself, so that 3 stays. A peer that announces 10 and
#            acknowledges after 20 ms is taken to have answered after 0.152 ms. The rest of its
#            delay counts as time on the path, and the round-trip time, loss timers and pacing
#            follow.
# Output:    exponent 3: acknowledged after 20 ms, read as 20 ms, round trip 53 ms
#            exponent 10: acknowledged after 20 ms, read as 0.152 ms, round trip 73 ms
# Exits with 1 if the delay of the second peer is read as it was meant.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --only-binary :all: aioquic==1.7.2
"$folder/venv/bin/python" - <<'END'
import datetime
import ssl

from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

#: Seconds one way until the connection stands, and afterwards.
ONE_WAY, ONE_WAY_LATER = 0.025, 0.0265
HELD, LENGTH = 0.020, 4.0


def certificate():
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name)
    made = made.public_key(key.public_key()).serial_number(1)
    made = made.not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
    return made.sign(key, hashes.SHA256()), key


def connection(exponent):
    chain, key = certificate()
    asked = QuicConfiguration(is_client=True, verify_mode=ssl.CERT_NONE, alpn_protocols=["x"])
    answers = QuicConfiguration(is_client=False, certificate=chain, private_key=key, alpn_protocols=["x"])
    client = QuicConnection(configuration=asked)
    first = client.original_destination_connection_id
    server = QuicConnection(configuration=answers, original_destination_connection_id=first)
    # The peer of the question: it announces and uses this exponent, and acknowledges late.
    server._local_ack_delay_exponent = exponent
    server._ack_delay = HELD
    return client, server


def read_delay(exponent):
    """The last delay that the client reads, and its round-trip time, in virtual time."""
    client, server = connection(exponent)
    read, accept = [], client._loss.on_ack_received

    def noted(**arguments):
        read.append(arguments["ack_delay"])
        return accept(**arguments)

    client._loss.on_ack_received = noted
    ends = {client: (server, ("10.0.0.1", 1)), server: (client, ("10.0.0.2", 2))}
    on_the_way, now, next_ping = [], 0.0, 1.0
    client.connect(("10.0.0.2", 2), now=0.0)
    while now < LENGTH:
        for end, (other, address) in ends.items():
            if end is client or end._network_paths:
                way = ONE_WAY if now < 0.9 else ONE_WAY_LATER
                for data, _ in end.datagrams_to_send(now):
                    on_the_way.append((now + way, other, data, address))
        timers = [end.get_timer() for end in ends if end.get_timer() is not None]
        now = max(now, min([next_ping, *timers, *(due for due, *_ in on_the_way)]))
        if now >= next_ping:
            client.send_ping(1)
            next_ping += 0.5
        arrived = [entry for entry in on_the_way if entry[0] <= now]
        on_the_way = [entry for entry in on_the_way if entry[0] > now]
        for _, end, data, address in arrived:
            end.receive_datagram(data, address, now)
        for end in ends:
            if end.get_timer() is not None and end.get_timer() <= now:
                end.handle_timer(now)
            while end.next_event():
                pass
    return read[-1] * 1000, client._loss._rtt_latest * 1000


found = {}
for exponent in (3, 10):
    found[exponent], rtt = read_delay(exponent)
    print(f"exponent {exponent}: acknowledged after {HELD * 1000:.0f} ms, "
          f"read as {found[exponent]:.3g} ms, round trip {rtt:.0f} ms")
if not (19 < found[3] < 21 and found[10] < 1):
    raise SystemExit("changed: a peer with exponent 10 was read with 3")
END
