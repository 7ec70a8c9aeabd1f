//! What stands for a session description: where the subscriber is, and its certificate.

use std::fmt::Write as _;
use std::net::SocketAddr;

/// The name in the certificate.
pub const NAME: &str = "subscriber";

/// Address and certificate as text.
pub fn written(address: SocketAddr, certificate: &[u8]) -> String {
    let mut text = format!("{address} ");
    for byte in certificate {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Reads that text. `None` if it is another one.
pub fn read(text: &str) -> Option<(SocketAddr, Vec<u8>)> {
    let (address, digits) = text.split_once(' ')?;
    let mut certificate = Vec::new();
    for index in (0..digits.len()).step_by(2) {
        certificate.push(u8::from_str_radix(digits.get(index..index + 2)?, 16).ok()?);
    }
    Some((address.parse().ok()?, certificate))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_read_as_it_was_written() {
        let address = "10.45.0.2:4433".parse().unwrap();
        assert_eq!(read(&written(address, &[0, 0xfe])), Some((address, vec![0, 0xfe])));
        for wrong in ["", "10.45.0.2:4433", "10.45.0.2:4433 f", "10.45.0.2 fe", "a:1 fe"] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }
}
