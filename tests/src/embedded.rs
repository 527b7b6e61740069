//! The embedded server in the place of a real one, where the environment asks for it: `ZKLOCK_SERVER=embedded`.
//!
//! It runs as a process of its own, so that it can be killed and paused as a JVM can. What it has not (see
//! [`Builder`](crate::Builder)) has a real server start all the same, which is told on stderr: no test is left out.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

const PROGRAM: &str = "zklock-testkit";

/// Its program, where it is to be used; `needed` is what it could not give, if there is something.
pub(crate) fn program(needed: Option<&str>) -> Result<Option<PathBuf>, String> {
    match std::env::var("ZKLOCK_SERVER").as_deref() {
        Err(_) | Ok("" | "real") => return Ok(None),
        Ok("embedded") => {}
        Ok(other) => return Err(format!("ZKLOCK_SERVER is {other:?}, and neither 'real' nor 'embedded'")),
    }
    if let Some(needed) = needed {
        let thread = std::thread::current();
        // Not by a macro: the test harness would keep it to itself.
        let _ = writeln!(io::stderr(), "real server: {}: {needed}", thread.name().unwrap_or("?"));
        return Ok(None);
    }
    embedded_program().map(Some)
}

/// The path of the embedded server's program: `ZKLOCK_TESTKIT`, else beside this program, or beside its folder, where
/// it is a test. The error says how to build it.
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
