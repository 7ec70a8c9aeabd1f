//! Reads a TOML document key by key. Every error contains its line and its key.
//!
//! The reader walks the parsed document and does not derive serde's traits. Where a value may be a
//! text, a list or a table, serde can only report that none of the three fits.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};
use weir::units::{Bitrate, DataSize, TimeDelta, Timestamp};
use weir_controllers::LabAlgorithm;
use weir_net::QueueLimit;

use super::error::{ScenarioError, nearest, quoted};
use super::quantity;

type Result<T> = std::result::Result<T, ScenarioError>;

/// The file being read.
#[derive(Clone, Copy, Debug)]
pub(super) struct File<'a> {
    pub(super) id: &'a str,
    pub(super) text: &'a str,
}

impl File<'_> {
    pub(super) fn error(&self, span: Range<usize>, message: &str) -> ScenarioError {
        ScenarioError::new(self.id, self.text, span, message)
    }
}

/// A table in which all keys are known.
#[derive(Clone, Debug)]
pub(super) struct Table<'a> {
    file: File<'a>,
    /// Path such as `network.up`; empty for the whole file.
    path: String,
    span: Range<usize>,
    keys: &'static [&'static str],
    /// The table's own entries, then those that replace missing ones. The first layer that has a
    /// key is used.
    layers: Vec<&'a DeTable<'a>>,
}

impl<'a> Table<'a> {
    /// The whole file.
    pub(super) fn top(
        file: File<'a>,
        document: &'a Spanned<DeTable<'a>>,
        keys: &'static [&'static str],
    ) -> Result<Self> {
        let (path, layers) = (String::new(), vec![document.get_ref()]);
        Self { file, path, span: 0..0, keys, layers }.checked()
    }

    /// This table with its keys replaced by those of a variant. Subtables are replaced in the same
    /// manner.
    pub(super) fn varied(mut self, variant: &Item<'a>) -> Result<Self> {
        let over = variant.entries()?;
        if over.contains_key("variant") {
            return Err(variant.error("a variant has no variants of its own"));
        }
        self.layers.insert(0, over);
        self.checked()
    }

    /// This table, with missing keys taken from another one.
    pub(super) fn with_defaults(mut self, defaults: Table<'a>) -> Self {
        self.layers.extend(defaults.layers);
        self
    }

    fn checked(self) -> Result<Self> {
        let keys = self.layers.iter().flat_map(|layer| layer.keys());
        let unknown = keys.filter(|key| !self.keys.contains(&key.get_ref().as_ref()));
        let Some(key) = unknown.min_by_key(|key| key.span().start) else { return Ok(self) };
        let suggestion = match nearest(key.get_ref(), self.keys.iter().copied()).first() {
            Some(near) => format!("did you mean '{near}'?"),
            None => format!("write one of {}", self.keys.join(", ")),
        };
        let place = if self.path.is_empty() { "".into() } else { format!("{}: ", self.path) };
        let message = format!("{place}unknown key {}; {suggestion}", quoted(key.get_ref()));
        Err(self.file.error(key.span(), &message))
    }

    /// The value of a key.
    pub(super) fn get(&self, key: &'static str) -> Option<Item<'a>> {
        debug_assert!(self.keys.contains(&key), "{key} is read but not allowed");
        let values: Vec<_> = self.layers.iter().filter_map(|layer| layer.get(key)).collect();
        let value = *values.first()?;
        Some(Item { file: self.file, path: self.child(key), value, under: values[1..].to_vec() })
    }

    /// The value of a key, or the default.
    pub(super) fn or<T>(
        &self,
        key: &'static str,
        default: T,
        read: impl FnOnce(&Item<'a>) -> Result<T>,
    ) -> Result<T> {
        match self.get(key) {
            Some(item) => read(&item),
            None => Ok(default),
        }
    }

    /// The value of a key if it is present.
    pub(super) fn optional<T>(
        &self,
        key: &'static str,
        read: impl FnOnce(&Item<'a>) -> Result<T>,
    ) -> Result<Option<T>> {
        match self.get(key) {
            Some(item) => Ok(Some(read(&item)?)),
            None => Ok(None),
        }
    }

    /// One of several words, or the default.
    pub(super) fn choice<T: Copy>(
        &self,
        key: &'static str,
        default: T,
        choices: &[(&str, T)],
    ) -> Result<T> {
        match self.get(key) {
            Some(item) => item.choice(choices),
            None => Ok(default),
        }
    }

    /// One of several words if the key is present.
    pub(super) fn optional_choice<T: Copy>(
        &self,
        key: &'static str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>> {
        match self.get(key) {
            Some(item) => Ok(Some(item.choice(choices)?)),
            None => Ok(None),
        }
    }

    /// A time within the run if the key is present.
    pub(super) fn moment(
        &self,
        key: &'static str,
        duration: TimeDelta,
    ) -> Result<Option<Timestamp>> {
        match self.get(key) {
            Some(item) => Ok(Some(item.moment(duration)?)),
            None => Ok(None),
        }
    }

    /// A whole number from 1 to `max`, or the default.
    pub(super) fn whole(&self, key: &'static str, default: usize, max: f64) -> Result<usize> {
        match self.get(key) {
            Some(item) => item.whole(max),
            None => Ok(default),
        }
    }

    /// The value of a required key.
    pub(super) fn require(&self, key: &'static str, example: &str) -> Result<Item<'a>> {
        let Some(item) = self.get(key) else {
            let message = format!("{} is missing; write {key} = {example}", self.child(key));
            return Err(self.file.error(self.span.clone(), &message));
        };
        Ok(item)
    }

    /// The elements of an array of tables; empty if the key is absent.
    pub(super) fn tables(
        &self,
        key: &'static str,
        keys: &'static [&'static str],
    ) -> Result<Vec<Table<'a>>> {
        let Some(item) = self.get(key) else { return Ok(Vec::new()) };
        let Some(elements) = item.elements() else {
            return Err(item.error(&format!("expected tables; write [[{key}]]")));
        };
        let mut tables = Vec::with_capacity(elements.len());
        for element in elements {
            tables.push(element.table(keys)?);
        }
        Ok(tables)
    }

    /// An error about the table as a whole.
    pub(super) fn error(&self, message: &str) -> ScenarioError {
        let place = if self.path.is_empty() { "".into() } else { format!("{}: ", self.path) };
        self.file.error(self.span.clone(), &format!("{place}{message}"))
    }

    fn child(&self, key: &str) -> String {
        if self.path.is_empty() { key.into() } else { format!("{}.{key}", self.path) }
    }

    /// Returns an error if the key is present.
    pub(super) fn refuse(&self, key: &'static str, why: &str) -> Result<()> {
        match self.get(key) {
            Some(item) => Err(item.error(why)),
            None => Ok(()),
        }
    }
}

/// A value with the path of its key.
#[derive(Clone, Debug)]
pub(super) struct Item<'a> {
    file: File<'a>,
    path: String,
    value: &'a Spanned<DeValue<'a>>,
    /// The values that it replaces.
    under: Vec<&'a Spanned<DeValue<'a>>>,
}

impl<'a> Item<'a> {
    /// An error about this value.
    pub(super) fn error(&self, message: &str) -> ScenarioError {
        self.file.error(self.value.span(), &format!("{}: {message}", self.path))
    }

    fn expected(&self, what: &str) -> ScenarioError {
        let found = match self.value.get_ref() {
            DeValue::String(text) => format!("the text {}", quoted(text)),
            DeValue::Integer(number) => format!("the number {}", quoted(number.as_str())),
            DeValue::Float(number) => format!("the number {}", quoted(number.as_str())),
            DeValue::Boolean(value) => value.to_string(),
            DeValue::Datetime(_) => "a date".into(),
            DeValue::Array(_) => "a list".into(),
            DeValue::Table(_) => "a table".into(),
        };
        self.error(&format!("expected {what}, found {found}"))
    }

    pub(super) fn string(&self, what: &str) -> Result<&'a str> {
        match self.value.get_ref() {
            DeValue::String(text) => Ok(text),
            _ => Err(self.expected(what)),
        }
    }

    /// A text that is not empty, with each run of white space replaced by one space.
    pub(super) fn prose(&self) -> Result<String> {
        let words: Vec<&str> = self.string("a text")?.split_whitespace().collect();
        if words.is_empty() {
            return Err(self.error("must not be empty"));
        }
        Ok(words.join(" "))
    }

    pub(super) fn number(&self) -> Result<f64> {
        let number = match self.value.get_ref() {
            DeValue::Integer(number) if number.radix() == 10 => number.as_str().parse().ok(),
            DeValue::Float(number) => number.as_str().parse::<f64>().ok(),
            _ => None,
        };
        number.filter(|number| number.is_finite()).ok_or_else(|| self.expected("a number"))
    }

    pub(super) fn boolean(&self) -> Result<bool> {
        match self.value.get_ref() {
            DeValue::Boolean(value) => Ok(*value),
            _ => Err(self.expected("true or false")),
        }
    }

    fn quantity<T>(
        &self,
        what: &str,
        read: impl Fn(&str) -> std::result::Result<T, String>,
    ) -> Result<T> {
        read(self.string(what)?).map_err(|message| self.error(&message))
    }

    pub(super) fn time(&self) -> Result<TimeDelta> {
        self.quantity("a time such as \"25ms\"", quantity::time)
    }

    pub(super) fn signed_time(&self) -> Result<TimeDelta> {
        self.quantity("a time such as \"-3s\"", quantity::signed_time)
    }

    /// A time within the run, from its start to its end.
    pub(super) fn moment(&self, duration: TimeDelta) -> Result<Timestamp> {
        let time = self.time()?;
        if time > duration {
            let end = duration.as_secs_f64();
            return Err(self.error(&format!("lies outside the run, which ends at {end} s")));
        }
        Ok(Timestamp::ZERO + time)
    }

    pub(super) fn rate(&self) -> Result<Bitrate> {
        self.quantity("a bitrate such as \"2Mbps\"", quantity::rate)
    }

    /// A bitrate that may be zero.
    pub(super) fn capacity(&self) -> Result<Bitrate> {
        self.quantity("a bitrate such as \"2Mbps\"", quantity::capacity)
    }

    pub(super) fn queue(&self) -> Result<QueueLimit> {
        self.quantity("a queue limit such as \"300ms\"", quantity::queue)
    }

    pub(super) fn size(&self) -> Result<DataSize> {
        self.quantity("a size such as \"1500B\"", quantity::size)
    }

    pub(super) fn probability(&self) -> Result<f64> {
        if matches!(self.value.get_ref(), DeValue::Integer(_) | DeValue::Float(_)) {
            return quantity::in_unit_range(self.number()?).map_err(|message| self.error(&message));
        }
        self.quantity("a probability such as \"1%\" or 0.01", quantity::probability)
    }

    /// One of several words.
    pub(super) fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T> {
        let mut names = Vec::new();
        for (name, _) in choices {
            names.push(format!("\"{name}\""));
        }
        let what = names.join(" or ");
        let text = self.string(&what)?;
        for (name, value) in choices {
            if *name == text {
                return Ok(*value);
            }
        }
        Err(self.expected(&what))
    }

    /// A controller, by its name.
    pub(super) fn algorithm(&self) -> Result<LabAlgorithm> {
        let named = LabAlgorithm::named().map(|algorithm| (algorithm.name(), algorithm));
        self.choice(&named.collect::<Vec<_>>())
    }

    /// A controller, by its name; `None` for `"$controller"`, the one named on the command line.
    pub(super) fn algorithm_or_variable(&self) -> Result<Option<LabAlgorithm>> {
        let fixed = LabAlgorithm::named().map(|algorithm| (algorithm.name(), Some(algorithm)));
        let choices: Vec<_> = [("$controller", None)].into_iter().chain(fixed).collect();
        self.choice(&choices)
    }

    pub(super) fn is_table(&self) -> bool {
        matches!(self.value.get_ref(), DeValue::Table(_))
    }

    /// The elements if the value is a list.
    pub(super) fn elements(&self) -> Option<Vec<Item<'a>>> {
        let DeValue::Array(array) = self.value.get_ref() else { return None };
        let mut elements = Vec::with_capacity(array.len());
        for (index, value) in array.iter().enumerate() {
            let path = format!("{}[{}]", self.path, index + 1);
            elements.push(Item { file: self.file, path, value, under: Vec::new() });
        }
        Some(elements)
    }

    fn entries(&self) -> Result<&'a DeTable<'a>> {
        match self.value.get_ref() {
            DeValue::Table(entries) => Ok(entries),
            _ => Err(self.expected("a table")),
        }
    }

    /// The entries of a table whose keys are names, in the file's order. An entry that replaces
    /// another one keeps the position of that one.
    pub(super) fn named(&self) -> Result<Vec<(&'a str, Item<'a>)>> {
        self.entries()?;
        let layers: Vec<_> = std::iter::once(self.value)
            .chain(self.under.iter().copied())
            .map_while(|value| value.get_ref().as_table())
            .collect();
        let mut names: Vec<&'a str> = Vec::new();
        for layer in layers.iter().rev() {
            let mut keys: Vec<&'a Spanned<DeString<'a>>> = layer.keys().collect();
            keys.sort_by_key(|key| key.span().start);
            let new = keys.into_iter().map(|key| -> &'a str { key.get_ref() });
            let known = names.clone();
            names.extend(new.filter(|name| !known.contains(name)));
        }
        let mut items = Vec::with_capacity(names.len());
        for name in names {
            let mut values = layers.iter().filter_map(|layer| layer.get(name));
            let value = values.next().expect("the name is that of a value");
            let path = format!("{}.{name}", self.path);
            items.push((name, Item { file: self.file, path, value, under: values.collect() }));
        }
        Ok(items)
    }

    pub(super) fn table(&self, keys: &'static [&'static str]) -> Result<Table<'a>> {
        let DeValue::Table(entries) = self.value.get_ref() else {
            return Err(self.expected(&format!("a table with {}", keys.join(", "))));
        };
        let below = self.under.iter().map_while(|value| value.get_ref().as_table());
        let layers = std::iter::once(entries).chain(below).collect();
        let (file, path, span) = (self.file, self.path.clone(), self.value.span());
        Table { file, path, span, keys, layers }.checked()
    }

    /// A whole number from 1 to `max`.
    pub(super) fn whole(&self, max: f64) -> Result<usize> {
        let number = self.number()?;
        if number.fract() == 0.0 && (1.0..=max).contains(&number) {
            return Ok(number as usize);
        }
        Err(self.error(&format!("must be a whole number from 1 to {max}")))
    }
}

/// Reads steps: values that each apply from a given time on.
pub(super) fn steps<'a, T>(
    elements: &[Item<'a>],
    duration: TimeDelta,
    example: &str,
    value: impl Fn(&Item<'a>) -> Result<T>,
) -> Result<Vec<(Timestamp, T)>> {
    let mut steps = Vec::with_capacity(elements.len());
    for item in elements {
        let pair = item.elements();
        let Some([from, to]) = pair.as_deref() else {
            return Err(item.error(&format!("expected a step such as [\"20s\", {example}]")));
        };
        steps.push((from.moment(duration)?, value(to)?));
    }
    Ok(steps)
}
