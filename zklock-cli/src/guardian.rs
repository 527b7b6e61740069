//! Ends the session of a `zklock run` that is dead, so that the next in the queue has the lock at once.
//!
//! It must never do so while `zklock run` lives. That nothing is heard of it, or that its end of the sockets is closed, proves
//! nothing: it may be stopped or slow, and others may have that end. A pidfd is readable when the process is dead, and not before,
//! and no later process can have it.

use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};

use super::timespec;
use crate::clock::Moment;
use crate::duration;
use crate::failure::Failure;
use crate::orders::Guard;

/// A process closes its descriptors on its way out, a little before it is dead.
const ON_ITS_WAY_OUT: Duration = Duration::from_secs(5);

pub(super) struct Guardian {
    /// The pidfd of `zklock run`.
    guarded: OwnedFd,
    guard: Guard,
}

impl Guardian {
    pub(super) fn new(guarded: OwnedFd, guard: Guard) -> Self {
        Self { guarded, guard }
    }

    pub(super) fn guarded(&self) -> &OwnedFd {
        &self.guarded
    }

    /// Whether `zklock run` is dead.
    pub(super) fn is_dead(&self) -> bool {
        self.is_dead_within(Duration::ZERO)
    }

    fn is_dead_within(&self, bound: Duration) -> bool {
        let until = Moment::now().plus(bound);
        loop {
            let mut dead = [PollFd::new(&self.guarded, PollFlags::IN)];
            let left = timespec(until.since(Moment::now()));
            match poll(&mut dead, Some(&left)) {
                Err(rustix::io::Errno::INTR) => {}
                // An error proves nothing.
                polled => return polled.is_ok() && dead[0].revents().contains(PollFlags::IN),
            }
        }
    }

    /// Ends the session, if `zklock run` is dead. By now nothing must be left of its job.
    pub(super) fn end_session(&self) {
        let Guard { key, session_timeout, not_before, .. } = &self.guard;
        if !self.is_dead_within(ON_ITS_WAY_OUT) {
            return;
        }
        let early = not_before.since(Moment::now());
        // Before so long a time the servers will have ended it.
        if early >= *session_timeout {
            return;
        }
        std::thread::sleep(early);
        if let Err(failure) = self.end() {
            say!(
                "zklock was killed, and its lock is free when its session {:#x} times out, in {} or a little more: {failure}",
                key.session_id(),
                duration::short(*session_timeout)
            );
        }
    }

    fn end(&self) -> Result<(), Failure> {
        let Guard { key, session_timeout, connection, .. } = &self.guard;
        let patience = connection.connect_timeout.unwrap_or(Duration::from_secs(10)).min(*session_timeout);
        let options = connection.options()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(key.end_session(&options, patience))?;
        Ok(())
    }
}
