//! Keys and certificates of the parts with TLS, made at each start: nothing secret is kept in the
//! repository.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::Context;

use crate::command::run;
use crate::layout::address;

/// Writes `NAME.key`, `NAME.crt` and the hash of the public key, `NAME.hash`.
pub(crate) fn make(folder: &Path, name: &str, realm: &str) -> anyhow::Result<()> {
    let (key, certificate) =
        (folder.join(format!("{name}.key")), folder.join(format!("{name}.crt")));
    let mut command = Command::new("openssl");
    command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]);
    command.args(["-nodes", "-days", "7", "-subj", &format!("/CN={name}.{realm}")]);
    let names = format!("subjectAltName=DNS:{name}.{realm},IP:{}", address(name));
    command.args(["-addext", &names]);
    command.arg("-keyout").arg(&key).arg("-out").arg(&certificate);
    run(&mut command)?;
    // SHA-256 of the SubjectPublicKeyInfo in base 64, the form in which Chromium takes a trusted
    // key.
    let mut command = Command::new("sh");
    command.current_dir(folder).args([
        "-c",
        &format!(
            "openssl x509 -in {name}.crt -pubkey -noout | openssl pkey -pubin -outform der \
             | openssl dgst -sha256 -binary | openssl base64 -A"
        ),
    ]);
    let hash = run(&mut command)?;
    fs::write(folder.join(format!("{name}.hash")), hash.trim())
        .with_context(|| format!("cannot write {name}.hash"))
}
