// Package history joins feedback with the packets that were sent, for senders on whose path only numbers
// come back: transport-wide feedback (TWCC) and that of RFC 8888.
package history

import (
	"cmp"
	"slices"
	"time"

	"github.com/pion/rtcp"

	weir "weir-go"
)

// Offsets of RFC 8888 in units of 1/1024 s: one says that the arrival is at least so long ago, the other that it is not known,
// or after the time of the report.
const (
	offsetTooLong = 0x1FFE
	offsetUnknown = 0x1FFF
)

// arrival is what a feedback packet says of one packet.
type arrival struct {
	key  Key
	has  bool
	time time.Time // zero if it arrived at an unknown time
	ecn  weir.ECN
}

// clock unwraps the time in feedback packets of one format.
type clock struct {
	isRunning bool
	last      uint32
	total     int64 // in units of the format
}

// advance returns the time in units of the format, of which the packet has these low bits.
func (c *clock) advance(low uint32, bits int) int64 {
	if !c.isRunning {
		*c = clock{true, low, int64(low)}
		return c.total
	}
	shift := 32 - bits
	step := int32((low-c.last)<<shift) >> shift //nolint:gosec // the difference has a sign
	c.last, c.total = low, c.total+int64(step)
	return c.total
}

// format of feedback. Each has a clock of its own.
type format int

const (
	none format = iota
	transportWide
	rfc8888
)

// Join finds the packets of feedback in the history; false if it has no news. A packet that no feedback names is neither lost
// nor received: the feedback may be lost. (rtpfb of pion calls such packets lost.)
func (h *History) Join(packet rtcp.Packet) (weir.Feedback, bool) {
	var arrivals []arrival
	var feedback weir.Feedback
	kind := none
	switch packet := packet.(type) {
	case *rtcp.TransportLayerCC:
		kind, arrivals = transportWide, h.readTWCC(packet)
		h.missing += h.missingBefore(packet.FbPktCount)
	case *rtcp.CCFeedbackReport:
		kind, arrivals = rfc8888, h.readCCFB(packet)
	}
	for index := range arrivals {
		found := &arrivals[index]
		sent, known := h.sent[found.key]
		if !known || (found.has && found.time.IsZero()) || (!found.has && sent.isLost) {
			continue
		}
		row := weir.PacketReport{
			SequenceNumber: sent.Number, Size: sent.Size, SendTime: sent.Time, ProbeID: sent.Probe,
			Arrived: found.has, ArrivalTime: found.time, ECN: found.ecn, IsRecovered: found.has && sent.isLost,
		}
		if found.has {
			delete(h.sent, found.key)
			h.received++
		} else {
			// It may be late only.
			sent.isLost = true
			h.sent[found.key] = sent
			h.lost++
		}
		feedback.Packets = append(feedback.Packets, row)
	}
	if len(feedback.Packets) == 0 {
		return weir.Feedback{}, false
	}
	feedback.Packets = inOrder(feedback.Packets)
	// A receiver may send both formats, of which one says nothing new.
	feedback.IsNewClock = h.heard != none && h.heard != kind
	feedback.MissingFeedback = h.missing
	h.heard, h.missing = kind, 0
	return feedback, true
}

// inOrder sorts the rows, since the blocks of RFC 8888 are in order of the streams. Blocks that overlap may name a
// packet twice; if one of them has it, it arrived.
func inOrder(rows []weir.PacketReport) []weir.PacketReport {
	slices.SortStableFunc(rows, func(one, other weir.PacketReport) int {
		return cmp.Compare(one.SequenceNumber, other.SequenceNumber)
	})
	kept := rows[:0]
	for _, row := range rows {
		if last := len(kept) - 1; last >= 0 && kept[last].SequenceNumber == row.SequenceNumber {
			row.IsRecovered = false
			kept[last] = row
			continue
		}
		kept = append(kept, row)
	}
	return kept
}

// missingBefore is the number of feedback packets that are missing before this one.
func (h *History) missingBefore(count uint8) int {
	missing := 0
	if h.hasCount {
		missing = int(int8(count - h.lastCount - 1)) //nolint:gosec // a late one gives less than zero
	}
	if missing >= 0 {
		h.lastCount, h.hasCount = count, true
	}
	return max(missing, 0)
}

// readTWCC reads transport-wide feedback, whose times have units of 64 ms.
func (h *History) readTWCC(packet *rtcp.TransportLayerCC) []arrival {
	units := h.twcc.advance(packet.ReferenceTime, 24)
	now := time.Unix(0, 0).Add(time.Duration(units) * 64 * time.Millisecond)
	var arrivals []arrival
	deltas, left := packet.RecvDeltas, int(packet.PacketStatusCount)
	add := func(symbol uint16) {
		if left == 0 {
			return
		}
		number := packet.BaseSequenceNumber + packet.PacketStatusCount - uint16(left) //nolint:gosec // 16 bits
		left--
		one := arrival{key: Key{0, number}, has: symbol != rtcp.TypeTCCPacketNotReceived}
		hasDelta := one.has && symbol != rtcp.TypeTCCPacketReceivedWithoutDelta
		if hasDelta && len(deltas) > 0 {
			now = now.Add(time.Duration(deltas[0].Delta) * time.Microsecond)
			one.time, deltas = now, deltas[1:]
		}
		arrivals = append(arrivals, one)
	}
	for _, chunk := range packet.PacketChunks {
		// Chunks may name many times more packets than the packet counts.
		if left == 0 {
			break
		}
		switch chunk := chunk.(type) {
		case *rtcp.RunLengthChunk:
			for range chunk.RunLength {
				add(chunk.PacketStatusSymbol)
			}
		case *rtcp.StatusVectorChunk:
			for _, symbol := range chunk.SymbolList {
				add(symbol)
			}
		}
	}
	return arrivals
}

// readCCFB reads feedback of RFC 8888, whose time has units of 1/65536 s.
func (h *History) readCCFB(packet *rtcp.CCFeedbackReport) []arrival {
	units := h.ccfb.advance(packet.ReportTimestamp, 32)
	now := time.Unix(units>>16, (units&0xFFFF)*1_000_000_000>>16)
	var arrivals []arrival
	for _, block := range packet.ReportBlocks {
		for index, metric := range block.MetricBlocks {
			number := block.BeginSequence + uint16(index) //nolint:gosec // 16 bits
			one := arrival{key: Key{block.MediaSSRC, number}, has: metric.Received}
			if metric.Received {
				offset := min(metric.ArrivalTimeOffset, offsetTooLong)
				if metric.ArrivalTimeOffset == offsetUnknown {
					// It arrived while the report was made.
					offset = 0
				}
				one.time = now.Add(-time.Duration(offset) * time.Second / 1_024)
				one.ecn = weir.ECN(metric.ECN)
			}
			arrivals = append(arrivals, one)
		}
	}
	return arrivals
}
