//! Another extension element in a packet that exists.

use alloc::vec::Vec;

use super::{Element, ExtensionId, View, elements_size, emit_elements};

/// Most elements of a packet that are kept.
const MAX_ELEMENTS: usize = 32;

/// Replaces the data of the first element with this id. The packet grows or shrinks with it, and
/// its other elements stay. Returns whether it was replaced: not if the bytes are no RTP, if no
/// element has the id, or if there are more than 32.
pub fn replace_element(packet: &mut Vec<u8>, id: ExtensionId, data: &[u8]) -> bool {
    let Some(new) = Element::new(id, data) else { return false };
    let Ok(view) = View::parse_header(packet) else { return false };
    let end = view.header_size();
    let start = end - view.extension.len();
    let mut elements = [Element::EMPTY; MAX_ELEMENTS];
    let (mut count, mut is_replaced) = (0, false);
    for element in view.elements() {
        let Some(place) = elements.get_mut(count) else { return false };
        let is_first = element.id() == id && !is_replaced;
        *place = if is_first { new } else { element };
        is_replaced |= is_first;
        count += 1;
    }
    if !is_replaced {
        return false;
    }
    let elements = &elements[..count];
    let mut block = alloc::vec![0; elements_size(elements)];
    emit_elements(elements, &mut block);
    packet.splice(start..end, block);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtp::{PayloadType, RtpHeader};

    #[test]
    fn an_element_grows_and_the_others_and_the_payload_stay() {
        let [first, second] = [1, 2].map(|id| ExtensionId::new(id).unwrap());
        let header = RtpHeader::new(7, PayloadType::new(96).unwrap(), 500, 9_000)
            .with_transport_sequence_number(Some((first, 0x1234)));
        let elements = [Element::new(second, &[1, 2, 3]).unwrap()];
        let mut packet = alloc::vec![0; header.size_with(&elements)];
        header.emit_with(&elements, &mut packet);
        packet.extend_from_slice(b"media");
        for size in [3, 17, 1] {
            let data = alloc::vec![9; size];
            assert!(replace_element(&mut packet, second, &data));
            let view = View::parse(&packet).unwrap();
            assert_eq!(view.element(second), Some(data.as_slice()));
            assert_eq!(view.element_range(second).map(|range| &packet[range]), Some(&data[..]));
            assert_eq!(view.element(first), Some([0x12, 0x34].as_slice()));
            assert_eq!((view.payload(), view.ssrc()), (b"media".as_slice(), 7));
        }
        let before = packet.clone();
        assert!(!replace_element(&mut packet, ExtensionId::new(3).unwrap(), &[1]));
        assert!(!replace_element(&mut alloc::vec![0x80; 5], first, &[1]));
        assert_eq!(packet, before);
    }
}
