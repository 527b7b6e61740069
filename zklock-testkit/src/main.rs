//! The server as a program: see [`zklock_testkit::console`].

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::FileTypeExt;
use std::process::ExitCode;
use std::thread;

use zklock_testkit::console::{self, Console};

fn main() -> ExitCode {
    match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn serve() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(settings) = console::settings(&arguments)? else {
        print!("{}", console::USAGE);
        return Ok(());
    };
    let server = settings.start()?;
    let mut output = io::stdout();
    writeln!(output, "{}", server.connect_string())?;
    output.flush()?;
    // A pipe ends when the test at its other end does. A terminal or /dev/null says nothing about a test.
    let is_pipe = fs::metadata("/dev/stdin").is_ok_and(|input| {
        let kind = input.file_type();
        kind.is_fifo() || kind.is_socket()
    });
    if !Console::default().run(&server, io::stdin().lock(), output)? && !is_pipe {
        loop {
            thread::park();
        }
    }
    Ok(())
}
