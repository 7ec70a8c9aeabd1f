//! C sets `struct_size` of what the library fills in, and nothing else. Miri fails if the library
//! reads more.

use std::mem::MaybeUninit;
use std::ptr::null_mut;

use crate::common::{ok, sized};
use weir_capi::*;

/// A struct of the header of which only the size is set.
fn unset<T>() -> MaybeUninit<T> {
    let mut value = MaybeUninit::<T>::uninit();
    // SAFETY: `struct_size` is the first member of the structs of the header.
    unsafe { value.as_mut_ptr().cast::<usize>().write(size_of::<T>()) };
    value
}

#[test]
fn a_packet_and_a_target_are_only_written() {
    let mut settings: weir_settings = sized();
    let mut config: weir_sender_config = sized();
    let mut sender = null_mut();
    let mut rtp = [0_u8; 100];
    rtp[0] = 0x80;
    rtp[1] = 96;
    rtp[11] = 7; // the SSRC
    let packets = [weir_bytes { data: rtp.as_ptr(), length: rtp.len() }];
    let (mut packet, mut target) = (unset::<weir_packet>(), unset::<weir_target>());
    // SAFETY: all pointers are valid, and the sender is freed once.
    unsafe {
        ok(weir_settings_init(&mut settings, size_of::<weir_settings>()));
        ok(weir_sender_config_init(&mut config, size_of::<weir_sender_config>()));
        config.ssrc = 7;
        config.transport_sequence_number_id = 0;
        ok(weir_sender_new(0, c"scream".as_ptr(), &settings, &config, &mut sender));
        ok(weir_sender_enqueue(sender, 0, packets.as_ptr(), 1));
        ok(weir_sender_target(sender, target.as_mut_ptr()));
        ok(weir_sender_next_packet(sender, 0, packet.as_mut_ptr()));
        let packet = packet.assume_init();
        assert_eq!((packet.length, packet.is_padding), (rtp.len(), 0));
        assert!(target.assume_init().bitrate_bps > 0);
        weir_sender_free(sender);
    }
}
