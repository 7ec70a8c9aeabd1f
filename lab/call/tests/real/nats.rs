//! Real calls behind NATs and through hand-overs. The tests need root, Chromium and coturn. They
//! print a line if something is missing.

use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};

use weir::units::TimeDelta;
use weir_call::{CallConfig, CallError, CallOutcome, run_call};
use weir_record::calls::stats::CandidatePair;
use weir_scenario::catalogue;

/// Calls one after another: each needs the whole machine.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Plays a scenario of the catalogue for some seconds; `None` if this machine lacks something.
fn play(id: &str, seconds: i64) -> Option<CallOutcome> {
    let scenario = catalogue::find(id).unwrap().remove(0);
    let mut config = CallConfig::of(&scenario, 1).unwrap();
    config.duration = TimeDelta::from_secs(seconds);
    match run_call(&config, &AtomicBool::new(false), &mut |_| {}) {
        Ok(outcome) => Some(outcome),
        Err(error @ (CallError::NoBrowser(_) | CallError::NoRelay | CallError::Emulator(_))) => {
            println!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn pairs(outcome: &CallOutcome) -> Vec<&CandidatePair> {
    let [call] = &outcome.calls[..] else { panic!("one call") };
    assert_eq!(call.failure, None);
    call.peers.iter().map(|peer| peer.pair.as_ref().unwrap()).collect()
}

fn is_relayed(pair: &CandidatePair) -> bool {
    [&pair.local, &pair.remote].iter().any(|end| end.candidate_type == "relay")
}

/// Frames that both peers decoded after `from` seconds.
fn frames_after(outcome: &CallOutcome, from: f64) -> [u64; 2] {
    [0, 1].map(|peer| {
        let mut decoded = Vec::new();
        for timed in &outcome.calls[0].peers[peer].reports {
            if timed.time.as_secs_f64() >= from {
                let inbound = timed.report.inbound.as_ref();
                decoded.extend(inbound.and_then(|it| it.frames_decoded));
            }
        }
        decoded.last().zip(decoded.first()).map_or(0, |(last, first)| last - first)
    })
}

#[test]
fn two_cones_meet_directly_and_two_symmetric_nats_at_the_relay() {
    let _alone = alone();
    let Some(cones) = play("nat/cone/port-restricted", 4) else { return };
    assert!(pairs(&cones).iter().all(|pair| !is_relayed(pair)), "{:?}", pairs(&cones));
    assert!(cones.emulation.nats.iter().all(|nat| nat.counters.mappings > 0));
    let Some(symmetric) = play("nat/symmetric", 4) else { return };
    assert!(pairs(&symmetric).iter().all(|pair| is_relayed(pair)), "{:?}", pairs(&symmetric));
}

#[test]
fn where_udp_is_blocked_the_relay_is_reached_over_tcp_or_tls() {
    let _alone = alone();
    for (id, protocol) in [("nat/udp-blocked", "tcp"), ("nat/udp-blocked/tls", "tls")] {
        let Some(outcome) = play(id, 4) else { return };
        let local = &pairs(&outcome)[0].local;
        assert_eq!(local.candidate_type, "relay");
        assert_eq!(local.relay_protocol.as_deref(), Some(protocol));
        assert!(outcome.emulation.nats[0].counters.blocked_packets > 0);
    }
}

#[test]
fn a_call_survives_a_rebinding_and_a_change_of_the_interface() {
    let _alone = alone();
    for id in ["nat/rebind", "handover/interface"] {
        let Some(outcome) = play(id, 25) else { return };
        pairs(&outcome);
        let frames = frames_after(&outcome, 22.0);
        assert!(frames.iter().all(|count| *count > 0), "{id}: {frames:?}");
    }
}
