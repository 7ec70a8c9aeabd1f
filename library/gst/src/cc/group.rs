//! Coupled elements: those with the same group name share the sum of their rates by priority.
//!
//! The shares come from [`weir::coupled`]. Here they only pass between the elements. No element's
//! state is locked while the group is.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};

use gst::glib;
use gst::prelude::*;
use weir::controller::RateLimits;
use weir::coupled::{FlowGroup, FlowId};
use weir::units::Bitrate;

use super::WeirCc;

/// The groups of this process, by name.
static GROUPS: LazyLock<Mutex<HashMap<String, Weak<Mutex<Group>>>>> = LazyLock::new(Mutex::default);

#[derive(Default)]
struct Group {
    flows: FlowGroup,
    members: Vec<(FlowId, glib::WeakRef<WeirCc>)>,
}

/// An element's place in its group. The element leaves the group when this is dropped.
pub(super) struct Member {
    group: Arc<Mutex<Group>>,
    flow: FlowId,
}

impl Member {
    /// Joins the group of this name, which exists while it has members.
    pub(super) fn join(name: &str, priority: f64, limits: RateLimits, element: &WeirCc) -> Self {
        let mut groups = lock(&GROUPS);
        groups.retain(|_, group| group.strong_count() > 0);
        let group = groups.get(name).and_then(Weak::upgrade).unwrap_or_default();
        groups.insert(name.to_owned(), Arc::downgrade(&group));
        let flow = {
            let mut group = lock(&group);
            let flow = group.flows.join(priority, limits);
            group.members.push((flow, element.downgrade()));
            flow
        };
        Self { group, flow }
    }

    /// Reports the element's new target bitrate. Returns the elements that have a new share.
    pub(super) fn update(&self, target: Bitrate) -> Vec<(WeirCc, Bitrate)> {
        let mut group = lock(&self.group);
        group.flows.update(self.flow, target);
        let Group { flows, members } = &*group;
        let mut shares = Vec::new();
        for (flow, element) in members {
            if let Some(element) = element.upgrade()
                && let Some(share) = flows.new_share(*flow)
            {
                shares.push((element, share));
            }
        }
        shares
    }

    /// The element has adopted its share, and its target bitrate is now this.
    pub(super) fn on_share_applied(&self, target: Bitrate) {
        lock(&self.group).flows.on_share_applied(self.flow, target);
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let mut group = lock(&self.group);
        group.flows.leave(self.flow);
        group.members.retain(|(flow, _)| *flow != self.flow);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
