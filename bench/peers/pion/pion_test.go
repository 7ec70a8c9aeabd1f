// Pion's GCC on the feedback trace of the other stacks.
//
// Its estimator reads the clock and works in goroutines, so it runs in a bubble of testing/synctest,
// where time is what the trace says. What it costs is the processor time of a replay, less that of the
// same replay without the estimator.
package pion

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/interceptor/pkg/gcc"
	"github.com/pion/rtcp"
	"github.com/pion/rtp"
)

const (
	replays     = 15
	extensionID = 1
	ssrc        = 1
	minBPS      = 150_000
	startBPS    = 300_000
	maxBPS      = 5_000_000
	twccURI     = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"
)

// event is a packet that left (feedback is nil) or a TWCC packet that arrived.
type event struct {
	at       time.Duration
	size     int
	feedback []byte
}

func read(path string) ([]event, int, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer file.Close()
	var events []event
	packets := 0
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		words := strings.Split(lines.Text(), " ")
		nanos, err := strconv.ParseInt(words[1], 10, 64)
		if err != nil {
			return nil, 0, err
		}
		next := event{at: time.Duration(nanos)}
		if words[0] == "sent" {
			packets++
			next.size, err = strconv.Atoi(words[2])
		} else {
			next.feedback, err = hex.DecodeString(words[2])
		}
		if err != nil {
			return nil, 0, err
		}
		events = append(events, next)
	}
	return events, packets, lines.Err()
}

func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// replay plays the trace to what is called for each packet and each feedback packet.
func replay(events []event, sent func(number uint16, size int), heard func(feedback []byte)) {
	start := time.Now()
	number := uint16(0)
	for _, next := range events {
		time.Sleep(time.Until(start.Add(next.at)))
		if next.feedback == nil {
			sent(number, next.size)
			number++
		} else {
			heard(next.feedback)
		}
	}
	synctest.Wait()
}

func replayPion(t *testing.T, events []event) int {
	estimator, err := gcc.NewSendSideBWE(
		gcc.SendSideBWEInitialBitrate(startBPS),
		gcc.SendSideBWEMinBitrate(minBPS),
		gcc.SendSideBWEMaxBitrate(maxBPS),
		gcc.SendSideBWEPacer(gcc.NewNoOpPacer()),
	)
	if err != nil {
		t.Fatal(err)
	}
	info := interceptor.StreamInfo{
		SSRC:                ssrc,
		RTPHeaderExtensions: []interceptor.RTPHeaderExtension{{URI: twccURI, ID: extensionID}},
	}
	discard := func(_ *rtp.Header, payload []byte, _ interceptor.Attributes) (int, error) {
		return len(payload), nil
	}
	writer := estimator.AddStream(&info, interceptor.RTPWriterFunc(discard))
	payload := make([]byte, 1500)
	sent := func(number uint16, size int) {
		extension, err := (&rtp.TransportCCExtension{TransportSequence: number}).Marshal()
		if err != nil {
			t.Fatal(err)
		}
		header := rtp.Header{Version: 2, SequenceNumber: number, SSRC: ssrc}
		if err := header.SetExtension(extensionID, extension); err != nil {
			t.Fatal(err)
		}
		if _, err := writer.Write(&header, payload[:size], nil); err != nil {
			t.Fatal(err)
		}
	}
	heard := func(feedback []byte) {
		packet := &rtcp.TransportLayerCC{}
		if err := packet.Unmarshal(feedback); err != nil {
			t.Fatal(err)
		}
		if err := estimator.WriteRTCP([]rtcp.Packet{packet}, nil); err != nil {
			t.Fatal(err)
		}
	}
	replay(events, sent, heard)
	target := estimator.GetTargetBitrate()
	if err := estimator.Close(); err != nil {
		t.Fatal(err)
	}
	return target
}

// median of the processor time that a piece of work takes in a bubble.
func median(t *testing.T, work func(*testing.T)) time.Duration {
	times := make([]time.Duration, 0, replays)
	for range replays {
		synctest.Test(t, func(t *testing.T) {
			start := processorTime()
			work(t)
			times = append(times, processorTime()-start)
		})
	}
	slices.Sort(times)
	return times[replays/2]
}

func TestTime(t *testing.T) {
	events, packets, err := read(os.Getenv("TRACE"))
	if err != nil {
		t.Fatal(err)
	}
	target := 0
	with := median(t, func(t *testing.T) { target = replayPion(t, events) })
	without := median(t, func(*testing.T) {
		replay(events, func(uint16, int) {}, func([]byte) {})
	})
	ns := float64(with-without) / float64(packets)
	fmt.Printf("pion\t%.0f\t%d\n", ns, target)
}
