//! Around every call from C: a fork is refused before any lock of ours is touched, and no panic
//! passes the boundary.

use crate::handle::uncancelled;
use crate::status::Failure;
use crate::status::zklock_status::{self, ZKLOCK_FORKED, ZKLOCK_INTERNAL, ZKLOCK_OK};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::sync::atomic::{AtomicBool, Ordering};
use zklock_core::blocking::is_forked;

/// Makes a call that says how it went.
pub(crate) fn status(call: &str, body: impl FnOnce() -> Result<(), Failure>) -> zklock_status {
    let refused = || {
        let message = "this process was forked from one that uses zklock, whose locks stay with it: fork before \
                       the first zklock_client_new, or start the process anew (exec)";
        Err(Failure::new(ZKLOCK_FORKED, message))
    };
    let result = caught(call, || if is_forked() { refused() } else { body() });
    match result {
        Ok(Ok(())) => ZKLOCK_OK,
        Ok(Err(failure)) => failure.tell(call),
        Err(message) => Failure::new(ZKLOCK_INTERNAL, message).tell(call),
    }
}

/// Makes a call that cannot fail. It must touch nothing that a fork could have left locked.
pub(crate) fn plain<T>(call: &str, otherwise: T, body: impl FnOnce() -> T) -> T {
    caught(call, body).unwrap_or(otherwise)
}

/// Frees something. In a forked child it stays, for it is the parent's.
pub(crate) fn free(call: &str, body: impl FnOnce()) {
    let _ = caught(call, || {
        if !is_forked() {
            body();
        }
    });
}

fn caught<T>(call: &str, body: impl FnOnce() -> T) -> Result<T, String> {
    static SILENT: AtomicBool = AtomicBool::new(false);
    // The library has a standard library of its own, so this is the host's business nowhere. (No Once: a
    // fork that came while another thread was in it would wait for ever.)
    if !SILENT.swap(true, Ordering::Relaxed) {
        set_hook(Box::new(|panic| tracing::error!("zklock panicked: {panic}")));
    }
    let body = || {
        panic_if_asked(call);
        body()
    };
    let result = uncancelled(|| catch_unwind(AssertUnwindSafe(body)));
    result.map_err(|panic| format!("zklock panicked ({}): please report it", said(&*panic)))
}

/// For the test that no panic passes: every call has one then.
fn panic_if_asked(call: &str) {
    if cfg!(feature = "panic-probe") && std::env::var_os("ZKLOCK_PANIC").is_some() {
        panic!("{call}, on purpose");
    }
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no more is known")
}
