//! `weir research generate`: write scenarios drawn from seeds.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use weir_record::whole_file;
use weir_research::Family;
use weir_research::generate::{Generated, Set, generate, generate_as};

use crate::args::research::Generate;
use crate::output;

/// Maximum number of scenarios of one command: a typing error must not fill the disk.
const MOST: usize = 100_000;

/// Writes the scenarios of the chosen seeds, or prints them.
pub fn run(args: &Generate) -> anyhow::Result<ExitCode> {
    if args.families {
        for family in Family::ALL {
            output::line(&format!("{:10}{}", family.name(), family.title()))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let chosen = seeds(args)?;
    let family = args.family.as_deref().map(known_family).transpose()?;
    open_seal(args, &chosen)?;
    let scenarios = match family {
        // The sets for training and validation came before these families, so no seed of theirs is
        // one of them.
        Some(family) if Family::ASKED_FOR.contains(&family) => {
            chosen.into_iter().map(|seed| generate_as(family, seed)).collect()
        }
        family => {
            let mut scenarios: Vec<Generated> = chosen.into_iter().map(generate).collect();
            scenarios.retain(|one| family.is_none_or(|family| one.family == family));
            scenarios
        }
    };
    ensure!(!scenarios.is_empty(), "none of these seeds gives a scenario of this family");
    let Some(out) = &args.out else {
        let [one] = scenarios.as_slice() else {
            bail!("these are {} scenarios: name a folder with --out", scenarios.len());
        };
        output::print(&one.text)?;
        return Ok(ExitCode::SUCCESS);
    };
    for one in &scenarios {
        write(out, one)?;
    }
    output::line(&format!(
        "{} scenarios in {}",
        scenarios.len(),
        output::escaped(&out.display().to_string())
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn write(out: &Path, one: &Generated) -> anyhow::Result<()> {
    let path = out.join(one.path());
    let folder = path.parent().expect("a scenario is in the folder of its family");
    std::fs::create_dir_all(folder)
        .with_context(|| format!("cannot create {}", folder.display()))?;
    whole_file::write(&path, one.text.as_bytes())
        .with_context(|| format!("cannot write {}", path.display()))
}

/// The seeds that the command line names, in rising order.
fn seeds(args: &Generate) -> anyhow::Result<BTreeSet<u64>> {
    let mut chosen = BTreeSet::new();
    for text in &args.seeds {
        chosen.extend(parts(text)?);
        ensure!(chosen.len() <= MOST, "these are more than {MOST} scenarios");
    }
    for name in args.set.iter().flat_map(|names| names.split(',')) {
        let set = Set::ALL.into_iter().find(|set| set.name() == name.trim());
        let set = set.with_context(|| {
            format!(
                "--set '{name}' is unknown; there are train, validate, sealed, sealed-2, sealed-3 \
                and sealed-4"
            )
        })?;
        chosen.extend(set.seeds());
    }
    Ok(chosen)
}

/// The seeds of `7` or `7-20`.
fn parts(text: &str) -> anyhow::Result<std::ops::RangeInclusive<u64>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let [first, last] = [first, last].map(|number| number.trim().parse::<u64>().ok());
    let (first, last) =
        first.zip(last).filter(|(first, last)| first <= last).with_context(|| {
            format!("'{text}' is not a seed: write a number such as 7, or a range such as 7-20")
        })?;
    ensure!(last - first < MOST as u64, "'{text}' are more than {MOST} scenarios");
    Ok(first..=last)
}

fn known_family(name: &str) -> anyhow::Result<Family> {
    let found = Family::ALL.into_iter().find(|family| family.name() == name);
    found.with_context(|| {
        let names: Vec<&str> = Family::ALL.iter().map(|family| family.name()).collect();
        format!("--family '{name}' is unknown; there are {}", names.join(", "))
    })
}

/// Refuses sealed seeds, unless a reason is given. Then the log of openings gets a line first.
fn open_seal(args: &Generate, seeds: &BTreeSet<u64>) -> anyhow::Result<()> {
    let sealed: Vec<u64> =
        seeds.iter().copied().filter(|&seed| Set::of(seed).is_some_and(Set::is_sealed)).collect();
    let (Some(first), Some(last)) = (sealed.first(), sealed.last()) else { return Ok(()) };
    let Some(reason) = &args.open_seal else {
        bail!(
            "seeds 301 to 700 are sealed until all tuning is over: use 201-300, or give \
             --open-seal REASON, which adds a line to the log of openings"
        );
    };
    ensure!(!reason.trim().is_empty(), "--open-seal needs a reason");
    let seconds = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let reason = output::escaped(reason.trim());
    let line = format!("{seconds}\t{}\t{first}-{last}\t{reason}\n", env!("WEIR_REVISION"));
    let log = &args.seal_log;
    std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(log)
        .and_then(|mut file| file.write_all(line.as_bytes()))
        .with_context(|| format!("cannot write the log of openings {}", log.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_or_a_range_is_read_and_nothing_else() {
        assert_eq!(parts("7").unwrap(), 7..=7);
        assert_eq!(parts("201-300").unwrap(), 201..=300);
        for wrong in ["", "x", "7-", "-7", "9-7", "1-2-3", "0-18446744073709551615"] {
            assert!(parts(wrong).is_err(), "{wrong}");
        }
    }
}
