//! The web servers: the authorization function (WAF) and the web server (WWSF) of web
//! authentication, and the facilitator of video. They run in Node from `ims/configurations/web`.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use crate::layout::{
    FACILITATOR_PORT, FUNCTION_PORT, Files, SECURE_PORT, address, terminal_addresses, user_name,
};
use crate::{args, certificate};

/// Port of the authorization function.
pub(crate) const WAF_PORT: u16 = 8445;
/// Port of the web server.
pub(crate) const WWSF_PORT: u16 = 8444;
/// Port of the facilitator's pages.
pub(crate) const VIDEO_PORT: u16 = 8446;

/// Writes what the servers need. Returns the eP-CSCF's credentials for HTTP Basic, in base 64.
pub(crate) fn write(
    folder: &Path,
    web: &Path,
    args: &args::Up,
    files: &Files,
) -> anyhow::Result<String> {
    ensure!(
        web.join("node_modules/oidc-provider").exists(),
        "{} has no oidc-provider: run npm ci in it",
        web.display()
    );
    let web = web.canonicalize()?;
    let agent = web.join("../../../lab/call/page/wic.js");
    let agent = agent.canonicalize().with_context(|| format!("no {}", agent.display()))?;
    let realm = &files.subscribers.realm;
    for name in ["waf", "wwsf", "facilitator"] {
        certificate::make(folder, name, realm)?;
    }
    let (wwsf, epcscf) = (secret()?, secret()?);
    let (mut own, mut pool) = (Vec::new(), Vec::new());
    for one in &files.subscribers.subscriber {
        let identities = if one.pool { &mut pool } else { &mut own };
        identities.push(json!({
            "name": user_name(&one.private),
            "impi": one.private,
            "impu": one.public[0],
            "password": one.password,
        }));
    }
    let config = json!({
        "realm": realm,
        "folder": folder,
        "agent": agent,
        "terminals": terminals(files),
        // The core network's addresses begin so.
        "core": "10.46.0.",
        "addresses": {
            "waf": address("waf"),
            "wwsf": address("wwsf"),
            "facilitator": address("facilitator"),
            "icscf": address("icscf"),
        },
        "waf": format!("https://waf.{realm}:{WAF_PORT}"),
        "wwsf": format!("https://wwsf.{realm}:{WWSF_PORT}"),
        "epcscf": format!("wss://{}:{SECURE_PORT}", address("epcscf")),
        // Terminals know no names.
        "facilitator": format!("https://{}:{VIDEO_PORT}", address("facilitator")),
        "facilitatorPort": FACILITATOR_PORT,
        "af": format!("http://{}:{FUNCTION_PORT}", address("af")),
        "bearerForVideo": args.facilitator_bearer,
        "tokenSeconds": args.token_seconds,
        "users": own,
        "pool": pool,
        "secrets": { "wwsf": wwsf, "epcscf": epcscf },
    });
    let path = folder.join("web.json");
    fs::write(&path, format!("{config:#}\n")).context("cannot write web.json")?;
    fs::set_permissions(&path, Permissions::from_mode(0o600))?;
    fs::write(folder.join("web.folder"), web.display().to_string())?;
    Ok(base64(format!("epcscf:{epcscf}").as_bytes()))
}

/// Names of the terminals by their addresses.
fn terminals(files: &Files) -> serde_json::Map<String, Value> {
    let users = files.users().enumerate();
    users.map(|(number, name)| (terminal_addresses(number).0.to_string(), json!(name))).collect()
}

/// A secret of this run, in hexadecimal.
fn secret() -> anyhow::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).context("no random numbers")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Base 64 with padding ([RFC4648 §4]).
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for part in bytes.chunks(3) {
        let whole = part.iter().fold(0, |whole, byte| whole << 8 | u32::from(*byte))
            << (8 * (3 - part.len()));
        for place in 0..4 {
            let digit = (whole >> (18 - 6 * place)) & 63;
            text.push(if place > part.len() { '=' } else { char::from(DIGITS[digit as usize]) });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::base64;

    // [RFC4648 §10]
    #[test]
    fn base_64_has_padding() {
        let examples = [("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")];
        for (text, expected) in examples {
            assert_eq!(base64(text.as_bytes()), expected);
        }
    }
}
