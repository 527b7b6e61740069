//! What C hands over, and what is handed to C: the one file with `unsafe` code.
//!
//! What cannot be checked is what the header asks of every caller: a pointer that is not NULL
//! points to what its type says, a string ends with NUL, and a function has the signature of its
//! type. Everything else is checked.

#![allow(unsafe_code, reason = "the boundary to C")]

use crate::failure::Failure;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::slice;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use zklock_core::face::mark_processes;

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

/// Marks this process in a page that the kernel clears in every fork, however it was made, if it
/// can do that (Linux 4.14): a look at it costs a hundredth of a request for the process's number.
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

/// Makes a call in which its thread cannot be cancelled: the system would unwind through code that
/// is not made for it, and end the process. It is cancelled afterwards.
///
/// A thread whose cancellation is asynchronous may be unwound from any instruction outside of
/// `call`, here and in the exported function. So nothing there may have a destructor, and the
/// exported functions are `extern "C-unwind"`, which lets the system pass. Without any optimisation
/// the compiler would provide for destructors that there are not, and the process would end where
/// it does not expect to unwind: see the profiles in Cargo.toml, and tests/c/frames.
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

impl Context {
    /// Nobody has given one.
    pub(crate) const NONE: Self = Self(std::ptr::null_mut());
}

// SAFETY: we never look behind it; the header says that callbacks run on a thread of ours.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

/// A struct as C has it, with the strings into which its members point.
pub(crate) struct WithStrings<T, const N: usize> {
    value: T,
    _strings: [CString; N],
}

impl<T, const N: usize> WithStrings<T, N> {
    /// `fill` gets the pointers to the strings, in their order.
    pub(crate) fn new(strings: [CString; N], fill: impl FnOnce([*const c_char; N]) -> T) -> Self {
        let value = fill(strings.each_ref().map(|text| text.as_ptr()));
        Self { value, _strings: strings }
    }

    pub(crate) fn value(&self) -> &T {
        &self.value
    }
}

// SAFETY: the pointers are to the strings beside them, to which nobody writes, whichever thread reads or drops them.
unsafe impl<T, const N: usize> Send for WithStrings<T, N> {}
// SAFETY: as above.
unsafe impl<T, const N: usize> Sync for WithStrings<T, N> {}

/// A callback that is given a number and a text.
pub(crate) type TextCallback = unsafe extern "C" fn(i32, *const c_char, *mut c_void);
/// A callback that is given a handle and what there is to say of it.
pub(crate) type HandleCallback<H, V> = unsafe extern "C" fn(*mut H, V, *mut c_void);
/// A callback that is given a handle to which something has happened, of which there is no more to
/// say.
pub(crate) type NewsCallback<H> = unsafe extern "C" fn(*mut H, *mut c_void);
/// A callback that is shown a struct.
pub(crate) type Visitor<T> = unsafe extern "C" fn(*const T, *mut c_void);

pub(crate) fn call_with_text(callback: TextCallback, number: i32, text: &CStr, context: Context) {
    // SAFETY: the header asks for a function of this signature that may be called until it is replaced.
    unsafe { callback(number, text.as_ptr(), context.0) }
}

pub(crate) fn call_with_handle<H, V>(
    callback: HandleCallback<H, V>,
    handle: *mut H,
    value: V,
    context: Context,
) {
    // SAFETY: the header asks for a function of this signature that may be called until what it was given to is freed.
    unsafe { callback(handle, value, context.0) }
}

pub(crate) fn call_with_news<H>(callback: NewsCallback<H>, handle: *mut H, context: Context) {
    // SAFETY: as above.
    unsafe { callback(handle, context.0) }
}

pub(crate) fn show<T>(visitor: Visitor<T>, value: &T, context: Context) {
    // SAFETY: the header asks for a function of this signature that may be called during the call.
    unsafe { visitor(value, context.0) }
}

/// Memory as the system gives it. If none is left the process ends, as it would without this, but
/// without a text on the host's standard error, which may be anything by then: a daemon's data
/// file, a socket.
struct Silent;

#[global_allocator]
static MEMORY: Silent = Silent;

/// Nothing can be done without memory, and the rest of the library cannot be told: its code is not
/// made for that.
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
