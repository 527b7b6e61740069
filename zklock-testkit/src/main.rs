//! The server as a program: see [`zklock_testkit::console`].

use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    zklock_testkit::console::program(&arguments).into()
}
