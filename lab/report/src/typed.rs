//! The types of `weir-record` that stand in the report's data, as TypeScript sees them: a crate can
//! derive only what is its own.

use serde::Serialize;
use serde_json::to_value;
use weir_record::calls::file;
use weir_record::run;

/// How a run was made: in simulation, or with real programs.
#[derive(Serialize, ts_rs::TS)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Engine {
    /// Virtual time: everything is simulated.
    Sim,
    /// The wall clock: real browsers through the emulator.
    Call,
    /// The wall clock: any command through the emulator.
    Link,
}

/// One quantity, measured by two witnesses.
#[derive(Serialize, ts_rs::TS)]
pub(crate) struct Agreement {
    /// The subject and the place of the measurement: `audio a to b, at a`.
    subject: String,
    /// `packets`, `payload bytes`, `bytes`, `lost packets` or `mean delay, ms`.
    quantity: String,
    /// The witness other than the capture: `getStats` or `emulator`.
    witness: String,
    /// Value of this witness.
    witnessed: f64,
    /// Value of the capture.
    captured: f64,
    /// Witnessed minus captured.
    error: f64,
    /// Largest error at which the two still agree.
    limit: f64,
    /// Whether the error is within the limit.
    agrees: bool,
}

impl From<run::Engine> for Engine {
    fn from(engine: run::Engine) -> Self {
        match engine {
            run::Engine::Sim => Self::Sim,
            run::Engine::Call => Self::Call,
            run::Engine::Link => Self::Link,
        }
    }
}

impl From<file::Agreement> for Agreement {
    fn from(of: file::Agreement) -> Self {
        let file::Agreement {
            subject,
            quantity,
            witness,
            witnessed,
            captured,
            error,
            limit,
            agrees,
        } = of;
        Self { subject, quantity, witness, witnessed, captured, error, limit, agrees }
    }
}

#[test]
fn a_type_of_the_record_is_written_as_typescript_reads_it() {
    for engine in [run::Engine::Sim, run::Engine::Call, run::Engine::Link] {
        assert_eq!(to_value(engine).unwrap(), to_value(Engine::from(engine)).unwrap());
    }
    let agreement = file::Agreement {
        subject: "audio a to b, at a".into(),
        quantity: "packets".into(),
        witness: "getStats".into(),
        witnessed: 10.0,
        captured: 9.0,
        error: 1.0,
        limit: 0.0,
        agrees: false,
    };
    let written = to_value(&agreement).unwrap();
    assert_eq!(written, to_value(Agreement::from(agreement)).unwrap());
}
