//! The kinds of access networks: their configurations, and what they log during a run. To add a
//! kind, add one line at the end of this file.

use std::any::Any;
use std::fmt::Debug;
use std::ops::Range;

use weir::units::Timestamp;

use crate::cellular;
use crate::path::{AccessKind, AccessNetwork, Attachment};
use crate::seed::Seed;
use crate::wifi;

/// An access network and what to log of it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AccessPlan {
    /// Configuration of the network.
    pub config: AccessConfig,
    /// Time range in which every detail is logged (which node held the channel when); may be empty.
    pub noted: Range<Timestamp>,
}

impl AccessPlan {
    /// A network of which no details are logged.
    pub fn new(config: impl Into<AccessConfig>) -> Self {
        Self { config: config.into(), noted: Timestamp::ZERO..Timestamp::ZERO }
    }

    with! {
        with_noted: noted: Range<Timestamp>,
    }

    /// The network as it is before a run; see [`AccessKind::before_run`].
    #[must_use]
    pub fn before_run(&self) -> Self {
        Self::new(self.config.before_run())
    }
}

/// Generates the enum of configurations, which delegates every call to the kind, and the log with
/// one part per kind.
macro_rules! access_kinds {
    ($($(#[$meaning:meta])+ $kind:ident($config:ty), $log:ident: $log_type:ty;)+) => {
        /// The configuration of an access network.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum AccessConfig {
            $($(#[$meaning])+ $kind($config),)+
        }

        /// The log of an access network during a run. Only the part of its own kind is ever filled.
        #[derive(Clone, Debug, Default, PartialEq)]
        #[non_exhaustive]
        pub struct AccessLog {
            $($(#[$meaning])+ pub $log: $log_type,)+
        }

        impl AccessLog {
            /// Moves the [notes](AccessNetwork::notes) of a network to the end of this log. They
            /// must follow it in time.
            pub fn take(&mut self, notes: &mut dyn Any) {
                $(if let Some(own) = notes.downcast_mut::<$log_type>() {
                    self.$log.append(own);
                })+
            }

            /// Moves the content of `later`, which must follow in time, to the end of this log.
            pub fn append(&mut self, later: &mut Self) {
                $(self.$log.append(&mut later.$log);)+
            }

            /// Removes the rows after `end`.
            pub fn cut(&mut self, end: Timestamp) {
                $(self.$log.cut(end);)+
            }

            /// Removes all entries.
            pub fn clear(&mut self) {
                $(self.$log.clear();)+
            }
        }

        impl AccessConfig {
            /// Name of the network in messages, for example `Wi-Fi cell`.
            pub const fn title(&self) -> &'static str {
                match self { $(Self::$kind(_) => <$config>::TITLE,)+ }
            }

            /// Name of a terminal in messages, for example `station`.
            pub const fn terminal_word(&self) -> &'static str {
                match self { $(Self::$kind(_) => <$config>::TERMINAL,)+ }
            }

            /// Builds the network in its idle state; see [`AccessKind::build`].
            pub fn build<T: Clone + Debug + Send + 'static>(
                &self,
                noted: &Range<Timestamp>,
                seed: Seed,
            ) -> Box<dyn AccessNetwork<T>> {
                match self { $(Self::$kind(config) => config.build(noted, seed),)+ }
            }

            /// Names of its nodes, in the order of their numbers.
            pub fn names(&self) -> Vec<String> {
                match self { $(Self::$kind(config) => AccessKind::names(config),)+ }
            }

            /// Numbers of the nodes to which hosts and flows can be attached.
            pub fn terminals(&self) -> Range<usize> {
                match self { $(Self::$kind(config) => config.terminals(),)+ }
            }

            /// The default attachment of a host: the first terminal, in its usual class.
            pub fn default_attachment(&self) -> Attachment {
                match self { $(Self::$kind(config) => config.default_attachment(),)+ }
            }

            /// The same network as it is before a run; see [`AccessKind::before_run`].
            #[must_use]
            pub fn before_run(&self) -> Self {
                match self { $(Self::$kind(config) => Self::$kind(config.before_run()),)+ }
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
    /// A cellular cell of LTE or NR.
    Cellular(cellular::CellularConfig), cellular: cellular::CellularNotes;
}
