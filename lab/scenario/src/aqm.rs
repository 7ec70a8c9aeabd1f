//! The `aqm` key of a link: a name, or a table with a name and parameters that differ from the
//! defaults.

use weir::units::TimeDelta;
use weir_net::{Aqm, CoDelConfig, DualPi2Config, PieConfig, RedConfig};

use super::error::ScenarioError;
use super::reader::{Item, Table};

type Result<T> = std::result::Result<T, ScenarioError>;

/// Name, keys of its table, and default value.
type Kind = (&'static str, &'static [&'static str], Aqm);

/// All kinds of queue management, with the values of their standards.
fn kinds() -> [Kind; 6] {
    const CODEL: &[&str] = &["kind", "target", "interval", "ecn"];
    [
        ("drop-tail", &["kind"], Aqm::DropTail),
        ("codel", CODEL, Aqm::CoDel(CoDelConfig::default())),
        ("fq-codel", CODEL, Aqm::FqCoDel(CoDelConfig::default())),
        ("pie", &["kind", "target", "ecn"], Aqm::Pie(PieConfig::default())),
        ("red", &["kind", "min", "max", "max_probability", "ecn"], Aqm::Red(RedConfig::default())),
        ("dualpi2", &["kind", "target", "l4s_threshold"], Aqm::DualPi2(DualPi2Config::default())),
    ]
}

/// The keys of all kinds together.
const ANY: &[&str] =
    &["kind", "target", "interval", "ecn", "min", "max", "max_probability", "l4s_threshold"];

/// Display name of a queue management.
pub(super) fn name(aqm: Aqm) -> &'static str {
    match aqm {
        Aqm::DropTail => "drop-tail",
        Aqm::CoDel(_) => "CoDel",
        Aqm::FqCoDel(_) => "FQ-CoDel",
        Aqm::Pie(_) => "PIE",
        Aqm::Red(_) => "RED",
        Aqm::DualPi2(_) => "DualPI2",
    }
}

pub(super) fn aqm(item: &Item) -> Result<Aqm> {
    let kinds = kinds();
    let choices: Vec<_> = kinds.iter().map(|kind| (kind.0, kind)).collect();
    if !item.is_table() {
        return Ok(item.choice(&choices)?.2);
    }
    let kind = item.table(ANY)?.require("kind", "\"codel\"")?.choice(&choices)?;
    let table = item.table(kind.1)?;
    Ok(match kind.2 {
        Aqm::DropTail => Aqm::DropTail,
        Aqm::CoDel(default) => Aqm::CoDel(codel(&table, default)?),
        Aqm::FqCoDel(default) => Aqm::FqCoDel(codel(&table, default)?),
        Aqm::Pie(default) => Aqm::Pie(
            default
                .with_target(time(&table, "target", default.target)?)
                .with_ecn(ecn(&table, default.ecn)?),
        ),
        Aqm::Red(default) => Aqm::Red(red(&table, default)?),
        Aqm::DualPi2(default) => {
            Aqm::DualPi2(
                default
                    .with_target(time(&table, "target", default.target)?)
                    .with_l4s_threshold(time(&table, "l4s_threshold", default.l4s_threshold)?),
            )
        }
    })
}

fn codel(table: &Table, default: CoDelConfig) -> Result<CoDelConfig> {
    Ok(default
        .with_target(time(table, "target", default.target)?)
        .with_interval(time(table, "interval", default.interval)?)
        .with_ecn(ecn(table, default.ecn)?))
}

fn red(table: &Table, default: RedConfig) -> Result<RedConfig> {
    let max_probability =
        table.or("max_probability", default.max_probability, Item::probability)?;
    let red = default
        .with_min(table.or("min", default.min, Item::number)?)
        .with_max(table.or("max", default.max, Item::number)?)
        .with_max_probability(max_probability)
        .with_ecn(ecn(table, default.ecn)?);
    if red.min < 0.0 || red.min >= red.max {
        return Err(table.error("min and max must satisfy 0 <= min < max, in packets"));
    }
    Ok(red)
}

/// Reads a time above zero.
fn time(table: &Table, key: &'static str, default: TimeDelta) -> Result<TimeDelta> {
    let Some(item) = table.get(key) else { return Ok(default) };
    match item.time()? {
        TimeDelta::ZERO => Err(item.error("must be above zero")),
        time => Ok(time),
    }
}

fn ecn(table: &Table, default: bool) -> Result<bool> {
    table.or("ecn", default, Item::boolean)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    fn link(keys: &str) -> std::result::Result<weir_net::LinkConfig, String> {
        let text = format!(
            "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"60s\"\n\
             [network.up]\n{keys}\n[[flow]]\n"
        );
        match parse("x.toml", &text, None) {
            Ok(mut scenario) => Ok(scenario.hops.remove(0).up),
            Err(error) => Err(error.to_string()),
        }
    }

    fn read(value: &str) -> std::result::Result<Aqm, String> {
        link(&format!("capacity = \"2Mbps\"\naqm = {value}")).map(|link| link.aqm)
    }

    #[test]
    fn a_name_stands_for_the_values_of_its_standard() {
        for (name, keys, aqm) in kinds() {
            assert_eq!(read(&format!("\"{name}\"")), Ok(aqm));
            assert_eq!(read(&format!("{{ kind = \"{name}\" }}")), Ok(aqm));
            assert!(keys.iter().all(|key| ANY.contains(key)), "{name}");
        }
        assert_eq!(link("capacity = \"2Mbps\"").unwrap().aqm, Aqm::DropTail);
    }

    #[test]
    fn a_table_says_what_differs() {
        let ms = TimeDelta::from_millis;
        let codel =
            CoDelConfig::default().with_target(ms(13)).with_interval(ms(200)).with_ecn(false);
        let keys = "target = \"13ms\", interval = \"200ms\", ecn = false";
        assert_eq!(read(&format!("{{ kind = \"codel\", {keys} }}")), Ok(Aqm::CoDel(codel)));
        assert_eq!(read(&format!("{{ kind = \"fq-codel\", {keys} }}")), Ok(Aqm::FqCoDel(codel)));
        assert_eq!(
            read("{ kind = \"pie\", target = \"20ms\", ecn = false }"),
            Ok(Aqm::Pie(PieConfig::default().with_target(ms(20)).with_ecn(false)))
        );
        let red = RedConfig::default().with_min(2.0).with_max(6.0);
        assert_eq!(
            read("{ kind = \"red\", min = 2, max = 6, max_probability = \"2%\", ecn = false }"),
            Ok(Aqm::Red(red.with_max_probability(0.02).with_ecn(false)))
        );
        let dualpi2 = DualPi2Config::default().with_target(ms(20)).with_l4s_threshold(ms(1));
        assert_eq!(
            read("{ kind = \"dualpi2\", target = \"20ms\", l4s_threshold = \"1ms\" }"),
            Ok(Aqm::DualPi2(dualpi2))
        );
    }

    #[test]
    fn mistakes_say_what_to_write() {
        let table = [
            (
                "\"codle\"",
                "aqm: expected \"drop-tail\" or \"codel\" or \"fq-codel\" or \"pie\" or \"red\" or \
                 \"dualpi2\", found the text 'codle'",
            ),
            ("{ target = \"5ms\" }", "aqm.kind is missing; write kind = \"codel\""),
            (
                "{ kind = \"pie\", interval = \"5ms\" }",
                "aqm: unknown key 'interval'; write one of kind, target, ecn",
            ),
            (
                "{ kind = \"codel\", taget = \"5ms\" }",
                "aqm: unknown key 'taget'; did you mean 'target'?",
            ),
            (
                "{ kind = \"dualpi2\", ecn = false }",
                "aqm: unknown key 'ecn'; write one of kind, target, l4s_threshold",
            ),
            ("{ kind = \"codel\", interval = \"0ms\" }", "aqm.interval: must be above zero"),
            (
                "{ kind = \"red\", min = 20 }",
                "aqm: min and max must satisfy 0 <= min < max, in packets",
            ),
        ];
        for (value, error) in table {
            assert_eq!(read(value), Err(format!("x.toml:7: network.up.{error}")));
        }
        assert_eq!(
            link("aqm = \"codel\"").unwrap_err(),
            "x.toml:6: network.up.aqm: nothing waits without a capacity; write capacity = \"2Mbps\""
        );
    }
}
