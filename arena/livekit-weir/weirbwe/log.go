package weirbwe

import (
	"encoding/json"
	"os"
	"sync/atomic"
	"time"

	"github.com/livekit/livekit-server/pkg/sfu/bwe"
	"github.com/livekit/protocol/logger"
)

// Time between two lines of a subscriber.
const every = 100 * time.Millisecond

var subscribers atomic.Int64

// lines is the log of one subscriber. The file is that of all; a line is one write.
type lines struct {
	file       *os.File // nil without a log
	subscriber int64
	next       time.Time
}

// line is what a line has. Rates are in bit/s.
type line struct {
	Time       float64 `json:"time"`       // seconds since 1970
	Subscriber int64   `json:"subscriber"` // counted from 1
	Mode       mode    `json:"mode"`
	State      string  `json:"state"`    // LiveKit's word, of who is in charge
	Capacity   int64   `json:"capacity"` // as the allocator was told last; 0 before
	Target     int64   `json:"target"`   // of Weir's controller
	Reason     string  `json:"reason"`   // why the target last changed
	Sent       int64   `json:"sent"`     // media, over the last second
	Received   int     `json:"received"` // packets so far, by feedback
	Lost       int     `json:"lost"`
}

func openLog(name string, log logger.Logger) *lines {
	l := &lines{subscriber: subscribers.Add(1)}
	if name == "" {
		return l
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		log.Errorw("no log of Weir's estimates", err)
		return l
	}
	l.file = file
	return l
}

// write adds a line if the last one is old enough.
func (l *lines) write(at time.Time, who mode, state bwe.CongestionState, capacity int64, e *estimate) {
	if l.file == nil || at.Before(l.next) {
		return
	}
	l.next = at.Add(every)
	received, lost := e.history.Counts()
	text, err := json.Marshal(line{
		Time: float64(at.UnixMicro()) / 1e6, Subscriber: l.subscriber, Mode: who, State: state.String(),
		Capacity: capacity, Target: e.target, Reason: e.metrics.Reason, Sent: e.sentRate(at),
		Received: received, Lost: lost,
	})
	if err == nil {
		_, _ = l.file.Write(append(text, '\n'))
	}
}
