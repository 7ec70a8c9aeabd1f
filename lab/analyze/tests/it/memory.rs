//! Memory while a large file is read. A test program of its own, because it looks at the largest
//! memory of its process.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use weir_analyze::read;

/// The largest memory that this process ever had, in MiB.
fn largest_mib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

/// A packed file of `blocks` times 64 KiB of the same bytes between two ends.
fn packed(first: &[u8], block: &[u8], blocks: usize, last: &[u8]) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut packed = GzEncoder::new(file.reopen().unwrap(), Compression::fast());
    packed.write_all(first).unwrap();
    (0..blocks).for_each(|_| packed.write_all(block).unwrap());
    packed.write_all(last).unwrap();
    packed.finish().unwrap();
    file
}

#[test]
fn unused_members_take_no_memory() {
    // Each of these unpacks to 64 MiB.
    const BLOCKS: usize = 1 << 10;
    let text = format!("\"{}\",", "x".repeat(61)).repeat(1 << 10);
    let skipped =
        packed(b"{\"getUserMedia\":[", text.as_bytes(), BLOCKS, b"\"\"],\"PeerConnections\":{}}");
    let events = format!("[\"create\",\"1\",\"{}\",1]\n", "x".repeat(1002)).repeat(1 << 6);
    let lines = packed(b"RTCStatsDump\n{\"fileFormat\":3}\n", events.as_bytes(), BLOCKS, b"");
    // Packets of another protocol: IPv4 with number 1, in raw IP.
    let mut packet = [0_u32, 0, 1_008, 1_008].map(u32::to_le_bytes).concat();
    packet.extend([0x45, 0, 0x03, 0xF0, 0, 0, 0, 0, 64, 1, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    packet.resize(16 + 1_008, 0);
    let heading = [0xA1B2_C3D4_u32, 2 | 4 << 16, 0, 0, 65_535, 101].map(u32::to_le_bytes).concat();
    let capture = packed(&heading, &packet.repeat(1 << 6), BLOCKS, b"");
    let before = largest_mib();
    let none = "no video or audio stream";
    for (file, complaint) in [(skipped, none), (lines, none), (capture, "no RTP in this capture")] {
        let error = read(file.path()).unwrap_err().to_string();
        assert!(error.contains(complaint), "{error}");
    }
    let more = largest_mib() - before;
    assert!(more < 8, "{more} MiB");
}
