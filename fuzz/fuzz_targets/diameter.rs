//! Any bytes can be read as a Diameter message or rejected. A message keeps its content when it is
//! written again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_diameter::{Message, frame};

fuzz_target!(|bytes: &[u8]| {
    let length = frame(bytes);
    let Ok(message) = Message::parse(bytes) else { return };
    assert_eq!(length, Ok(Some(bytes.len())));
    assert!(!message.to_string().is_empty());
    let again = message.to_bytes();
    assert_eq!(again.len(), bytes.len());
    assert_eq!(Message::parse(&again), Ok(message));
});
