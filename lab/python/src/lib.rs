//! Python module `weir_rtc._weir`. The package `weir_rtc` in `python/` is what users import; it
//! adds what is simpler in Python.

mod arrow;
mod commands;
mod controller;
mod fleet;
mod run;
mod scenario;
mod score;
mod session;
mod tables;

use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::{create_exception, types::PyModule};
use weir_metrics::{Better, Declared};

create_exception!(
    weir_rtc,
    WeirError,
    PyException,
    "What the program `weir` would say in one line."
);

/// The error of the library as an exception with the same line.
fn error(error: impl std::fmt::Display) -> PyErr {
    WeirError::new_err(error.to_string())
}

/// The names of the library's controllers, in the order of reports.
#[pyfunction]
fn controllers() -> Vec<&'static str> {
    weir_controllers::LabAlgorithm::all().map(weir_controllers::LabAlgorithm::name).collect()
}

/// The names of the controllers that a text such as `gcc,nada` or `all` means, each once.
#[pyfunction]
fn choose(names: &str) -> PyResult<Vec<String>> {
    let chosen = weir_scenario::Controllers::default().choose(names).map_err(error)?;
    Ok(chosen.iter().map(|controller| controller.name().to_string()).collect())
}

/// The ids of the catalogue of scenarios.
#[pyfunction]
fn catalogue() -> Vec<&'static str> {
    weir_scenario::catalogue::ids().collect()
}

/// The columns of the series as (name, unit, meaning).
#[pyfunction]
fn series_columns() -> Vec<(&'static str, &'static str, &'static str)> {
    weir_record::number_columns().map(|it| (it.name(), it.unit(), it.meaning())).collect()
}

/// Unit, better side (`higher`, `lower` or nothing) and meaning of the metric at a dotted path;
/// `None` if there is none.
#[pyfunction]
fn metric(path: &str) -> Option<(&'static str, &'static str, &'static str)> {
    let declared = Declared::of(path)?;
    let better = match Better::of(path) {
        Some(Better::Higher) => "higher",
        Some(Better::Lower) => "lower",
        _ => "",
    };
    Some((declared.unit, better, declared.meaning))
}

#[pymodule]
fn _weir(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("WeirError", module.py().get_type::<WeirError>())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<arrow::ArrowTable>()?;
    module.add_class::<scenario::Scenario>()?;
    module.add_class::<run::Runs>()?;
    module.add_class::<session::Session>()?;
    module.add_class::<session::Observation>()?;
    module.add_class::<controller::Report>()?;
    module.add_class::<controller::PacketReport>()?;
    for function in [
        wrap_pyfunction!(controllers, module)?,
        wrap_pyfunction!(choose, module)?,
        wrap_pyfunction!(catalogue, module)?,
        wrap_pyfunction!(series_columns, module)?,
        wrap_pyfunction!(scenario::find, module)?,
        wrap_pyfunction!(scenario::toml_of_json, module)?,
        wrap_pyfunction!(run::run, module)?,
        wrap_pyfunction!(run::read_runs, module)?,
        wrap_pyfunction!(run::report, module)?,
        wrap_pyfunction!(run::sweep_report, module)?,
        wrap_pyfunction!(run::compare, module)?,
        wrap_pyfunction!(run::controllers_of, module)?,
        wrap_pyfunction!(commands::command_line, module)?,
        wrap_pyfunction!(commands::unpacking, module)?,
        wrap_pyfunction!(fleet::fleet_tables, module)?,
        wrap_pyfunction!(fleet::fleet_causes, module)?,
        wrap_pyfunction!(fleet::fleet_scenario, module)?,
        wrap_pyfunction!(fleet::fleet_call_report, module)?,
        wrap_pyfunction!(score::score, module)?,
        wrap_pyfunction!(score::contests, module)?,
        wrap_pyfunction!(metric, module)?,
        wrap_pyfunction!(controller::check_controller, module)?,
    ] {
        module.add_function(function)?;
    }
    Ok(())
}
