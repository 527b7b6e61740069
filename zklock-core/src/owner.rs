//! Who acquires: the unit to which a lock belongs.

use std::thread::ThreadId;

/// The tokio task, or outside of one the thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Owner {
    Task(tokio::task::Id),
    Thread(ThreadId),
}

impl Owner {
    pub(crate) fn current() -> Self {
        match tokio::task::try_id() {
            Some(id) => Self::Task(id),
            None => Self::Thread(std::thread::current().id()),
        }
    }
}
