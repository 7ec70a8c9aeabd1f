//! Key and certificate of the eP-CSCF, made at each start: nothing secret is kept in the repository.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Context;

use crate::command::run;
use crate::layout::address;

/// Writes `epcscf.key`, `epcscf.crt` and the hash of the public key.
pub(crate) fn make(folder: &Path, realm: &str) -> anyhow::Result<()> {
    let (key, certificate) = (folder.join("epcscf.key"), folder.join("epcscf.crt"));
    let mut command = Command::new("openssl");
    command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]);
    command.args(["-nodes", "-days", "7", "-subj", &format!("/CN=epcscf.{realm}")]);
    let names = format!("subjectAltName=DNS:epcscf.{realm},IP:{}", address("epcscf"));
    command.args(["-addext", &names]);
    command.arg("-keyout").arg(&key).arg("-out").arg(&certificate);
    run(&mut command)?;
    // SHA-256 of the SubjectPublicKeyInfo in base 64, the form in which Chromium takes a trusted key.
    let mut command = Command::new("sh");
    command.current_dir(folder).args([
        "-c",
        "openssl x509 -in epcscf.crt -pubkey -noout | openssl pkey -pubin -outform der \
         | openssl dgst -sha256 -binary | openssl base64 -A",
    ]);
    let hash = run(&mut command)?;
    fs::write(folder.join("epcscf.hash"), hash.trim()).context("cannot write epcscf.hash")
}
