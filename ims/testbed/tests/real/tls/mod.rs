//! Connections with TLS for tests: this workspace has no library of it.

use std::io::{self, Read, Write};
use std::process::{Child, Command, Stdio};

/// A connection with TLS, through a program that speaks it.
pub struct Tls(Child);

impl Tls {
    /// To the eP-CSCF, from alice's terminal.
    pub fn open() -> Self {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", "weir-ims-alice", "openssl", "s_client", "-quiet"]);
        command.args(["-connect", "10.46.0.2:8443"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        Self(command.stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Read for Tls {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.0.stdout.as_mut().unwrap().read(bytes)
    }
}

impl Write for Tls {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.stdin.as_mut().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.stdin.as_mut().unwrap().flush()
    }
}

impl Drop for Tls {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
