#!/bin/sh
# In tshark's table of RTP streams, each duplicate hides a lost packet.
#
# Version:   tshark 4.0.17 (Debian 12).
# Behaviour: `-z rtp,streams` computes the losses as expected packets less packets seen, and a
#            packet that was seen twice counts twice. A capture where ten packets are missing and
#            ten others came twice (repeats on the same source, or a capture of two interfaces) has
#            "0 (0.0%)" lost. With duplicates alone the losses are negative.
# Output:    10 lost: 10 (5.0%)
#            10 lost, 10 twice: 0 (0.0%)
#            10 twice: -10 (-5.0%)
# Exits with 1 if the losses are others.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
#: Where tshark is not installed, its packages are unpacked here.
if ! command -v tshark > /dev/null; then
    apt-get download -q=2 tshark=4.0.17* wireshark-common=4.0.17* libwireshark16=4.0.17* libwireshark-data=4.0.17* \
        libwiretap13=4.0.17* libwsutil14=4.0.17* libpcap0.8=1.10.3* libc-ares2=1.18.1* liblua5.2-0=5.2.4* \
        libsmi2ldbl=0.4.8* libsctp1=1.0.19* 2> log || { cat log; exit 1; }
    for package in *.deb; do dpkg-deb -x "$package" unpacked; done
    export PATH="$folder/unpacked/usr/bin:$PATH" LD_LIBRARY_PATH="$folder/unpacked/usr/lib/x86_64-linux-gnu"
    export WIRESHARK_DATA_DIR="$folder/unpacked/usr/share/wireshark"
fi
export HOME="$folder"
cat > captures.py <<'END'
import struct

#: Link type of packets that begin with the IP header.
RAW_IP = 101
LOST, TWICE = range(60, 70), range(100, 110)


def packet(number):
    rtp = struct.pack("!BBHII", 0x80, 0, number, number * 160, 7) + bytes(160)
    udp = struct.pack("!HHHH", 4000, 5000, 8 + len(rtp), 0) + rtp
    addresses = bytes([10, 0, 0, 1, 10, 0, 0, 2])
    return struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(udp), 0, 0, 64, 17, 0) + addresses + udp


def write(name, numbers):
    with open(name, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, RAW_IP))
        time = 0
        for number, following in zip(numbers, [*numbers[1:], None]):
            data = packet(number)
            file.write(struct.pack("<IIII", 1 + time // 10**6, time % 10**6, len(data), len(data)) + data)
            time += 1_000 if number == following else 20_000


whole = list(range(200))
twice = sorted([*whole, *TWICE])
write("lost.pcap", [number for number in whole if number not in LOST])
write("both.pcap", [number for number in twice if number not in LOST])
write("twice.pcap", twice)
END
python3 captures.py
lost() {
    tshark -r "$1" -d udp.port==5000,rtp -q -z rtp,streams 2> log \
        | sed -n 's/.* \(-\{0,1\}[0-9]* (-\{0,1\}[0-9.]*%)\).*/\1/p'
}
found="$(lost lost.pcap); $(lost both.pcap); $(lost twice.pcap)"
echo "10 lost: $(lost lost.pcap)"
echo "10 lost, 10 twice: $(lost both.pcap)"
echo "10 twice: $(lost twice.pcap)"
[ "$found" = "10 (5.0%); 0 (0.0%); -10 (-5.0%)" ] || { echo "changed: 10, 0 and -10"; exit 1; }
