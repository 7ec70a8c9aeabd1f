//! Random messages are written and read back; random bytes are read without a panic.

use proptest::prelude::*;
use weir_diameter::avp::{ACCESS, BASE, CX, RX};
use weir_diameter::{Avp, Definition, Kind, Message, Value, frame};

fn definition() -> impl Strategy<Value = Definition> {
    let all: Vec<Definition> = [BASE, ACCESS, CX, RX].concat();
    prop::sample::select(all)
}

fn leaf(kind: Kind) -> BoxedStrategy<Value> {
    match kind {
        Kind::Text => "\\PC{0,20}".prop_map(Value::Text).boxed(),
        Kind::Unsigned32 => any::<u32>().prop_map(Value::Unsigned32).boxed(),
        Kind::Unsigned64 => any::<u64>().prop_map(Value::Unsigned64).boxed(),
        Kind::Integer32 => any::<i32>().prop_map(Value::Integer32).boxed(),
        Kind::Address => any::<std::net::IpAddr>().prop_map(Value::Address).boxed(),
        Kind::Group => Just(Value::Group(Vec::new())).boxed(),
        _ => prop::collection::vec(any::<u8>(), 0..20).prop_map(Value::Octets).boxed(),
    }
}

fn avp() -> impl Strategy<Value = Avp> {
    let known = (definition(), any::<(bool, bool)>()).prop_flat_map(|(of, flags)| {
        leaf(of.kind).prop_map(move |value| Avp {
            code: of.code,
            vendor: of.vendor,
            mandatory: flags.0,
            protected: flags.1,
            value,
        })
    });
    let unknown =
        (60_000..u32::MAX, any::<Option<u32>>(), prop::collection::vec(any::<u8>(), 0..9));
    let unknown = unknown.prop_map(|(code, vendor, bytes)| Avp {
        code,
        vendor,
        mandatory: false,
        protected: false,
        value: Value::Octets(bytes),
    });
    prop_oneof![4 => known, 1 => unknown].prop_recursive(4, 24, 4, |inner| {
        prop::collection::vec(inner, 0..4)
            .prop_map(|avps| weir_diameter::avp::FAILED_AVP.group(avps))
    })
}

fn message() -> impl Strategy<Value = Message> {
    let flags = any::<(bool, bool, bool, bool)>();
    let numbers = (0..1_u32 << 24, any::<u32>(), any::<u32>(), any::<u32>());
    (flags, numbers, prop::collection::vec(avp(), 0..8)).prop_map(|(flags, numbers, avps)| {
        Message {
            is_request: flags.0,
            is_proxiable: flags.1,
            is_error: flags.2,
            is_retransmitted: flags.3,
            command: numbers.0,
            application: numbers.1,
            hop_by_hop: numbers.2,
            end_to_end: numbers.3,
            avps,
        }
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read(message in message()) {
        let bytes = message.to_bytes();
        prop_assert_eq!(frame(&bytes), Ok(Some(bytes.len())));
        prop_assert_eq!(Message::parse(&bytes), Ok(message));
    }

    #[test]
    fn a_truncated_message_is_rejected(message in message(), at in any::<prop::sample::Index>()) {
        let bytes = message.to_bytes();
        prop_assert!(Message::parse(&bytes[..at.index(bytes.len())]).is_err());
    }

    /// Damage inside a message: what can still be read keeps its content.
    #[test]
    fn damaged_bytes_are_read_or_rejected(
        message in message(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = message.to_bytes();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(read) = Message::parse(&bytes) {
            prop_assert_eq!(Message::parse(&read.to_bytes()), Ok(read));
        }
    }
}
