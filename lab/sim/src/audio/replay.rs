//! Plays the speech of a real call with the model of NetEq, to hold it against what the browser
//! said of the same packets (`weir research validate playout`).

use weir::units::{TimeDelta, Timestamp};

use super::Player;
use crate::config::Speech;
use crate::trace::Heard;

/// A packet of speech that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpeechPacket {
    /// When it came.
    pub came: Timestamp,
    /// Where its speech begins, from any beginning.
    pub start: Timestamp,
}

/// Plays speech. Returns what is heard in each `interval` from the first packet on. Packets are in
/// the order in which they came.
pub fn play_speech(speech: Speech, packets: &[SpeechPacket], interval: TimeDelta) -> Vec<Heard> {
    let (Some(first), Some(last)) = (packets.first(), packets.last()) else { return Vec::new() };
    let mut player = Player::new(speech);
    let mut heard = Vec::new();
    let (mut packets, end_of_call) = (packets.iter().peekable(), last.came);
    let mut end = first.came + interval;
    while end <= end_of_call {
        while let Some(packet) = packets.next_if(|packet| packet.came < end) {
            play_until(&mut player, packet.came);
            player.on_packet(packet.came, packet.start + speech.length);
        }
        play_until(&mut player, end);
        heard.push(player.take_heard());
        end += interval;
    }
    heard
}

fn play_until(player: &mut Player, end: Timestamp) {
    while let Some(due) = player.next_deadline().filter(|due| *due <= end) {
        player.on_deadline(due);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: TimeDelta = TimeDelta::from_millis(500);
    const SPEECH: Speech = Speech::plain(TimeDelta::from_millis(20));

    fn packet(number: i64) -> SpeechPacket {
        let start = Timestamp::from_millis(number * 20);
        SpeechPacket { came: start + TimeDelta::from_millis(60), start }
    }

    #[test]
    fn what_did_not_come_is_made_up() {
        let packets: Vec<_> = (0..500).filter(|number| *number != 250).map(packet).collect();
        let heard = play_speech(SPEECH, &packets, INTERVAL);
        let concealed: Vec<_> = heard.iter().map(|heard| heard.concealed.as_millis()).collect();
        assert_eq!(concealed.iter().sum::<i64>(), 20, "{concealed:?}");
        assert_eq!(concealed[10], 20);
    }

    #[test]
    fn without_packets_nothing_is_played() {
        assert_eq!(play_speech(SPEECH, &[], INTERVAL), []);
    }
}
