//! Handles: numbers in a table, with a table for each type.
//!
//! A handle is never dereferenced. So a handle that was freed, is of another type or was never ours
//! is recognised, and one thread may free an object that another is using.

use crate::failure::Failure;
use crate::status::zklock_status::{ZKLOCK_FORKED, ZKLOCK_INVALID_HANDLE};
use std::marker::PhantomData;
use std::sync::{Arc, PoisonError, RwLock};
use zklock::face::{OfProcess, Process};

const _: () = assert!(usize::BITS == 64, "a handle is a number of 64 bits");

/// The objects that handles of one type stand for.
pub(crate) trait Object: Sized + Send + Sync + 'static {
    /// The opaque type in C.
    type Opaque;
    /// The name of that type.
    const NAME: &'static str;
    /// Identifies the type in the bits of a handle: 1 to 15.
    const KIND: u64;

    /// Returns a copy for a forked child, if the object is a plain value, or if nobody used it
    /// before the fork. It must not wait for a mutex, which may stay locked for ever.
    fn inherited(&self) -> Option<Self> {
        None
    }

    /// Its handle is freed.
    fn freed(&self) {}

    fn table() -> &'static Table<Self>;
}

/// All living objects of one type, by process.
pub(crate) struct Table<T> {
    slots: OfProcess<RwLock<Slots<T>>>,
}

struct Slots<T> {
    slots: Vec<Slot<T>>,
    free: Vec<usize>,
}

struct Slot<T> {
    /// The process in which the object was made.
    process: u64,
    /// How often the slot has been used. A freed handle has another generation, so it no longer
    /// matches.
    generation: u64,
    object: Option<Arc<T>>,
}

/// No address in any program has this bit set and the next one clear, so a pointer of the host is
/// never mistaken for a handle.
const MARK: u64 = 1 << 63;
/// Below these bits: the process, how often the slot was used before, the slot, and the type.
const PROCESSES: u64 = (1 << 12) - 1;
const PROCESS: u32 = 50;
const GENERATIONS: u64 = (1 << 20) - 1;
const GENERATION: u32 = 30;
const INDEXES: u64 = (1 << 26) - 1;
const INDEX: u32 = 4;

impl<T: Object> Table<T> {
    pub(crate) const fn new() -> Self {
        Self { slots: OfProcess::new() }
    }

    fn slots(&self) -> &RwLock<Slots<T>> {
        self.slots.here(|before| {
            // If it is locked, a thread of the parent was changing it during the fork, and it may
            // be half changed.
            let of_parent = before.and_then(|slots| slots.try_read().ok());
            RwLock::new(of_parent.map_or_else(Slots::default, |slots| slots.inherited()))
        })
    }

    /// Stores an object, and returns its handle.
    pub(crate) fn put(&self, object: T) -> *mut T::Opaque {
        let mut slots = self.slots().write().unwrap_or_else(PoisonError::into_inner);
        let index = slots.free.pop().unwrap_or_else(|| {
            slots.slots.push(Slot { process: 0, generation: 0, object: None });
            slots.slots.len() - 1
        });
        let slot = &mut slots.slots[index];
        slot.process = this_process();
        slot.object = Some(Arc::new(object));
        let handle = MARK
            | slot.process << PROCESS
            | slot.generation << GENERATION
            | (index as u64) << INDEX
            | T::KIND;
        std::ptr::without_provenance_mut(handle as usize)
    }

    /// Returns the object of a handle. It lives until this call ends, even if another thread frees
    /// it.
    pub(crate) fn find(&self, handle: *const T::Opaque) -> Result<Arc<T>, Failure> {
        let parts = parse::<T>(handle)?;
        let slots = self.slots().read().unwrap_or_else(PoisonError::into_inner);
        let slot = slots.slots.get(parts.index).filter(|slot| parts.is_of(slot));
        slot.and_then(|slot| slot.object.clone()).ok_or_else(|| parts.failure::<T>())
    }

    /// Takes the object out of its handle, which is invalid from now on. `None` if it already was.
    pub(crate) fn take(&self, handle: *const T::Opaque) -> Option<Arc<T>> {
        let parts = parse::<T>(handle).ok()?;
        let mut slots = self.slots().write().unwrap_or_else(PoisonError::into_inner);
        let slot = slots.slots.get_mut(parts.index).filter(|slot| parts.is_of(slot))?;
        let object = slot.object.take()?;
        let is_inherited = slot.process != this_process();
        // A slot is not used again after its last generation: a handle of the first one would
        // match.
        if slot.generation < GENERATIONS {
            slot.generation += 1;
            slots.free.push(parts.index);
        }
        drop(slots);
        if is_inherited {
            self.forget_inherited(&parts);
        }
        Some(object)
    }

    /// Drops the parents' copies of an object in this process. They would keep alive what is freed
    /// here, such as a session.
    fn forget_inherited(&self, parts: &HandleParts) {
        for slots in self.slots.of_parents() {
            // A table that was locked during the fork stays locked.
            let Ok(mut slots) = slots.try_write() else { continue };
            let slot = slots.slots.get_mut(parts.index).filter(|slot| parts.is_of(slot));
            let object = slot.and_then(|slot| slot.object.take());
            drop(slots);
            drop(object);
        }
    }
}

impl<T: Object> Slots<T> {
    /// Returns the slots of a child. Plain values are still where they were.
    fn inherited(&self) -> Self {
        let inherited = |slot: &Slot<T>| Slot {
            object: slot.object.as_ref().and_then(|object| object.inherited()).map(Arc::new),
            ..*slot
        };
        let slots: Vec<_> = self.slots.iter().map(inherited).collect();
        let free =
            (0..slots.len()).filter(|&at| slots[at].object.is_none() && slots[at].generation < GENERATIONS);
        Self { free: free.collect(), slots }
    }
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }
}

/// The parts of a handle.
struct HandleParts {
    process: u64,
    generation: u64,
    index: usize,
}

impl HandleParts {
    fn is_of<T>(&self, slot: &Slot<T>) -> bool {
        slot.process == self.process && slot.generation == self.generation
    }

    /// Returns the error for a handle without an object.
    fn failure<T: Object>(&self) -> Failure {
        if self.process == this_process() {
            let message = format!("the {} has been freed: do not use it again", T::NAME);
            return Failure::new(ZKLOCK_INVALID_HANDLE, message);
        }
        let message = format!(
            "the {} was made before the process was forked, and belongs to the parent: make a client in the \
             child, with zklock_client_new",
            T::NAME
        );
        Failure::new(ZKLOCK_FORKED, message)
    }
}

fn this_process() -> u64 {
    u64::from(Process::current().number()) & PROCESSES
}

fn parse<T: Object>(handle: *const T::Opaque) -> Result<HandleParts, Failure> {
    if handle.is_null() {
        return Err(Failure::argument(format!(
            "the {} is NULL: pass one that a zklock function returned",
            T::NAME
        )));
    }
    let bits = handle.addr() as u64;
    if bits & MARK == 0 || bits >> 62 & 1 == 1 {
        let message =
            format!("the {} is not a zklock handle: pass one that a zklock function returned", T::NAME);
        return Err(Failure::new(ZKLOCK_INVALID_HANDLE, message));
    }
    if bits & 0xF != T::KIND {
        let message = format!("this is a handle of another type than {}", T::NAME);
        return Err(Failure::new(ZKLOCK_INVALID_HANDLE, message));
    }
    Ok(HandleParts {
        process: bits >> PROCESS & PROCESSES,
        generation: bits >> GENERATION & GENERATIONS,
        index: (bits >> INDEX & INDEXES) as usize,
    })
}

/// A handle that is passed to another thread, with a callback.
pub(crate) struct SentHandle<T> {
    bits: usize,
    of: PhantomData<fn(*mut T)>,
}

impl<T> SentHandle<T> {
    pub(crate) fn new(handle: *mut T) -> Self {
        Self { bits: handle.addr(), of: PhantomData }
    }

    pub(crate) fn get(&self) -> *mut T {
        std::ptr::without_provenance_mut(self.bits)
    }
}
