//! A wrapper around every call from C, so that no panic crosses the boundary.

use crate::failure::Failure;
use crate::raw::uncancelled;
use crate::status::zklock_status::{self, ZKLOCK_INTERNAL, ZKLOCK_OK};
use std::any::Any;
use std::ffi::{c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use zklock::face::log_panics;

// Nothing before or after `uncancelled` may have a destructor: see its comment.

/// Makes a call that returns a status.
#[inline(always)]
pub(crate) fn status(call: &str, body: impl FnOnce() -> Result<(), Failure>) -> zklock_status {
    uncancelled(|| told(call, body))
}

/// A value that a function may return in place of a status.
pub(crate) trait Safe {
    /// What a caller gets whose handle is wrong: nothing that it might rely on.
    const SAFE: Self;
}

impl Safe for i64 {
    const SAFE: Self = 0;
}

impl Safe for u64 {
    const SAFE: Self = 0;
}

impl Safe for c_int {
    const SAFE: Self = 0;
}

impl Safe for *const c_char {
    const SAFE: Self = c"".as_ptr();
}

/// Makes a call that returns a value.
#[inline(always)]
pub(crate) fn value<T: Safe>(call: &str, body: impl FnOnce() -> Result<T, Failure>) -> T {
    uncancelled(|| {
        let mut value = T::SAFE;
        told(call, || {
            value = body()?;
            Ok(())
        });
        value
    })
}

/// Makes a call that cannot fail. It must not touch anything that a fork could have left locked.
#[inline(always)]
pub(crate) fn plain<T>(call: &str, otherwise: T, body: impl FnOnce() -> T) -> T {
    uncancelled(|| caught(call, body).unwrap_or(otherwise))
}

/// Makes a call that frees a handle.
#[inline(always)]
pub(crate) fn free(call: &str, body: impl FnOnce()) {
    uncancelled(|| {
        let _ = caught(call, body);
    });
}

fn told(call: &str, body: impl FnOnce() -> Result<(), Failure>) -> zklock_status {
    let result = caught(call, body);
    match result {
        Ok(Ok(())) => ZKLOCK_OK,
        Ok(Err(failure)) => failure.tell(call),
        Err(message) => Failure::new(ZKLOCK_INTERNAL, message).tell(call),
    }
}

fn caught<T>(call: &str, body: impl FnOnce() -> T) -> Result<T, String> {
    // The library contains its own copy of the standard library, so this hook does not affect the
    // host. It is not a Once, because a fork while another thread is in it would make the child
    // wait for ever.
    static SILENT: AtomicBool = AtomicBool::new(false);
    if !SILENT.swap(true, Ordering::Relaxed) {
        silence();
    }
    let body = || {
        panic_if_asked(call);
        body()
    };
    catch_unwind(AssertUnwindSafe(body)).map_err(|panic| message_of(&*panic))
}

// The functions below are not inlined into every call.

#[cold]
#[inline(never)]
fn silence() {
    log_panics();
}

#[cold]
#[inline(never)]
fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no more is known");
    format!("zklock panicked ({text}): please report it")
}

/// For the test that no panic crosses the boundary: makes every call panic.
fn panic_if_asked(call: &str) {
    if cfg!(feature = "panic-probe") && std::env::var_os("ZKLOCK_PANIC").is_some() {
        panic!("{call}, on purpose");
    }
}
