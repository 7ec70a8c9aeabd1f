//! The functions that Go calls. Numbers pass as arguments, one function for each thing, so that no
//! struct and no pointer crosses but the text of a decision. Rates are in bit/s, times in
//! nanoseconds, sizes in bytes.
//!
//! Statuses: 0 for success, -1 if a number is out of range, -2 if nothing was started.

use std::cell::RefCell;

use weir::Algorithm;
use weir::controller::RateLimits;
use weir::feedback::{FeedbackReport, PacketReport, ProbeId, SentPacket};
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_sfu::{Layer, TrackConfig, TrackId};

use crate::Chooser;

const OK: i32 = 0;
const OUT_OF_RANGE: i32 = -1;
const NOT_STARTED: i32 = -2;
/// The level of a track that is paused or unknown.
const PAUSED: i32 = -1;
/// The arrival time of a packet that is lost.
const LOST: i64 = i64::MIN;

#[derive(Default)]
struct State {
    chooser: Option<Chooser>,
    /// The latest time of all calls.
    latest: Option<Timestamp>,
    /// What the next call needs, part by part.
    packets: Vec<PacketReport>,
    layers: Vec<Layer>,
    bitrates: Vec<Bitrate>,
    text: String,
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

/// Runs a body on the chooser, if there is one.
fn change(body: impl FnOnce(&mut State, &mut Chooser) -> i32) -> i32 {
    STATE.with_borrow_mut(|state| {
        let Some(mut chooser) = state.chooser.take() else { return NOT_STARTED };
        let status = body(state, &mut chooser);
        state.chooser = Some(chooser);
        status
    })
}

/// A time that does not lie before that of an earlier call.
fn at(state: &mut State, now: i64) -> Timestamp {
    let now = Timestamp::from_nanos(now);
    let latest = state.latest.map_or(now, |latest| latest.max(now));
    state.latest = Some(latest);
    latest
}

fn rate(bps: i64) -> Bitrate {
    Bitrate::from_bps(u64::try_from(bps).unwrap_or(0))
}

fn probe(id: u32) -> Option<ProbeId> {
    (id != 0).then_some(ProbeId(id))
}

/// Starts with a controller: its place in [`Algorithm::all`].
#[unsafe(no_mangle)]
pub extern "C" fn weir_sfu_start(algorithm: u32, min: i64, start: i64, max: i64) -> i32 {
    let Some(algorithm) = Algorithm::all().nth(algorithm as usize) else { return OUT_OF_RANGE };
    let Ok(limits) = RateLimits::new(rate(min), rate(start), rate(max)) else {
        return OUT_OF_RANGE;
    };
    let chooser = Chooser::new(algorithm.build(limits), limits);
    STATE.with_borrow_mut(|state| *state = State { chooser: Some(chooser), ..State::default() });
    OK
}

/// A packet left.
#[unsafe(no_mangle)]
pub extern "C" fn weir_sfu_on_sent(
    now: i64,
    number: i64,
    size: u32,
    probe_id: u32,
    is_padding: u32,
) -> i32 {
    change(|state, chooser| {
        let packet = SentPacket::new(number, DataSize::from_bytes(size.into()))
            .with_probe(probe(probe_id))
            .with_padding(is_padding != 0);
        chooser.on_sent(at(state, now), &packet);
        OK
    })
}

/// One packet of the feedback that comes next.
#[unsafe(no_mangle)]
pub extern "C" fn weir_sfu_report(
    number: i64,
    size: u32,
    sent: i64,
    arrival: i64,
    probe_id: u32,
    is_recovered: u32,
) -> i32 {
    change(|state, _| {
        let arrival = if arrival != LOST { Some(Timestamp::from_nanos(arrival)) } else { None };
        let size = DataSize::from_bytes(size.into());
        let mut packet = PacketReport::new(number, size, Timestamp::from_nanos(sent));
        packet = packet.with_arrival_time(arrival).with_probe(probe(probe_id));
        packet.recovered = is_recovered != 0;
        state.packets.push(packet);
        OK
    })
}

/// Feedback came on the packets of the calls before.
#[unsafe(no_mangle)]
pub extern "C" fn weir_sfu_on_feedback(now: i64, missing: u32, is_new_clock: u32) -> i32 {
    change(|state, chooser| {
        let mut report = FeedbackReport::new(std::mem::take(&mut state.packets));
        report.missing_feedback = missing;
        report.new_clock = is_new_clock != 0;
        chooser.on_feedback(at(state, now), &report);
        report.packets.clear();
        state.packets = report.packets;
        OK
    })
}

/// What the host tells about the path.
enum Event {
    RoundTripTime(TimeDelta),
    ReceiverLimit(Option<Bitrate>),
    Limits(RateLimits),
    RouteChange,
}

fn tell(now: i64, event: Event) -> i32 {
    change(|state, chooser| {
        let now = at(state, now);
        match event {
            Event::RoundTripTime(rtt) => chooser.on_round_trip_time(now, rtt),
            Event::ReceiverLimit(limit) => chooser.on_receiver_limit(now, limit),
            Event::Limits(limits) => chooser.set_limits(now, limits),
            Event::RouteChange => chooser.on_route_change(now),
        }
        OK
    })
}

/// A round-trip time was measured.
#[unsafe(no_mangle)]
pub extern "C" fn weir_sfu_on_round_trip_time(now: i64, rtt: i64) -> i32 {
    if rtt <= 0 {
        return OUT_OF_RANGE;
    }
    tell(now, Event::RoundTripTime(TimeDelta::from_nanos(rtt)))
}

/// The receiver set a limit, or lifted it: a negative number.
#[unsafe(no_mangle)]
pub extern "C" fn weir_sfu_on_receiver_limit(now: i64, bps: i64) -> i32 {
    let limit = if bps < 0 { None } else { Some(rate(bps)) };
    tell(now, Event::ReceiverLimit(limit))
}

/// The range of the target changed.
#[unsafe(no_mangle)]
pub extern "C" fn weir_sfu_set_limits(now: i64, min: i64, start: i64, max: i64) -> i32 {
    let Ok(limits) = RateLimits::new(rate(min), rate(start), rate(max)) else {
        return OUT_OF_RANGE;
    };
    tell(now, Event::Limits(limits))
}

/// Packets take another route from now on.
#[unsafe(no_mangle)]
pub extern "C" fn weir_sfu_on_route_change(now: i64) -> i32 {
    tell(now, Event::RouteChange)
}

/// One layer of the track that comes next, from the cheapest to the dearest.
#[unsafe(no_mangle)]
pub extern "C" fn weir_sfu_layer(
    stream: u32,
    temporal: u32,
    width: u32,
    height: u32,
    frame_rate: f64,
    bps: i64,
) -> i32 {
    change(|state, _| {
        // Of a track with a layer out of range, nothing is left for the next track.
        let (Ok(stream), Ok(temporal)) = (u8::try_from(stream), u8::try_from(temporal)) else {
            state.layers.clear();
            return OUT_OF_RANGE;
        };
        let (Ok(width), Ok(height)) = (u16::try_from(width), u16::try_from(height)) else {
            state.layers.clear();
            return OUT_OF_RANGE;
        };
        let layer = Layer::new(stream, width, height, rate(bps));
        state.layers.push(layer.with_temporal(temporal).with_frame_rate(frame_rate));
        OK
    })
}

/// Adds a track with the layers of the calls before, or replaces what is known of it.
#[unsafe(no_mangle)]
pub extern "C" fn weir_sfu_set_track(
    id: u32,
    is_screen: u32,
    priority: f64,
    width: u32,
    height: u32,
    may_pause: u32,
) -> i32 {
    change(|state, chooser| {
        let layers = std::mem::take(&mut state.layers);
        let (Ok(width), Ok(height)) = (u16::try_from(width), u16::try_from(height)) else {
            return OUT_OF_RANGE;
        };
        let track = match is_screen {
            0 => TrackConfig::camera(layers),
            _ => TrackConfig::screen(layers),
        };
        let track = track.with_priority(priority).with_shown(width, height);
        chooser.allocator.set_track(TrackId(id), track.with_may_pause(may_pause != 0));
        OK
    })
}

/// Adds a track of sound, which is never chosen but takes its part.
#[unsafe(no_mangle)]
pub extern "C" fn weir_sfu_set_audio(id: u32, bps: i64) -> i32 {
    change(|_, chooser| {
        chooser.allocator.set_track(TrackId(id), TrackConfig::audio(rate(bps)));
        OK
    })
}

/// The bitrate of one layer, for the track that comes next.
#[unsafe(no_mangle)]
pub extern "C" fn weir_sfu_bitrate(bps: i64) -> i32 {
    change(|state, _| {
        state.bitrates.push(rate(bps));
        OK
    })
}

/// The bitrates of the calls before are those of this track's layers.
#[unsafe(no_mangle)]
pub extern "C" fn weir_sfu_set_bitrates(id: u32) -> i32 {
    change(|state, chooser| {
        chooser.allocator.set_bitrates(TrackId(id), &state.bitrates);
        state.bitrates.clear();
        OK
    })
}

/// Removes a track.
#[unsafe(no_mangle)]
pub extern "C" fn weir_sfu_remove_track(id: u32) -> i32 {
    change(|_, chooser| {
        chooser.allocator.remove_track(TrackId(id));
        OK
    })
}

/// Chooses layers, while retransmissions take `repair`.
#[unsafe(no_mangle)]
pub extern "C" fn weir_sfu_choose(now: i64, repair: i64) -> i32 {
    change(|state, chooser| {
        chooser.choose(at(state, now), rate(repair));
        OK
    })
}

/// 1 if a fall of the target cannot wait for the next choice.
#[unsafe(no_mangle)]
pub extern "C" fn weir_sfu_has_fallen() -> i32 {
    change(|_, chooser| chooser.has_fallen().into())
}

/// The layer that is chosen for a track, as its place in the list; -1 is a pause.
#[unsafe(no_mangle)]
pub extern "C" fn weir_sfu_level(id: u32) -> i32 {
    change(|_, chooser| match chooser.allocator.level(TrackId(id)) {
        Some(level) => level as i32,
        None => PAUSED,
    })
}

/// The number of the probe that should run; 0 if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn weir_sfu_probe() -> i32 {
    change(|_, chooser| chooser.probe().map_or(0, |probe| probe.id.0 as i32))
}

/// The rate of the probe.
#[unsafe(no_mangle)]
pub extern "C" fn weir_sfu_probe_rate() -> i64 {
    with_chooser(|chooser| chooser.probe().map_or(0, |probe| probe.rate.as_bps() as i64))
}

/// The size of the probe.
#[unsafe(no_mangle)]
pub extern "C" fn weir_sfu_probe_size() -> i64 {
    with_chooser(|chooser| chooser.probe().map_or(0, |probe| probe.size.as_bytes() as i64))
}

/// The least number of packets of the probe.
#[unsafe(no_mangle)]
pub extern "C" fn weir_sfu_probe_packets() -> i64 {
    with_chooser(|chooser| chooser.probe().map_or(0, |probe| probe.packets.into()))
}

/// The target.
#[unsafe(no_mangle)]
pub extern "C" fn weir_sfu_target() -> i64 {
    with_chooser(|chooser| chooser.target().as_bps() as i64)
}

fn with_chooser(body: impl FnOnce(&Chooser) -> i64) -> i64 {
    STATE.with_borrow(|state| state.chooser.as_ref().map_or(0, body))
}

/// Takes the next decision. Returns the length of its text; 0 if there is none.
#[unsafe(no_mangle)]
pub extern "C" fn weir_sfu_next_decision() -> i32 {
    change(|state, chooser| {
        let Some(decision) = chooser.next_decision() else { return 0 };
        state.text = decision.to_string();
        state.text.len() as i32
    })
}

/// Says why the target is what it is. Returns the length of the text.
#[unsafe(no_mangle)]
pub extern "C" fn weir_sfu_why() -> i32 {
    change(|state, chooser| {
        state.text = chooser.why();
        state.text.len() as i32
    })
}

/// The place of the last text, which stays until the next call.
#[unsafe(no_mangle)]
pub extern "C" fn weir_sfu_text() -> *const u8 {
    STATE.with_borrow(|state| state.text.as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_out_of_range_leaves_nothing_for_the_next_track() {
        assert_eq!(weir_sfu_start(0, 50_000, 300_000, 10_000_000), OK);
        assert_eq!(weir_sfu_layer(0, 255, 320, 180, 30.0, 150_000), OK);
        assert_eq!(weir_sfu_layer(0, 255, 1 << 16, 180, 30.0, 150_000), OUT_OF_RANGE);
        assert_eq!(weir_sfu_layer(0, 255, 640, 360, 30.0, 250_000), OK);
        assert_eq!(weir_sfu_set_track(1, 0, 1.0, 640, 360, 1), OK);
        assert_eq!(weir_sfu_choose(0, 0), OK);
        assert_eq!(weir_sfu_level(1), 0, "it is the only layer");
    }
}
