//! `weir research validate`: compares a model with the real thing, or with published figures.

mod cellular;
#[cfg(calls)]
mod emulator;
#[cfg(calls)]
mod playout;
#[cfg(calls)]
mod tcp;
mod wifi;

use std::process::ExitCode;

use crate::args::research::{Model, Validate};
#[cfg(not(calls))]
use crate::unavailable::{emulator, playout, tcp};

/// Measures and prints the table. The exit code says whether all values are within the limits.
pub fn validate(args: &Validate) -> anyhow::Result<ExitCode> {
    let is_tcp = matches!(args.model, Model::Tcp);
    anyhow::ensure!(
        is_tcp || (args.runs.is_none() && args.control.is_none()),
        "--runs and --control belong to `weir research validate tcp`"
    );
    let is_emulator = matches!(args.model, Model::Emulator);
    anyhow::ensure!(
        is_emulator || !args.rates_only,
        "--rates-only belongs to `weir research validate emulator`"
    );
    let is_playout = matches!(args.model, Model::Playout);
    anyhow::ensure!(
        is_playout || args.records.is_empty(),
        "only `weir research validate playout` takes records"
    );
    let all_within = match args.model {
        Model::Tcp => tcp::validate(args)?,
        Model::Wifi => wifi::validate(args.quick)?,
        Model::Cellular => cellular::validate(args.quick)?,
        Model::Playout => playout::validate(args)?,
        Model::Emulator => return emulator::validate(args),
    };
    Ok(if all_within { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
