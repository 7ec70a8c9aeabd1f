//! Who is compared: browsers, stacks and forwarding servers.

use weir_call::stack::{Origin, Stack, StackError};
use weir_record::shell::quoted;
use weir_record::subject::{StackRole, Subject};
use weir_scenario::call::BrowserKind;

use super::sfu;
use crate::args::{Arena, CallRole, Role};

/// Chromium as the sender.
pub const CHROMIUM: &str = "chromium";
/// Firefox as the sender.
pub const FIREFOX: &str = "firefox";

/// A row of the matrix.
#[derive(Clone, Debug, PartialEq)]
pub enum Competitor {
    /// Chromium at both ends.
    Chromium,
    /// Firefox, which sends to Chromium.
    Firefox,
    /// A stack at one end.
    Stack(Stack, CallRole),
    /// A forwarding server.
    Server(Stack, Subject),
}

impl Competitor {
    pub fn name(&self) -> &str {
        match self {
            Self::Chromium => CHROMIUM,
            Self::Firefox => FIREFOX,
            Self::Stack(stack, _) | Self::Server(stack, _) => &stack.name,
        }
    }

    pub fn subject(&self) -> Subject {
        match self {
            Self::Chromium => Subject::browser(CHROMIUM),
            Self::Firefox => Subject::browser(FIREFOX),
            Self::Stack(stack, role) => Subject::Stack {
                name: stack.name.clone(),
                driver: stack.named_command().map(quoted),
                role: (*role).into(),
            },
            Self::Server(_, subject) => subject.clone(),
        }
    }

    pub fn role(&self) -> &'static str {
        match self {
            Self::Chromium | Self::Firefox => "browser",
            Self::Stack(_, role) => StackRole::from(*role).name(),
            Self::Server(..) => "server",
        }
    }

    /// Our controller whose simulation should behave alike.
    pub fn twin(&self) -> Option<&str> {
        match self {
            // Chromium sends to a stack that receives.
            Self::Chromium | Self::Firefox | Self::Stack(_, CallRole::Receiver) => Some("gcc"),
            Self::Server(..) => None,
            Self::Stack(stack, CallRole::Sender) => match &stack.origin {
                Origin::Folder(manifest) => manifest.twin.as_deref(),
                Origin::Command(_) => None,
            },
        }
    }
}

/// The rows, in the order that was asked for.
pub fn competitors(args: &Arena) -> anyhow::Result<Vec<Competitor>> {
    let mut competitors = Vec::new();
    let Some(list) = &args.stacks else {
        for stack in Stack::all(&args.arena) {
            let stack = stack?;
            if !plays(&stack, args.role) {
                continue;
            }
            match stack.version() {
                Ok(_) => competitors.push(competitor(stack, args)?),
                Err(error @ StackError::NotInstalled { .. }) => {
                    eprintln!("weir: left out: {error}");
                }
                Err(error) => return Err(error.into()),
            }
        }
        if args.role != Role::Sfu {
            competitors.push(Competitor::Chromium);
        }
        if args.role == Role::Sender {
            match weir_call::installed(BrowserKind::Firefox) {
                Ok(()) => competitors.push(Competitor::Firefox),
                Err(error) => eprintln!("weir: left out: {error}"),
            }
        }
        return Ok(competitors);
    };
    let names: Vec<&str> = list.split(',').map(str::trim).collect();
    anyhow::ensure!(
        args.driver.is_none() || names.len() == 1,
        "--driver is the command of one stack: name it with --stacks NAME"
    );
    for name in names {
        let found = named(args, name)?;
        if !competitors.contains(&found) {
            competitors.push(found);
        }
    }
    Ok(competitors)
}

/// The row of this name. One that is not installed is an error before anything starts.
fn named(args: &Arena, name: &str) -> anyhow::Result<Competitor> {
    let stack = match (&args.driver, args.role.in_call(), name) {
        (None, Some(CallRole::Sender), FIREFOX) => {
            weir_call::installed(BrowserKind::Firefox)?;
            return Ok(Competitor::Firefox);
        }
        (None, Some(_), CHROMIUM) => return Ok(Competitor::Chromium),
        (None, Some(role), name) => Stack::with_role(&args.arena, name, role.into())?,
        (None, None, name) => sfu::server(&args.arena, name)?,
        (Some(command), Some(_), name) => Stack::of_command(name, command)?,
        (Some(_), None, _) => {
            anyhow::bail!("--driver is for one end of a call: leave out --role sfu")
        }
    };
    stack.version()?;
    competitor(stack, args)
}

/// Whether a stack has this role.
fn plays(stack: &Stack, role: Role) -> bool {
    match (role.in_call(), stack.application()) {
        (None, application) => application.is_some(),
        (Some(role), None) => stack.roles().contains(&role.into()),
        (Some(_), Some(_)) => false,
    }
}

fn competitor(stack: Stack, args: &Arena) -> anyhow::Result<Competitor> {
    match args.role.in_call() {
        Some(role) => Ok(Competitor::Stack(stack, role)),
        None => {
            let subject = sfu::subject(&stack, args.quality)?;
            Ok(Competitor::Server(stack, subject))
        }
    }
}
