//! Media flows of one sender: which they are, and what their controllers tell each other.

use weir::coupled::{FlowGroup, FlowId};
use weir::units::{Bitrate, Timestamp};

use crate::config::{Config, FlowConfig, FlowKind};

/// The senders that have several flows.
#[derive(Debug, Default)]
pub(crate) struct Coupling {
    groups: Vec<FlowGroup>,
    /// For each flow its group and its number there; `None` while it does not run, and for flows that are
    /// on their own.
    members: Vec<Option<(usize, FlowId)>>,
    /// The sender of each flow, as the number of its group.
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

    /// Whether the sender of a flow has several.
    pub(crate) fn has(&self, flow: usize) -> bool {
        self.senders[flow].is_some()
    }

    /// The sender of a flow was called and has this target bitrate. Returns the shares that the flows of
    /// its group have to be told.
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
        self.shares_to_tell(group)
    }

    /// A flow was told its share and has this target bitrate since.
    pub(crate) fn on_told(&mut self, flow: usize, target: Option<Bitrate>) {
        if let (Some((group, member)), Some(target)) = (self.members[flow], target) {
            self.groups[group].on_told(member, target);
        }
    }

    /// Flows that have ended give their shares to the others.
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

    fn shares_to_tell(&self, group: usize) -> Vec<(usize, Bitrate)> {
        let members = self.members.iter().enumerate();
        let of_group = members.filter_map(|(flow, member)| member.map(|member| (flow, member)));
        of_group
            .filter(|(_, (of, _))| *of == group)
            .filter_map(|(flow, (_, id))| Some((flow, self.groups[group].share_to_tell(id)?)))
            .collect()
    }
}

fn sender(flow: &FlowConfig) -> Option<&str> {
    match &flow.traffic {
        FlowKind::Media(media) => media.sender.as_deref(),
        _ => None,
    }
}
