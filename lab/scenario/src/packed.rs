//! Unpacks files by their first bytes: gzip, bzip2, xz and zstd.

use std::io::{self, BufRead, Read};

use flate2::read::MultiGzDecoder;

// How packed files begin.
const GZIP: &[u8] = &[0x1F, 0x8B];
const BZIP2: &[u8] = b"BZh";
const XZ: &[u8] = b"\xFD7zXZ\0";
const ZSTD: &[u8] = &[0x28, 0xB5, 0x2F, 0xFD];
/// How a zip archive begins. It holds several files, so it is not unpacked here.
pub const ZIP: &[u8] = b"PK\x03\x04";

/// Most bytes that tell the packer.
pub const MAGIC: usize = 6;

/// A program that packs one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packer {
    /// gzip.
    Gzip,
    /// bzip2.
    Bzip2,
    /// xz.
    Xz,
    /// zstd.
    Zstd,
}

impl Packer {
    /// All of them, with the ending that each one gives to names.
    pub const ALL: [(Self, &'static str); 4] =
        [(Self::Gzip, "gz"), (Self::Bzip2, "bz2"), (Self::Xz, "xz"), (Self::Zstd, "zst")];

    /// The packer of a file that begins so; `None` if none packed it.
    pub fn of(first: &[u8]) -> Option<Self> {
        let magics = [(GZIP, Self::Gzip), (BZIP2, Self::Bzip2), (XZ, Self::Xz), (ZSTD, Self::Zstd)];
        magics.into_iter().find(|(magic, _)| first.starts_with(magic)).map(|(_, packer)| packer)
    }

    /// The content of a packed file.
    ///
    /// # Errors
    /// If the file is damaged, or if this program cannot unpack it.
    pub fn unpack(self, whole: impl BufRead + 'static) -> io::Result<Box<dyn Read>> {
        Ok(match self {
            Self::Gzip => Box::new(MultiGzDecoder::new(whole)),
            #[cfg(not(target_family = "wasm"))]
            Self::Bzip2 => Box::new(bzip2::read::MultiBzDecoder::new(whole)),
            #[cfg(not(target_family = "wasm"))]
            Self::Xz => Box::new(lzma_rust2::XzReader::new(whole, true)),
            #[cfg(not(target_family = "wasm"))]
            Self::Zstd => {
                let reader = ruzstd::decoding::StreamingDecoder::new(whole);
                Box::new(reader.map_err(io::Error::other)?)
            }
            // A page in a browser has no files.
            #[cfg(target_family = "wasm")]
            _ => return Err(io::ErrorKind::Unsupported.into()),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn each_packer_is_told_by_its_first_bytes() {
        // `{}` and a line feed, by the tools of these names.
        let bzip2 = [
            0x42, 0x5A, 0x68, 0x39, 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, 0x57, 0xC8, 0xDE, 0x96,
            0x00, 0x00, 0x00, 0xC0, 0x80, 0x00, 0x10, 0x00, 0x0A, 0x20, 0x00, 0x21, 0x98, 0x19,
            0x84, 0x61, 0x77, 0x24, 0x53, 0x85, 0x09, 0x05, 0x7C, 0x8D, 0xE9, 0x60,
        ];
        let xz = [
            0xFD, 0x37, 0x7A, 0x58, 0x5A, 0x00, 0x00, 0x04, 0xE6, 0xD6, 0xB4, 0x46, 0x02, 0x00,
            0x21, 0x01, 0x16, 0x00, 0x00, 0x00, 0x74, 0x2F, 0xE5, 0xA3, 0x01, 0x00, 0x02, 0x7B,
            0x7D, 0x0A, 0x00, 0x00, 0x63, 0xA1, 0x8A, 0xE0, 0xB5, 0x03, 0x69, 0x3A, 0x00, 0x01,
            0x1B, 0x03, 0x0B, 0x2F, 0xB9, 0x10, 0x1F, 0xB6, 0xF3, 0x7D, 0x01, 0x00, 0x00, 0x00,
            0x00, 0x04, 0x59, 0x5A,
        ];
        let zstd = [
            0x28, 0xB5, 0x2F, 0xFD, 0x24, 0x03, 0x19, 0x00, 0x00, 0x7B, 0x7D, 0x0A, 0xBA, 0xD3,
            0x11, 0x9C,
        ];
        for packed in [&bzip2[..], &xz, &zstd] {
            let packer = Packer::of(packed).unwrap();
            let mut found = Vec::new();
            let whole = packer.unpack(Cursor::new(packed.to_vec()));
            whole.unwrap().read_to_end(&mut found).unwrap();
            assert_eq!(found, b"{}\n");
            for end in MAGIC..packed.len() {
                if let Ok(mut cut) = packer.unpack(Cursor::new(packed[..end].to_vec())) {
                    let _ = cut.read_to_end(&mut found);
                }
            }
        }
        assert_eq!(Packer::of(b"{}\n"), None);
        assert_eq!(Packer::of(ZIP), None);
    }
}
