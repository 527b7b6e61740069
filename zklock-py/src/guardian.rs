//! The command that `guard` starts.

use pyo3::prelude::*;
use std::path::PathBuf;
use std::process::Command;
use zklock_core::face::guardian_command;

/// What this package is called where it is installed.
const PACKAGE: &str = "zklock-py";
const PROGRAM: &str = "zklock";

/// The command at this path or, by default, the one that was installed with this package. It is of the same version, and the
/// directory that it is in need not be in ``PATH``: an environment may be used without being activated. Without such a one,
/// the command is looked for in ``PATH``.
pub(crate) fn command(py: Python<'_>, given: Option<PathBuf>) -> Command {
    let program = given.or_else(|| installed(py).ok().flatten());
    guardian_command(program.map(PathBuf::into_os_string).as_deref())
}

fn installed(py: Python<'_>) -> PyResult<Option<PathBuf>> {
    let files = py.import("importlib.metadata")?.call_method1("files", (PACKAGE,))?;
    if files.is_none() {
        return Ok(None);
    }
    for file in files.try_iter()? {
        let file = file?;
        if file.getattr("name")?.extract::<String>()? == PROGRAM {
            let place: PathBuf = file.call_method0("locate")?.extract()?;
            // The package itself may have this name, where it was installed otherwise.
            if place.is_file() {
                return Ok(Some(place));
            }
        }
    }
    Ok(None)
}
