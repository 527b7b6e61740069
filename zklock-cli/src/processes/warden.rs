//! The warden of a job: a process between `zklock run` and its command, which ends the job in time whatever happens to
//! `zklock run`.
//!
//! `zklock run` cannot end its job if it is killed, or stopped until the lease is over. Nor is it enough that the kernel
//! kills a child with its parent: that hits no grandchild. So the warden knows when the lease ends, and until when it may
//! rely on that; it holds one end of a pair of sockets, and kills the job when the other end is gone. It stands in a
//! process group of its own, so that no signal for the job or for `zklock run` hits it, and its name is not `zklock`.
//!
//! It has one thread and no runtime, because it must work when nothing else does. It talks to the servers only when nothing
//! is left of the job, and `zklock run` is dead, to end the session (see [`guardian`](crate::processes::guardian)).

mod plan;

use std::error::Error;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use nix::sys::signal::SigSet;
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustix::process::{Pid, Signal, set_child_subreaper};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use zklock::face::{Message, Moment, now};

use crate::processes::clock::{since_boot, timespec};
use crate::processes::descendants::{
    BETWEEN_LOOKS, News, code, is_group_there, kill_children, news, signal_group,
};
use crate::processes::guardian::Guardian;
use crate::processes::launch;
use crate::processes::orders::{Cause, Limits, Peer, help};
use plan::{Plan, Step};

/// The first word of its command line, by which `main` knows it.
pub(crate) const WORD: &str = "__warden";

/// The job's input, output and errors.
const STREAMS: usize = 3;

/// The warden's `main`.
pub(crate) fn main(command: &[OsString]) -> ExitCode {
    help(c"warden-of-job", "the command's guardian", |peer| keep(peer, command))
}

fn keep(mut peer: Peer, command: &[OsString]) -> Result<(), Box<dyn Error>> {
    set_child_subreaper(Some(rustix::process::getpid()))?;
    let mut children = SigSet::empty();
    children.add(nix::sys::signal::Signal::SIGCHLD);
    let children = SignalFd::with_flags(&children, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
    let timer = timerfd_create(TimerfdClockId::Boottime, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;

    // The first order, the job's input, output and errors, and the descriptor that shows when `zklock run` is dead.
    let start = loop {
        if let Some(start) = peer.take()? {
            break start;
        }
        if peer.receive(RecvFlags::empty())? == 0 {
            return Ok(());
        }
    };
    let (grace, session_timeout) = (start.need_time("kill-after")?, start.need_time("session-timeout")?);
    let lease_ends = Moment::at(start.need_time("lease-ends")?);
    let ends_at = start.get("ends-at")?.map(|nanos| Moment::at(Duration::from_nanos(nanos)));
    let streams = peer.descriptors.drain(..peer.descriptors.len().min(STREAMS)).collect();
    let in_foreground = start.get_bytes("in-foreground").is_some();
    let guarded = peer.descriptors.pop();
    let guardian = guarded.map(|guarded| Guardian::of(guarded, start)).transpose()?.flatten();
    let group = match launch(command, in_foreground, streams) {
        Ok(group) => group,
        Err(error) => return Ok(peer.say(&Message::new("not-started").and("why", &error))?),
    };
    let mut warden = Warden {
        group,
        plan: Plan::new(Limits { grace, session_timeout }, lease_ends, ends_at),
        code: None,
        is_killing: false,
        peer,
        is_alone: false,
        guardian,
        has_left: false,
    };
    warden.report(&Message::new("started").and("group", &group.as_raw_pid()));
    warden.watch(&children, &timer)?;
    warden.guard_session()
}

fn launch(command: &[OsString], in_foreground: bool, streams: Vec<OwnedFd>) -> io::Result<Pid> {
    let Ok([input, output, errors]) = <[OwnedFd; STREAMS]>::try_from(streams) else {
        return Err(io::Error::other("its input, output and errors did not arrive"));
    };
    let mut launcher = launch::command(in_foreground);
    let launcher = launcher.args(command).stdin(Stdio::from(input)).stdout(Stdio::from(output));
    Ok(Pid::from_child(&launcher.stderr(Stdio::from(errors)).spawn()?))
}

struct Warden {
    /// The job's process group. Its number is that of its first process.
    group: Pid,
    plan: Plan,
    /// How the first process has ended.
    code: Option<u8>,
    is_killing: bool,
    peer: Peer,
    /// Whether `zklock run` is gone, or gives no orders any more.
    is_alone: bool,
    guardian: Option<Guardian>,
    /// Whether `zklock run` looks after its session itself.
    has_left: bool,
}

impl Warden {
    /// Watches until nothing is left of the job.
    fn watch(&mut self, children: &SignalFd, timer: &OwnedFd) -> Result<(), Box<dyn Error>> {
        loop {
            self.hear_of_children(children);
            self.take_steps();
            if self.is_over() {
                if let Some(code) = self.code {
                    let ended = Message::new("ended").and("code", &code);
                    let cause = self.plan.cause().into_iter();
                    self.report(&cause.fold(ended, |ended, cause| ended.and("cause", &(cause as u8))));
                }
                return Ok(());
            }
            self.wait(children, timer)?;
            self.hear_orders()?;
        }
    }

    /// Guards the session once nothing is left of the job, while the lock is still held: until `zklock run` has released
    /// it, or is dead.
    fn guard_session(&mut self) -> Result<(), Box<dyn Error>> {
        if self.guardian.is_none() {
            return Ok(());
        }
        loop {
            while let Some(order) = self.peer.take()? {
                // The number of the job's group may be another's by now, so no other order is obeyed.
                self.has_left |= order.kind() == "leave";
            }
            let (false, Some(guardian)) = (self.is_alone, &self.guardian) else { break };
            let orders = PollFd::new(&self.peer.socket, PollFlags::IN);
            let death = PollFd::new(guardian.guarded(), PollFlags::IN);
            match poll(&mut [orders, death], None) {
                Ok(_) | Err(Errno::INTR) => self.receive(),
                Err(error) => return Err(error.into()),
            };
        }
        if let Some(guardian) = self.guardian.take().filter(|_| !self.has_left) {
            guardian.end_session();
        }
        Ok(())
    }

    /// Waits until there is anything to do.
    fn wait(&self, children: &SignalFd, timer: &OwnedFd) -> io::Result<()> {
        let next =
            self.plan.next().map_or(Duration::ZERO, |next| since_boot(next).max(Duration::from_nanos(1)));
        let when = Itimerspec { it_interval: timespec(Duration::ZERO), it_value: timespec(next) };
        timerfd_settime(timer, TimerfdTimerFlags::ABSTIME, &when)?;
        let mut descriptors = vec![PollFd::new(children, PollFlags::IN), PollFd::new(timer, PollFlags::IN)];
        if !self.is_alone {
            descriptors.push(PollFd::new(&self.peer.socket, PollFlags::IN));
            descriptors.extend(self.guardian.iter().map(|one| PollFd::new(one.guarded(), PollFlags::IN)));
        }
        let is_watched_closely = self.is_killing || self.plan.cause().is_some();
        let timeout = is_watched_closely.then(|| timespec(BETWEEN_LOOKS));
        match poll(&mut descriptors, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn hear_of_children(&mut self, children: &SignalFd) {
        while let Ok(Some(_)) = children.read_signal() {}
        while let News::Of(child, status) = news() {
            if child != self.group {
                continue;
            }
            if let Some(signal) = status.stopping_signal() {
                self.report(&Message::new("stopped").and("signal", &signal));
            }
            if let Some(code) = code(status) {
                self.code = Some(code);
                // The lock covers the whole job, so what the first process has left behind ends with it.
                if is_group_there(self.group) {
                    self.end(Cause::Leftover);
                }
            }
        }
    }

    fn hear_orders(&mut self) -> Result<(), Box<dyn Error>> {
        if !self.receive() {
            // Nobody is left to keep the lock.
            self.kill();
            return Ok(());
        }
        while let Some(order) = self.peer.take()? {
            match order.kind() {
                "lease-ends" => self.plan.renew(Moment::at(order.need_time("at")?)),
                "end" => self.end(Cause::Lost),
                "leave" => self.has_left = true,
                "signal" => {
                    if let Some(signal) = Signal::from_named_raw(order.need("number")?) {
                        signal_group(self.group, signal);
                    }
                }
                _ => return Err(Message::strange().into()),
            }
        }
        Ok(())
    }

    /// Receives the orders that have come by now. Returns `false` if `zklock run` has given its last one, and all were
    /// received.
    fn receive(&mut self) -> bool {
        // A process that has inherited the other end may keep it open.
        let is_dead = |guardian: &Guardian| guardian.is_dead_within(Duration::ZERO);
        let lives = || !self.guardian.as_ref().is_some_and(is_dead);
        let may_say_more = self.is_alone
            || match self.peer.receive(RecvFlags::DONTWAIT) {
                Ok(received) => received > 0,
                Err(error) => {
                    [ErrorKind::WouldBlock, ErrorKind::Interrupted].contains(&error.kind()) && lives()
                }
            };
        self.is_alone |= !may_say_more;
        may_say_more
    }

    fn take_steps(&mut self) {
        loop {
            match self.plan.due(now()) {
                Step::Nothing => break,
                Step::Term(cause) => self.terminate(cause),
                Step::Kill => self.kill(),
            }
        }
        if self.is_killing {
            self.kill();
        }
    }

    fn end(&mut self, cause: Cause) {
        if self.plan.end(cause, now()) {
            self.terminate(cause);
        }
    }

    fn terminate(&mut self, cause: Cause) {
        signal_group(self.group, Signal::TERM);
        // A stopped process would not notice it.
        signal_group(self.group, Signal::CONT);
        self.report(&Message::new("ending").and("cause", &(cause as u8)));
    }

    fn kill(&mut self) {
        self.is_killing = true;
        // The number of an empty group may soon be another's.
        if self.code.is_none() || is_group_there(self.group) {
            signal_group(self.group, Signal::KILL);
        }
        if self.plan.cause() != Some(Cause::Leftover) || self.is_alone {
            kill_children();
        }
    }

    /// Whether nothing is left of the job. Processes that left its group may stay if it ended by itself.
    fn is_over(&self) -> bool {
        let has_ended = self.code.is_some() && !is_group_there(self.group);
        let may_leave_others = matches!(self.plan.cause(), None | Some(Cause::Leftover)) && !self.is_alone;
        has_ended && (may_leave_others || matches!(news(), News::NoChildren))
    }

    /// Sends a report. If nobody receives it, that is noticed soon enough.
    fn report(&mut self, report: &Message) {
        if !self.is_alone {
            let _ = self.peer.say(report);
        }
    }
}
