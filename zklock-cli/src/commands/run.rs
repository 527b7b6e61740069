//! `zklock run`: a program that runs while a lock is held, and no longer.

mod job;
mod metrics;
mod notify;
mod on_lost;
pub(crate) mod period;
mod watch;

use std::convert::Infallible;
use std::ffi::OsString;
use std::future::pending;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use nix::sys::signal::Signal;
use tokio::time::sleep;
use zklock::face::now;
use zklock::further::{RunEntry, RunOutcome, Wait};
use zklock::{Begun, Client, ErrorKind, Hold, HoldState, Lock, LossReason};

use crate::commands::choice::{Choice, lengthen};
use crate::connect::Connection;
use crate::duration;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::processes::orders::{Cause, Limits};
use crate::processes::signals::Signals;
use metrics::MetricsFile;
use notify::Notify;
use on_lost::OnLost;
use period::Period;
use watch::Watch;

/// Run a command while a lock is held
///
/// The command's environment has ZKLOCK_TOKEN (the fencing token), ZKLOCK_LOCK (the lock's path) and ZKLOCK_NODE (the node of
/// the hold). The command runs in a process group of its own, and has the terminal if zklock has it. zklock passes INT, TERM,
/// HUP, QUIT, USR1, USR2, TSTP, CONT and WINCH on to that group.
///
/// When the servers stop answering, zklock prints a warning. When the lease is about to end, the group gets TERM. Then
/// everything that the command has started gets KILL, before another client can hold the lock. If an operator takes the lock
/// away, there is no such notice: the group gets TERM at once. The same happens when zklock is killed, or stopped for too long.
/// Ctrl-Z stops the command and zklock. If that lasts longer than the lease, about half of the session timeout, the command is
/// killed.
///
/// When zklock is killed, the lock is free as soon as all processes of the command have ended and --at-least is over. If the
/// machine dies, or the servers cannot be reached, the lock is free when the session times out.
///
/// The lock covers the command's process group. When the command ends, processes that it leaves running there get TERM,
/// then KILL. Processes with a session of their own (setsid) may go on.
#[derive(Args, Debug)]
pub(crate) struct Run {
    #[command(flatten)]
    choice: Choice,

    #[command(flatten)]
    period: Period,

    /// Keep the lock for this long, even if the command ends earlier
    #[arg(hide_short_help = true, long, value_name = "DURATION", value_parser = duration::parse, default_value = "0", hide_default_value = true)]
    at_least: Duration,

    /// End the command if it runs for longer than this, with code 124
    #[arg(long, value_name = "DURATION", value_parser = duration::parse)]
    at_most: Option<Duration>,

    /// If the lock is lost, wait for it and run the command again
    #[arg(long)]
    retry: bool,

    /// The time from TERM to KILL when the command is ended. If the lease is about to end, a tenth of the session
    /// timeout at most
    #[arg(hide_short_help = true, long, value_name = "DURATION", value_parser = duration::parse, default_value = "1s")]
    kill_after: Duration,

    /// When the lock is lost, also run this with `sh -c`.
    ///
    /// Its environment is that of the command plus ZKLOCK_REASON. The command's end does not wait for it, but zklock does
    #[arg(long, value_name = "COMMAND")]
    on_lost: Option<OsString>,

    /// Say on stderr what happens to the lock.
    ///
    /// It says what is waited for, when the lock is held, and when it is released
    #[arg(long, short, conflicts_with = "quiet")]
    verbose: bool,

    /// Tell systemd when the lock is held (READY=1), what is waited for (STATUS), and that the lease is alive (WATCHDOG=1).
    /// Without NOTIFY_SOCKET this does nothing. The command does not get NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID
    #[arg(hide_short_help = true, long)]
    notify: bool,

    /// Write the figures of the lock to this file, NAME.prom, for node_exporter: how long it waited and held, and losses. The
    /// file is replaced when the lock is acquired, every 5 s, and at the end
    #[arg(hide_short_help = true, long, value_name = "FILE")]
    metrics_file: Option<PathBuf>,

    /// The command and its arguments.
    ///
    /// Options after its first word belong to the command
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// How one run of the command ended.
enum Outcome {
    /// With this code.
    Ended(ExitCode),
    /// The lock was lost.
    Lost,
}

/// A `zklock run` that has connected.
struct Running<'a> {
    run: &'a Run,
    connection: &'a Connection,
    signals: &'a Signals,
    notify: Notify,
    metrics: Option<MetricsFile<'a>>,
    client: Client,
    lock: Lock,
}

impl Run {
    pub(crate) async fn execute(
        &self,
        connection: &Connection,
        signals: &Signals,
    ) -> Result<ExitCode, Failure> {
        let notify = Notify::new(self.notify, self.verbose)?;
        let metrics = self.metrics_file.as_deref().map(MetricsFile::new).transpose()?;
        let wait = self.choice.wait();
        let (client, lock) = tokio::select! {
            connected = self.choice.connect(connection, metrics.as_ref().map(|file| file.name)) => connected?,
            signal = signals.end() => return Ok(code_of(signal?)),
        };
        let running = Running { run: self, connection, signals, notify, metrics, client, lock };
        running.write_metrics();
        // Whatever happens, the session is closed before this process ends, so that nothing of it is left in the queue.
        let outcome = tokio::select! {
            outcome = running.run(wait) => outcome,
            never = running.keep_metrics() => match never {},
        };
        running.write_metrics();
        running.notify.tell("STOPPING=1").await;
        running.client.close().await?;
        outcome
    }
}

impl Running<'_> {
    fn write_metrics(&self) {
        self.metrics.iter().for_each(|metrics| metrics.write(&self.client));
    }

    async fn keep_metrics(&self) -> Infallible {
        match &self.metrics {
            Some(metrics) => metrics.keep(&self.client).await,
            None => pending().await,
        }
    }

    async fn run(&self, mut wait: Wait) -> Result<ExitCode, Failure> {
        let Self { run: Run { choice, period, .. }, signals, notify, client, lock, .. } = self;
        let job = period.job(choice, lock)?;
        loop {
            let begun = tokio::select! {
                biased;
                begun = period::begin(job.as_ref(), choice, client, lock, wait) => begun,
                signal = signals.end() => return Ok(code_of(signal?)),
                never = notify.describe_wait(client, lock) => match never {},
            };
            let (hold, entry) = match begun {
                Ok(Begun::Run(run)) => run,
                Ok(Begun::Done(record)) => {
                    if !choice.quiet {
                        period::tell(lock.path(), &record);
                    }
                    return Ok(Exit::Done.into());
                }
                Err(failure) => return choice.conflict(failure).map(ExitCode::from),
            };
            self.write_metrics();
            // The servers may take their time, so it comes before the look at the lease.
            let mut variables = choice.variables(&hold).await?;
            if self.run.notify {
                variables = notify::VARIABLES.into_iter().fold(variables, |all, name| all.and(name, None));
            }
            let mut on_lost = OnLost::new(self.run.on_lost.as_ref(), variables);
            let outcome = tokio::select! {
                outcome = self.run_under(&hold, entry.as_ref(), &mut on_lost) => outcome,
                never = notify.watch_over(&hold) => match never {},
            };
            if let (Err(failure), Some(entry)) = (&outcome, &entry) {
                // What went wrong is reported below.
                let _ = entry.write(&hold, RunOutcome::Failed(failure.to_string())).await;
            }
            // It may still have its node, for which others wait.
            drop(hold);
            let signal = on_lost.end(signals).await?;
            match (outcome?, signal) {
                (Outcome::Ended(code), _) => return Ok(code),
                (Outcome::Lost, _) if !self.run.retry => return Ok(Exit::Lost.into()),
                (Outcome::Lost, Some(signal)) => return Ok(code_of(signal)),
                (Outcome::Lost, None) => {
                    say!("waiting for the lock {} to run the command again (--retry)", lock.path());
                    wait = choice.wait();
                }
            }
        }
    }

    async fn run_under(
        &self,
        hold: &Hold,
        entry: Option<&RunEntry>,
        on_lost: &mut OnLost<'_>,
    ) -> Result<Outcome, Failure> {
        let limits = Limits::of(&self.client, self.run.kill_after);
        let not_before = now() + self.run.at_least;
        // Without it, the lock of a killed process is free when its session times out.
        let guard = self.client.session_key().await.ok().zip(self.connection.options().ok());
        if let Err(error) = lengthen(hold, &limits).await {
            return Ok(on_lost.report(&error.to_string(), &error, Outcome::Lost));
        }
        let watch = Watch::start(self, hold, on_lost.variables(), limits, not_before, guard)?;
        self.notify.tell(&format!("READY=1\nSTATUS=holding the lock {}", hold.path())).await;
        // The job's warden guards the session until the lock is released.
        let (ended, job) = watch.keep(on_lost).await?;
        let outcome = match ended.cause {
            Some(Cause::LeaseEnds | Cause::Lost) => return Ok(Outcome::Lost),
            Some(Cause::AtMost) => Exit::AtMost.into(),
            Some(Cause::Leftover) | None => ExitCode::from(ended.code),
        };
        if let HoldState::Lost(reason) = hold.state() {
            return Ok(lost_unnoticed(hold, &reason, on_lost));
        }
        if let Some(entry) = entry {
            let run = match (&ended.cause, ended.code) {
                (Some(Cause::AtMost), _) => RunOutcome::Failed("it ran for too long (--at-most)".to_owned()),
                (_, 0) => RunOutcome::Done,
                (_, code) => RunOutcome::Failed(format!("exit code {code}")),
            };
            match entry.write(hold, run).await {
                Err(error) if matches!(error.kind(), ErrorKind::Lost(_)) => {
                    return Ok(on_lost.report(&error.to_string(), &error, Outcome::Ended(Exit::Lost.into())));
                }
                written => written?,
            }
        }
        let early = not_before.since(now());
        if !early.is_zero() {
            if job.is_none() {
                say!("the lock {} is kept for {} more (--at-least)", hold.path(), duration::short(early));
            }
            tokio::select! {
                () = sleep(early) => {}
                // The command is done: what happens to the lock now does not change how the command ended.
                Ok(reason) = hold.lost() => {
                    let reason = watch::reason_of(reason);
                    let text = format!("the lock {} was lost before --at-least was over: {reason}", hold.path());
                    return Ok(on_lost.report(&reason, &text, Outcome::Ended(outcome)));
                }
                signal = self.signals.end() => { signal?; }
            }
        }
        match hold.release().await {
            Ok(()) if self.run.verbose => say!("released the lock {}", hold.path()),
            Ok(()) => {}
            Err(error) => match error.kind() {
                ErrorKind::Lost(reason) => return Ok(lost_unnoticed(hold, &reason, on_lost)),
                // The command has done its work. Closing the client frees the lock too.
                _ => say!("{error}"),
            },
        }
        Ok(Outcome::Ended(outcome))
    }
}

/// Reports that the command ended by itself, but another may have held the lock by then. The command is not run again: it
/// may have done all of its work.
fn lost_unnoticed(hold: &Hold, reason: &LossReason, on_lost: &mut OnLost<'_>) -> Outcome {
    let path = hold.path();
    let text = format!("the lock {path} was lost, and the command ended by itself before that was known");
    on_lost.report(&reason.to_string(), &text, Outcome::Ended(Exit::Lost.into()))
}

/// Returns the exit code with which a shell reports this signal.
fn code_of(signal: Signal) -> ExitCode {
    ExitCode::from(128 + u8::try_from(signal as i32).unwrap_or_default())
}
