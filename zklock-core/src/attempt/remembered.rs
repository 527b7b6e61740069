//! Remembers that a lock was busy, with the watch that fires when that may have changed.

use crate::base::clock;
use crate::machine::Moment;
use crate::machine::memory::Memory;
use crate::machine::protocol::WatchEvent;
use crate::session::session::Session;
use crate::zookeeper::ensemble::Pending;
use std::sync::{Arc, Weak};
use std::task::{Context, Waker};

/// One busy answer. Dropping it removes its watch.
pub(crate) struct Remembered {
    session: Weak<Session>,
    memory: Memory,
    watch: Pending<WatchEvent>,
}

impl Remembered {
    /// The watch was set in this session, by a request that was sent at `since`.
    pub(crate) fn new(session: &Arc<Session>, since: Moment, watch: Pending<WatchEvent>) -> Self {
        Self { session: Arc::downgrade(session), memory: Memory::new(since), watch }
    }

    /// Whether the lock is still busy, as far as is known. `false` also ends the memory. `session` is the session that is
    /// open now.
    ///
    /// The watch is polled here instead of by a task. So it has fired before anybody can act on an answer that came after it
    /// on the same connection.
    pub(crate) fn is_busy(&mut self, session: &Arc<Session>) -> bool {
        // Done before the watch is polled: anything that arrives in between must not outweigh what the watch reports.
        let is_same = std::ptr::eq(self.session.as_ptr(), Arc::as_ptr(session));
        let is_good = is_same && session.is_good(&self.memory, clock::now());
        let is_told = self.watch.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
        if is_told {
            self.memory.handle_watch();
        }
        is_good && !is_told
    }
}
