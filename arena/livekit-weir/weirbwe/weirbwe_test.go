package weirbwe

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pion/rtcp"

	"github.com/livekit/livekit-server/pkg/sfu/bwe"
	"github.com/livekit/livekit-server/pkg/sfu/ccutils"
	"github.com/livekit/protocol/logger"

	weir "weir-go"
)

// own stands for LiveKit's estimator.
type own struct {
	bwe.NullBWE
	number   uint16
	reports  int
	listener bwe.BWEListener
}

func (o *own) SetBWEListener(listener bwe.BWEListener) { o.listener = listener }

func (o *own) RecordPacketSendAndGetSequenceNumber(int64, int, bool, ccutils.ProbeClusterId, bool) uint16 {
	o.number++
	return 40_000 + o.number
}

func (o *own) Type() bwe.BWEType { return bwe.BWETypeSendSide }

func (o *own) HandleTWCCFeedback(*rtcp.TransportLayerCC) { o.reports++ }

// told is what the allocator hears.
type told struct {
	lock       sync.Mutex
	states     []bwe.CongestionState
	capacities []int64
}

func (t *told) OnCongestionStateChange(_, to bwe.CongestionState, capacity int64) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.states, t.capacities = append(t.states, to), append(t.capacities, capacity)
}

// report says when packets arrived, in microseconds; negative if they did not.
func report(base uint16, count uint8, arrivals []int64) *rtcp.TransportLayerCC {
	packet := &rtcp.TransportLayerCC{
		BaseSequenceNumber: base, PacketStatusCount: uint16(len(arrivals)), FbPktCount: count,
	}
	before := int64(-1)
	for _, at := range arrivals {
		symbol := rtcp.TypeTCCPacketNotReceived
		if at >= 0 {
			symbol = rtcp.TypeTCCPacketReceivedLargeDelta
			if before < 0 {
				packet.ReferenceTime = uint32(at / 64_000)
				before = int64(packet.ReferenceTime) * 64_000
			}
			packet.RecvDeltas = append(packet.RecvDeltas, &rtcp.RecvDelta{Type: symbol, Delta: at - before})
			before = at
		}
		packet.PacketChunks = append(packet.PacketChunks, &rtcp.RunLengthChunk{PacketStatusSymbol: symbol, RunLength: 1})
	}
	return packet
}

// path is a link with a queue of 300 ms, in virtual time, with feedback each 50 ms.
type path struct {
	start   time.Time
	now, at int64 // microseconds; when the link is free
	base    uint16
	begun   bool
	count   uint8
	waiting []int64
}

// play sends packets of 1,000 bytes at a rate through a link for a time. Rates are in bit/s.
func (p *path) play(c *inCharge, rate, capacity int64, length time.Duration) {
	size, end, next := int64(1_000), p.now+length.Microseconds(), p.now+50_000
	for p.now < end {
		sent := p.start.Add(time.Duration(p.now) * time.Microsecond)
		number := c.RecordPacketSendAndGetSequenceNumber(sent.UnixMicro(), int(size), false, 0, false)
		if len(p.waiting) == 0 {
			p.base = number
		}
		arrival := max(p.at, p.now) + (size+overhead)*8*1_000_000/capacity
		if arrival-p.now > 300_000 {
			p.waiting = append(p.waiting, -1)
		} else {
			p.at = arrival
			p.waiting = append(p.waiting, arrival+1_000_000)
		}
		p.now += size * 8 * 1_000_000 / rate
		if p.now >= next {
			c.onFeedback(p.start.Add(time.Duration(p.now)*time.Microsecond), report(p.base, p.count, p.waiting))
			p.waiting, next = nil, p.now+50_000
			p.count++
		}
	}
}

func made(t *testing.T) (*inCharge, *told) {
	t.Helper()
	estimate, err := newEstimate(weir.Sluice, logger.GetLogger())
	if err != nil {
		t.Fatal(err)
	}
	c, listener := newInCharge(estimate, &lines{}, logger.GetLogger()), &told{}
	c.SetBWEListener(listener)
	return c, listener
}

func TestWithoutTheFlagLiveKitsOwnEstimatorStays(t *testing.T) {
	mine := &own{}
	for _, value := range []string{"", "off", "on"} {
		t.Setenv("WEIR_BWE", value)
		if Wrap(mine, logger.GetLogger()) != bwe.BWE(mine) {
			t.Fatalf("WEIR_BWE=%q", value)
		}
	}
	t.Setenv("WEIR_BWE", "charge")
	t.Setenv("WEIR_CONTROLLER", "none of ours")
	if Wrap(mine, logger.GetLogger()) != bwe.BWE(mine) {
		t.Fatal("an unknown controller")
	}
}

func TestAShadowChangesNothingAndLogsBoth(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	t.Setenv("WEIR_BWE", "shadow")
	t.Setenv("WEIR_BWE_LOG", name)
	mine, listener := &own{}, &told{}
	both := Wrap(mine, logger.GetLogger())
	both.SetBWEListener(listener)
	at := now()
	for range 10 {
		both.RecordPacketSendAndGetSequenceNumber(at.UnixMicro(), 1_000, false, 0, false)
	}
	both.HandleTWCCFeedback(report(40_001, 0, []int64{1_000, 2_000, -1, 4_000}))
	mine.listener.OnCongestionStateChange(bwe.CongestionStateNone, bwe.CongestionStateCongested, 77)
	if mine.number != 10 || mine.reports != 1 || len(listener.states) != 1 || listener.capacities[0] != 77 {
		t.Fatalf("%+v %+v", mine, listener)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var first line
	if err := json.Unmarshal([]byte(strings.SplitN(string(text), "\n", 2)[0]), &first); err != nil {
		t.Fatal(err)
	}
	if first.Mode != shadow || first.State != "NONE" || first.Received != 3 || first.Lost != 1 || first.Target == 0 {
		t.Fatalf("%+v", first)
	}
}

func TestAPathThatCarriesAllIsNotCongested(t *testing.T) {
	c, listener := made(t)
	(&path{start: time.Unix(1_000, 0)}).play(c, 1_700_000, 3_000_000, 10*time.Second)
	if len(listener.states) != 0 || c.CongestionState() != bwe.CongestionStateNone {
		t.Fatalf("%v %v", listener.states, listener.capacities)
	}
}

func TestAFallIsToldWithWhatStillFits(t *testing.T) {
	c, listener := made(t)
	p := path{start: time.Unix(1_000, 0)}
	p.play(c, 1_700_000, 3_000_000, 10*time.Second)
	for tenths := 0; len(listener.states) == 0; tenths++ {
		if tenths == 10 {
			t.Fatal("a second after the fall it is not told")
		}
		p.play(c, 1_700_000, 500_000, 100*time.Millisecond)
	}
	if listener.states[0] != bwe.CongestionStateCongested || listener.capacities[0] > 500_000 {
		t.Fatalf("%v %v", listener.states, listener.capacities)
	}
	// The allocator obeys.
	p.play(c, 150_000, 500_000, 6*time.Second)
	if c.CongestionState() != bwe.CongestionStateNone || !c.CanProbe() {
		t.Fatalf("%v %v", listener.states, listener.capacities)
	}
}

// probed is a train of packets of 1,000 bytes, one each millisecond, that arrive with a step between them.
func probed(count int, step time.Duration, lost int) *train {
	probe, start := &train{id: 3}, time.Unix(1_000, 0)
	var feedback weir.Feedback
	for index := range count {
		row := weir.PacketReport{ProbeID: 3, Size: 1_000, SendTime: start.Add(time.Duration(index) * time.Millisecond)}
		if index >= lost {
			row.Arrived, row.ArrivalTime = true, start.Add(time.Duration(index)*step)
		}
		feedback.Packets = append(feedback.Packets, row, weir.PacketReport{ProbeID: 2, Size: 1_000})
	}
	probe.add(feedback)
	return probe
}

func TestAProbeProvesWhatArrivedWithoutAQueue(t *testing.T) {
	for _, one := range []struct {
		probe  *train
		signal ccutils.ProbeSignal
		rate   int64
	}{
		{probed(100, time.Millisecond, 0), ccutils.ProbeSignalNotCongesting, 8_000_000},
		{probed(100, 2*time.Millisecond, 0), ccutils.ProbeSignalCongesting, 4_000_000},
		{probed(100, time.Millisecond, 10), ccutils.ProbeSignalCongesting, 8_000_000},
		{probed(4, time.Millisecond, 0), ccutils.ProbeSignalInconclusive, 0},
		{probed(20, time.Millisecond, 20), ccutils.ProbeSignalCongesting, 0},
	} {
		if signal, rate := one.probe.judge(); signal != one.signal || rate != one.rate {
			t.Errorf("%v %d, not %v %d", signal, rate, one.signal, one.rate)
		}
	}
}

func TestAProofEndsWithAFallOfThePathAndNotWithATest(t *testing.T) {
	c, _ := made(t)
	at := time.Unix(1_000, 0)
	c.proof = held{2_000_000, at.Add(proofTime)}
	c.estimate.target, c.estimate.metrics.Reason = 500_000, "base test"
	c.followTarget(at, 1_000_000)
	if c.budget(at) != 2_000_000 {
		t.Fatal("a test ended it")
	}
	c.estimate.metrics.Reason = "queuing delay"
	c.followTarget(at, 1_000_000)
	if c.budget(at) != 500_000 {
		t.Fatalf("%d", c.budget(at))
	}
}

func TestPacketsAndFeedbackMayComeAtOnce(t *testing.T) {
	t.Setenv("WEIR_BWE_LOG", filepath.Join(t.TempDir(), "log"))
	for _, value := range []string{"shadow", "charge"} {
		t.Setenv("WEIR_BWE", value)
		both := Wrap(&own{}, logger.GetLogger())
		both.SetBWEListener(&told{})
		var all sync.WaitGroup
		all.Add(2)
		go func() {
			defer all.Done()
			for range 500 {
				both.RecordPacketSendAndGetSequenceNumber(now().UnixMicro(), 1_000, false, 1, true)
			}
		}()
		go func() {
			defer all.Done()
			for index := range 100 {
				both.HandleTWCCFeedback(report(uint16(index), uint8(index), []int64{int64(index) * 1_000}))
				both.UpdateRTT(0.05)
				both.CanProbe()
				both.ProbeClusterStarting(ccutils.ProbeClusterInfo{Id: 1})
				both.ProbeClusterDone(ccutils.ProbeClusterInfo{Id: 1})
				both.ProbeClusterFinalize()
				both.Reset()
			}
		}()
		all.Wait()
	}
}
