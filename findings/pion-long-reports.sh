#!/bin/sh
# One lost packet makes each later RFC 8888 report of pion longer, until 590 packets have followed.
#
# Version:   pion/interceptor 0.1.51 (Go module), package ccfb.
# Behaviour: a report begins at the first packet that is missing, and repeats everything behind it,
#            in case it still comes. It shortens only when it no longer fits into its 1,200 bytes.
#            RFC 8888 allows the overlap and sets no bound. With 300 packets a second and a report
#            each 100 ms, feedback rises from 6 to 96 kbit/s after a single loss. A loss in each
#            590 packets (0.17 %) keeps reports long. Packets are also reported again and again: who
#            counts reported packets counts them up to 20 times.
# Output:    no loss: reports of up to 80 bytes, 6 kbit/s, 0 of them longer than usual
#            one packet lost: reports of up to 1200 bytes, 96 kbit/s, 20 of them longer than usual
# Exits with 1 if the reports behind a loss are no longer than without one.
set -eu
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
export GOFLAGS=-mod=mod GOMODCACHE="$folder/modules" GOCACHE="$folder/cache"
cd "$folder"
go mod init finding > log 2>&1
go get github.com/pion/interceptor@v0.1.51 >> log 2>&1 || { cat log; exit 1; }
cat > main.go <<'END'
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/pion/interceptor/pkg/ccfb"
)

const (
	interval = 100 * time.Millisecond
	packets  = 30 // in an interval
	reports  = 100
	// What the interceptor asks of its recorder.
	maxSize = 1200
	usual   = 80
)

// lengths returns the bytes of each report of a stream that loses this packet.
func lengths(lost int) []int {
	recorder, now, number := ccfb.NewRecorder(), time.Unix(1_000, 0), 0
	var found []int
	for range reports {
		for range packets {
			now = now.Add(interval / packets)
			if number != lost {
				recorder.AddPacket(now, 1, uint16(number), 0)
			}
			number++
		}
		bytes, err := recorder.BuildReport(now, maxSize).Marshal()
		if err != nil {
			panic(err)
		}
		found = append(found, len(bytes))
	}
	return found
}

func main() {
	longest := map[string]int{}
	for _, each := range []struct {
		name string
		lost int
	}{{"no loss", -1}, {"one packet lost", 500}} {
		most, longer := 0, 0
		for _, length := range lengths(each.lost) {
			most = max(most, length)
			if length > usual {
				longer++
			}
		}
		longest[each.name] = most
		fmt.Printf("%s: reports of up to %d bytes, %.0f kbit/s, %d of them longer than usual\n",
			each.name, most, float64(most)*8/interval.Seconds()/1000, longer)
	}
	if longest["no loss"] != usual || longest["one packet lost"] < 10*usual {
		fmt.Println("changed: reports had 80 bytes, and more than 1,000 after a loss")
		os.Exit(1)
	}
}
END
go run . 2>> log || { tail -n 5 log; exit 1; }
