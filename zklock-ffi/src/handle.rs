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
use crate::status::zklock_status::{ZKLOCK_FORKED, ZKLOCK_INVALID_HANDLE};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::slice;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use zklock_core::face::{OfProcess, Process, mark_processes};

const _: () = assert!(usize::BITS == 64, "a handle is a number of 64 bits");

/// What handles of one type stand for.
pub(crate) trait Object: Sized + Send + Sync + 'static {
    /// The opaque type in C.
    type Opaque;
    /// The name of that type.
    const NAME: &'static str;
    /// Told apart in the handle's bits: 1 to 15.
    const KIND: u64;

    /// A copy for a forked child, if this is a mere value. It must not wait for a mutex, which may be locked for ever.
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
        let place = parse::<T>(handle)?;
        let slots = self.slots().read().unwrap_or_else(PoisonError::into_inner);
        let slot = slots.slots.get(place.index).filter(|slot| place.is_of(slot));
        slot.and_then(|slot| slot.object.clone()).ok_or_else(|| place.failure::<T>())
    }

    /// Takes the object from its handle, which is none from now on. `None` if it was none before.
    pub(crate) fn take(&self, handle: *const T::Opaque) -> Option<Arc<T>> {
        let place = parse::<T>(handle).ok()?;
        let mut slots = self.slots().write().unwrap_or_else(PoisonError::into_inner);
        let slot = slots.slots.get_mut(place.index).filter(|slot| place.is_of(slot))?;
        let object = slot.object.take()?;
        // The last generation's slot is not used again: a handle of the first would fit.
        if slot.generation < GENERATIONS {
            slot.generation += 1;
            slots.free.push(place.index);
        }
        Some(object)
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
struct Place {
    process: u64,
    generation: u64,
    index: usize,
}

impl Place {
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

fn parse<T: Object>(handle: *const T::Opaque) -> Result<Place, Failure> {
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
    Ok(Place {
        process: bits >> PROCESS & PROCESSES,
        generation: bits >> GENERATION & GENERATIONS,
        index: (bits >> INDEX & INDEXES) as usize,
    })
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

/// Where the caller has room for several.
pub(crate) struct Outs<T> {
    first: *mut T,
    count: usize,
}

/// NULL will do if there is no room.
pub(crate) fn outs<T>(what: &str, first: *mut T, count: usize) -> Result<Outs<T>, Failure> {
    // The room is checked as what can be read is.
    array(what, first.cast_const().cast::<MaybeUninit<T>>(), count)?;
    Ok(Outs { first, count })
}

impl<T: Copy> Outs<T> {
    /// Writes as many as there is room for.
    pub(crate) fn set(self, values: &[T]) {
        let count = values.len().min(self.count);
        if count > 0 {
            // SAFETY: it is aligned and not NULL, since there is room, to which the header says that can be written.
            unsafe { self.first.copy_from_nonoverlapping(values.as_ptr(), count) }
        }
    }
}

/// Marks this process in a page that the kernel clears in every fork, however it was made, if it can do that (Linux
/// 4.14): a look at it costs a hundredth of a request for the process's number.
pub(crate) fn mark_process() {
    static IS_MARKED: AtomicBool = AtomicBool::new(false);
    // No Once: a fork that came while another thread was in it would wait for ever.
    if IS_MARKED.swap(true, Ordering::Relaxed) {
        return;
    }
    // The kernel makes a whole page of it.
    let size = size_of::<AtomicU32>();
    let (protection, private) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: the kernel chooses the place, so it is nobody else's memory.
    let Ok(page) = (unsafe { mmap_anonymous(std::ptr::null_mut(), size, protection, private) }) else {
        return;
    };
    // SAFETY: the page was mapped just now, and is ours alone.
    if unsafe { madvise(page, size, Advice::LinuxWipeOnFork) }.is_err() {
        return;
    }
    // SAFETY: the page is zero, which is a number, aligned, and never given back. The kernel changes it only
    // where it makes another process, before that runs.
    mark_processes(unsafe { &*page.cast::<AtomicU32>() });
}

/// Makes a call in which its thread cannot be cancelled: the system would unwind through code that is not
/// made for it, and end the process. It is cancelled afterwards.
///
/// A thread whose cancellation is asynchronous may be unwound from any instruction outside of `call`, here and in the
/// exported function. So nothing there may have a destructor, and the exported functions are `extern "C-unwind"`, which
/// lets the system pass. Without any optimisation the compiler would provide for destructors that there are not, and the
/// process would end where it does not expect to unwind: see the profiles in Cargo.toml, and tests/c/frames.
#[inline(always)]
pub(crate) fn uncancelled<T, F: FnOnce() -> T>(call: F) -> T {
    const { assert!(!std::mem::needs_drop::<F>() && !std::mem::needs_drop::<T>()) };
    unsafe extern "C-unwind" {
        fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
        fn pthread_setcanceltype(kind: c_int, before: *mut c_int) -> c_int;
    }
    const PTHREAD_CANCEL_DISABLE: c_int = 1;
    const PTHREAD_CANCEL_DEFERRED: c_int = 0;
    let (mut before, mut kind) = (0, 0);
    // The type as well: glibc sends a signal to a thread that is asynchronous, and looks no more at the state when it comes.
    // SAFETY: they change what is this thread's alone, and write what was before to where they may.
    unsafe {
        pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &mut kind);
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &mut before);
    }
    let result = apart(call);
    // The state first: where it acts, glibc 2.36 makes another result of the thread than PTHREAD_CANCELED.
    // SAFETY: as above, with what they gave. No panic gets to here, so both are always put back.
    unsafe {
        pthread_setcancelstate(before, &mut before);
        pthread_setcanceltype(kind, &mut kind);
    }
    result
}

/// In a frame of its own: what it needs to unwind is not to become the caller's.
#[inline(never)]
fn apart<T>(call: impl FnOnce() -> T) -> T {
    call()
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

/// Memory as the system gives it. Where there is none left the process ends, as it would without this, but not with a
/// text on the host's standard error, which may be anything by then: a daemon's data file, a socket.
struct Silent;

#[global_allocator]
static MEMORY: Silent = Silent;

/// Nothing can be done without memory, and the rest of the library cannot be told: its code is not made for that.
fn given(memory: *mut u8) -> *mut u8 {
    if memory.is_null() {
        std::process::abort();
    }
    memory
}

// SAFETY: all is done by the system's, which meets what is asked for; it never unwinds.
unsafe impl GlobalAlloc for Silent {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller promises what the system asks for.
        given(unsafe { System.alloc(layout) })
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        given(unsafe { System.alloc_zeroed(layout) })
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        given(unsafe { System.realloc(memory, layout, size) })
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(memory, layout) }
    }
}
