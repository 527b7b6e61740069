//! Counters of a client, for those who operate it.

use std::sync::atomic::{AtomicU64, Ordering};

/// What a client has done so far, and what it still owes.
///
/// ```no_run
/// # async fn example(client: zklock_core::Client) {
/// let stats = client.stats();
/// println!("{} grants, {} nodes still to be deleted", stats.grants, stats.owed);
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Sessions opened.
    pub sessions: u64,
    /// Locks granted.
    pub grants: u64,
    /// Holds lost.
    pub losses: u64,
    /// Attempts whose caller has its answer, but whose node may still be there. It is being deleted.
    pub owed: u64,
}

#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) grants: AtomicU64,
    pub(crate) losses: AtomicU64,
    owed: AtomicU64,
}

impl Counters {
    pub(crate) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn owed(&self) -> u64 {
        self.owed.load(Ordering::Acquire)
    }

    /// One more is owed, until what is returned is dropped.
    pub(crate) fn owe(&self) -> Debt<'_> {
        self.owed.fetch_add(1, Ordering::AcqRel);
        Debt(self)
    }

    pub(crate) fn read(&self, sessions: u64) -> Stats {
        Stats {
            sessions,
            grants: self.grants.load(Ordering::Relaxed),
            losses: self.losses.load(Ordering::Relaxed),
            owed: self.owed(),
        }
    }
}

#[must_use = "what is owed is paid when this is dropped"]
pub(crate) struct Debt<'a>(&'a Counters);

impl Drop for Debt<'_> {
    fn drop(&mut self) {
        self.0.owed.fetch_sub(1, Ordering::AcqRel);
    }
}
