//! Finds the record of a run that has already been made, so that it need not be repeated.

use std::path::Path;

use weir_scenario::Scenario;

use crate::run::RunInfo;
use crate::summary::Summary;

use super::{RUN, Record, RecordError, RunFile, SCHEMA, SUMMARY, WEIR, read_json};

impl Record {
    /// The summary of the record of this run below `out`, or `None` if there is no folder for it.
    /// It is an error if this version of Weir would not write that record for this scenario.
    pub fn finished(
        out: &Path,
        info: &RunInfo,
        scenario: &Scenario,
    ) -> Result<Option<Summary>, RecordError> {
        let folder = out.join(info.folder());
        if !folder.exists() {
            return Ok(None);
        }
        let run: RunFile = read_json(&folder.join(RUN))?;
        let has_same_traces = run.traces.len() == scenario.traces.len()
            && run
                .traces
                .iter()
                .zip(&scenario.traces)
                .all(|((name, kept), (other, text))| name == other && kept.is(text));
        let is_same_text = has_same_traces
            && (&run.scenario_text, &run.variant) == (&scenario.text, &scenario.variant);
        let is_same_run = (&run.scenario, &run.subject, run.engine, run.seed.as_str())
            == (
                &info.scenario,
                &Some(info.subject.clone()),
                info.engine,
                info.seed.to_string().as_str(),
            );
        let why = if run.schema != SCHEMA || run.weir != WEIR {
            Some(format!("it was made by weir {}, and this is weir {WEIR}", run.weir))
        } else if !is_same_run {
            Some(format!("it is the record of `{}`", run.command))
        } else if !is_same_text {
            Some("it was made from another version of the scenario".into())
        } else {
            None
        };
        match why {
            Some(why) => Err(RecordError::Another { folder, why }),
            None => read_json(&folder.join(SUMMARY)).map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Engine;
    use crate::subject::Subject;
    use std::fs;
    use weir_scenario::parse;
    use weir_sim::trace::Trace;

    fn record(seed: u64) -> Record {
        let text = "title = \"t\"\nsource = \"s\"\ndescription = \"d\"\nduration = \"1s\"\n\
                    [network]\n[[flow]]\n";
        let scenario = parse("x", text, None).unwrap();
        let (engine, scenario_id) = (Engine::Sim, String::from("x"));
        let info =
            RunInfo { scenario: scenario_id, subject: Subject::controller("nada"), engine, seed };
        let trace = Trace::new(vec!["media-1".into()]);
        Record { info, scenario, trace, call: None }
    }

    #[test]
    fn a_record_of_the_same_run_gives_its_summary_and_of_another_one_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path();
        let record = record(1);
        let of = |scenario: &Scenario| Record::finished(out, &record.info, scenario);
        assert_eq!(of(&record.scenario).unwrap(), None);
        let written = record.write(out).unwrap();
        assert_eq!(of(&record.scenario).unwrap(), Some(record.summary()));
        let changed =
            Scenario { text: record.scenario.text.replace("1s", "2s"), ..record.scenario };
        let error = of(&changed).unwrap_err().to_string();
        assert!(error.contains("another version") && error.contains("--out"), "{error}");
        let run = written.join(RUN);
        let text = fs::read_to_string(&run).unwrap();
        let old = text.replace(&format!("\"weir\": \"{WEIR}\""), "\"weir\": \"0.0.0\"");
        assert_ne!(old, text);
        fs::write(&run, old).unwrap();
        let error = of(&changed).unwrap_err().to_string();
        assert!(error.contains("made by weir 0.0.0"), "{error}");
    }
}
