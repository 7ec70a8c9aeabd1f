//! Coupled congestion control: groups the media flows of each sender and exchanges their shares of
//! the common rate.

use weir::coupled::{FlowGroup, FlowId};
use weir::units::{Bitrate, Timestamp};

use crate::config::{Config, FlowConfig, FlowKind};

/// The groups of coupled flows, one for each named sender.
#[derive(Debug, Default)]
pub(crate) struct Coupling {
    groups: Vec<FlowGroup>,
    /// For each flow, its group and its number in that group. `None` while the flow does not run,
    /// and for flows that are not coupled.
    members: Vec<Option<(usize, FlowId)>>,
    /// For each flow, the group of its sender. `None` for flows that are not coupled.
    senders: Vec<Option<usize>>,
}

impl Coupling {
    pub(crate) fn new(config: &Config) -> Self {
        let mut names: Vec<&str> = Vec::new();
        let senders = config.flows.iter().map(|flow| {
            let name = sender(flow)?;
            Some(names.iter().position(|known| *known == name).unwrap_or_else(|| {
                names.push(name);
                names.len() - 1
            }))
        });
        let senders: Vec<_> = senders.collect();
        let groups = names.iter().map(|_| FlowGroup::default()).collect();
        Self { groups, members: vec![None; senders.len()], senders }
    }

    /// Whether a flow belongs to a group.
    pub(crate) fn has(&self, flow: usize) -> bool {
        self.senders[flow].is_some()
    }

    /// Takes the flow's new target bitrate after its sender was called. Returns the shares to pass
    /// on to the flows of its group.
    pub(crate) fn exchange(
        &mut self,
        now: Timestamp,
        flows: &[FlowConfig],
        flow: usize,
        target: Option<Bitrate>,
    ) -> Vec<(usize, Bitrate)> {
        let (Some(group), Some(target)) = (self.senders[flow], target) else { return Vec::new() };
        self.leave(now, flows, group);
        let (_, member) = *self.members[flow].get_or_insert_with(|| {
            let FlowKind::Media(media) = &flows[flow].traffic else {
                unreachable!("only media flows have a sender")
            };
            let member = self.groups[group].join(media.settings.priority, media.settings.limits);
            (group, member)
        });
        self.groups[group].update(member, target);
        self.new_shares(group)
    }

    /// Takes the target bitrate that a flow has after it received its share.
    pub(crate) fn on_share_applied(&mut self, flow: usize, target: Option<Bitrate>) {
        if let (Some((group, member)), Some(target)) = (self.members[flow], target) {
            self.groups[group].on_share_applied(member, target);
        }
    }

    /// Removes flows that have ended, so that the others get their shares.
    fn leave(&mut self, now: Timestamp, flows: &[FlowConfig], group: usize) {
        for (flow, member) in self.members.iter_mut().enumerate() {
            if let Some((of, id)) = *member
                && of == group
                && flows[flow].stop <= now
            {
                self.groups[group].leave(id);
                *member = None;
            }
        }
    }

    fn new_shares(&self, group: usize) -> Vec<(usize, Bitrate)> {
        let members = self.members.iter().enumerate();
        let of_group = members.filter_map(|(flow, member)| member.map(|member| (flow, member)));
        of_group
            .filter(|(_, (of, _))| *of == group)
            .filter_map(|(flow, (_, id))| Some((flow, self.groups[group].new_share(id)?)))
            .collect()
    }
}

fn sender(flow: &FlowConfig) -> Option<&str> {
    match &flow.traffic {
        FlowKind::Media(media) => media.sender.as_deref(),
        _ => None,
    }
}
