//! What a run was made with: its column in tables.

use core::fmt;

use serde::{Deserialize, Serialize};
use weir_controllers::LabAlgorithm;

use crate::engine::Engine;

/// Label of a run without a controller.
const NONE: &str = "none";
/// Begins of the labels that are more than a name.
const ANALYZED: &str = "analyzed ";
const OPEN_LOOP: &str = ", open loop: ";
const APPLICATION: &str = "--app ";
const PEER: &str = "--peer ";
const STACK: &str = "--stack ";
const RECEIVER: &str = " --role receiver";

/// What a run was made with. Tables, and files for other programs, have its label
/// ([`fmt::Display`]).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Subject {
    /// A controller of ours or of the user.
    Controller {
        /// Name in the list of controllers.
        name: String,
    },
    /// None: no flow of the scenario is under the controller of the run.
    #[serde(rename = "none")]
    NoController,
    /// Browsers with their own congestion control.
    Browser {
        /// Name of the browser, or of the two of a call such as `chromium-firefox`.
        name: String,
        /// What controls the rate.
        control: BrowserControl,
    },
    /// An application under test.
    Application {
        /// The options of `weir call` that name it, in shell syntax; `--app` is the first.
        options: String,
    },
    /// A stack of the arena, which sends with its own congestion control or receives.
    Stack {
        /// Name of its folder.
        name: String,
        /// The word of `--driver` in shell syntax, if the driver is a command and has no folder.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        driver: Option<String>,
        /// What it does with the video.
        #[serde(default, skip_serializing_if = "StackRole::is_sender")]
        role: StackRole,
    },
    /// A command of `weir link`.
    Command {
        /// The command in shell syntax.
        command: String,
        /// The word of `--peer` in shell syntax, if a command ran at the far end.
        peer: Option<String>,
    },
    /// A call that was made elsewhere.
    Analyzed {
        /// Name of its file.
        dump: String,
        /// The controller that got the recorded feedback, if one did.
        open_loop: Option<Played>,
    },
}

/// What a stack of the arena does in a call.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum StackRole {
    /// It sends the video.
    #[default]
    Sender,
    /// It receives the video of a browser, and tells it what arrived.
    Receiver,
}

impl StackRole {
    /// Its name in `stack.toml` and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
        }
    }

    fn is_sender(&self) -> bool {
        *self == Self::Sender
    }
}

/// Congestion control of a browser.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BrowserControl {
    /// The GCC of libwebrtc.
    Gcc,
    /// The SCReAM v2 of libwebrtc, by field trial.
    ScreamV2,
}

/// A controller that got the recorded feedback of a call.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Played {
    /// Name of the controller.
    pub controller: String,
    /// Number of the connection in the file, from 1.
    pub connection: usize,
}

impl Subject {
    /// A controller of ours or of the user.
    pub fn controller(name: &str) -> Self {
        Self::Controller { name: name.into() }
    }

    /// Browsers with the GCC that they have.
    pub fn browser(name: &str) -> Self {
        Self::Browser { name: name.into(), control: BrowserControl::Gcc }
    }

    /// A stack with a folder.
    pub fn stack(name: &str, role: StackRole) -> Self {
        Self::Stack { name: name.into(), driver: None, role }
    }

    /// The subject with this label, for records that have nothing else (schema 1) and for
    /// summaries. A name under [`Engine::Call`] that no controller of ours has is a browser's.
    pub fn of_label(engine: Engine, label: &str) -> Self {
        match engine {
            Engine::Sim if label == NONE => Self::NoController,
            Engine::Sim => Self::controller(label),
            Engine::Link => of_command(label),
            Engine::Call => of_call(label),
        }
    }

    /// Whether a controller of this name was in charge.
    pub fn is_controller(&self, wanted: &str) -> bool {
        matches!(self, Self::Controller { name } if name == wanted)
    }

    /// Whether a simulated run with `self` can be compared with a real one. A controller is
    /// compared only with itself. A browser is compared with each, because any could be its model.
    pub fn is_model_of(&self, real: &Self) -> bool {
        self == real || !matches!(real, Self::Controller { .. })
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Controller { name } | Self::Browser { name, .. } => f.write_str(name),
            Self::NoController => f.write_str(NONE),
            Self::Application { options } => f.write_str(options),
            Self::Stack { name, role: StackRole::Sender, .. } => write!(f, "{STACK}{name}"),
            Self::Stack { name, role: StackRole::Receiver, .. } => {
                write!(f, "{STACK}{name}{RECEIVER}")
            }
            Self::Command { command, peer: None } => f.write_str(command),
            Self::Command { command, peer: Some(peer) } => write!(f, "{PEER}{peer} -- {command}"),
            Self::Analyzed { dump, open_loop: None } => write!(f, "{ANALYZED}{dump}"),
            Self::Analyzed { dump, open_loop: Some(Played { controller, connection }) } => {
                write!(f, "{ANALYZED}{dump}{OPEN_LOOP}{controller}")?;
                // The first connection needs no number.
                if *connection > 1 { write!(f, " {connection}") } else { Ok(()) }
            }
        }
    }
}

/// Whether the label, as in a summary, is that of an application.
pub fn is_application(label: &str) -> bool {
    label.starts_with(APPLICATION)
}

/// The options with which a command makes a run with this label again. A run without a controller
/// needs none.
pub fn options(label: &str) -> String {
    match label {
        NONE => String::new(),
        _ if is_application(label) => label.into(),
        _ => format!("--controller {label}"),
    }
}

/// The label for a table, which has no room for the options of an application, and needs none for a
/// stack.
pub fn short(label: &str) -> &str {
    if is_application(label) {
        return "application";
    }
    label.strip_prefix(STACK).unwrap_or(label)
}

fn of_call(label: &str) -> Subject {
    if let Some(rest) = label.strip_prefix(ANALYZED) {
        let Some((dump, played)) = rest.split_once(OPEN_LOOP) else {
            return Subject::Analyzed { dump: rest.into(), open_loop: None };
        };
        let (controller, connection) = match played.split_once(' ') {
            Some((controller, number)) => (controller, number.parse().unwrap_or(1)),
            None => (played, 1),
        };
        let open_loop = Played { controller: controller.into(), connection };
        return Subject::Analyzed { dump: dump.into(), open_loop: Some(open_loop) };
    }
    if is_application(label) {
        return Subject::Application { options: label.into() };
    }
    if let Some(name) = label.strip_prefix(STACK) {
        return match name.strip_suffix(RECEIVER) {
            Some(name) => Subject::stack(name, StackRole::Receiver),
            None => Subject::stack(name, StackRole::Sender),
        };
    }
    if LabAlgorithm::named().any(|algorithm| algorithm.name() == label) {
        return Subject::controller(label);
    }
    let is_scream = label.contains("scream");
    let control = if is_scream { BrowserControl::ScreamV2 } else { BrowserControl::Gcc };
    Subject::Browser { name: label.into(), control }
}

fn of_command(label: &str) -> Subject {
    let whole = Subject::Command { command: label.into(), peer: None };
    let Some(rest) = label.strip_prefix(PEER) else { return whole };
    // The word of `--peer` may have ` -- ` within its quotes.
    let mut is_quoted = false;
    for (at, c) in rest.char_indices() {
        match c {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => {
                let Some(command) = rest[at..].strip_prefix(" -- ") else { return whole };
                return Subject::Command { command: command.into(), peer: Some(rest[..at].into()) };
            }
            _ => {}
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_read_from_its_label() {
        let open_loop = Played { controller: "nada".into(), connection: 2 };
        let scream = "chromium-scream-v2";
        let peer = Some("'iperf3 -s -- -1'".into());
        for (engine, subject, label) in [
            (Engine::Sim, Subject::controller("own"), "own"),
            (Engine::Call, Subject::controller("nada"), "nada"),
            (Engine::Call, Subject::browser("chromium-firefox"), "chromium-firefox"),
            (
                Engine::Call,
                Subject::Browser { name: scream.into(), control: BrowserControl::ScreamV2 },
                scream,
            ),
            (
                Engine::Call,
                Subject::Application { options: "--app http://x/ --participants 2".into() },
                "--app http://x/ --participants 2",
            ),
            (Engine::Call, Subject::stack("pion", StackRole::Sender), "--stack pion"),
            (
                Engine::Call,
                Subject::stack("pion", StackRole::Receiver),
                "--stack pion --role receiver",
            ),
            (
                Engine::Call,
                Subject::Analyzed { dump: "a.log".into(), open_loop: None },
                "analyzed a.log",
            ),
            (
                Engine::Call,
                Subject::Analyzed { dump: "a.log".into(), open_loop: Some(open_loop) },
                "analyzed a.log, open loop: nada 2",
            ),
            (
                Engine::Link,
                Subject::Command { command: "ping -c 3 10.45.0.2".into(), peer: None },
                "ping -c 3 10.45.0.2",
            ),
            (
                Engine::Link,
                Subject::Command { command: "iperf3 -c 10.45.0.2".into(), peer },
                "--peer 'iperf3 -s -- -1' -- iperf3 -c 10.45.0.2",
            ),
        ] {
            assert_eq!(subject.to_string(), label);
            assert_eq!(Subject::of_label(engine, label), subject);
            let json = serde_json::to_string(&subject).unwrap();
            assert_eq!(serde_json::from_str::<Subject>(&json).unwrap(), subject, "{json}");
        }
    }

    #[test]
    fn a_controller_is_compared_only_with_itself() {
        let (gcc, nada) = (Subject::controller("gcc"), Subject::controller("nada"));
        assert!(gcc.is_model_of(&gcc) && nada.is_model_of(&Subject::browser("chromium")));
        assert!(!gcc.is_model_of(&nada));
    }

    #[test]
    fn the_options_of_an_application_do_not_widen_a_table() {
        let options = "--app https://meet.example.org/room --join join.mjs --participants 2";
        assert_eq!(short(options), "application");
        assert_eq!((short("gcc"), short("--stack pion")), ("gcc", "pion"));
    }
}
