//! A record in memory, for programs without a file system, such as a web page.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;

use super::traces;
use super::{CALL, EVENTS, LOGS, RUN, Record, RunFile, SERIES, SUMMARY, events, pretty, series};

/// The files of a record by name, with the bytes that [`super::Writer`] writes to a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files(Arc<BTreeMap<&'static str, Vec<u8>>>);

impl Files {
    /// The files of this run.
    ///
    /// # Errors
    ///
    /// A rate change has a signal that JSON cannot express, or a trace that records share cannot be
    /// read.
    pub fn of(record: &Record) -> io::Result<Self> {
        let Record { info, scenario, trace, call } = record;
        let mut files = BTreeMap::new();
        let traces = traces::in_record(&scenario.traces)?;
        files.insert(RUN, pretty(&RunFile::of(info, scenario, traces)));
        files.insert(SERIES, series::bytes(&trace.flows, &trace.rows));
        let mut changes = Vec::new();
        events::write(&mut changes, &trace.flows, &trace.events)?;
        files.insert(EVENTS, changes);
        for log in LOGS.iter().filter(|log| log.applies(scenario)) {
            let mut out = Vec::new();
            writeln!(out, "{}", log.header())?;
            log.write(&mut out, trace)?;
            files.insert(log.file(), out);
        }
        files.insert(SUMMARY, pretty(&record.summary()));
        if let Some(call) = call {
            files.insert(CALL, pretty(call));
        }
        Ok(Self(Arc::new(files)))
    }

    /// Name and content of each file, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &[u8])> {
        self.0.iter().map(|(name, bytes)| (*name, bytes.as_slice()))
    }

    /// Content of the file with this name.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.0.get(name).map(Vec::as_slice)
    }

    /// A hash of names and contents: FNV-1a with 64 bits, the same on every machine.
    pub fn fingerprint(&self) -> u64 {
        const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
        const PRIME: u64 = 0x0100_0000_01b3;
        let parts = self.iter().flat_map(|(name, bytes)| [name.as_bytes(), &[0], bytes, &[0]]);
        parts.flatten().fold(OFFSET, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(PRIME))
    }
}
