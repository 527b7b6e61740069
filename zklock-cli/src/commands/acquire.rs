//! `zklock acquire`: a lock for a shell, over several commands. A process of its own, the keeper, holds it.

mod keeper;
mod shell;

use std::ffi::OsString;
use std::io::{self, IsTerminal};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as Socket;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use clap::{Args, ValueEnum};
use rustix::process::{Pid, Signal, setsid};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use zklock::face::Message;

use crate::commands::choice::Choice;
use crate::connect::Connection;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::print;
use crate::processes::guardian::close_inherited;
use crate::processes::signals::Signals;
use keeper::Keeper;

/// The name of the command.
pub(crate) const NAME: &str = "acquire";
/// The first word of the keeper's command line, by which `main` knows it. The words of `zklock acquire` follow.
pub(crate) const KEEPER: &str = "__keeper";

/// Hold a lock for a shell, over several commands
///
/// A script begins with `eval "$(zklock acquire --mutex /locks/deploy --timeout 60)" || exit`, and ends with `zklock release`.
///
/// The output sets ZKLOCK_HOLD (the name of the hold, for `zklock release` and `zklock held`), ZKLOCK_TOKEN (the fencing
/// token), ZKLOCK_LOCK (the lock's path) and ZKLOCK_NODE (the node of the hold), for sh, bash, dash and zsh. Without the
/// lock, the output fails with the exit code.
///
/// A process in the background, the guardian, holds the lock. It releases the lock when the shell has ended, whatever the cause.
/// Processes that the shell leaves running go on without the lock. If the lock is lost, `zklock held` and `zklock release` fail
/// with code 122, and the shell gets the signal of --on-lost-signal.
#[derive(Args, Debug)]
pub(crate) struct Acquire {
    #[command(flatten)]
    choice: Choice,

    /// Hold the lock for the process with this number, and not for the shell that evaluates the output
    #[arg(long, value_parser = process)]
    pid: Option<Pid>,

    /// Send this signal, such as TERM, to the shell when the lock is lost, or is about to be because no server answers. By
    /// default, the shell gets no signal
    #[arg(long, value_name = "SIGNAL", value_parser = signal)]
    on_lost_signal: Option<Signal>,
}

impl Acquire {
    /// Starts the keeper, and prints what the shell should evaluate.
    pub(crate) async fn execute(&self, words: &[OsString], signals: &Signals) -> Result<ExitCode, Failure> {
        // What was closed is /dev/null by now. Nobody could name a hold that goes there.
        if io::stdout().is_terminal()
            || shell::output(Path::new("/proc/self")).is_ok_and(|output| output == "/dev/null")
        {
            return Err(Failure::usage(
                "a shell has to evaluate what this prints: write eval \"$(zklock acquire ...)\" || exit",
            ));
        }
        if self.choice.conflict_exit_code == Some(0) {
            return Err(Failure::usage(
                "with -E 0 the shell would go on without the lock: give another code",
            ));
        }
        let shell = shell::descriptor(self.pid)?;
        let (ours, theirs) = Socket::pair()?;
        // It is not waited for: it lives on, and then its parent is init.
        Command::new("/proc/self/exe")
            .arg0("zklock-keeper")
            .arg(KEEPER)
            .args(words)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::from(shell))
            .stderr(Stdio::null())
            .spawn()?;
        ours.set_nonblocking(true)?;
        let mut keeper = BufReader::new(UnixStream::from_std(ours)?);
        let mut received = Vec::new();
        tokio::select! {
            read = keeper.read_until(b'\n', &mut received) => { read?; }
            signal = signals.end() => {
                let code = 128 + signal? as u8;
                fail(code);
                return Ok(code.into());
            }
        }
        let report = Message::take(&mut received)?
            .ok_or_else(|| Failure::other("the process that is to hold the lock was ended"))?;
        match report.kind() {
            // The shell should evaluate this.
            "held" => {
                let text: String = report.need("text")?;
                // A shell that starts a pipeline has both ends of each pipe for a moment.
                shell::find(self.pid)?;
                print(&text).map_err(|_| {
                    Failure::other(
                        "what the shell should evaluate cannot be written, so the lock is released",
                    )
                })?;
                // Without this it releases the lock, because nobody else would.
                keeper.write_all(b"\n").await?;
                Ok(Exit::Done.into())
            }
            _ => {
                let (code, why): (u8, String) = (report.need("code")?, report.need("why")?);
                let exit = Exit::value_variants().iter().find(|exit| **exit as u8 == code);
                let code = self.choice.conflict(Failure::new(*exit.unwrap_or(&Exit::Other), why))?;
                fail(code);
                Ok(code.into())
            }
        }
    }

    /// The keeper: `execute` has started it.
    pub(crate) async fn keep(&self, connection: &Connection, signals: &Signals) -> Result<(), Failure> {
        Ok(Keeper::new(signals, self.on_lost_signal)?.keep(&self.choice, connection).await?)
    }
}

/// Leaves the terminal, and all that the shell has open. Nothing else may have been opened by now.
pub(crate) fn leave_shell() {
    close_inherited();
    // It leads no group, so this does not fail.
    let _ = setsid();
}

/// Prints what fails with this code. Otherwise the shell would evaluate nothing, which succeeds.
pub(crate) fn fail(code: u8) {
    if !io::stdout().is_terminal() {
        let _ = print(&format!("(exit {code})\n"));
    }
}

fn process(text: &str) -> Result<Pid, String> {
    let number = text.parse().ok().filter(|number| *number > 0).and_then(Pid::from_raw);
    number.ok_or_else(|| "it is not the number of a process: write it as $$".to_owned())
}

/// Reads `TERM`, `SIGTERM` or `15`.
fn signal(text: &str) -> Result<Signal, String> {
    let name = text.to_uppercase();
    let named = format!("SIG{}", name.trim_start_matches("SIG")).parse::<nix::sys::signal::Signal>();
    let number = text.parse().or_else(|_| named.map(|signal| signal as i32));
    let signal = number.ok().and_then(Signal::from_named_raw);
    signal.ok_or_else(|| "there is no such signal: write it as TERM or USR1".to_owned())
}
