package weircc

import (
	"encoding/binary"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/pion/interceptor"
	"github.com/pion/rtp"

	"weir-go/history"
)

// Payload of a padding packet: as much as its last byte can say.
const paddingSize = 255

// packet waits in the queue.
type packet struct {
	stream     *stream
	header     rtp.Header
	payload    []byte
	attributes interceptor.Attributes
	size       int
	isPadding  bool
}

// stream is one stream of RTP, with its retransmissions.
type stream struct {
	writer    interceptor.RTPWriter
	ssrc      uint32
	isAudio   bool
	twcc      uint8 // id of the header extension; zero without
	rtx       uint32
	rtxType   uint8
	rtxNumber uint16
	hasSent   bool
	timestamp uint32 // of the last media packet
}

type streams struct {
	all     []*stream
	padding bool
}

// newStream returns nil for a stream without feedback.
func newStream(info *interceptor.StreamInfo, writer interceptor.RTPWriter) *stream {
	s := &stream{
		writer: writer, ssrc: info.SSRC, rtx: info.SSRCRetransmission, rtxType: info.PayloadTypeRetransmission,
		isAudio: strings.HasPrefix(strings.ToLower(info.MimeType), "audio/"),
	}
	// A codec may have no retransmissions although another one of the track has.
	if s.rtxType == 0 {
		s.rtx = 0
	}
	s.rtxNumber = uint16(s.rtx) //nolint:gosec // any number will do
	for _, extension := range info.RTPHeaderExtensions {
		if extension.URI == transportCCURI {
			s.twcc = uint8(extension.ID) //nolint:gosec // ids are small
		}
	}
	hasCCFB := slices.Contains(info.RTCPFeedback, interceptor.RTCPFeedback{Type: "ack", Parameter: "ccfb"})
	if s.twcc == 0 && !hasCCFB {
		return nil
	}
	return s
}

// writeTo returns the function that queues packets of this stream.
func (s *stream) writeTo(e *Estimator) interceptor.RTPWriterFunc {
	return func(header *rtp.Header, payload []byte, attributes interceptor.Attributes) (int, error) {
		// The caller may use its buffers again.
		p := packet{stream: s, header: header.Clone(), payload: slices.Clone(payload), attributes: attributes}
		if s.twcc != 0 {
			// Its number is filled in when it leaves. Now it counts towards the size.
			if err := p.header.SetExtension(s.twcc, []byte{0, 0}); err != nil {
				return 0, err
			}
		}
		size := p.header.MarshalSize() + len(payload)
		p.size = size + e.options.Overhead
		var err error
		e.change(func() {
			if e.closed {
				err = io.ErrClosedPipe
				return
			}
			switch isRetransmission := s.rtx != 0 && p.header.SSRC == s.rtx; {
			case isRetransmission && !e.pacer.pushUrgent(p):
				return
			case isRetransmission:
				e.repair.add(time.Now(), p.size)
			case s.isAudio:
				e.pacer.insert(p)
			default:
				e.pacer.push(p)
			}
			e.note(e.controller.OnMediaQueued(time.Now(), p.size, e.pacer.queued))
		})
		if err != nil {
			return 0, err
		}
		return size, nil
	}
}

// number gives a packet that leaves its numbers, and returns the name by which feedback knows it.
func (s *stream) number(p *packet, number int64) (history.Key, error) {
	if s.rtx != 0 && p.header.SSRC == s.rtx {
		// Padding takes numbers of this stream, too.
		p.header.SequenceNumber = s.rtxNumber
		s.rtxNumber++
	} else {
		s.hasSent, s.timestamp = true, p.header.Timestamp
	}
	if s.twcc == 0 {
		return history.Key{SSRC: p.header.SSRC, Number: p.header.SequenceNumber}, nil
	}
	low := uint16(number) //nolint:gosec // the number on the wire wraps
	return history.Key{Number: low}, p.header.SetExtension(s.twcc, binary.BigEndian.AppendUint16(nil, low))
}

// paddingStream is a stream whose retransmission stream can carry padding, if there is one.
func (s *streams) paddingStream() *stream {
	if !s.padding {
		return nil
	}
	for _, stream := range s.all {
		if stream.rtx != 0 && stream.hasSent {
			return stream
		}
	}
	return nil
}

// padding makes a padding packet. It belongs to the retransmission stream, so that no number of the
// media is missing.
func (s *stream) padding(overhead int) (packet, error) {
	payload := make([]byte, paddingSize)
	payload[paddingSize-1] = paddingSize
	header := rtp.Header{
		Version: 2, Padding: true, PayloadType: s.rtxType, SSRC: s.rtx, Timestamp: s.timestamp,
	}
	if s.twcc != 0 {
		if err := header.SetExtension(s.twcc, []byte{0, 0}); err != nil {
			return packet{}, err
		}
	}
	size := header.MarshalSize() + len(payload) + overhead
	return packet{stream: s, header: header, payload: payload, size: size, isPadding: true}, nil
}
