#!/bin/sh
# An ns-3 link with a queue of 10 packets delays by 740 ms: an address puts FqCoDel in front of it.
#
# Version:   ns-3 3.44, of the wheel ns3 3.44.post0 (PyPI); needs g++ with C++20 on x86-64.
# Behaviour: `Ipv4AddressHelper::Assign` installs FqCoDel (10,240 packets) on each device that has
#            no queue disc, and the device's queue stops it when full. So the limit of the device's
#            queue, which looks like the bottleneck's buffer, drops nothing any more: a sender
#            without congestion control fills the queue disc, whose drops are those of CoDel. The
#            same script has other delays and losses than its `MaxSize` says.
#            `TrafficControlHelper::Uninstall` after `Assign`, or a disc installed before it, gives
#            what was asked for.
# Output:    10p as it comes: largest delay 742 ms, 2467 packets
#            10p without the queue disc: largest delay 101 ms, 2437 packets
# Exits with 1 if the delays are others.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
python3 -m venv venv
venv/bin/pip download --quiet --no-deps --only-binary :all: --python-version 311 \
    --platform manylinux_2_28_x86_64 ns3==3.44.post0
python3 -m zipfile -e ns3-*.whl wheel
cat > finding.cc <<'END'
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <string>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

static double largest; // s
static int packets;

static void Received(Ptr<const Packet> packet)
{
    SeqTsHeader header;
    packet->PeekHeader(header);
    largest = std::max(largest, (Simulator::Now() - header.GetTs()).GetSeconds());
    packets++;
}

// Sends 2 Mbit/s for 20 s over 1 Mbit/s, 10 ms, and a queue of ten packets.
static void Run(const std::string& name, bool uninstall)
{
    largest = packets = 0;
    NodeContainer nodes;
    nodes.Create(2);
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue("1Mbps"));
    link.SetChannelAttribute("Delay", StringValue("10ms"));
    link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue("10p"));
    NetDeviceContainer devices = link.Install(nodes);
    InternetStackHelper().Install(nodes);
    Ipv4AddressHelper addresses;
    addresses.SetBase("10.0.0.0", "255.255.255.0");
    Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
    if (uninstall) {
        TrafficControlHelper().Uninstall(devices);
    }
    UdpClientHelper client(interfaces.GetAddress(1), 9);
    client.SetAttribute("Interval", StringValue("4ms"));
    client.SetAttribute("PacketSize", UintegerValue(1000));
    client.SetAttribute("MaxPackets", UintegerValue(100000));
    client.Install(nodes.Get(0)).Stop(Seconds(20));
    UdpServerHelper server(9);
    server.Install(nodes.Get(1)).Get(0)->TraceConnectWithoutContext("Rx", MakeCallback(&Received));
    Simulator::Stop(Seconds(25));
    Simulator::Run();
    Simulator::Destroy();
    std::cout << "10p " << name << ": largest delay " << int(largest * 1000 + 0.5) << " ms, " << packets
              << " packets" << std::endl;
}

int main()
{
    Run("as it comes", false);
    double before = largest;
    Run("without the queue disc", true);
    if (before < 0.5 || largest > 0.15) {
        std::cout << "changed: 742 ms and 101 ms" << std::endl;
        return EXIT_FAILURE;
    }
}
END
libraries="$folder/wheel/ns3/lib64"
g++ -std=c++20 -I wheel/ns3/include finding.cc -o finding -L "$libraries" -Wl,-rpath,"$libraries" \
    -Wl,--allow-shlib-undefined -lns3.44-core -lns3.44-network -lns3.44-internet -lns3.44-point-to-point \
    -lns3.44-applications -lns3.44-traffic-control
./finding
