//! The header and elements of a packet that parses stay the same when written and parsed again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_wire::rtp::{Element, ExtensionIds, RtpHeader, View, elements_size, emit_elements};

fuzz_target!(|bytes: &[u8]| {
    let Ok(view) = View::parse(bytes) else { return };
    assert!(view.payload().len() + 12 <= bytes.len());
    assert!(view.csrcs().len() <= 15);
    assert!(!view.to_string().is_empty());

    let elements: Vec<Element<'_>> = view.elements().collect();
    for pair in elements.windows(2) {
        let ids = ExtensionIds::NONE
            .with_transport_sequence_number(Some(pair[0].id()))
            .with_abs_send_time(Some(pair[1].id()));
        let header = view.header(ids);
        let mut again = [0; RtpHeader::MAX_SIZE];
        let size = header.emit(&mut again);
        assert_eq!(View::parse(&again[..size]).expect("just written").header(ids), header);
    }
    check_elements(&elements, view);
});

/// Writes the elements after a header without extensions, and parses them again.
fn check_elements(elements: &[Element<'_>], view: View<'_>) {
    if elements_size(elements) > 4 * usize::from(u16::MAX) {
        return; // The elements of a full one-byte block may not fit in the two-byte form.
    }
    let bare = view.header(ExtensionIds::default());
    let mut bytes = vec![0; bare.size() + elements_size(elements)];
    let size = bare.emit(&mut bytes);
    assert_eq!(size + emit_elements(elements, &mut bytes[size..]), bytes.len());
    bytes[0] |= 1 << 4;
    assert!(View::parse(&bytes).expect("just written").elements().eq(elements.iter().copied()));
}
