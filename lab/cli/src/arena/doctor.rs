//! `weir arena doctor`: what is installed, and what is known of each stack.

use std::path::Path;
use std::process::ExitCode;

use weir_call::stack::{Manifest, Origin, Stack};

use crate::layout::{Form, Table};
use crate::output;

/// A row for each stack, and a line for what does not fit a row.
pub fn doctor(folder: &Path) -> anyhow::Result<ExitCode> {
    let stacks = Stack::all(folder);
    anyhow::ensure!(
        !stacks.is_empty(),
        "no stacks in {}: name the folder `arena` of Weir's sources with --arena",
        folder.display()
    );
    let (mut missing, mut rows, mut lines) = (0, Vec::new(), Vec::new());
    for stack in stacks {
        let stack = match stack {
            Ok(stack) => stack,
            // The others are still told.
            Err(error) => {
                missing += 1;
                lines.push(error.to_string());
                continue;
            }
        };
        let version = match stack.version() {
            Ok(version) => version,
            Err(error) => {
                missing += 1;
                error.to_string()
            }
        };
        let Origin::Folder(manifest) = &stack.origin else { continue };
        rows.push(row(&stack.name, manifest, version));
        lines.push(line(&stack.name, manifest));
    }
    let head = vec!["stack", "control", "twin", "feedback", "version"];
    let table = Table { head, rows, left: 5, ..Table::default() };
    output::print(&table.written(Form::of(false)))?;
    output::line("")?;
    for line in lines {
        output::line(&line)?;
    }
    Ok(if missing == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn row(name: &str, manifest: &Manifest, version: String) -> Vec<String> {
    let feedback: Vec<String> = manifest.feedback.iter().map(ToString::to_string).collect();
    let twin = manifest.twin.clone().unwrap_or_else(|| "-".into());
    vec![name.into(), manifest.control.clone(), twin, feedback.join(" "), version]
}

fn line(name: &str, manifest: &Manifest) -> String {
    let Manifest { title, home, licence, encoder, note, .. } = manifest;
    let note = note.as_ref().map(|note| format!(" {note}")).unwrap_or_default();
    let roles: Vec<&str> = match manifest.application {
        Some(_) => vec!["sfu"],
        None => manifest.roles.iter().map(|role| role.name()).collect(),
    };
    let roles = roles.join(", ");
    format!("{name}: {title}, {licence}, {home}. Encoder: {encoder}. Roles: {roles}.{note}")
}
