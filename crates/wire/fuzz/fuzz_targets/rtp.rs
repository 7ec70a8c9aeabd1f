//! Any packet that can be read gives a header and elements that, written again, read the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_wire::rtp::{Element, ExtensionId, RtpHeader, View, elements_size, emit_elements};

fuzz_target!(|bytes: &[u8]| {
    let Ok(view) = View::parse(bytes) else { return };
    assert!(view.payload().len() + 12 <= bytes.len());
    assert!(view.csrcs().len() <= 15);
    assert!(!view.to_string().is_empty());

    let elements: Vec<Element<'_>> = view.elements().collect();
    for element in &elements {
        let header = view.header(element.id());
        let mut again = [0; RtpHeader::MAX_SIZE];
        let size = header.emit(&mut again);
        assert_eq!(View::parse(&again[..size]).expect("just written").header(element.id()), header);
    }
    check_elements(&elements, view);
});

/// Puts the elements behind a bare header.
fn check_elements(elements: &[Element<'_>], view: View<'_>) {
    if elements_size(elements) > 4 * usize::from(u16::MAX) {
        return; // The two-byte form of a full one-byte block may not fit.
    }
    let id = ExtensionId::new(1).expect("not zero");
    let bare = RtpHeader { transport_sequence_number: None, ..view.header(id) };
    let mut bytes = vec![0; bare.size() + elements_size(elements)];
    let size = bare.emit(&mut bytes);
    assert_eq!(size + emit_elements(elements, &mut bytes[size..]), bytes.len());
    bytes[0] |= 1 << 4;
    assert!(View::parse(&bytes).expect("just written").elements().eq(elements.iter().copied()));
}
