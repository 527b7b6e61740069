//! Handles: numbers in a table, one table for each type.
//!
//! A handle is never followed. So one that was freed, is of another type or was never ours is
//! recognised, and another thread may free what is in use.

use crate::failure::Failure;
use crate::status::zklock_status::{ZKLOCK_FORKED, ZKLOCK_INVALID_HANDLE};
use std::marker::PhantomData;
use std::sync::{Arc, PoisonError, RwLock};
use zklock_core::face::{OfProcess, Process};

const _: () = assert!(usize::BITS == 64, "a handle is a number of 64 bits");

/// What handles of one type stand for.
pub(crate) trait Object: Sized + Send + Sync + 'static {
    /// The opaque type in C.
    type Opaque;
    /// The name of that type.
    const NAME: &'static str;
    /// Told apart in the handle's bits: 1 to 15.
    const KIND: u64;

    /// A copy for a forked child, if this is a mere value, or nobody has used it but that child. It
    /// must not wait for a mutex, which may be locked for ever.
    fn inherited(&self) -> Option<Self> {
        None
    }

    fn table() -> &'static Table<Self>;
}

/// All living objects of one type, in each process.
pub(crate) struct Table<T> {
    slots: OfProcess<RwLock<Slots<T>>>,
}

struct Slots<T> {
    slots: Vec<Slot<T>>,
    free: Vec<usize>,
}

struct Slot<T> {
    /// In which process the object was made.
    process: u64,
    /// How often the slot has been used: a handle that was freed does not fit any more.
    generation: u64,
    object: Option<Arc<T>>,
}

/// No address in any program has this bit and not the next one, so that no pointer of the host's
/// passes for a handle.
const MARK: u64 = 1 << 63;
/// Below them: the process, how often the slot was used before, the slot, and the type.
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
            // If it is locked, a thread of the parent's was at it when the fork came, and it may be half changed.
            let of_parent = before.and_then(|slots| slots.try_read().ok());
            RwLock::new(of_parent.map_or_else(Slots::default, |slots| slots.inherited()))
        })
    }

    /// Keeps the object, and gives its handle.
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

    /// The object of a handle. It lives on for this call even if another thread frees it.
    pub(crate) fn find(&self, handle: *const T::Opaque) -> Result<Arc<T>, Failure> {
        let parts = parse::<T>(handle)?;
        let slots = self.slots().read().unwrap_or_else(PoisonError::into_inner);
        let slot = slots.slots.get(parts.index).filter(|slot| parts.is_of(slot));
        slot.and_then(|slot| slot.object.clone()).ok_or_else(|| parts.failure::<T>())
    }

    /// Takes the object from its handle, which is invalid from now on. `None` if it was before.
    pub(crate) fn take(&self, handle: *const T::Opaque) -> Option<Arc<T>> {
        let parts = parse::<T>(handle).ok()?;
        let mut slots = self.slots().write().unwrap_or_else(PoisonError::into_inner);
        let slot = slots.slots.get_mut(parts.index).filter(|slot| parts.is_of(slot))?;
        let object = slot.object.take()?;
        let is_inherited = slot.process != this_process();
        // The last generation's slot is not used again: a handle of the first would fit.
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

    /// Drops what the parents' tables have of an object in this process, which would keep alive
    /// what is freed here, such as a session.
    fn forget_inherited(&self, parts: &HandleParts) {
        for slots in self.slots.of_parents() {
            // One that was locked at the fork stays so.
            let Ok(mut slots) = slots.try_write() else { continue };
            let slot = slots.slots.get_mut(parts.index).filter(|slot| parts.is_of(slot));
            let object = slot.and_then(|slot| slot.object.take());
            drop(slots);
            drop(object);
        }
    }
}

impl<T: Object> Slots<T> {
    /// Those of a child: mere values are still where they were.
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

/// What a handle says.
struct HandleParts {
    process: u64,
    generation: u64,
    index: usize,
}

impl HandleParts {
    fn is_of<T>(&self, slot: &Slot<T>) -> bool {
        slot.process == self.process && slot.generation == self.generation
    }

    /// Why there is no object.
    fn failure<T: Object>(&self) -> Failure {
        if self.process == this_process() {
            let message = format!("the {} has been freed: use it no more", T::NAME);
            return Failure::new(ZKLOCK_INVALID_HANDLE, message);
        }
        let message = format!(
            "the {} was made before the process was forked, and stays with the parent: make a client in the child, with \
             zklock_client_new",
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
        return Err(Failure::argument(format!("the {} is NULL: pass one that was made", T::NAME)));
    }
    let bits = handle.addr() as u64;
    if bits & MARK == 0 || bits >> 62 & 1 == 1 {
        let message = format!("the {} is no handle of zklock: pass one that was made", T::NAME);
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

/// A handle that goes to another thread with a callback.
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

/// Makes the handle of a type: `handle!(Held: zklock_hold, 5)`.
macro_rules! handle {
    ($Object:ident: $opaque:ident, $kind:literal $(, $inherited:item)?) => {
        impl $crate::handle::Object for $Object {
            type Opaque = $opaque;
            const NAME: &'static str = stringify!($opaque);
            const KIND: u64 = $kind;
            $($inherited)?

            fn table() -> &'static $crate::handle::Table<Self> {
                static TABLE: $crate::handle::Table<$Object> = $crate::handle::Table::new();
                &TABLE
            }
        }
    };
}

pub(crate) use handle;
