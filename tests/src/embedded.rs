//! The server in memory, which is what an ensemble of one server is unless the test needs a real one, or the environment asks for
//! one: `ZKLOCK_SERVER=real`. `tests/conformance` proves that the two are alike.
//!
//! It runs as a separate process, so that it can be killed and paused like a JVM.

use std::path::{Path, PathBuf};
use std::time::Duration;

const PROGRAM: &str = "zklock-testkit";

/// Whether the environment asks for real servers.
pub(crate) fn is_excluded() -> Result<bool, String> {
    match std::env::var("ZKLOCK_SERVER").as_deref() {
        Err(_) | Ok("" | "embedded") => Ok(false),
        Ok("real") => Ok(true),
        Ok(other) => Err(format!("ZKLOCK_SERVER is {other:?}, and neither 'real' nor 'embedded'")),
    }
}

/// The path of the embedded server's program: `ZKLOCK_TESTKIT`, otherwise beside this program or, if this is a test,
/// beside its folder. The error says how to build it.
pub fn embedded_program() -> Result<PathBuf, String> {
    if let Some(program) = std::env::var_os("ZKLOCK_TESTKIT") {
        return Ok(program.into());
    }
    let own = std::env::current_exe().map_err(|error| format!("the path of this program: {error}"))?;
    let found = own.ancestors().skip(1).take(2).map(|folder| folder.join(PROGRAM));
    found.into_iter().find(|program| program.is_file()).ok_or_else(|| {
        format!("no {PROGRAM} beside {}: cargo build -p {PROGRAM}, or set ZKLOCK_TESTKIT", own.display())
    })
}

pub(crate) fn command(program: &Path, port: u16, tick: Duration, container_check: Duration) -> Vec<String> {
    let words = [
        &program.display().to_string(),
        "--listen",
        &format!("127.0.0.1:{port}"),
        "--tick",
        &tick.as_secs_f64().to_string(),
        "--container-check",
        &container_check.as_secs_f64().to_string(),
    ];
    words.map(str::to_owned).to_vec()
}
