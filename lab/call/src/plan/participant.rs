//! Who takes part in a run.

use weir_scenario::call::BrowserKind;

/// A participant on its own host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Participant {
    /// `a` and `b` of a single call; `a1`, `b1`, `a2` of several; `p1`, `p2` in a mesh; `server`.
    pub name: String,
    /// Its host, by index.
    pub host: usize,
    /// Kind of participant.
    pub player: Player,
}

/// Kinds of participants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Player {
    /// A browser.
    Browser(BrowserKind),
    /// A pipeline of GStreamer.
    Pipeline,
    /// A stack of the arena.
    Stack,
    /// A person's browser, on this machine or another one.
    Person,
    /// A forwarding server.
    ForwardingServer,
    /// A mixer.
    Mixer,
}

impl Player {
    /// Whether it is a server, at whose host several calls end.
    pub(crate) fn is_server(self) -> bool {
        matches!(self, Self::ForwardingServer | Self::Mixer)
    }

    /// Whether it is a process of GStreamer pipelines.
    pub(crate) fn is_pipeline(self) -> bool {
        matches!(self, Self::Pipeline | Self::Mixer)
    }

    /// Whether it can tell which frames of its camera go in, or which it shows.
    pub(crate) fn tells_of_frames(self) -> bool {
        matches!(self, Self::Browser(_) | Self::Pipeline)
    }

    /// Whether its camera plays a file, whose frames have tags. That of Firefox does not.
    pub(crate) fn has_tags(self) -> bool {
        matches!(self, Self::Browser(BrowserKind::Chromium) | Self::Pipeline | Self::Stack)
    }

    /// Whether it tells the path of its media.
    pub(crate) fn tells_its_path(self) -> bool {
        !matches!(self, Self::ForwardingServer | Self::Stack)
    }
}
