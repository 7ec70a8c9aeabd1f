//! A NACK, key-frame request, FlexFEC header, retransmission or VP8 payload start that parses keeps
//! its content when it is written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_wire::flexfec::Header;
use weir_wire::key_frame::{FullIntra, FullIntraView, PictureLoss};
use weir_wire::nack::{self, Nack};
use weir_wire::rtp::Rtx;
use weir_wire::vp8::Descriptor;

fuzz_target!(|bytes: &[u8]| {
    if let Ok((header, rest)) = Header::parse(bytes) {
        let mut again = [0; Header::MAX_SIZE];
        let size = header.emit(&mut again);
        let (read, _) = Header::parse(&again[..size]).expect("just written");
        assert_eq!(read, header);
        assert!(size + rest.len() <= bytes.len());
        assert!(header.sequence_numbers().count() <= 110);
    }
    if let Ok(rtx) = Rtx::parse(bytes) {
        let mut again = vec![0; rtx.size()];
        rtx.emit(&mut again);
        assert_eq!(again, bytes);
    }
    if let Ok(descriptor) = Descriptor::parse(bytes) {
        assert_eq!(Descriptor::parse(&descriptor.emit()), Ok(descriptor));
    }
    // The target writes the common header itself, because the fuzzer would rarely guess a valid
    // one.
    for (format, packet_type) in [(1, 205), (1, 206), (4, 206)] {
        let words = (bytes.len() / 4).min(1_000);
        let mut packet = vec![0x80 | format, packet_type];
        packet.extend((words as u16).to_be_bytes());
        packet.extend_from_slice(&bytes[..words * 4]);
        check(&packet);
    }
});

fn check(packet: &[u8]) {
    if let Ok(view) = nack::View::parse(packet) {
        let numbers: Vec<u16> = view.sequence_numbers().collect();
        if let Some(value) = Nack::new(view.sender_ssrc(), view.media_ssrc(), &numbers) {
            let mut again = vec![0; value.size()];
            value.emit(&mut again);
            let again = nack::View::parse(&again).expect("just written");
            assert!(again.sequence_numbers().eq(numbers.iter().copied()));
        }
    }
    if let Ok(value) = PictureLoss::parse(packet) {
        let mut again = [0; PictureLoss::SIZE];
        value.emit(&mut again);
        assert_eq!(again, packet);
    }
    if let Ok(view) = FullIntraView::parse(packet) {
        let requests: Vec<_> = view.requests().collect();
        let value = FullIntra::new(view.sender_ssrc(), &requests).expect("a few requests");
        let mut again = vec![0; value.size()];
        value.emit(&mut again);
        assert!(FullIntraView::parse(&again).expect("just written").requests().eq(requests));
    }
}
