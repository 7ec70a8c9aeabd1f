//! The simulator and the report for WebAssembly. A request and its answer are JSON texts.
//!
//! | request | answer |
//! |---|---|
//! | `{"about": {}}` | version, controllers, and the scenarios of the catalogue with their titles |
//! | `{"text": {"scenario": ID}}` | the scenario's text; of a variant, with its keys in place |
//! | `{"simulate": RUNS}` | the report's data of these runs, with every rate change |
//! | `{"fingerprint": RUNS}` | a hash of each run's record |
//!
//! RUNS is `{"scenario": S, "controllers": "gcc,nada", "seeds": [1]}`. S is an id of the catalogue;
//! with `"text"` beside it, it names that text. The answer is `{"ok": ...}` or `{"error": LINE}`.

mod answer;
#[cfg(target_family = "wasm")]
mod border;

pub use answer::answer;
