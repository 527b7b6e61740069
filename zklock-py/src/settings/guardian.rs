//! The command that `guard` starts.

use pyo3::prelude::*;
use std::path::PathBuf;
use std::process::Command;
use zklock::face::guardian_command;

/// Returns the command at this path or, by default, the one that was installed with this package. If there is none, the
/// command is looked up in ``PATH``.
pub(crate) fn command(py: Python<'_>, given: Option<PathBuf>) -> Command {
    let program = given.or_else(|| installed(py).ok().flatten());
    guardian_command(program.map(PathBuf::into_os_string).as_deref())
}

fn installed(py: Python<'_>) -> PyResult<Option<PathBuf>> {
    py.import("zklock._command")?.call_method0("installed")?.extract()
}
