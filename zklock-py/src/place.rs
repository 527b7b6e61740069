//! What a client holds, where, and by whom.
//!
//! `acquire()` gives no object to keep, as `threading.Lock` gives none; so what it acquired is kept here,
//! with the client and not with the lock object, which may be a passing one: `zk.mutex(path).acquire()`
//! holds the lock until somebody releases it.
//!
//! Nothing of Python runs while a mutex is held: whatever Python does may collect garbage, and so run
//! anything, which may come back here.

use crate::error::{not_held, not_owner};
use pyo3::prelude::*;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use zklock_core::blocking::{Connector, Hold, Watch};
use zklock_core::{HoldState, Owner};

/// What all faces of a client share.
pub(crate) struct Shared {
    pub(crate) connector: Connector,
    pub(crate) hosts: String,
    places: Mutex<HashMap<String, Arc<Place>>>,
}

/// What is held at one path, by one kind of lock.
pub(crate) struct Place {
    path: String,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// By `acquire` and `with`: the latest last.
    ours: Vec<Entry>,
    /// Those that somebody else keeps as values.
    values: Vec<Weak<Held>>,
}

#[derive(Clone)]
struct Entry {
    held: Arc<Held>,
    /// Whether the end of a `with` block will ask for it.
    is_block: bool,
}

/// What is called when a hold is lost. It is taken out then, or when nobody is to be told any more.
pub(crate) type Callback = Arc<Mutex<Option<Py<PyAny>>>>;

/// A hold, and what Python has to know of it.
pub(crate) struct Held {
    pub(crate) hold: Hold,
    pub(crate) owner: Owner,
    /// The thread in which it was granted, as long as that is there: that of the loop, if the owner is a task.
    thread: Weak<()>,
    pub(crate) is_reentrant: bool,
    pub(crate) watches: Mutex<Vec<(Watch, Callback)>>,
}

impl Shared {
    pub(crate) fn new(connector: Connector, hosts: String) -> Arc<Self> {
        Arc::new(Self { connector, hosts, places: Mutex::default() })
    }

    /// The place of this key, which messages call `path`.
    pub(crate) fn place(&self, key: &str, path: &str) -> Arc<Place> {
        let mut places = locked(&self.places);
        if let Some(place) = places.get(key) {
            return place.clone();
        }
        if places.len() == places.capacity() {
            places.retain(|_, place| Arc::strong_count(place) > 1 || !place.is_empty());
        }
        let place = Arc::new(Place { path: path.to_owned(), kept: Mutex::default() });
        places.insert(key.to_owned(), place.clone());
        place
    }

    /// Whether something is held by another thread than this, and that one is still there.
    pub(crate) fn is_held_by_others(&self) -> bool {
        let here = this_thread();
        let by_another =
            |held: &Arc<Held>| held.thread.upgrade().is_some_and(|thread| !Arc::ptr_eq(&thread, &here));
        self.held().iter().any(by_another)
    }

    /// All that is held.
    pub(crate) fn held(&self) -> Vec<Arc<Held>> {
        locked(&self.places).values().flat_map(|place| place.held()).collect()
    }
}

impl Place {
    /// Keeps what `acquire` or a `with` block got.
    pub(crate) fn keep(&self, held: &Arc<Held>, is_block: bool) {
        let owner = held.owner;
        let mut kept = locked(&self.kept);
        // Nobody will ask for them: they were released by their holds, or lost.
        let is_over = |held: &Held| held.is_released() || (held.owner == owner && !held.is_live());
        kept.ours.retain(|entry| entry.is_block || !is_over(&entry.held));
        kept.ours.push(Entry { held: held.clone(), is_block });
    }

    /// After the end of a block: one that only its owner may release, and another has tried, stays as it was. But
    /// where a generator is closed by another, nobody will come again.
    pub(crate) fn keep_on(&self, held: &Arc<Held>, is_closed: bool) {
        if held.is_released() {
            return;
        }
        if is_closed {
            held.hold.let_go();
        } else {
            self.keep(held, true);
        }
    }

    /// Knows of what somebody else keeps.
    pub(crate) fn know(&self, held: &Arc<Held>) {
        let mut kept = locked(&self.kept);
        kept.values.retain(|value| value.strong_count() > 0);
        kept.values.push(Arc::downgrade(held));
    }

    /// What the end of a `with` block is to release: the owner's latest block, or what it acquired in the place of
    /// that; else the latest block of anybody, since a generator may be ended by another thread or task.
    pub(crate) fn leave(&self, owner: Owner) -> Option<Arc<Held>> {
        let mut kept = locked(&self.kept);
        let own = |entry: &Entry| entry.held.owner == owner;
        let last = kept
            .ours
            .iter()
            .rposition(|entry| own(entry) && entry.is_block)
            .or_else(|| kept.ours.iter().rposition(own))
            .or_else(|| kept.ours.iter().rposition(|entry| entry.is_block));
        last.map(|last| kept.ours.remove(last).held)
    }

    /// What `release()` is to release: the latest of this owner, or where anybody may release it, of anybody.
    pub(crate) fn release(&self, py: Python<'_>, owner: Owner, is_reentrant: bool) -> PyResult<Arc<Held>> {
        let held = |entry: &Entry| !entry.held.is_released();
        let (last, is_held) = {
            let mut kept = locked(&self.kept);
            let own = kept.ours.iter().rposition(|entry| held(entry) && entry.held.owner == owner);
            let free = |entry: &Entry| held(entry) && !entry.held.is_reentrant && !is_reentrant;
            // Rather one that is held than one that was lost.
            let live = |entry: &Entry| free(entry) && entry.held.is_live();
            let last =
                own.or_else(|| kept.ours.iter().rposition(live)).or_else(|| kept.ours.iter().rposition(free));
            (last.map(|last| kept.ours.remove(last).held), kept.ours.iter().any(held))
        };
        last.ok_or_else(|| {
            if !is_held {
                return self.released_before(py);
            }
            let path = &self.path;
            not_owner(py, format!("the lock {path} is held by another thread or task: release it there"))
        })
    }

    /// The innermost hold of the owner.
    pub(crate) fn current(&self, owner: Owner) -> Option<Arc<Held>> {
        let kept = locked(&self.kept);
        let own = kept.ours.iter().rfind(|entry| entry.held.owner == owner && !entry.held.is_released());
        own.map(|entry| entry.held.clone())
    }

    /// What is held here.
    pub(crate) fn held(&self) -> Vec<Arc<Held>> {
        let kept = locked(&self.kept);
        let ours = kept.ours.iter().map(|entry| entry.held.clone());
        let all = ours.chain(kept.values.iter().filter_map(Weak::upgrade));
        all.filter(|held| held.is_live()).collect()
    }

    fn is_empty(&self) -> bool {
        let kept = locked(&self.kept);
        kept.ours.is_empty() && kept.values.iter().all(|value| value.strong_count() == 0)
    }

    pub(crate) fn released_before(&self, py: Python<'_>) -> PyErr {
        not_held(py, format!("the lock {} is not held: there is nothing to release", self.path))
    }
}

impl Held {
    pub(crate) fn new(hold: Hold, owner: Owner, is_reentrant: bool) -> Arc<Self> {
        let thread = Arc::downgrade(&this_thread());
        Arc::new(Self { hold, owner, thread, is_reentrant, watches: Mutex::default() })
    }

    pub(crate) fn is_live(&self) -> bool {
        matches!(self.hold.state(), HoldState::Held | HoldState::AtRisk)
    }

    /// Whether it was released, be it that it was lost before.
    pub(crate) fn is_released(&self) -> bool {
        self.hold.is_released()
    }

    /// After its release nobody is told of anything any more.
    pub(crate) fn forget_callbacks(&self, _: Python<'_>) {
        if self.is_released() {
            let watches = std::mem::take(&mut *locked(&self.watches));
            for (watch, callback) in watches {
                drop(watch);
                let callback = locked(&callback).take();
                drop(callback);
            }
        }
    }
}

/// Stands for this thread as long as it is there.
fn this_thread() -> Arc<()> {
    thread_local! {
        static THREAD: Arc<()> = Arc::new(());
    }
    // At the very end of a thread nobody is there any more.
    THREAD.try_with(Arc::clone).unwrap_or_default()
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
