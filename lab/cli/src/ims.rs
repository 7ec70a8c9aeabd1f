//! Calls of browsers through the IMS of `weir ims`.

use std::path::Path;

use weir_call::{Ims, ImsAccount, ImsRates, ImsUser, SipMessage};
pub use weir_testbed::Wic;
use weir_testbed::{Signalled, Terminal};

/// Rates that a side asks for, in kbit/s: those of delft's calls with some room for headers.
const RATES: ImsRates = ImsRates { audio: 64, video: 2500 };

/// The IMS as a call needs it.
pub fn plan(wic: &Wic) -> Ims {
    Ims {
        users: wic.terminals.iter().map(|pair| pair.each_ref().map(user)).collect(),
        proxy: wic.proxy,
        key_hash: wic.key_hash.clone(),
        bearers: wic.bearers.clone(),
    }
}

fn user(terminal: &Terminal) -> ImsUser {
    ImsUser {
        namespace: terminal.namespace.clone(),
        account: ImsAccount {
            private: terminal.private.clone(),
            public: terminal.public.clone(),
            realm: terminal.realm.clone(),
            address: terminal.address,
            credentials: terminal.credentials.clone(),
            rates: RATES,
        },
    }
}

/// Writes the signalling into a record, and prints the time of each phase.
pub fn write(wic: &Wic, record: &Path, messages: &[[Vec<SipMessage>; 2]]) -> anyhow::Result<()> {
    let mut all = Vec::new();
    for [caller, callee] in messages {
        all.push([signalled(caller), signalled(callee)]);
    }
    for (phase, value) in wic.write(record, &all)? {
        eprintln!("weir: {phase}: {value:.1} ms");
    }
    Ok(())
}

fn signalled(messages: &[SipMessage]) -> Vec<Signalled> {
    let signalled = messages.iter().map(|message| Signalled {
        time_ms: message.time,
        is_sent: message.is_sent,
        text: message.text.clone(),
    });
    signalled.collect()
}
