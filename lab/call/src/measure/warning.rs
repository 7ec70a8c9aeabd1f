//! What a record warns of: a disturbed run, failed calls, changes by hand, and another codec.

use weir_emu::Emulation;
use weir_record::calls::stats::OutboundRtp;

use crate::measure::outcome::CallOutcome;
use crate::measure::{quality, sound};
use crate::message::{Peer, printable};
use crate::peers::app::AppOutcome;
use crate::plan::CallConfig;

/// The warnings of a run of calls.
pub(crate) fn of_calls(config: &CallConfig, outcome: &CallOutcome) -> Vec<String> {
    let disturbed = in_words(&disturbances_of(config, outcome)).into_iter();
    let failed = outcome.calls.iter().filter_map(|call| {
        Some(format!("call {} failed: {}", call.number, call.failure.as_ref()?))
    });
    let typed = change_warnings(&outcome.emulation).into_iter();
    let wanted = config.picture.codec.name();
    let peers = outcome.calls.iter().flat_map(|call| Peer::ALL.map(|peer| (call, peer)));
    let encoded = peers.filter_map(|(call, peer)| {
        let mime_type = call.peers[peer.index()].last_sent()?.mime_type.as_deref()?;
        let used = mime_type.trim_start_matches("video/");
        (used != wanted).then(|| {
            let used = printable(used);
            format!(
                "{peer} of call {} sends {used}, not the {wanted} that was asked for",
                call.number
            )
        })
    });
    let notes = outcome.notes.iter().cloned();
    disturbed.chain(failed).chain(typed).chain(encoded).chain(notes).collect()
}

/// Warnings about what the emulator noticed.
pub(crate) fn of_emulation(emulation: &Emulation) -> Vec<String> {
    let causes: Vec<String> = emulation.disturbances().iter().map(ToString::to_string).collect();
    in_words(&causes)
}

/// Warnings about a disturbed run of an application under test.
pub(crate) fn of_app(outcome: &AppOutcome) -> Vec<String> {
    in_words(&outcome.disturbances())
}

impl AppOutcome {
    /// Reasons why the run is disturbed: what the emulator noticed, and cameras that their own
    /// pages saw late.
    pub fn disturbances(&self) -> Vec<String> {
        let causes = self.emulation.disturbances();
        let mut causes: Vec<String> = causes.iter().map(ToString::to_string).collect();
        for received in &self.frames {
            let late = received.quality.camera_late_ms;
            let cause = late.and_then(|late| quality::late_camera(&received.from, &late));
            // Several participants see one camera.
            causes.extend(cause.filter(|cause| !causes.contains(cause)));
        }
        causes
    }
}

fn in_words(causes: &[String]) -> Vec<String> {
    causes.iter().map(|cause| format!("this machine disturbed the run: {cause}")).collect()
}

/// Reasons why a run of calls is disturbed: what the emulator noticed, starved encoders, cameras
/// that their own pages saw late, and gaps in the recordings of the speakers.
pub fn disturbances_of(config: &CallConfig, outcome: &CallOutcome) -> Vec<String> {
    let causes = outcome.emulation.disturbances();
    let mut causes: Vec<String> = causes.iter().map(ToString::to_string).collect();
    causes.extend(starved_encoders(config, outcome));
    causes.extend(quality::disturbances(config, outcome));
    causes.extend(sound::disturbances(config, outcome));
    causes
}

/// Encoders that took longer for a frame than the camera has between two, on average.
fn starved_encoders(config: &CallConfig, outcome: &CallOutcome) -> Vec<String> {
    let interval_ms = 1e3 / f64::from(config.picture.fps);
    let mut causes = Vec::new();
    for call in &outcome.calls {
        for peer in Peer::ALL {
            let encode_ms = call.peers[peer.index()].last_sent().and_then(encode_ms);
            if let Some(encode_ms) = encode_ms.filter(|ms| *ms > interval_ms) {
                causes.push(format!(
                    "the encoder of {peer} in call {} took {encode_ms:.0} ms for a frame, and the \
                     camera has one every {interval_ms:.0} ms",
                    call.number
                ));
            }
        }
    }
    causes
}

/// Mean time that a frame took, in ms.
fn encode_ms(sent: &OutboundRtp) -> Option<f64> {
    let frames = sent.frames_encoded.filter(|frames| *frames > 0)?;
    Some(sent.total_encode_time? * 1e3 / frames as f64)
}

/// Warnings about changes made by hand.
pub(crate) fn change_warnings(emulation: &Emulation) -> Vec<String> {
    let typed = emulation.changes_in_words().into_iter().map(|(time, change)| {
        format!("the network was changed by hand at {:.1} s: {change}", time.as_secs_f64())
    });
    typed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_frame_is_the_mean_over_the_call() {
        let sent = |total_encode_time, frames_encoded| {
            encode_ms(&OutboundRtp { total_encode_time, frames_encoded, ..Default::default() })
        };
        assert_eq!(sent(Some(27.3), Some(300)), Some(91.0));
        assert_eq!((sent(Some(0.0), Some(0)), sent(None, Some(300))), (None, None));
    }
}
