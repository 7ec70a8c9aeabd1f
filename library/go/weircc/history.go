package weircc

import weir "weir-go"

// remember adds a packet to the history, and forgets the oldest ones.
func (e *Estimator) remember(sent record) {
	e.history[sent.key] = sent
	e.order = append(e.order, sent.key)
	for len(e.order) > maxHistory {
		// The name may belong to a newer packet by now.
		if old, known := e.history[e.order[0]]; known && old.number <= sent.number-maxHistory {
			delete(e.history, e.order[0])
		}
		e.order = e.order[1:]
	}
}

func (e *Estimator) count(probe uint64, isPadding bool) {
	e.counts.sent++
	if isPadding {
		e.counts.padding++
	}
	if probe != 0 {
		e.counts.probes++
	}
}

// description of a packet for the controller.
func (e *Estimator) description(p *packet, probe uint64) weir.SentPacket {
	return weir.SentPacket{
		SequenceNumber: e.number,
		Size:           p.size,
		Queued:         e.pacer.queued,
		ProbeID:        probe,
		IsPadding:      p.isPadding,
	}
}
