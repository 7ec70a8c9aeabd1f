//! The kinds of access networks: their configurations and what they note over a run. A new kind is one line
//! at the end of this file.

use std::any::Any;
use std::fmt::Debug;
use std::ops::Range;

use weir::units::Timestamp;

use crate::path::{AccessKind, AccessNetwork, Attachment};
use crate::seed::Seed;
use crate::wifi;

/// An access network, and what is to be noted of it.
#[derive(Clone, Debug, PartialEq)]
pub struct AccessPlan {
    /// What to build it from.
    pub config: AccessConfig,
    /// The time of which every detail is noted (who held the channel when); may be empty.
    pub noted: Range<Timestamp>,
}

impl AccessPlan {
    /// A network of which no details are noted.
    pub fn new(config: impl Into<AccessConfig>) -> Self {
        Self { config: config.into(), noted: Timestamp::ZERO..Timestamp::ZERO }
    }

    /// The network as it is before a run; see [`AccessKind::standing`].
    #[must_use]
    pub fn standing(&self) -> Self {
        Self::new(self.config.standing())
    }
}

/// Makes the enum of configurations, which hands every question to the kind, and the log with a part for
/// each kind.
macro_rules! access_kinds {
    ($($(#[$meaning:meta])+ $kind:ident($config:ty), $log:ident: $log_type:ty;)+) => {
        /// The configuration of an access network.
        #[derive(Clone, Debug, PartialEq)]
        pub enum AccessConfig {
            $($(#[$meaning])+ $kind($config),)+
        }

        /// What an access network noted over a run. Only the part of its own kind is ever filled.
        #[derive(Clone, Debug, Default, PartialEq)]
        pub struct AccessLog {
            $($(#[$meaning])+ pub $log: $log_type,)+
        }

        impl AccessLog {
            /// Moves the [notes](AccessNetwork::notes) of a network, which follow this log in time, behind what
            /// it holds.
            pub fn take(&mut self, notes: &mut dyn Any) {
                $(if let Some(own) = notes.downcast_mut::<$log_type>() {
                    self.$log.append(own);
                })+
            }

            /// Moves what another log holds, which follows this one in time, behind what this one holds.
            pub fn append(&mut self, later: &mut Self) {
                $(self.$log.append(&mut later.$log);)+
            }

            /// Forgets the rows of a time after this one.
            pub fn cut(&mut self, end: Timestamp) {
                $(self.$log.cut(end);)+
            }

            /// Forgets everything.
            pub fn clear(&mut self) {
                $(self.$log.clear();)+
            }
        }

        impl AccessConfig {
            /// What the network is called in a message: `Wi-Fi cell`.
            pub const fn title(&self) -> &'static str {
                match self { $(Self::$kind(_) => <$config>::TITLE,)+ }
            }

            /// What one of its terminals is called: `station`.
            pub const fn terminal_word(&self) -> &'static str {
                match self { $(Self::$kind(_) => <$config>::TERMINAL,)+ }
            }

            /// The network, idle; see [`AccessKind::build`].
            pub fn build<T: Clone + Debug + Send + 'static>(
                &self,
                noted: &Range<Timestamp>,
                seed: Seed,
            ) -> Box<dyn AccessNetwork<T>> {
                match self { $(Self::$kind(config) => config.build(noted, seed),)+ }
            }

            /// The names of its nodes, by number.
            pub fn names(&self) -> Vec<String> {
                match self { $(Self::$kind(config) => AccessKind::names(config),)+ }
            }

            /// The numbers of the nodes that hosts and flows can be attached to.
            pub fn terminals(&self) -> Range<usize> {
                match self { $(Self::$kind(config) => config.terminals(),)+ }
            }

            /// What a host is attached as where nobody says more: the first terminal, in its usual class.
            pub fn default_attachment(&self) -> Attachment {
                match self { $(Self::$kind(config) => config.default_attachment(),)+ }
            }

            /// The same network as it is before a run; see [`AccessKind::standing`].
            #[must_use]
            pub fn standing(&self) -> Self {
                match self { $(Self::$kind(config) => Self::$kind(config.standing()),)+ }
            }
        }

        $(impl From<$config> for AccessConfig {
            fn from(config: $config) -> Self {
                Self::$kind(config)
            }
        })+
    };
}

access_kinds! {
    /// A Wi-Fi cell of 802.11n.
    Wifi(wifi::CellConfig), wifi: wifi::CellNotes;
}
