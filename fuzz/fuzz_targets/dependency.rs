//! Any bytes are a dependency descriptor or are refused, and what was read is written with the same
//! meaning.
#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_wire::dependency::{Descriptor, Prediction, Structure, shift};

fuzz_target!(|bytes: &[u8]| {
    let known = Structure::svc(3, 3, Prediction::Always).expect("a usual mode");
    if let Ok(found) = Descriptor::parse(bytes, Some(&known)) {
        let _ = found.frame(&known);
        let mut again = found.emit(&known);
        assert_eq!(Descriptor::parse(&again, Some(&known)).as_ref(), Ok(&found));
        shift(&mut again, 7, 9);
        let moved = Descriptor::parse(&again, Some(&known)).expect("as long as before");
        assert_eq!(moved.frame_number, found.frame_number.wrapping_add(7));
    }
});
