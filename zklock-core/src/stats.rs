//! Counters of a client, for those who operate it.

use crate::locks::locked;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

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

    pub(crate) fn read(&self, sessions: u64) -> Stats {
        Stats {
            sessions,
            grants: self.grants.load(Ordering::Relaxed),
            losses: self.losses.load(Ordering::Relaxed),
            owed: self.owed.load(Ordering::Acquire),
        }
    }
}

/// How far one attempt has come, for its caller and the counters.
///
/// What it owes is counted from the very moment that its caller goes away, so that a program may end
/// when nothing is owed.
pub(crate) struct Progress {
    counters: Arc<Counters>,
    stage: Mutex<Stage>,
    behind: AtomicBool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It waits for others of its process, and has no node.
    Waits,
    Begun,
    /// Nobody wants it any more, and its node may still be there.
    Owed,
    /// Nothing is left of it, or it must not begin.
    Over,
}

impl Progress {
    pub(crate) fn new(counters: &Arc<Counters>) -> Arc<Self> {
        let behind = AtomicBool::new(true);
        Arc::new(Self { counters: counters.clone(), stage: Mutex::new(Stage::Waits), behind })
    }

    /// `false` if its caller has gone already.
    pub(crate) fn begin(&self) -> bool {
        let mut stage = locked(&self.stage);
        let begins = *stage == Stage::Waits;
        if begins {
            *stage = Stage::Begun;
            self.set_behind_others(false);
        }
        begins
    }

    /// Its caller has gone, or has no more use for the node.
    pub(crate) fn owe(&self) {
        let mut stage = locked(&self.stage);
        *stage = match *stage {
            Stage::Waits | Stage::Over => Stage::Over,
            Stage::Owed => Stage::Owed,
            Stage::Begun => {
                self.counters.owed.fetch_add(1, Ordering::AcqRel);
                Stage::Owed
            }
        };
    }

    /// Its node is gone.
    pub(crate) fn settle(&self) {
        if std::mem::replace(&mut *locked(&self.stage), Stage::Over) == Stage::Owed {
            self.counters.owed.fetch_sub(1, Ordering::AcqRel);
        }
    }

    pub(crate) fn is_wanted(&self) -> bool {
        matches!(*locked(&self.stage), Stage::Waits | Stage::Begun)
    }

    pub(crate) fn set_behind_others(&self, behind: bool) {
        self.behind.store(behind, Ordering::Relaxed);
    }

    /// Whether it waits behind others, here or in the ensemble.
    pub(crate) fn is_behind_others(&self) -> bool {
        self.behind.load(Ordering::Relaxed)
    }
}
