//! What C holds in its hands, and what it hands over: the one file with `unsafe` code.
//!
//! What cannot be checked is what the header asks of every caller: a pointer that is not NULL points
//! to what its type says, a string ends with NUL, and a function has the signature of its type. All
//! else is checked. A handle is a number in a table, so it is never followed.

#![allow(unsafe_code, reason = "the boundary to C")]

use crate::hold::zklock_hold;
use crate::loss::zklock_reason;
use crate::queued::zklock_contender;
use crate::status::Failure;
use crate::status::zklock_status::ZKLOCK_INVALID_HANDLE;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::slice;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Once, PoisonError, RwLock};
use zklock_core::blocking::tell_forks_by;

const _: () = assert!(usize::BITS == 64, "a handle is a number of 64 bits");

/// What handles of one type stand for.
pub(crate) trait Object: Sized + Send + Sync + 'static {
    /// The opaque type in C.
    type Opaque;
    /// The name of that type.
    const NAME: &'static str;
    /// Told apart in the handle's bits: 1 to 15.
    const KIND: u64;

    fn table() -> &'static Table<Self>;
}

/// All living objects of one type.
pub(crate) struct Table<T> {
    slots: RwLock<Slots<T>>,
}

struct Slots<T> {
    slots: Vec<Slot<T>>,
    free: Vec<usize>,
}

struct Slot<T> {
    /// How often the slot has been used: a handle that was freed does not fit any more.
    generation: u64,
    object: Option<Arc<T>>,
}

/// No address in any program has this bit and not the next one, so that no pointer of the host's
/// passes for a handle.
const MARK: u64 = 1 << 63;
const GENERATIONS: u64 = (1 << 30) - 1;
const INDEXES: u64 = (1 << 28) - 1;

impl<T: Object> Table<T> {
    pub(crate) const fn new() -> Self {
        Self { slots: RwLock::new(Slots { slots: Vec::new(), free: Vec::new() }) }
    }

    /// Keeps the object, and gives its handle.
    pub(crate) fn put(&self, object: T) -> *mut T::Opaque {
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        let index = slots.free.pop().unwrap_or_else(|| {
            slots.slots.push(Slot { generation: 0, object: None });
            slots.slots.len() - 1
        });
        let slot = &mut slots.slots[index];
        slot.object = Some(Arc::new(object));
        let handle = MARK | slot.generation << 32 | (index as u64) << 4 | T::KIND;
        std::ptr::without_provenance_mut(handle as usize)
    }

    /// The object of a handle. It lives on for this call even if another thread frees it.
    pub(crate) fn find(&self, handle: *const T::Opaque) -> Result<Arc<T>, Failure> {
        let (index, generation) = parse::<T>(handle)?;
        let slots = self.slots.read().unwrap_or_else(PoisonError::into_inner);
        let slot = slots.slots.get(index).filter(|slot| slot.generation == generation);
        slot.and_then(|slot| slot.object.clone()).ok_or_else(freed::<T>)
    }

    /// Takes the object from its handle, which is none from now on. `None` if it was none before.
    pub(crate) fn take(&self, handle: *const T::Opaque) -> Option<Arc<T>> {
        let (index, generation) = parse::<T>(handle).ok()?;
        let mut slots = self.slots.write().unwrap_or_else(PoisonError::into_inner);
        let slot = slots.slots.get_mut(index).filter(|slot| slot.generation == generation)?;
        let object = slot.object.take()?;
        // The last generation's slot is not used again: a handle of the first would fit.
        if slot.generation < GENERATIONS {
            slot.generation += 1;
            slots.free.push(index);
        }
        Some(object)
    }
}

/// The slot and the generation.
fn parse<T: Object>(handle: *const T::Opaque) -> Result<(usize, u64), Failure> {
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
    Ok(((bits >> 4 & INDEXES) as usize, bits >> 32 & GENERATIONS))
}

fn freed<T: Object>() -> Failure {
    let message = format!("the {} has been freed: use it no more", T::NAME);
    Failure::new(ZKLOCK_INVALID_HANDLE, message)
}

/// A string of the caller's.
pub(crate) fn text<'a>(what: &str, pointer: *const c_char) -> Result<&'a str, Failure> {
    optional_text(what, pointer)?.ok_or_else(|| Failure::argument(format!("{what} is NULL")))
}

/// A string of the caller's that may be NULL.
pub(crate) fn optional_text<'a>(what: &str, pointer: *const c_char) -> Result<Option<&'a str>, Failure> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: it is not NULL, and the header asks for a string that ends with NUL and stays for the call.
    let text = unsafe { CStr::from_ptr(pointer) };
    match text.to_str() {
        Ok(text) => Ok(Some(text)),
        Err(error) => {
            let message = format!("{what} is not UTF-8 from byte {} on", error.valid_up_to());
            Err(Failure::argument(message))
        }
    }
}

/// An array of the caller's. NULL will do if it is empty.
pub(crate) fn array<'a, T>(what: &str, pointer: *const T, count: usize) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() {
        return Err(Failure::argument(format!("{what} is NULL, but {count} are announced")));
    }
    if !pointer.is_aligned() || count > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(Failure::argument(format!("{what} cannot be an array of {count}")));
    }
    // SAFETY: it is not NULL, aligned, of a size that can be, and the header asks for `count` of these that
    // nobody changes during the call.
    Ok(unsafe { slice::from_raw_parts(pointer, count) })
}

/// Where the caller wants a result.
#[derive(Clone, Copy)]
pub(crate) struct Out<T>(*mut T);

/// NULL is found here, before anything is done whose result would be lost.
pub(crate) fn out<T>(what: &str, pointer: *mut T) -> Result<Out<T>, Failure> {
    if pointer.is_null() {
        return Err(Failure::argument(format!("{what}, where the result is to go, is NULL")));
    }
    Ok(Out(pointer))
}

impl<T> Out<T> {
    pub(crate) fn set(self, value: T) {
        // SAFETY: it is not NULL, and the header asks for a place to which a T can be written.
        unsafe { self.0.write(value) }
    }
}

/// A page that the kernel clears in every fork, however it was made: a look at it costs a hundredth of
/// a request for the process's number.
static MARK_OF_PROCESS: AtomicPtr<u8> = AtomicPtr::new(std::ptr::null_mut());

/// Marks this process, if the kernel can clear the mark (Linux 4.14), and lets the core look at that.
pub(crate) fn mark_process() {
    // Nobody gets here in a fork, which would wait for ever if the mark was being made when it came.
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // The kernel makes a whole page of it.
        let size = 1;
        let (protection, private) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: the kernel chooses the place, so it is nobody else's memory.
        let Ok(page) = (unsafe { mmap_anonymous(std::ptr::null_mut(), size, protection, private) }) else {
            return;
        };
        // SAFETY: the page was mapped just now, it is ours alone, and it is never given back.
        let can_clear = unsafe {
            page.cast::<u8>().write(1);
            madvise(page, size, Advice::LinuxWipeOnFork).is_ok()
        };
        if can_clear {
            MARK_OF_PROCESS.store(page.cast(), Ordering::Release);
            tell_forks_by(is_cleared);
        }
    });
}

fn is_cleared() -> bool {
    let page = MARK_OF_PROCESS.load(Ordering::Acquire);
    // SAFETY: it was stored before anybody was told to look here, and stays mapped and readable. Only the
    // kernel changes it, when it makes another process.
    unsafe { page.read_volatile() == 0 }
}

/// Makes a call in which its thread cannot be cancelled: the system would unwind through code that is not
/// made for it, and end the process. It is cancelled afterwards.
pub(crate) fn uncancelled<T>(call: impl FnOnce() -> T) -> T {
    unsafe extern "C" {
        fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
    }
    const PTHREAD_CANCEL_DISABLE: c_int = 1;
    let mut before = 0;
    // SAFETY: it changes this thread's state alone, and writes the one before to where it may.
    unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &mut before) };
    let result = call();
    // SAFETY: as above, with a state that it gave. Nothing unwinds to here, so it is always put back.
    unsafe { pthread_setcancelstate(before, &mut before) };
    result
}

/// What a callback is given back. It is the caller's, who says that any thread may have it.
#[derive(Clone, Copy)]
pub(crate) struct Context(pub(crate) *mut c_void);

// SAFETY: we never look behind it; the header says that callbacks run on a thread of ours.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

/// A handle that goes with a callback to another thread.
pub(crate) struct Hand<T>(pub(crate) *mut T);

impl<T> Clone for Hand<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Hand<T> {}

// SAFETY: it is a number.
unsafe impl<T> Send for Hand<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Hand<T> {}

/// A contender that points into strings which are kept beside it, and never change.
pub(crate) struct Pointing(pub(crate) zklock_contender);

// SAFETY: nobody writes to what it points to, whatever thread looks at it or drops the strings.
unsafe impl Send for Pointing {}
// SAFETY: as above.
unsafe impl Sync for Pointing {}

pub(crate) type LogFunction = unsafe extern "C" fn(i32, *const c_char, *mut c_void);
pub(crate) type LossFunction = unsafe extern "C" fn(*mut zklock_hold, zklock_reason, *mut c_void);
pub(crate) type ContenderFunction = unsafe extern "C" fn(*const zklock_contender, *mut c_void);

pub(crate) fn call_log(callback: LogFunction, level: i32, message: &CStr, context: Context) {
    // SAFETY: the header asks for a function of this signature that may be called until it is replaced.
    unsafe { callback(level, message.as_ptr(), context.0) }
}

pub(crate) fn call_loss(
    callback: LossFunction,
    hold: Hand<zklock_hold>,
    reason: zklock_reason,
    context: Context,
) {
    // SAFETY: the header asks for a function of this signature that may be called until the hold is freed.
    unsafe { callback(hold.0, reason, context.0) }
}

pub(crate) fn call_contender(callback: ContenderFunction, contender: &zklock_contender, context: Context) {
    // SAFETY: the header asks for a function of this signature that may be called during the call.
    unsafe { callback(contender, context.0) }
}
