package weircc

import weir "weir-go"

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
