//! Which process this is. A fork has a copy of all memory, but neither our threads nor a connection
//! of its own: whatever it did with them would wait for ever, or speak in its parent's name.

use crate::error::{Error, ErrorKind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// The process that used the library first; 0 before that.
static HOME: AtomicU32 = AtomicU32::new(0);

static TOLD_BY: OnceLock<fn() -> bool> = OnceLock::new();

/// Whether this process was forked from one that had connected.
///
/// Nothing here waits for a lock: the fork may have come while another thread had it.
///
/// ```
/// assert!(!zklock_core::blocking::is_forked());
/// ```
pub fn is_forked() -> bool {
    if let Some(told) = TOLD_BY.get() {
        return told();
    }
    let home = HOME.load(Ordering::Relaxed);
    home != 0 && home != std::process::id()
}

/// Lets `told` say whether this process was forked from the one that calls this: for a face that has
/// a cheaper way than to ask for the process's number, which every call does else.
///
/// ```
/// zklock_core::blocking::tell_forks_by(|| false);
/// ```
pub fn tell_forks_by(told: fn() -> bool) {
    // The first stays.
    let _ = TOLD_BY.set(told);
}

pub(super) fn refuse_forked() -> Result<(), Error> {
    if is_forked() { Err(forked()) } else { Ok(()) }
}

/// From now on this is the process of the library.
pub(super) fn settle() -> Result<(), Error> {
    let here = std::process::id();
    match HOME.compare_exchange(0, here, Ordering::Relaxed, Ordering::Relaxed) {
        Err(home) if home != here => Err(forked()),
        _ => refuse_forked(),
    }
}

fn forked() -> Error {
    let message = "this process was forked from one that uses zklock, whose locks stay with it: connect after \
                   the fork, or start the process anew (exec)";
    Error::new(ErrorKind::Forked, message)
}
