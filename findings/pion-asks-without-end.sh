#!/bin/sh
# pion asks for a lost packet every 100 ms until 512 later ones have come, however old it is.
#
# Version:   pion/interceptor 0.1.51 (Go module), package nack.
# Behaviour: the generator of requests has no limit by time or round-trip time, and by default none
#            by number (`GeneratorMaxNacksPerPacket` is 0). A hole leaves its window after 512
#            packets. That is a number of packets: at 50 packets a second, one packet that never
#            comes is asked for 100 times over 10 s. A sender without limits of its own repeats it
#            as often.
# Output:    asked 64 times in 6.3 s, while 512 packets came, then not again
#            (51 times on an idle machine, where a packet comes each 10 ms)
# Exits with 1 if a packet is asked for less than 40 times.
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
export GOFLAGS=-mod=mod GOMODCACHE="$folder/modules" GOCACHE="$folder/cache"
cd "$folder"
go mod init finding > log 2>&1
go get github.com/pion/interceptor@v0.1.51 github.com/pion/rtp@v1.10.6 >> log 2>&1 || { cat log; exit 1; }
cat > main.go <<'END'
package main

import (
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/interceptor/pkg/nack"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"
)

const (
	lost     = 5
	packets  = 620
	interval = 10 * time.Millisecond
)

// requests notes when the lost packet is asked for.
type requests struct {
	sync.Mutex
	times []time.Time
}

func (r *requests) write(packets []rtcp.Packet, _ interceptor.Attributes) (int, error) {
	r.Lock()
	defer r.Unlock()
	for _, packet := range packets {
		if request, ok := packet.(*rtcp.TransportLayerNack); ok {
			for _, pair := range request.Nacks {
				if pair.PacketID == lost {
					r.times = append(r.times, time.Now())
				}
			}
		}
	}
	return 0, nil
}

func main() {
	factory, _ := nack.NewGeneratorInterceptor()
	generator, _ := factory.NewInterceptor("")
	asked := &requests{}
	generator.BindRTCPWriter(interceptor.RTCPWriterFunc(asked.write))
	arrived := make(chan []byte, 1)
	stream := &interceptor.StreamInfo{SSRC: 1, RTCPFeedback: []interceptor.RTCPFeedback{{Type: "nack"}}}
	network := func(into []byte, attributes interceptor.Attributes) (int, interceptor.Attributes, error) {
		return copy(into, <-arrived), attributes, nil
	}
	reader := generator.BindRemoteStream(stream, interceptor.RTPReaderFunc(network))
	into := make([]byte, 1500)
	for number := range packets {
		time.Sleep(interval)
		if number == lost {
			continue
		}
		header := rtp.Header{Version: 2, SSRC: 1, SequenceNumber: uint16(number)}
		bytes, _ := (&rtp.Packet{Header: header, Payload: []byte("media")}).Marshal()
		arrived <- bytes
		if _, _, err := reader.Read(into, nil); err != nil {
			panic(err)
		}
	}
	end := time.Now()
	generator.Close()
	first, last := asked.times[0], asked.times[len(asked.times)-1]
	fmt.Printf("asked %d times in %.1f s, while 512 packets came, then not again\n",
		len(asked.times), last.Sub(first).Seconds())
	if len(asked.times) < 40 || end.Sub(last) < 500*time.Millisecond {
		fmt.Println("changed: some 51 requests while 512 packets came")
		os.Exit(1)
	}
}
END
go run . 2>> log || { tail -n 5 log; exit 1; }
