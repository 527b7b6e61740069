//! The holds of a client, by path and owner.
//!
//! `acquire()` returns no object that could keep the hold, just as `threading.Lock` returns none. So its hold is kept
//! here, with the client and not with the lock object, which may be temporary: `zk.mutex(path).acquire()` holds the
//! lock until somebody releases it.
//!
//! No Python code runs while a mutex is held: whatever Python does may collect garbage, which may run anything, and
//! come back here.

use crate::block::Block;
use crate::guest::error::{not_held, not_owner};
use crate::guest::sync::lock_ignoring_poison;
use crate::held::Held;
use crate::scope::Scope;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, Weak};
use zklock::further::Owner;

/// The holds at one path, by one kind of lock.
pub(crate) struct Holds {
    path: String,
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    /// Holds from `acquire` and `with`, the latest last.
    ours: Vec<Entry>,
    /// Holds that somebody else keeps as values.
    values: Vec<Weak<Held>>,
}

pub(crate) struct Entry {
    pub(crate) held: Arc<Held>,
    /// The `with` block that will release it at its end.
    block: Option<Block>,
    /// What cancels that block if the hold is lost.
    scope: Option<Scope>,
    /// Whether `release()` has taken it, so that the block goes on without it.
    is_taken: bool,
}

impl Entries {
    /// Takes a hold out for `release()`. At its end, the block must find that there is nothing to release.
    fn take(&mut self, index: usize) -> Arc<Held> {
        if self.ours[index].block.is_none() {
            return self.ours.remove(index).held;
        }
        self.ours[index].is_taken = true;
        self.ours[index].held.clone()
    }
}

/// Released holds of blocks that have not ended, or never will.
const LEFT_AT_MOST: usize = 64;

impl Holds {
    pub(crate) fn new(path: &str) -> Self {
        Self { path: path.to_owned(), entries: Mutex::default() }
    }

    /// Keeps the hold of `acquire` or of a `with` block.
    pub(crate) fn keep(&self, held: &Arc<Held>, block: Option<Block>, scope: Option<Scope>) {
        self.keep_entry(Entry { held: held.clone(), block, scope, is_taken: false });
    }

    fn keep_entry(&self, entry: Entry) {
        let owner = entry.held.owner;
        // Dropped after the mutex is released, since a scope is an object of Python's.
        let mut over = Vec::new();
        let mut entries = lock_ignoring_poison(&self.entries);
        // Nobody will ask for them: they were released directly, or lost.
        let is_over = |held: &Held| held.is_released() || (held.owner == owner && !held.is_live());
        // For blocks that were never left, the latest ones are kept, because they may still end.
        let is_left = |entry: &Entry| entry.block.is_some() && entry.held.is_released();
        let mut left = entries.ours.iter().filter(|entry| is_left(entry)).count();
        for entry in std::mem::take(&mut entries.ours) {
            let was_left = is_left(&entry);
            left -= usize::from(was_left);
            let stays =
                if was_left { left < LEFT_AT_MOST } else { entry.block.is_some() || !is_over(&entry.held) };
            if stays { entries.ours.push(entry) } else { over.push(entry) }
        }
        entries.ours.push(entry);
    }

    /// Puts a hold back after the end of a block. If another thread tried to release a hold that only its owner may
    /// release, it stays as it was. But if another thread closed a generator, its block will not end again.
    pub(crate) fn keep_on(&self, entry: Entry, is_closed: bool) {
        if entry.held.is_released() {
            return;
        }
        if is_closed {
            entry.held.hold.let_go();
        } else {
            self.keep_entry(entry);
        }
    }

    /// Remembers a hold that somebody else keeps.
    pub(crate) fn know(&self, held: &Arc<Held>) {
        let mut entries = lock_ignoring_poison(&self.entries);
        entries.values.retain(|value| value.strong_count() > 0);
        entries.values.push(Arc::downgrade(held));
    }

    /// Returns the hold that the end of a `with` block releases: what that block acquired, or what the owner acquired
    /// in its place. If the block is not known, it is the owner's latest hold, preferably of a block that may end
    /// anywhere; otherwise such a hold of any owner. A context manager that was handed on never releases the hold of
    /// somebody else's `with` statement, but `__exit__` may be called by hand. Also returns what would have cancelled the block.
    pub(crate) fn leave(&self, owner: Owner, block: Block) -> (Option<Entry>, Option<Scope>) {
        let mut entries = lock_ignoring_poison(&self.entries);
        let ours = &mut entries.ours;
        let blocks = ours.iter().enumerate().filter_map(|(index, entry)| Some((index, entry.block?)));
        let mut known = block.find(blocks).map(|index| ours.remove(index));
        let scope = known.as_mut().and_then(|entry| entry.scope.take());
        let is_taken = known.as_ref().is_some_and(|entry| entry.is_taken);
        if let Some(entry) = known.filter(|entry| !entry.is_taken) {
            return (Some(entry), scope);
        }
        let own = |entry: &Entry| entry.held.owner == owner && !entry.is_taken;
        let last = |wanted: &dyn Fn(&Entry) -> bool| ours.iter().rposition(wanted);
        let acquired = || last(&|entry| own(entry) && entry.block.is_none());
        let index = if is_taken {
            acquired()
        } else {
            let may_move = |entry: &Entry| entry.block.is_some_and(Block::may_move);
            last(&|entry| own(entry) && may_move(entry))
                .or_else(|| last(&|entry| own(entry) && entry.block.is_some()))
                .or_else(acquired)
                .or_else(|| {
                    let may_end =
                        |entry: &Entry| may_move(entry) || (entry.block.is_some() && !block.may_move());
                    last(&|entry| may_end(entry) && !entry.is_taken)
                })
        };
        let mut entry = index.map(|index| ours.remove(index));
        let scope = scope.or_else(|| entry.as_mut()?.scope.take());
        (entry, scope)
    }

    /// Returns the hold that `release()` releases: the latest of this owner or, if anybody may release it, of anybody.
    pub(crate) fn release(&self, py: Python<'_>, owner: Owner, is_reentrant: bool) -> PyResult<Arc<Held>> {
        let held = |entry: &Entry| !entry.is_taken && !entry.held.is_released();
        let (last, is_held) = {
            let mut entries = lock_ignoring_poison(&self.entries);
            let own = entries.ours.iter().rposition(|entry| held(entry) && entry.held.owner == owner);
            let free = |entry: &Entry| held(entry) && !entry.held.is_reentrant && !is_reentrant;
            // Prefer a hold that is still held to one that was lost.
            let live = |entry: &Entry| free(entry) && entry.held.is_live();
            let last = own
                .or_else(|| entries.ours.iter().rposition(live))
                .or_else(|| entries.ours.iter().rposition(free));
            (last.map(|last| entries.take(last)), entries.ours.iter().any(held))
        };
        last.ok_or_else(|| {
            if !is_held {
                return self.released_before(py);
            }
            let path = &self.path;
            let rule = "is reentrant, and belongs to the thread, task or greenlet that acquired it: release it there";
            not_owner(py, format!("the lock {path} {rule}"))
        })
    }

    /// Returns the innermost hold of the owner.
    pub(crate) fn current(&self, owner: Owner) -> Option<Arc<Held>> {
        let entries = lock_ignoring_poison(&self.entries);
        let is_own =
            |entry: &Entry| entry.held.owner == owner && !entry.is_taken && !entry.held.is_released();
        let own = entries.ours.iter().rfind(|entry| is_own(entry));
        own.map(|entry| entry.held.clone())
    }

    /// All holds here.
    pub(crate) fn held(&self) -> Vec<Arc<Held>> {
        let entries = lock_ignoring_poison(&self.entries);
        let ours = entries.ours.iter().map(|entry| entry.held.clone());
        let all = ours.chain(entries.values.iter().filter_map(Weak::upgrade));
        all.filter(|held| held.is_live()).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        let entries = lock_ignoring_poison(&self.entries);
        entries.ours.is_empty() && entries.values.iter().all(|value| value.strong_count() == 0)
    }

    pub(crate) fn released_before(&self, py: Python<'_>) -> PyErr {
        not_held(py, format!("the lock {} is not held: there is nothing to release", self.path))
    }
}
