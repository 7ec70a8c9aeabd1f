package weir

import "time"

// Algorithm is the name of a controller.
type Algorithm string

// The controllers of the library.
const (
	GCC      Algorithm = "gcc"       // Google Congestion Control, as in libwebrtc
	NADA     Algorithm = "nada"      // RFC 8698
	SCReAM   Algorithm = "scream"    // RFC 8298
	SCReAMv2 Algorithm = "scream-v2" // its successor
	Sluice   Algorithm = "sluice"    // Weir's own
)

// Algorithms returns all controllers.
func Algorithms() []Algorithm {
	return []Algorithm{GCC, NADA, SCReAM, SCReAMv2, Sluice}
}

// ECNMode says how a sender uses ECN.
type ECNMode uint32

// The modes of ECN.
const (
	ECNOff     ECNMode = 0 // packets are Not-ECT
	ECNClassic ECNMode = 1 // packets are ECT(0): a mark means the same as a loss
	ECNL4S     ECNMode = 2 // packets are ECT(1): marks are frequent
)

// ECN has the two ECN bits of an IP header.
type ECN uint8

// The values of the ECN bits.
const (
	NotECT ECN = 0
	ECT1   ECN = 1
	ECT0   ECN = 2
	CE     ECN = 3
)

// Settings configure a controller. A field that is zero has its default.
type Settings struct {
	MinBitrate   int64   // lowest target in bit/s; default 150,000
	StartBitrate int64   // target before the first feedback; default 300,000
	MaxBitrate   int64   // highest target; default 2,500,000
	Priority     float64 // weight relative to other flows; default 1
	ECN          ECNMode

	TolerateRandomLoss bool // tolerate random packet loss, if the controller has this option
	CompeteWithTCP     bool // resist starvation by loss-based flows, if it has this option
	// NoProbeWhenLimited: do not repeat probes while the source sends less than the target.
	NoProbeWhenLimited bool
}

// SentPacket is a packet that left the pacer.
type SentPacket struct {
	SequenceNumber int64 // increases by one with each packet of the transport, without wrapping
	Size           int   // in bytes; count the same headers everywhere
	Queued         int   // bytes left in the send queue after this packet
	ProbeID        uint64
	IsPadding      bool // the packet carries neither media nor repair of media
}

// PacketReport says what became of one packet.
type PacketReport struct {
	SequenceNumber int64
	Size           int
	SendTime       time.Time // on the sender's clock
	// ArrivalTime is on the receiver's clock, which may have any origin. The zero time means that
	// the packet has not arrived, unless Arrived is set.
	ArrivalTime time.Time
	Arrived     bool
	ProbeID     uint64
	ECN         ECN
	IsRecovered bool // an earlier report called the packet lost, but it was only late
}

// Feedback has the news of one feedback packet.
type Feedback struct {
	Packets         []PacketReport // by increasing sequence number, each one once
	MissingFeedback int            // feedback packets lost since the last report, if known
	RoundTripTimes  bool           // arrival times are derived from receiver reports
	IsNewClock      bool           // arrival times are on another clock than the last report's
}

// Probe is a burst of packets that measures the capacity of the path.
type Probe struct {
	ID      uint64 // numbered from 1; zero if there is no probe
	Rate    int64  // in bit/s
	Size    int    // minimum number of bytes
	Packets int    // minimum number of packets
}

// NoLimit stands for a limit or a window that does not exist.
const NoLimit int64 = -1

// Target says what the sender should do now. Rates are in bit/s.
type Target struct {
	Bitrate       int64 // of the media, headers included; always within the limits
	SourceBitrate int64 // lower than Bitrate while too much is in flight, else equal
	PacingRate    int64 // rate at which queued packets leave
	BurstTime     time.Duration
	BurstWhole    bool  // wait after a burst until the budget has recovered
	Window        int64 // bytes that may be in flight, or NoLimit
	Available     int64 // bytes that may be sent now, or NoLimit
	PaddingRate   int64 // send padding while the send rate is below this
	Probe         Probe // to be started when a new ID appears
}

// Signal is a value specific to an algorithm. The name contains the unit.
type Signal struct {
	Name  string
	Value float64
}

// Metrics are a controller's internals, for traces and reports.
type Metrics struct {
	RTT           time.Duration // includes the feedback interval; zero if unknown
	QueuingDelay  time.Duration // zero if unknown
	AckedBitrate  int64         // in bit/s; zero if unknown
	LossRatio     float64
	Reason, State string // why the target last changed; the state, as the standard names it
	Signals       []Signal
}
