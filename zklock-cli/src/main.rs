//! `zklock`, the command: runs programs under distributed locks on ZooKeeper, and shows who holds and waits.

// The layers: a module imports from lower lines, or from its own, and never in a circle. `tests/layers.py` checks that.
//
// ```text
// .          main arguments                         the command line
//            configuration                          a file with options of the connection
// commands   doctor                                 whether locks would work here, and jobs do
//            jobs                                   the jobs that run once in each period
//            run acquire                            a command that runs while a lock is held; a lock for a shell
//            held release                           ask about the shell's lock, and end it
//            ls tree intervene                      who holds and who waits; takes locks from others
//            contenders                             the contenders of a lock, as those three show them
//            choice                                 the lock that a command acquires, and how long it waits for it
//            variables                              the environment of what runs under a lock
//            bench fence quickstart                 the other commands
//            testing paper
// processes  warden                                 ends the command in time: another process, of this program
//            launch                                 becomes the command: likewise
//            guardian                               ends the session of a process that is dead: for the warden, and a process of its own
//            questions                              what a shell's commands ask the process that holds its lock
//            orders                                 what these processes say to each other
//            terminal signals descendants clock
// .          connect output                         how any command connects, and what it prints
//            failure duration
//            exit                                   the exit codes
// ```

#![forbid(unsafe_code)]

/// Prints a line for people on stderr, in one write, because the command and its shell write there, too. If nobody
/// can read the line, this does not fail, as `eprintln` would.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write;
        let _ = std::io::stderr().write_all(format!("zklock: {}\n", format_args!($($text)*)).as_bytes());
    }};
}

mod arguments;
mod commands;
mod configuration;
mod connect;
mod duration;
mod exit;
mod failure;
mod output;
mod processes;

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

use clap::FromArgMatches;
use clap::error::{ContextKind, ContextValue};
use nix::sys::signal::SigSet;

use arguments::{Arguments, Command};
use commands::{acquire, quickstart};
use configuration::Configuration;
use exit::Exit;
use failure::Failure;
use processes::signals::{self, Signals};
use processes::{guardian, launch, warden};

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    match words.split_first() {
        Some((word, rest)) if word == warden::WORD => return warden::main(rest),
        Some((word, rest)) if word == launch::WORD => return launch::main(rest),
        Some((word, rest)) if word == guardian::WORD => return guardian::main(rest),
        _ => {}
    }
    let (role, words) = match &*words {
        [word, name, rest @ ..] if word == quickstart::WORD => (Role::Worker(name), rest),
        [word, rest @ ..] if word == acquire::KEEPER => {
            acquire::leave_shell();
            (Role::Keeper, rest)
        }
        words => (Role::User, words),
    };
    let failure = match parse(words).and_then(|arguments| execute(&arguments, words, role)) {
        Ok(code) => return code,
        Err(failure) => failure,
    };
    let mut exit = failure.exit();
    match failure {
        // If help was asked for, it goes to stdout; anything else is a mistake.
        Failure::CommandLine(error) => {
            if !error.use_stderr() {
                exit = Exit::Done;
            }
            let _ = error.print();
        }
        Failure::OutputClosed => {}
        failure => say!("{failure}"),
    }
    // Even if the words make no sense: a shell that evaluates nothing goes on without the lock.
    if exit != Exit::Done && is_acquire(words) {
        acquire::fail(exit as u8);
    }
    exit.into()
}

/// Whether the subcommand is `zklock acquire`. If the words do not show which one it is, any of them may be.
fn is_acquire(words: &[OsString]) -> bool {
    let program = OsString::from("zklock");
    let command = arguments::command(false).ignore_errors(true);
    let matches = command.try_get_matches_from([&program].into_iter().chain(words));
    match matches.as_ref().ok().and_then(|matches| matches.subcommand_name()) {
        Some(name) => name == acquire::NAME,
        None => words.iter().any(|word| word == acquire::NAME),
    }
}

/// Whom this process serves.
#[derive(Clone, Copy)]
enum Role<'a> {
    User,
    /// `zklock quickstart`, which has given it this name.
    Worker(&'a OsStr),
    /// `zklock acquire`.
    Keeper,
}

fn parse(words: &[OsString]) -> Result<Arguments, Failure> {
    let program = OsString::from("zklock");
    let words = || [&program].into_iter().chain(words);
    let says_all = words().any(|word| word == "--help-all");
    let matches = arguments::command(says_all).try_get_matches_from(words()).map_err(with_right_name)?;
    let mut arguments = Arguments::from_arg_matches(&matches)?;
    // Commands that need no servers work with any configuration.
    if !matches!(
        matches.subcommand_name(),
        Some("held" | "release" | "fence" | "testing" | "completions" | "man")
    ) {
        let configuration = Configuration::read(arguments.connection.config.as_deref())?;
        arguments.connection.complete(&matches, configuration.source, configuration.options);
    }
    Ok(arguments)
}

/// Suggests our commands for what other programs call so.
fn with_right_name(mut error: clap::Error) -> clap::Error {
    let names: &[&str] = match error.get(ContextKind::InvalidSubcommand) {
        Some(ContextValue::String(word)) if word == "lock" => &["run", "acquire"],
        Some(ContextValue::String(word)) if word == "status" => &["ls", "held"],
        Some(ContextValue::String(word)) if word == "unlock" => &["release", "break"],
        _ => return error,
    };
    let names = names.iter().map(|name| (*name).to_owned()).collect();
    error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(names));
    error
}

fn execute(arguments: &Arguments, words: &[OsString], role: Role<'_>) -> Result<ExitCode, Failure> {
    signals::reset()?;
    let Arguments { command, connection } = arguments;
    // Its calls are waited for, so it must run outside of the runtime.
    if let Command::Quickstart(quickstart) = command {
        match role {
            Role::Worker(name) => quickstart.work(connection, name)?,
            _ => quickstart.execute(connection, words)?,
        }
        return Ok(Exit::Done.into());
    }
    let watched = matches!(command, Command::Run(_) | Command::Acquire(_))
        .then(signals::block)
        .transpose()?
        .unwrap_or_else(SigSet::empty);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        match command {
            Command::Run(run) => return run.execute(connection, &Signals::new(&watched)?).await,
            Command::Acquire(acquire) if matches!(role, Role::Keeper) => {
                acquire.keep(connection, &Signals::new(&watched)?).await?;
            }
            Command::Acquire(acquire) => return acquire.execute(words, &Signals::new(&watched)?).await,
            Command::Held(held) => held.execute()?,
            Command::Release(release) => release.execute()?,
            Command::Ls(ls) => connection.with_client(async |client| ls.execute(client).await).await?,
            Command::Tree(tree) => connection.with_client(async |client| tree.execute(client).await).await?,
            Command::Jobs(jobs) => connection.with_client(async |client| jobs.execute(client).await).await?,
            Command::Break(it) => connection.with_client(async |client| it.execute(client).await).await?,
            Command::Evict(it) => connection.with_client(async |client| it.execute(client).await).await?,
            Command::RequestRelease(it) => {
                connection.with_client(async |client| it.execute(client).await).await?;
            }
            Command::Doctor(doctor) => return Ok(doctor.execute(connection).await?.into()),
            Command::Bench(bench) => bench.execute(connection).await?,
            Command::Fence(fence) => fence.execute()?,
            Command::Quickstart(_) => {}
            Command::Testing(testing) => testing.execute()?,
            Command::Completions(completions) => completions.execute(arguments::command(true))?,
            Command::Man(man) => man.execute(arguments::command(true))?,
        }
        Ok(Exit::Done.into())
    })
}
