//! Everything that crosses the boundary to C: the only file with `unsafe` code.
//!
//! Some things cannot be checked, and the header requires them of every caller: a pointer that is
//! not NULL points to what its type says, a string ends with NUL, and a function has the signature
//! of its type. Everything else is checked.

#![allow(unsafe_code, reason = "the boundary to C")]

use crate::failure::Failure;
use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::slice;

/// Returns a string from the caller.
pub(crate) fn text<'a>(what: &str, pointer: *const c_char) -> Result<&'a str, Failure> {
    optional_text(what, pointer)?.ok_or_else(|| Failure::argument(format!("{what} is NULL")))
}

/// Returns a string from the caller, which may be NULL.
pub(crate) fn optional_text<'a>(what: &str, pointer: *const c_char) -> Result<Option<&'a str>, Failure> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: it is not NULL, and the header requires a string that ends with NUL and stays valid
    // for the call.
    let text = unsafe { CStr::from_ptr(pointer) };
    match text.to_str() {
        Ok(text) => Ok(Some(text)),
        Err(error) => {
            let message = format!("{what} is not UTF-8 from byte {} on", error.valid_up_to());
            Err(Failure::argument(message))
        }
    }
}

/// Returns an array from the caller. It may be NULL if it is empty.
pub(crate) fn array<'a, T>(what: &str, pointer: *const T, count: usize) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    if pointer.is_null() {
        return Err(Failure::argument(format!("{what} is NULL, but the count is {count}")));
    }
    if !pointer.is_aligned() || count > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(Failure::argument(format!("{what} cannot be an array of {count}")));
    }
    // SAFETY: it is not NULL, aligned and of a possible size, and the header requires `count`
    // elements that nobody changes during the call.
    Ok(unsafe { slice::from_raw_parts(pointer, count) })
}

/// An output parameter.
#[derive(Clone, Copy)]
pub(crate) struct Out<T>(*mut T);

/// Rejects NULL, before anything is done whose result would be lost.
pub(crate) fn out<T>(what: &str, pointer: *mut T) -> Result<Out<T>, Failure> {
    if pointer.is_null() {
        return Err(Failure::argument(format!("{what} is NULL: give a place for the result")));
    }
    Ok(Out(pointer))
}

impl<T> Out<T> {
    pub(crate) fn set(self, value: T) {
        // SAFETY: it is not NULL, and the header requires a place to which a T can be written.
        unsafe { self.0.write(value) }
    }
}

/// An output parameter with room for several values.
pub(crate) struct Outs<T> {
    first: *mut T,
    count: usize,
}

/// It may be NULL if there is no room.
pub(crate) fn outs<T>(what: &str, first: *mut T, count: usize) -> Result<Outs<T>, Failure> {
    // The place to write to is checked like one to read from.
    array(what, first.cast_const().cast::<MaybeUninit<T>>(), count)?;
    Ok(Outs { first, count })
}

impl<T: Copy> Outs<T> {
    /// Writes as many values as there is room for.
    pub(crate) fn set(self, values: &[T]) {
        let count = values.len().min(self.count);
        if count > 0 {
            // SAFETY: it is aligned and not NULL, since there is room, and the header requires that
            // it can be written to.
            unsafe { self.first.copy_from_nonoverlapping(values.as_ptr(), count) }
        }
    }
}

/// Makes a call during which the thread cannot be cancelled. Otherwise the system would unwind
/// through code that is not made for it, and end the process. The thread is cancelled after the
/// call.
///
/// A thread whose cancellation is asynchronous may be unwound from any instruction outside of
/// `call`, here and in the exported function. So nothing there may have a destructor, and the
/// exported functions are `extern "C-unwind"`, which lets the system unwind through them. Without
/// any optimisation, the compiler would add landing pads even for destructors that do not exist,
/// and the process would end because it does not expect to unwind there: see the profiles in
/// Cargo.toml, and tests/c/frames.
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
    // Change the type as well: glibc signals a thread with asynchronous cancellation, and does not
    // check the state again when the signal arrives.
    // SAFETY: these calls change only this thread's state, and write the old values to valid places.
    unsafe {
        pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &mut kind);
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &mut before);
    }
    let result = apart(call);
    // Restore the state first: if the cancellation acts at that point, glibc 2.36 gives the thread
    // another result than PTHREAD_CANCELED.
    // SAFETY: as above, with the values from before. No panic can get here, so both are restored.
    unsafe {
        pthread_setcancelstate(before, &mut before);
        pthread_setcanceltype(kind, &mut kind);
    }
    result
}

/// In its own frame, so that its unwind tables do not become the caller's.
#[inline(never)]
fn apart<T>(call: impl FnOnce() -> T) -> T {
    call()
}

/// The pointer that a callback gets back. The caller, to whom it belongs, declares that any thread
/// may have it.
#[derive(Clone, Copy)]
pub(crate) struct Context(pub(crate) *mut c_void);

impl Context {
    /// No pointer was set.
    pub(crate) const NONE: Self = Self(std::ptr::null_mut());
}

// SAFETY: we never dereference it, and the header says that callbacks run on a thread of ours.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

/// A callback that gets a number and a text.
pub(crate) type TextCallback = unsafe extern "C" fn(i32, *const c_char, *mut c_void);
/// A callback that gets a handle and a value.
pub(crate) type HandleCallback<H, V> = unsafe extern "C" fn(*mut H, V, *mut c_void);
/// A callback that gets a struct.
pub(crate) type Visitor<T> = unsafe extern "C" fn(*const T, *mut c_void);

pub(crate) fn call_with_text(callback: TextCallback, number: i32, text: &CStr, context: Context) {
    // SAFETY: the header requires a function of this signature that may be called until it is
    // replaced.
    unsafe { callback(number, text.as_ptr(), context.0) }
}

pub(crate) fn call_with_handle<H, V>(
    callback: HandleCallback<H, V>,
    handle: *mut H,
    value: V,
    context: Context,
) {
    // SAFETY: the header requires a function of this signature that may be called until the object
    // is freed.
    unsafe { callback(handle, value, context.0) }
}

pub(crate) fn show<T>(visitor: Visitor<T>, value: &T, context: Context) {
    // SAFETY: the header requires a function of this signature that may be called during the call.
    unsafe { visitor(value, context.0) }
}

/// The system's allocator. If no memory is left, the process ends, as it would without this, but
/// without a message on the host's standard error, which may be anything by then: a daemon's data
/// file, or a socket.
struct Silent;

#[global_allocator]
static MEMORY: Silent = Silent;

/// Without memory, nothing can be done. The rest of the library is not made to handle that.
fn given(memory: *mut u8) -> *mut u8 {
    if memory.is_null() {
        std::process::abort();
    }
    memory
}

// SAFETY: the system's allocator does all the work. It meets the requirements and never unwinds.
unsafe impl GlobalAlloc for Silent {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller guarantees what the system requires.
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
