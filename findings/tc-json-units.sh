#!/bin/sh
# tc prints a rate of 1 Mbit as 125000 in JSON, and a limit in bytes as a time.
#
# Version:   iproute2 6.1.0 (Debian 12), with a kernel that has tbf.
# Behaviour: the text of `tc qdisc show` has the rate in bits a second, its JSON has bytes a second
#            without a unit. `burst 10kb` is 10,240 bytes and prints as "10Kb", which elsewhere in
#            the same line means kilobits. A queue made with `limit 30kb` shows as a latency: (limit
#            - burst) / rate, in ms as text and in microseconds as JSON. The limit itself is in
#            neither.
# Output:    qdisc tbf 8001: root refcnt 2 rate 1Mbit burst 10Kb lat 164ms
#            {"rate":125000,"burst":10240,"lat":163840}
# Exits with 1 if the JSON has other numbers. Needs a network namespace of its own (root, or user namespaces).
set -eu
command -v tc > /dev/null || { echo "needs iproute2"; exit 1; }
found=$(unshare --user --map-root-user --net sh -eu <<'END'
ip link add outside type veth peer name inside
ip link set outside up
tc qdisc add dev outside root tbf rate 1mbit burst 10kb limit 30kb
tc qdisc show dev outside
tc -json qdisc show dev outside
END
)
echo "$found" | sed -n 1p
options=$(echo "$found" | sed -n 's/.*"options":\({[^}]*}\).*/\1/p')
echo "$options"
[ "$options" = '{"rate":125000,"burst":10240,"lat":163840}' ] || { echo "changed: 125000, 10240, 163840"; exit 1; }
