//! What of a scenario's network its defaults are not made for.

use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_net::{Capacity, LinkConfig, LossModel, QueueLimit};

use super::{Direction, Flow, Scenario};

/// Size of a full packet of media.
const MEDIA_PACKET: DataSize = DataSize::from_bytes(1_200);

impl Scenario {
    /// What makes the results of a network say more about settings than about controllers: a
    /// sender that may not go below what a link carries, a queue without room for a packet, and a
    /// link that loses all. One line each.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        for flow in &self.flows {
            let Some(media) = flow.traffic.media() else { continue };
            let least = media.settings.limits.min();
            let Some(carried) = self.carried(flow) else { continue };
            if carried < least {
                warnings.push(format!(
                    "{}: its min_bitrate of {} kbit/s is above the {} kbit/s of its path; what is \
                     above is lost, so write a min_bitrate (and a start_bitrate) below",
                    flow.name,
                    least.as_kbps_f64(),
                    carried.as_kbps_f64().round(),
                ));
            }
        }
        let is_one_too_much = !warnings.is_empty();
        for (index, hop) in self.hops.iter().enumerate() {
            let ways = [(Direction::Up, "up", &hop.up), (Direction::Down, "down", &hop.down)];
            for (direction, way, link) in ways {
                let place = match self.hops.len() {
                    1 => format!("network.{way}"),
                    _ => format!("network.hop[{}].{way}", index + 1),
                };
                if !is_one_too_much
                    && let Some((flows, least, carried)) = self.too_many(index, direction, link)
                {
                    warnings.push(format!(
                        "{place}: the min_bitrates of {flows} flows are {} kbit/s together, above \
                         the {} kbit/s that it carries; what is above is lost, so write lower ones",
                        least.as_kbps_f64(),
                        carried.as_kbps_f64().round(),
                    ));
                }
                if link.loss == LossModel::Random(1.0) && link.changes.loss.is_empty() {
                    warnings.push(format!(
                        "{place}: a loss of 1 loses every packet; write 0.01 or \"1%\" for 1 %"
                    ));
                }
                let Some(room) = room(link) else { continue };
                if room < MEDIA_PACKET {
                    warnings.push(format!(
                        "{place}: its queue has room for {} bytes, which is less than a packet of \
                         {} bytes; write a longer queue, such as queue = \"10KB\"",
                        room.as_bytes(),
                        MEDIA_PACKET.as_bytes()
                    ));
                }
            }
        }
        warnings
    }

    /// How many flows may not go below what a link carries while they are there together, the least
    /// that they send, and the mean of what it carries.
    fn too_many(
        &self,
        hop: usize,
        direction: Direction,
        link: &LinkConfig,
    ) -> Option<(usize, Bitrate, Bitrate)> {
        let mut crossing: Vec<&Flow> = Vec::new();
        for flow in &self.flows {
            if flow.direction == direction && flow.hops.contains(&hop) {
                crossing.push(flow);
            }
        }
        for newest in &crossing {
            let (mut flows, mut least) = (0, Bitrate::ZERO);
            let mut stop = Timestamp::ZERO + self.duration;
            for flow in &crossing {
                let Some(media) = flow.traffic.media() else { continue };
                if flow.start <= newest.start && newest.start < flow.stop {
                    flows += 1;
                    least = least + media.settings.limits.min();
                    stop = stop.min(flow.stop);
                }
            }
            if flows < 2 || stop <= newest.start {
                continue;
            }
            let seconds = (stop - newest.start).as_secs_f64();
            let carried = Bitrate::from_bps_f64(link.bits(newest.start, stop)? / seconds);
            if carried < least {
                return Some((flows, least, carried));
            }
        }
        None
    }

    /// The mean of what the narrowest hop carries while a flow is active; `None` without a limit.
    fn carried(&self, flow: &Flow) -> Option<Bitrate> {
        let (start, stop) = (flow.start, flow.stop.min(Timestamp::ZERO + self.duration));
        if stop <= start {
            return None;
        }
        let links = self.hops.get(flow.hops.clone())?.iter().map(|hop| hop.link(flow.direction));
        let bits = links.filter_map(|link| link.bits(start, stop)).reduce(f64::min)?;
        Some(Bitrate::from_bps_f64(bits / (stop - start).as_secs_f64()))
    }
}

/// The bytes for which a queue that is limited in bytes or time has room at the slowest.
fn room(link: &LinkConfig) -> Option<DataSize> {
    let mut rate = link.capacity.nominal_rate(Timestamp::ZERO)?;
    // A recording has the room of its mean rate, and an outage that of the rate before it.
    if let Capacity::Schedule(schedule) = &link.capacity
        && schedule.recording().is_none()
    {
        for &(_, step) in schedule.steps() {
            if step > Bitrate::ZERO && (step < rate || rate == Bitrate::ZERO) {
                rate = step;
            }
        }
    }
    match link.queue {
        QueueLimit::Bytes(bytes) => Some(bytes),
        // A queue of no time at all is meant to be none.
        QueueLimit::Time(TimeDelta::ZERO) | QueueLimit::Packets(_) => None,
        QueueLimit::Time(time) => Some(rate * time),
    }
}

#[cfg(test)]
mod tests {
    use crate::parse;

    /// The warnings of a link with these keys and a flow with these.
    fn warnings(link: &str, flow: &str) -> Vec<String> {
        let text = format!(
            "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"60s\"\n\
             [network.up]\n{link}\n[[flow]]\n{flow}\n"
        );
        parse("x.toml", &text, None).unwrap().warnings()
    }

    #[test]
    fn a_link_below_the_least_bitrate_and_a_queue_below_a_packet_are_told() {
        let slow = warnings("capacity = \"18kbps\"", "");
        assert_eq!(
            slow,
            [
                "media-1: its min_bitrate of 150 kbit/s is above the 18 kbit/s of its path; what \
                 is above is lost, so write a min_bitrate (and a start_bitrate) below",
                "network.up: its queue has room for 675 bytes, which is less than a packet of 1200 \
                 bytes; write a longer queue, such as queue = \"10KB\"",
            ]
        );
        let roomy = "capacity = \"18kbps\"\nqueue = \"10KB\"";
        let slower = "min_bitrate = \"10kbps\"\nstart_bitrate = \"15kbps\"";
        assert_eq!(warnings(roomy, slower), [""; 0]);
        let quic = warnings("capacity = \"60kbps\"", "kind = \"quic\"");
        assert!(quic[0].starts_with("quic-1: its min_bitrate of 150 kbit/s is above"), "{quic:?}");
        let falls = "capacity = [[\"0s\", \"2Mbps\"], [\"50s\", \"18kbps\"]]";
        let told = warnings(falls, "");
        assert!(told[0].starts_with("network.up: its queue has room for 675 bytes"), "{told:?}");
    }

    #[test]
    fn flows_that_are_too_many_together_are_told() {
        let third = "[[flow]]\n[[flow]]\nstart = \"30s\"";
        let told = "network.up: the min_bitrates of 3 flows are 450 kbit/s together, above the 400 \
                    kbit/s that it carries; what is above is lost, so write lower ones";
        assert_eq!(warnings("capacity = \"400kbps\"", third), [told]);
        assert_eq!(warnings("capacity = \"450kbps\"", third), [""; 0]);
        let one_by_one = "stop = \"20s\"\n[[flow]]\nstart = \"20s\"";
        assert_eq!(warnings("capacity = \"200kbps\"", one_by_one), [""; 0]);
    }

    #[test]
    fn a_loss_of_one_is_told_to_be_all() {
        let all = "network.up: a loss of 1 loses every packet; write 0.01 or \"1%\" for 1 %";
        assert_eq!(warnings("delay = \"5ms\"\nloss = 1", ""), [all]);
        assert_eq!(warnings("delay = \"5ms\"\nloss = 0.99", ""), [""; 0]);
    }

    #[test]
    fn what_is_slow_for_a_while_and_what_has_no_media_is_not_told() {
        let dip = "capacity = [[\"0s\", \"2Mbps\"], [\"10s\", \"50kbps\"], [\"20s\", \"2Mbps\"]]";
        assert_eq!(warnings(dip, ""), [""; 0]);
        let udp = "kind = \"udp\"\nrate = \"10kbps\"";
        assert_eq!(warnings("capacity = \"64kbps\"", udp), [""; 0]);
        assert_eq!(warnings("delay = \"5ms\"", ""), [""; 0]);
    }
}
