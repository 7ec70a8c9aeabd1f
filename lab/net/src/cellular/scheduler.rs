//! Who gets which resource blocks of a TTI.

use super::config::Scheduler;

/// A terminal that competes for resource blocks.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) terminal: usize,
    /// Bytes that it can still use.
    pub(super) need: u64,
    /// Bytes of that which a guarantee owes it.
    pub(super) owed: u64,
    /// Order among those with a guarantee: smaller is more urgent.
    pub(super) urgency: f64,
    /// Average of granted bytes a second.
    pub(super) average: f64,
    /// Bytes per group of the downlink, or per resource block of the uplink, for one or for each.
    pub(super) rates: Vec<u32>,
    /// Its groups so far, one bit each.
    pub(super) groups: u64,
}

impl Candidate {
    fn rate(&self, group: u16) -> u32 {
        self.rates.get(usize::from(group)).or(self.rates.first()).copied().unwrap_or(0)
    }

    fn take(&mut self, group: u16) {
        self.groups |= 1 << group;
        let rate = u64::from(self.rate(group));
        self.need = self.need.saturating_sub(rate);
        self.owed = self.owed.saturating_sub(rate);
    }

    /// What the scheduler maximises when it gives away a group.
    fn metric(&self, scheduler: Scheduler, group: u16) -> f64 {
        let rate = f64::from(self.rate(group));
        match scheduler {
            Scheduler::ProportionalFair | Scheduler::QualityOfService => rate / self.average,
            Scheduler::MaximumRate | Scheduler::RoundRobin => rate,
        }
    }
}

/// Whose turn comes next, by number of the terminal.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rotation {
    pub(super) next: usize,
}

impl Rotation {
    /// Moves the candidates into the order of their turns.
    pub(super) fn order(self, candidates: &mut [Candidate]) {
        let first = candidates.iter().position(|it| it.terminal >= self.next).unwrap_or(0);
        candidates.rotate_left(first);
    }
}

/// Gives the free groups of a downlink TTI to the candidates.
pub(super) fn share_groups(
    scheduler: Scheduler,
    rotation: &mut Rotation,
    free: u64,
    candidates: &mut [Candidate],
) {
    match scheduler {
        Scheduler::RoundRobin => share_in_turn(rotation, free, candidates),
        Scheduler::ProportionalFair | Scheduler::MaximumRate => {
            share_by_metric(scheduler, free, candidates, |candidate| candidate.need);
        }
        Scheduler::QualityOfService => {
            let left = serve_guarantees(free, candidates);
            share_by_metric(scheduler, left, candidates, |candidate| candidate.need);
        }
    }
}

/// Each group goes to the candidate with the highest metric that still needs it.
fn share_by_metric(
    scheduler: Scheduler,
    free: u64,
    candidates: &mut [Candidate],
    need: impl Fn(&Candidate) -> u64,
) {
    if let [only] = candidates {
        // Nobody competes.
        for group in groups(free) {
            if need(only) > 0 && only.rate(group) > 0 {
                only.take(group);
            }
        }
        return;
    }
    for group in groups(free) {
        let mut best: Option<(f64, usize)> = None;
        for (index, candidate) in candidates.iter().enumerate() {
            if need(candidate) == 0 || candidate.rate(group) == 0 {
                continue;
            }
            let metric = candidate.metric(scheduler, group);
            if best.is_none_or(|(highest, _)| metric > highest) {
                best = Some((metric, index));
            }
        }
        if let Some((_, index)) = best {
            candidates[index].take(group);
        }
    }
}

/// Gives what guarantees owe, the most urgent candidate first, each on its best groups. Returns the
/// groups that are left.
fn serve_guarantees(mut free: u64, candidates: &mut [Candidate]) -> u64 {
    let mut order: Vec<usize> =
        (0..candidates.len()).filter(|&it| candidates[it].owed > 0).collect();
    order.sort_by(|&a, &b| candidates[a].urgency.total_cmp(&candidates[b].urgency));
    for index in order {
        while candidates[index].owed > 0 {
            let candidate = &mut candidates[index];
            // The first of the best groups: the maximum of the rate, then of the reversed number.
            let best = groups(free).max_by_key(|&group| (candidate.rate(group), u16::MAX - group));
            let Some(group) = best.filter(|&group| candidate.rate(group) > 0) else { break };
            candidate.take(group);
            free &= !(1 << group);
        }
    }
    free
}

/// Equal numbers of groups, in turn. The turn goes on behind the last candidate that was served
/// when all groups are taken.
fn share_in_turn(rotation: &mut Rotation, free: u64, candidates: &mut [Candidate]) {
    if candidates.is_empty() {
        return;
    }
    let share = (free.count_ones() as usize / candidates.len()).max(1);
    rotation.order(candidates);
    let mut left = groups(free);
    for candidate in candidates.iter_mut() {
        for _ in 0..share {
            if candidate.need == 0 {
                break;
            }
            let Some(group) = left.next() else {
                rotation.next = candidate.terminal;
                return;
            };
            candidate.take(group);
        }
    }
    let spare = left.clone().count();
    if spare == 0 {
        rotation.next = candidates.last().map_or(0, |candidate| candidate.terminal + 1);
    }
}

/// Numbers of the groups of a mask, in ascending order.
pub(super) fn groups(mut mask: u64) -> impl Iterator<Item = u16> + Clone {
    std::iter::from_fn(move || {
        let group = mask.trailing_zeros() as u16;
        (mask != 0).then(|| {
            mask &= mask - 1;
            group
        })
    })
}

/// Order in which uplink candidates are served, the first one first: by guarantee, then by the
/// scheduler's metric.
pub(super) fn order_rows(scheduler: Scheduler, rotation: Rotation, candidates: &mut [Candidate]) {
    match scheduler {
        Scheduler::RoundRobin => rotation.order(candidates),
        Scheduler::ProportionalFair | Scheduler::MaximumRate => {
            candidates.sort_by(|a, b| b.metric(scheduler, 0).total_cmp(&a.metric(scheduler, 0)));
        }
        Scheduler::QualityOfService => candidates.sort_by(|a, b| {
            let guaranteed = (b.owed > 0).cmp(&(a.owed > 0));
            let urgency = if a.owed > 0 { a.urgency.total_cmp(&b.urgency) } else { guaranteed };
            let metric = b.metric(scheduler, 0).total_cmp(&a.metric(scheduler, 0));
            guaranteed.then(urgency).then(metric)
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: u64 = 0b1111_1111_1111;

    fn candidate(terminal: usize, rate: u32, average: f64) -> Candidate {
        Candidate {
            terminal,
            need: u64::MAX,
            owed: 0,
            urgency: 0.0,
            average,
            rates: vec![rate],
            groups: 0,
        }
    }

    fn shared(scheduler: Scheduler, mut candidates: Vec<Candidate>) -> Vec<u32> {
        share_groups(scheduler, &mut Rotation::default(), FREE, &mut candidates);
        candidates.sort_by_key(|candidate| candidate.terminal);
        candidates.iter().map(|candidate| candidate.groups.count_ones()).collect()
    }

    #[test]
    fn proportional_fair_serves_the_highest_rate_beside_the_average() {
        let candidates = vec![candidate(0, 100, 10.0), candidate(1, 40, 2.0)];
        assert_eq!(shared(Scheduler::ProportionalFair, candidates), [0, 12]);
    }

    #[test]
    fn what_one_does_not_need_goes_to_the_next() {
        let small = Candidate { need: 150, ..candidate(1, 40, 2.0) };
        let candidates = vec![candidate(0, 100, 10.0), small];
        assert_eq!(shared(Scheduler::ProportionalFair, candidates), [8, 4]);
    }

    #[test]
    fn maximum_rate_ignores_averages_and_takes_each_group_by_its_own_rate() {
        let mut varied = candidate(1, 0, 1.0);
        varied.rates = (0..12).map(|group| if group < 5 { 200 } else { 10 }).collect();
        assert_eq!(shared(Scheduler::MaximumRate, vec![candidate(0, 100, 1e9), varied]), [7, 5]);
    }

    #[test]
    fn round_robin_gives_equal_shares() {
        let candidates = (0..5).map(|terminal| candidate(terminal, 10, 1.0)).collect();
        assert_eq!(shared(Scheduler::RoundRobin, candidates), [2, 2, 2, 2, 2]);
    }

    #[test]
    fn guarantees_come_first_and_take_no_more_than_they_are_owed() {
        let guaranteed = Candidate { owed: 250, urgency: 4.0, ..candidate(0, 100, 1e9) };
        let urgent = Candidate { owed: 900, urgency: 2.0, need: 900, ..candidate(1, 100, 1e9) };
        let candidates = vec![guaranteed, urgent, candidate(2, 100, 1.0)];
        assert_eq!(shared(Scheduler::QualityOfService, candidates), [3, 9, 0]);
    }
}
