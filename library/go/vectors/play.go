// Package vectors plays Weir's conformance vectors (the folder vectors/ of the project) against the
// controllers of package weir.
package vectors

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	weir "weir-go"
)

// Header is the first line of a file.
type Header struct {
	Format     int    `json:"format"`
	Controller string `json:"controller"`
	Case       string `json:"case"`
	Feedback   string `json:"feedback"`
	Settings   struct {
		Min   int64  `json:"min_bps"`
		Start int64  `json:"start_bps"`
		Max   int64  `json:"max_bps"`
		ECN   string `json:"ecn"`
	} `json:"settings"`
}

// row is a line behind the header: its kind, and what follows.
type row []json.RawMessage

// sent is what the sender remembers of a packet.
type sent struct {
	size  int
	time  time.Time
	probe uint64
}

var (
	errFormat = errors.New("not a vector of format 2")
	errRow    = errors.New("a row of an unknown kind, or too short")
	errEmpty  = errors.New("no target is compared: the file is cut")
)

// Mismatch is the first difference between a controller and a vector.
type Mismatch struct {
	File       string
	Line       int
	Time       time.Duration
	Want, Have string
}

func (m *Mismatch) Error() string {
	return fmt.Sprintf("%s, line %d, at %v:\n  want %s\n  have %s", m.File, m.Line, m.Time, m.Want, m.Have)
}

// player is one controller that plays one file.
type player struct {
	controller *weir.Controller
	origin     time.Time
	now        time.Duration
	sent       map[int64]sent
}

// Play plays a file. The controllers are the same code, so each number must be equal. The error is
// a *Mismatch if one is not. It returns the number of targets compared.
func Play(path string) (int, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer file.Close() //nolint:errcheck // only read
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	if !lines.Scan() {
		return 0, errFormat
	}
	var header Header
	if err := json.Unmarshal(lines.Bytes(), &header); err != nil || header.Format != 2 {
		return 0, fmt.Errorf("%s: %w", path, errFormat)
	}
	modes := map[string]weir.ECNMode{"off": weir.ECNOff, "classic": weir.ECNClassic, "l4s": weir.ECNL4S}
	controller, err := weir.New(weir.Algorithm(header.Controller), weir.Settings{
		MinBitrate:   header.Settings.Min,
		StartBitrate: header.Settings.Start,
		MaxBitrate:   header.Settings.Max,
		ECN:          modes[header.Settings.ECN],
	})
	if err != nil {
		return 0, fmt.Errorf("%s: %w", path, err)
	}
	defer controller.Close() //nolint:errcheck // it was open
	p := &player{controller: controller, origin: time.Now(), sent: map[int64]sent{}}
	compared, err := p.play(path, lines)
	if err == nil && compared == 0 {
		err = fmt.Errorf("%s: %w", path, errEmpty)
	}
	return compared, err
}

// play compares the target behind each event. A row of a target stands for all events until the
// next such row.
func (p *player) play(path string, lines *bufio.Scanner) (int, error) {
	var want, pending string
	compared := 0
	compare := func(line int) error {
		have, err := p.target()
		if err != nil {
			return err
		}
		compared++
		if have != want {
			return &Mismatch{path, line, p.now, want, have}
		}
		return nil
	}
	for line := 2; lines.Scan(); line++ {
		text := lines.Text()
		var row row
		if err := json.Unmarshal([]byte(text), &row); err != nil || len(row) < 2 {
			return compared, fmt.Errorf("%s, line %d: %w", path, line, errRow)
		}
		if string(row[0]) == `"target"` {
			want, pending = text, ""
			if err := compare(line); err != nil {
				return compared, err
			}
			continue
		}
		if pending != "" {
			if err := compare(line - 1); err != nil {
				return compared, err
			}
		}
		pending = text
		if err := p.event(row); err != nil {
			return compared, fmt.Errorf("%s, line %d: %w", path, line, err)
		}
	}
	if pending != "" {
		if err := compare(-1); err != nil {
			return compared, err
		}
	}
	return compared, lines.Err()
}

// target is the row of the controller's target.
func (p *player) target() (string, error) {
	target, err := p.controller.Target()
	if err != nil {
		return "", err
	}
	metrics, err := p.controller.Metrics()
	if err != nil {
		return "", err
	}
	window, probe := "null", "null"
	if target.Window != weir.NoLimit {
		window = fmt.Sprint(target.Window)
	}
	if target.Probe.ID != 0 {
		probe = fmt.Sprintf("[%d,%d,%d,%d]", target.Probe.ID, target.Probe.Rate, target.Probe.Size, target.Probe.Packets)
	}
	return fmt.Sprintf(`["target",%d,%d,%d,%s,%s,"%s","%s"]`, target.Bitrate, target.PacingRate,
		target.PaddingRate, window, probe, metrics.State, metrics.Reason), nil
}

// numbers of a row behind its kind; null is NoLimit.
func (r row) numbers() ([]int64, error) {
	numbers := make([]int64, 0, len(r))
	for _, cell := range r[1:] {
		number := weir.NoLimit
		if string(cell) != "null" {
			if err := json.Unmarshal(cell, &number); err != nil {
				return nil, err
			}
		}
		numbers = append(numbers, number)
	}
	return numbers, nil
}

func (p *player) event(row row) error {
	kind := string(row[0])
	if kind == `"feedback"` {
		return p.feedback(row)
	}
	if kind == `"no-news"` {
		return nil
	}
	n, err := row.numbers()
	if err != nil {
		return err
	}
	p.now = time.Duration(n[0]) * time.Microsecond
	now := p.origin.Add(p.now)
	switch {
	case kind == `"queued"` && len(n) == 3:
		return p.controller.OnMediaQueued(now, int(n[1]), int(n[2]))
	case kind == `"sent"` && len(n) >= 4:
		return p.packetSent(now, n)
	case kind == `"rtt"` && len(n) == 2:
		return p.controller.OnRoundTripTime(now, time.Duration(n[1])*time.Microsecond)
	case kind == `"receiver-limit"` && len(n) == 2:
		return p.controller.OnReceiverLimit(now, n[1])
	case kind == `"limits"` && len(n) == 4:
		return p.controller.SetLimits(now, n[1], n[2], n[3])
	case kind == `"desired"` && len(n) == 2:
		return p.controller.SetDesiredBitrate(now, n[1])
	case kind == `"route"`:
		return p.controller.OnRouteChange(now)
	case kind == `"timeout"`:
		return p.controller.OnTimeout(now)
	}
	return errRow
}

func (p *player) packetSent(now time.Time, n []int64) error {
	packet := weir.SentPacket{SequenceNumber: n[1], Size: int(n[2]), Queued: int(n[3])}
	if len(n) == 6 {
		packet.ProbeID, packet.IsPadding = uint64(n[4]), n[5] == 1
	}
	p.sent[n[1]] = sent{packet.Size, now, packet.ProbeID}
	return p.controller.OnPacketSent(now, packet)
}

func (p *player) feedback(row row) error {
	var (
		at, missing, isNewClock int64
		packets                 [][]*int64
	)
	if len(row) != 6 {
		return errRow
	}
	for cell, value := range map[int]any{1: &at, 3: &packets, 4: &missing, 5: &isNewClock} {
		if err := json.Unmarshal(row[cell], value); err != nil {
			return err
		}
	}
	p.now = time.Duration(at) * time.Microsecond
	feedback := weir.Feedback{MissingFeedback: int(missing), IsNewClock: isNewClock == 1}
	for _, packet := range packets {
		if len(packet) < 2 {
			return errRow
		}
		known := p.sent[*packet[0]]
		report := weir.PacketReport{
			SequenceNumber: *packet[0], Size: known.size, SendTime: known.time, ProbeID: known.probe,
		}
		if packet[1] != nil {
			report.Arrived = true
			report.ArrivalTime = p.origin.Add(time.Duration(*packet[1]) * time.Microsecond)
		}
		if len(packet) > 2 {
			report.ECN = weir.ECN(*packet[2])
		}
		report.IsRecovered = len(packet) > 3
		feedback.Packets = append(feedback.Packets, report)
	}
	return p.controller.OnFeedback(p.origin.Add(p.now), feedback)
}
