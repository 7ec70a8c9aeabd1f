package weircc

import (
	"errors"
	"io"
	"sync"

	"github.com/pion/rtcp"
	"github.com/pion/transport/v5/packetio"
)

// How much may wait to be read, in bytes, as in pion without a factory.
const (
	maxRTP  = 1_000_000
	maxRTCP = 100_000
)

// Buffers gives an Estimator the feedback that names a retransmission stream. A receiver names the stream of the last
// packet that it reports, and pion reads no RTCP of a retransmission stream, so a controller would miss what is reported
// after padding or a repeat. Set both, before the first connection:
//
//	buffers := &weircc.Buffers{}
//	options.Buffers = buffers
//	engine.BufferFactory = buffers.Make // of webrtc.SettingEngine
//
// The zero value is ready. Connections of one API share it, unless two of them call each other: they would have streams of
// the same name. With a factory, pion reads what a receiving end gets again (RTX) only after the first Read of its track.
type Buffers struct {
	lock  sync.Mutex
	media map[uint32]uint32  // the media stream of a retransmission stream
	rtcp  map[uint32]*buffer // of media streams
}

// buffer is pion's own one.
type buffer struct{ *packetio.Buffer }

func newBuffer(most int) *buffer {
	made := &buffer{packetio.NewBuffer()}
	made.SetLimitSize(most)
	return made
}

func (b *buffer) Read(packet []byte) (int, error) {
	size, _, err := b.Buffer.Read(packet, nil)
	return size, err
}

func (b *buffer) Write(packet []byte) (int, error) { return b.Buffer.Write(packet, nil) }

// ReadWithAttributes also returns what the network said of the packet, such as its ECN.
func (b *buffer) ReadWithAttributes(packet []byte, attributes packetio.Attributes) (int, packetio.Attributes, error) {
	return b.Buffer.Read(packet, attributes)
}

// WriteWithAttributes keeps them.
func (b *buffer) WriteWithAttributes(packet []byte, attributes packetio.Attributes) (int, error) {
	return b.Buffer.Write(packet, attributes)
}

// alias passes the feedback of a retransmission stream on to its media stream. Nobody reads it itself.
type alias struct {
	*buffer
	media *buffer
}

func (a *alias) Write(packet []byte) (int, error) { return a.WriteWithAttributes(packet, nil) }

func (a *alias) WriteWithAttributes(packet []byte, attributes packetio.Attributes) (int, error) {
	if !isFeedback(packet) {
		// What else names this stream names the media too, or nobody reads it in pion.
		return len(packet), nil
	}
	written, err := a.media.WriteWithAttributes(packet, attributes)
	if errors.Is(err, io.ErrClosedPipe) {
		// The stream has ended. An error would have pion drop what other streams get in the same packet.
		return len(packet), nil
	}
	return written, err
}

// isFeedback says whether a packet of RTCP is transport-wide feedback or that of RFC 8888.
func isFeedback(packet []byte) bool {
	const formatMask = 0x1F
	if len(packet) < 2 || rtcp.PacketType(packet[1]) != rtcp.TypeTransportSpecificFeedback {
		return false
	}
	format := packet[0] & formatMask
	return format == rtcp.FormatTCC || format == rtcp.FormatCCFB
}

// Make makes the buffer of a stream, as webrtc.SettingEngine.BufferFactory.
func (b *Buffers) Make(kind packetio.BufferPacketType, ssrc uint32) io.ReadWriteCloser {
	if kind == packetio.RTPBufferPacket {
		return newBuffer(maxRTP)
	}
	b.lock.Lock()
	defer b.lock.Unlock()
	if media, isRetransmission := b.media[ssrc]; isRetransmission {
		return &alias{newBuffer(maxRTCP), b.rtcp[media]}
	}
	if media, isKnown := b.rtcp[ssrc]; isKnown {
		return media
	}
	return newBuffer(maxRTCP)
}

// join says that these two belong together.
func (b *Buffers) join(retransmission, media uint32) {
	if b == nil || retransmission == 0 {
		return
	}
	b.lock.Lock()
	defer b.lock.Unlock()
	if b.media == nil {
		b.media, b.rtcp = map[uint32]uint32{}, map[uint32]*buffer{}
	}
	b.media[retransmission], b.rtcp[media] = media, newBuffer(maxRTCP)
}

// leave forgets a stream that has ended.
func (b *Buffers) leave(retransmission, media uint32) {
	if b == nil {
		return
	}
	b.lock.Lock()
	defer b.lock.Unlock()
	delete(b.media, retransmission)
	delete(b.rtcp, media)
}
