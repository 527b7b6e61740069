//! The embedded server in place of a real one, if the environment asks for it: `ZKLOCK_SERVER=embedded`.
//!
//! It runs as a separate process, so that it can be killed and paused like a JVM. If a test needs something that it
//! does not support (see [`Builder`](crate::Builder)), a real server is started instead, with a note on stderr: no test
//! is left out.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

const PROGRAM: &str = "zklock-testkit";

/// The path of its program, if it is to be used. `needed` is a feature that it does not have, if the test needs one.
pub(crate) fn program(needed: Option<&str>) -> Result<Option<PathBuf>, String> {
    match std::env::var("ZKLOCK_SERVER").as_deref() {
        Err(_) | Ok("" | "real") => return Ok(None),
        Ok("embedded") => {}
        Ok(other) => return Err(format!("ZKLOCK_SERVER is {other:?}, and neither 'real' nor 'embedded'")),
    }
    if let Some(needed) = needed {
        let thread = std::thread::current();
        // Not with a macro, because the test harness would capture that output.
        let _ = writeln!(io::stderr(), "real server: {}: {needed}", thread.name().unwrap_or("?"));
        return Ok(None);
    }
    embedded_program().map(Some)
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
