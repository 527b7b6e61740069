//! One run of a command: its job on one side, the hold on the other, and the signals and the terminal between them.

use std::fmt::Display;
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::time::{MissedTickBehavior, interval};
use zklock::face::{Message, Moment, now};
use zklock::further::SessionKey;
use zklock::{ClientOptions, ErrorKind, Hold, HoldState, LossReason};

use super::Running;
use super::job::Job;
use super::on_lost::OnLost;
use crate::commands::variables::Variables;
use crate::duration;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::processes::clock::since_boot;
use crate::processes::orders::{Cause, Ended, Limits};
use crate::processes::signals::{Whom, suspend};
use crate::processes::terminal::Terminal;

/// The warden is told of a change of the lease that is greater than this.
const NOTABLE: Duration = Duration::from_millis(1);

/// Why a lock is about to be lost.
const SILENCE: &str = "no server has confirmed it in time";

pub(super) struct Watch<'a> {
    running: &'a Running<'a>,
    hold: &'a Hold,
    limits: Limits,
    job: Job,
    terminal: Option<Terminal>,
    /// The end of the lease that the warden knows.
    lease_ends: Moment,
    is_at_risk: bool,
    /// Whether the warden was told that the lock is lost.
    is_lost: bool,
    /// Whether the job has got TERM. From then on, the lease matters only to the warden.
    is_ending: bool,
    /// Whether we were asked to stop, and have asked the job to do so first.
    is_stopping: bool,
}

impl<'a> Watch<'a> {
    pub(super) fn start(
        running: &'a Running<'a>,
        hold: &'a Hold,
        variables: &Variables,
        limits: Limits,
        not_before: Moment,
        guard: Option<(SessionKey, ClientOptions)>,
    ) -> Result<Self, Failure> {
        let (terminal, lease_ends) = (Terminal::new(), lease_end(hold));
        let mut start = Message::new("start")
            .time("kill-after", limits.grace)
            .time("session-timeout", limits.session_timeout)
            .time("lease-ends", since_boot(lease_ends));
        if let Some(at_most) = running.run.at_most {
            start = start.time("ends-at", since_boot(now() + at_most));
        }
        if terminal.as_ref().is_some_and(Terminal::is_for_the_job) {
            start = start.and("in-foreground", "yes");
        }
        if let Some((key, options)) = guard {
            start = start.bytes("key", &key.to_bytes()).time("not-before", since_boot(not_before));
            start = options.pass_on(start);
        }
        let job = Job::start(&running.run.command, variables, &start).map_err(not_started)?;
        let (is_at_risk, is_lost, is_ending, is_stopping) = (false, false, false, false);
        Ok(Self {
            running,
            hold,
            limits,
            job,
            terminal,
            lease_ends,
            is_at_risk,
            is_lost,
            is_ending,
            is_stopping,
        })
    }

    /// Watches until nothing is left of the job. The job is returned because its warden guards the session while it is
    /// kept; a warden that was killed cannot.
    pub(super) async fn keep(mut self, on_lost: &mut OnLost<'_>) -> Result<(Ended, Option<Job>), Failure> {
        // The warden knows of a renewal well before the old lease would make it act.
        let period =
            (self.limits.least_lease() / 4).clamp(Duration::from_millis(5), Duration::from_millis(250));
        let mut ticks = interval(period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                report = self.job.report() => match report? {
                    Some(report) if report.kind() == "ended" => {
                        self.take_terminal_back();
                        let ended = Ended { code: report.need("code")?, cause: report.get("cause")? };
                        return Ok((ended, Some(self.job)));
                    }
                    Some(report) => self.hear(&report, on_lost).await?,
                    None => {
                        self.take_terminal_back();
                        self.job.kill_without_warden();
                        say!("the process that guards the command was killed, so the command was killed too");
                        return Ok((Ended { code: Exit::Other as u8, cause: None }, None));
                    }
                },
                Ok(reason) = self.hold.lost(), if !self.is_lost => {
                    self.is_lost = true;
                    let reason = reason_of(reason);
                    say!("the lock {} is lost: {reason}; ending the command", self.hold.path());
                    self.job.order(&Message::new("end")).await;
                    on_lost.start(&reason);
                }
                signal = self.running.signals.next() => self.pass_on(signal?).await,
                _ = ticks.tick() => self.look_at_lease().await,
            }
        }
    }

    async fn hear(&mut self, report: &Message, on_lost: &mut OnLost<'_>) -> Result<(), Failure> {
        let path = self.hold.path();
        self.is_ending |= report.kind() == "ending";
        match (report.kind(), report.get("cause")?) {
            ("stopped", _) => self.stopped(report.need("signal")?).await?,
            ("not-started", _) => {
                return Err(not_started(report.need::<String>("why")?));
            }
            ("ending", Some(Cause::LeaseEnds)) => {
                say!("the lock {path} is about to be lost, since {SILENCE}; ending the command");
                on_lost.start(SILENCE);
            }
            ("ending", Some(Cause::AtMost)) => {
                let at_most = duration::short(self.running.run.at_most.unwrap_or_default());
                say!("the command has run for {at_most}, its limit (--at-most); ending it");
            }
            // A loss was already reported, and ending what is left over is a part of success.
            ("ending" | "started", _) => {}
            _ => return Err(Message::strange().into()),
        }
        Ok(())
    }

    async fn look_at_lease(&mut self) {
        // A loss is reported as a loss: that leaves the job more time than a lease of zero.
        if matches!(self.hold.state(), HoldState::Lost(_)) {
            return;
        }
        let lease_ends = lease_end(self.hold);
        let difference = lease_ends.since(self.lease_ends).max(self.lease_ends.since(lease_ends));
        if difference > NOTABLE {
            self.lease_ends = lease_ends;
            self.job.order(&Message::new("lease-ends").time("at", since_boot(lease_ends))).await;
        }
        if self.hold.valid_for() <= self.limits.least_lease() {
            self.job.wake_warden();
        }
        if self.is_ending {
            return;
        }
        let (was_at_risk, path) = (self.is_at_risk, self.hold.path());
        self.is_at_risk = self.hold.state() == HoldState::AtRisk;
        if self.is_at_risk && !was_at_risk {
            let left = self.hold.valid_for().saturating_sub(self.limits.least_lease());
            say!(
                "warning: the servers do not answer; if that goes on, the command is ended in {}, before the lock {path} is lost",
                duration::short(left)
            );
        } else if was_at_risk && self.hold.state() == HoldState::Held {
            say!("the servers answer again, and the lock {path} is still held");
        }
    }

    async fn pass_on(&mut self, signal: Signal) {
        if signal == Signal::SIGCONT {
            return self.go_on().await;
        }
        self.is_stopping |= signal == Signal::SIGTSTP;
        self.job.signal(signal).await;
    }

    /// Stops, because the job has stopped: with a terminal, its shell should know.
    async fn stopped(&mut self, signal: i32) -> Result<(), Failure> {
        let wants_terminal = [Signal::SIGTTIN as i32, Signal::SIGTTOU as i32].contains(&signal);
        if let (Some(terminal), Some(group)) = (&self.terminal, self.job.group()) {
            if wants_terminal && terminal.lend(group) {
                self.job.signal(Signal::SIGCONT).await;
                return Ok(());
            }
            terminal.take_back(group);
        } else if !self.is_stopping {
            // Somebody has stopped the job, and nobody could tell us to continue it. The lock stays held.
            return Ok(());
        }
        let whom = if self.is_stopping { Whom::Itself } else { Whom::Group };
        self.is_stopping = false;
        suspend(whom)?;
        self.go_on().await;
        Ok(())
    }

    /// Goes on after a stop of any length. The lease comes first: if it is over, the warden has ended the job or is about
    /// to.
    async fn go_on(&mut self) {
        if self.hold.valid_for() <= self.limits.least_lease() {
            // Any other error may be a matter of moments. The lease as it is known still holds.
            if self.hold.confirm().await.is_err_and(|error| matches!(error.kind(), ErrorKind::Lost(_))) {
                return;
            }
        }
        self.look_at_lease().await;
        if let (Some(terminal), Some(group)) = (&self.terminal, self.job.group()) {
            terminal.lend(group);
        }
        self.job.signal(Signal::SIGCONT).await;
    }

    fn take_terminal_back(&self) {
        if let (Some(terminal), Some(group)) = (&self.terminal, self.job.group()) {
            terminal.take_back(group);
        }
    }
}

fn not_started(why: impl Display) -> Failure {
    Failure::other(format!("the command could not be started: {why}"))
}

/// Returns why the lock was lost.
pub(super) fn reason_of(reason: Option<LossReason>) -> String {
    reason.map_or_else(|| "it was released".to_owned(), |reason| reason.to_string())
}

/// Returns the end of the lease. The clock is read first, so that the result is not later than the end.
fn lease_end(hold: &Hold) -> Moment {
    let now = now();
    now + hold.valid_for()
}
