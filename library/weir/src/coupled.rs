//! Coupled congestion control: the flows of one sender share the sum of their rates by priority.
//!
//! Implements the flow state exchange of [RFC8699 §5.3.1]. Each flow keeps its own controller,
//! which works as if it were alone. After each rate change of one controller, all controllers get
//! their share of the sum:
//!
//! ```text
//! controller of f -> CC_R(f) -> S_CR += CC_R(f) - FSE_R(f) -> FSE_R(i) = P(i) / S_P * S_CR -+
//!                                                                    all controllers <------+
//! ```
//!
//! A driver calls [`FlowGroup::update`] with a controller's target bitrate after each call of that
//! controller. For each flow with a [new share](FlowGroup::new_share), it then calls
//! [`Controller::on_shared_rate`](crate::Controller::on_shared_rate), and
//! [`FlowGroup::on_share_applied`] with the controller's target after that. Only the group knows
//! the priorities. Build its controllers with priority 1: a controller that uses priorities itself
//! would apply them twice.
//!
//! [RFC8699 §5.3.1]: https://www.rfc-editor.org/rfc/rfc8699#section-5.3.1

use alloc::vec::Vec;

use crate::controller::RateLimits;
use crate::units::Bitrate;

/// The flows of one sender that share a bottleneck.
#[derive(Clone, Debug, Default)]
pub struct FlowGroup {
    flows: Vec<Member>,
    /// `S_CR`: sum of the rates calculated by the controllers.
    sum: f64,
}

/// A flow in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowId(usize);

#[derive(Clone, Debug)]
struct Member {
    /// `P`; zero after the flow has left.
    priority: f64,
    limits: RateLimits,
    /// `FSE_R`, in bit/s.
    share: f64,
    /// Target bitrate of the flow's controller at the last `update` or `on_share_applied`, in
    /// bit/s.
    target: f64,
    /// The rate that the controller now uses: its last share, or the target to which it moved
    /// since.
    followed: Bitrate,
}

impl FlowGroup {
    /// Adds a flow at its start bitrate.
    ///
    /// # Panics
    /// If the priority is not positive and finite.
    pub fn join(&mut self, priority: f64, limits: RateLimits) -> FlowId {
        assert!(priority > 0.0 && priority.is_finite(), "a priority is above zero");
        let followed = limits.start();
        let start = followed.as_bps_f64();
        self.flows.push(Member { priority, limits, share: start, target: start, followed });
        self.sum += start;
        self.distribute();
        FlowId(self.flows.len() - 1)
    }

    /// Removes a flow. The others share its rate.
    pub fn leave(&mut self, flow: FlowId) {
        let member = &mut self.flows[flow.0];
        (member.priority, member.share) = (0.0, 0.0);
        self.distribute();
    }

    /// Reports the target bitrate of a flow's controller. The sum changes by as much as the
    /// controller changed its target.
    pub fn update(&mut self, flow: FlowId, target: Bitrate) {
        let member = &mut self.flows[flow.0];
        let moved =
            target.as_bps_f64() - core::mem::replace(&mut member.target, target.as_bps_f64());
        if member.priority > 0.0 && moved != 0.0 {
            member.followed = target;
            self.sum = (self.sum + moved).max(0.0);
            self.distribute();
        }
    }

    /// Confirms that a flow's controller got its share, and reports its target bitrate since then.
    /// The target may be below the share, because of a send queue or a receiver's limit.
    pub fn on_share_applied(&mut self, flow: FlowId, target: Bitrate) {
        self.flows[flow.0].followed = self.share(flow);
        self.flows[flow.0].target = target.as_bps_f64();
    }

    /// The flow's share, if its controller uses another rate: the share changed, or the controller
    /// moved away from it. Only the latter occurs if the share is at one of the flow's limits,
    /// because the sum can exceed the limit. If such a flow kept its own rate, it would no longer
    /// obey its priority.
    pub fn new_share(&self, flow: FlowId) -> Option<Bitrate> {
        let member = &self.flows[flow.0];
        let share = self.share(flow);
        (member.priority > 0.0 && share != member.followed).then_some(share)
    }

    /// `FSE_R`: the flow's share, within its limits; zero after it has left.
    pub fn share(&self, flow: FlowId) -> Bitrate {
        Bitrate::from_bps_f64(self.flows[flow.0].share)
    }

    /// Shares the sum by priority. A flow whose part is outside its limits gets the limit, and the
    /// others share the rest again.
    fn distribute(&mut self) {
        let bounds =
            |member: &Member| (member.limits.min().as_bps_f64(), member.limits.max().as_bps_f64());
        // A sum beyond all limits is not usable as a rate, and would have to be worked off first.
        let present = self.flows.iter().filter(|member| member.priority > 0.0).map(bounds);
        let (least, most) = present.fold((0.0, 0.0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
        self.sum = self.sum.clamp(least, most);
        let mut open: Vec<usize> = (0..self.flows.len()).collect();
        open.retain(|&index| self.flows[index].priority > 0.0);
        let mut left = self.sum;
        while !open.is_empty() {
            let priorities: f64 = open.iter().map(|&index| self.flows[index].priority).sum();
            let part = |member: &Member| left * member.priority / priorities;
            // Choose which limits to apply first: the minima if the clamped parts together exceed
            // what is left, otherwise the maxima.
            let lacking: f64 = open
                .iter()
                .map(|&index| &self.flows[index])
                .map(|member| part(member).clamp(bounds(member).0, bounds(member).1) - part(member))
                .sum();
            let binds = |member: &Member| {
                if lacking > 0.0 {
                    part(member) < bounds(member).0
                } else {
                    part(member) > bounds(member).1
                }
            };
            let bound: Vec<usize> =
                open.iter().copied().filter(|&index| binds(&self.flows[index])).collect();
            if bound.is_empty() {
                for &index in &open {
                    let share = part(&self.flows[index]);
                    let (min, max) = bounds(&self.flows[index]);
                    self.flows[index].share = share.clamp(min, max);
                }
                return;
            }
            for &index in &bound {
                let (min, max) = bounds(&self.flows[index]);
                self.flows[index].share = if lacking > 0.0 { min } else { max };
                left -= self.flows[index].share;
            }
            open.retain(|index| !bound.contains(index));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kbps(kbps: u64) -> Bitrate {
        Bitrate::from_kbps(kbps)
    }

    fn limits(min: u64, max: u64) -> RateLimits {
        RateLimits::new(kbps(min), kbps(min.max(300.min(max))), kbps(max)).unwrap()
    }

    /// Every controller uses its share; then this flow's controller moves to `rate`.
    fn moves(group: &mut FlowGroup, flow: FlowId, rate: Bitrate) {
        let all: Vec<_> = (0..group.flows.len()).map(FlowId).collect();
        for &each in &all {
            group.on_share_applied(each, group.share(each));
        }
        group.update(flow, rate);
    }

    fn shares<const N: usize>(group: &FlowGroup, flows: [FlowId; N]) -> [u64; N] {
        flows.map(|flow| group.share(flow).as_bps() / 1_000)
    }

    // [RFC8699 §5.3.1]
    #[test]
    fn the_sum_is_shared_by_priority_whoever_moves_it() {
        let mut group = FlowGroup::default();
        let flows = [2.0, 1.0, 1.0].map(|priority| group.join(priority, limits(50, 5_000)));
        assert_eq!(shares(&group, flows), [450, 225, 225]);
        moves(&mut group, flows[1], kbps(1_325));
        assert_eq!(shares(&group, flows), [1_000, 500, 500]);
        moves(&mut group, flows[0], kbps(600));
        assert_eq!(shares(&group, flows), [800, 400, 400]);
    }

    // [RFC8699 §5.3.1]
    #[test]
    fn a_flow_that_leaves_gives_its_share_to_the_others() {
        let mut group = FlowGroup::default();
        let flows = [2.0, 1.0, 1.0].map(|priority| group.join(priority, limits(50, 5_000)));
        group.leave(flows[0]);
        assert_eq!(shares(&group, flows), [0, 450, 450]);
        moves(&mut group, flows[0], kbps(5_000));
        assert_eq!(shares(&group, flows), [0, 450, 450], "it is gone");
    }

    // [RFC8699 §5.3.1]: the desired rate.
    #[test]
    fn what_a_flow_cannot_use_or_must_have_is_given_to_or_taken_from_others() {
        let mut group = FlowGroup::default();
        let small = group.join(2.0, limits(50, 400));
        let large = group.join(1.0, limits(50, 5_000));
        let rigid = group.join(1.0, limits(300, 5_000));
        let of = |group: &FlowGroup| shares(group, [small, large, rigid]);
        assert_eq!(of(&group), [400, 200, 300]);
        moves(&mut group, large, kbps(900));
        assert_eq!(of(&group), [400, 600, 600]);
        moves(&mut group, large, Bitrate::ZERO);
        assert_eq!(of(&group), [400, 300, 300]);
        moves(&mut group, large, Bitrate::ZERO);
        assert_eq!(of(&group), [266, 133, 300]);
    }

    // [RFC8699 §5.3.1]: only a controller's own rate changes count.
    #[test]
    fn a_controller_that_is_held_below_its_share_does_not_pull_the_sum_down() {
        let mut group = FlowGroup::default();
        let flows = [1.0, 1.0].map(|priority| group.join(priority, limits(100, 1_000)));
        for _ in 0..100 {
            group.on_share_applied(flows[0], kbps(285));
            group.update(flows[0], kbps(285));
        }
        assert_eq!(shares(&group, flows), [300, 300]);
        group.update(flows[0], kbps(385));
        assert_eq!(shares(&group, flows), [350, 350]);
    }

    // [RFC8699 §5.3.1]: all controllers get their share, including the one that changed its rate.
    #[test]
    fn a_controller_gets_its_share_if_it_changed_or_the_controller_left_it() {
        let mut group = FlowGroup::default();
        let [first, second] = [2.0, 1.0].map(|priority| group.join(priority, limits(100, 1_000)));
        let shares = |group: &mut FlowGroup| {
            let shares = [first, second].map(|flow| group.new_share(flow));
            for flow in [first, second] {
                group.on_share_applied(flow, group.share(flow));
            }
            shares
        };
        assert_eq!(shares(&mut group), [Some(kbps(400)), Some(kbps(200))]);
        assert_eq!(shares(&mut group), [None, None]);
        group.update(first, kbps(1_600));
        assert_eq!(shares(&mut group), [Some(kbps(1_000)), Some(kbps(800))]);
        group.update(second, kbps(850));
        assert_eq!(shares(&mut group), [None, None], "the share is where it moved");
        group.update(first, kbps(990));
        assert_eq!(shares(&mut group), [Some(kbps(1_000)), Some(kbps(840))]);
        group.leave(first);
        assert_eq!(shares(&mut group), [None, Some(kbps(1_000))]);
    }

    #[test]
    fn the_sum_never_leaves_what_the_flows_may_have() {
        let mut group = FlowGroup::default();
        let flows = [1.0, 1.0].map(|priority| group.join(priority, limits(100, 1_000)));
        moves(&mut group, flows[0], Bitrate::ZERO);
        moves(&mut group, flows[0], Bitrate::ZERO);
        moves(&mut group, flows[0], Bitrate::ZERO);
        assert_eq!(shares(&group, flows), [100, 100]);
        moves(&mut group, flows[0], Bitrate::MAX);
        assert_eq!(shares(&group, flows), [1_000, 1_000]);
        moves(&mut group, flows[1], kbps(500));
        assert_eq!(shares(&group, flows), [750, 750], "no debt from before");
    }
}
