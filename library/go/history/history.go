package history

import "time"

// Sent packets without feedback that are remembered.
const maxSent = 16_384

// Key is the name by which feedback knows a packet.
type Key struct {
	SSRC   uint32 // zero for a transport-wide number
	Number uint16
}

// Packet is what is remembered of a packet.
type Packet struct {
	Number int64 // increases by one with each packet, without wrapping
	Size   int   // in bytes
	Time   time.Time
	Probe  uint64 // zero if it belongs to none
}

type record struct {
	Packet
	isLost bool // according to feedback
}

// History has the packets that were sent and on which no feedback has come. The zero value is empty. Its
// methods must not be called by two goroutines at once.
type History struct {
	sent           map[Key]record
	order          []Key // oldest first
	twcc, ccfb     clock
	heard          format // of the last feedback with news
	missing        int    // feedback packets since then
	received, lost int
	// Of transport-wide feedback.
	lastCount uint8
	hasCount  bool
}

// Add remembers a packet that leaves, and forgets the oldest ones.
func (h *History) Add(key Key, packet Packet) {
	if h.sent == nil {
		h.sent = map[Key]record{}
	}
	h.sent[key] = record{Packet: packet}
	h.order = append(h.order, key)
	for len(h.order) > maxSent {
		// The name may belong to a newer packet by now.
		if old, known := h.sent[h.order[0]]; known && old.Number <= packet.Number-maxSent {
			delete(h.sent, h.order[0])
		}
		h.order = h.order[1:]
	}
}

// Clear forgets the packets, as after a change of the route.
func (h *History) Clear() {
	clear(h.sent)
	h.order = nil
}

// Counts returns how many packets arrived and how many were lost, according to feedback. A packet that was
// only late is in both.
func (h *History) Counts() (received, lost int) { return h.received, h.lost }
