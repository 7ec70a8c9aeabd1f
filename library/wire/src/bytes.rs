//! Big-endian fields at named offsets.
//!
//! Reads and writes panic if the field lies outside the bytes. A view therefore reads only fields
//! whose presence its `parse` has checked.

use core::ops::Range;

/// Byte range of a field in its packet.
pub(crate) type Field = Range<usize>;

pub(crate) fn read_u16(bytes: &[u8], field: Field) -> u16 {
    let mut raw = [0; 2];
    raw.copy_from_slice(&bytes[field]);
    u16::from_be_bytes(raw)
}

pub(crate) fn read_u24(bytes: &[u8], field: Field) -> u32 {
    let mut raw = [0; 4];
    raw[1..].copy_from_slice(&bytes[field]);
    u32::from_be_bytes(raw)
}

pub(crate) fn read_u32(bytes: &[u8], field: Field) -> u32 {
    let mut raw = [0; 4];
    raw.copy_from_slice(&bytes[field]);
    u32::from_be_bytes(raw)
}

pub(crate) fn read_u64(bytes: &[u8], field: Field) -> u64 {
    let mut raw = [0; 8];
    raw.copy_from_slice(&bytes[field]);
    u64::from_be_bytes(raw)
}

pub(crate) fn write_u16(bytes: &mut [u8], field: Field, value: u16) {
    bytes[field].copy_from_slice(&value.to_be_bytes());
}

/// Writes the low 24 bits of `value`.
pub(crate) fn write_u24(bytes: &mut [u8], field: Field, value: u32) {
    bytes[field].copy_from_slice(&value.to_be_bytes()[1..]);
}

pub(crate) fn write_u32(bytes: &mut [u8], field: Field, value: u32) {
    bytes[field].copy_from_slice(&value.to_be_bytes());
}

pub(crate) fn write_u64(bytes: &mut [u8], field: Field, value: u64) {
    bytes[field].copy_from_slice(&value.to_be_bytes());
}
