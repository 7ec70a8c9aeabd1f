//! A key and a certificate for a server with TLS, made for one run by openssl.

use std::io;
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;

use weir_emu::{Host, Limits, User};

use crate::error::CallError;

/// The file with the key.
pub(crate) const KEY: &str = "tls.key";
/// The file with the certificate.
pub(crate) const CERTIFICATE: &str = "tls.crt";

/// Writes both files to a folder of this user. Returns the SHA-256 of the public key in base 64,
/// the form in which Chromium takes a trusted key.
pub(crate) fn make(
    host: &Host,
    user: User,
    folder: &Path,
    address: Ipv4Addr,
) -> Result<String, CallError> {
    let mut command = host.command_as(user, "openssl");
    command.current_dir(folder).env("HOME", folder);
    command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]);
    command.args(["-nodes", "-days", "7", "-subj", "/CN=weir"]);
    command.args(["-addext", &format!("subjectAltName=IP:{address}")]);
    command.args(["-keyout", KEY, "-out", CERTIFICATE]);
    output_of(command).map_err(CallError::system("make a certificate with openssl"))?;
    let mut command = host.command_as(user, "sh");
    command.current_dir(folder).env("HOME", folder);
    command.args([
        "-c",
        &format!(
            "openssl x509 -in {CERTIFICATE} -pubkey -noout | openssl pkey -pubin -outform der \
             | openssl dgst -sha256 -binary | openssl base64 -A"
        ),
    ]);
    output_of(command).map_err(CallError::system("hash a public key with openssl"))
}

/// What a command prints. If it fails, what it says is the error.
fn output_of(mut command: Command) -> io::Result<String> {
    let done = weir_emu::output(&mut command, Limits::SHORT)?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).trim().to_owned());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    Err(io::Error::other(said.lines().last().unwrap_or_default().to_owned()))
}
