//! The command that `guard` starts.

use pyo3::prelude::*;
use std::path::PathBuf;
use std::process::Command;
use zklock_core::face::guardian_command;

/// The name under which this package is installed.
const PACKAGE: &str = "zklock-py";
const PROGRAM: &str = "zklock";

/// Returns the command at this path or, by default, the one that was installed with this package. That one has the same
/// version, and its directory need not be in ``PATH``: an environment may be used without being activated. If there is
/// none, the command is looked up in ``PATH``.
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
            // If the package was installed in another way, this may be the package itself.
            if place.is_file() {
                return Ok(Some(place));
            }
        }
    }
    Ok(None)
}
