//! What a call returns, and the sentence to it.

use crate::call;
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_char};
use zklock_core::{Error, ErrorKind};

/// What a call returns. The numbers are never reused.
#[allow(non_camel_case_types, reason = "the name in C")]
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum zklock_status {
    /// It worked.
    ZKLOCK_OK = 0,
    /// An argument is wrong (NULL, not UTF-8, a bad path, out of range): correct the call.
    ZKLOCK_INVALID_ARGUMENT = 1,
    /// Not a handle of this kind, or it was freed before: correct the program.
    ZKLOCK_INVALID_HANDLE = 2,
    /// No server could be reached: check the hosts and the network, or try again later.
    ZKLOCK_UNREACHABLE = 3,
    /// The time was over: try again, or do without.
    ZKLOCK_TIMEOUT = 4,
    /// The wait could never end, since this thread itself holds the lock, or is one of ours (in a
    /// callback): correct the program.
    ZKLOCK_DEADLOCK = 5,
    /// The hold is of a reentrant lock, and belongs to another thread: release it there.
    ZKLOCK_NOT_OWNER = 6,
    /// The hold has been released before, the ticket's result fetched, or the member has left: correct the program.
    ZKLOCK_NOT_HELD = 7,
    /// The hold is lost: stop what it guarded; others may hold the lock.
    ZKLOCK_LOST = 8,
    /// A contender of another library is in the queue that cannot see ours: let both sides use one
    /// naming scheme.
    ZKLOCK_FOREIGN_CONTENDER = 9,
    /// The servers' access list, their rules or this system's limits forbid it.
    ZKLOCK_REFUSED = 10,
    /// The client is closed: make a new one.
    ZKLOCK_CLOSED = 11,
    /// The wait was cancelled.
    ZKLOCK_INTERRUPTED = 12,
    /// A guarded write whose reply was lost: it may have been done. zklock_hold_read tells.
    ZKLOCK_UNCERTAIN = 13,
    /// A guarded write was refused, because a node was not as it had to be. Nothing was written.
    ZKLOCK_CONFLICT = 14,
    /// What was used was made before this process was forked, and is the parent's: see "Fork" above.
    ZKLOCK_FORKED = 15,
    /// The ticket has no result yet: wait for its descriptor.
    ZKLOCK_PENDING = 16,
    /// A mistake in zklock itself, caught before it could do harm here: please report it.
    ZKLOCK_INTERNAL = 17,
}

use zklock_status::{
    ZKLOCK_CLOSED, ZKLOCK_CONFLICT, ZKLOCK_DEADLOCK, ZKLOCK_FOREIGN_CONTENDER, ZKLOCK_FORKED,
    ZKLOCK_INTERNAL, ZKLOCK_INTERRUPTED, ZKLOCK_INVALID_ARGUMENT, ZKLOCK_INVALID_HANDLE, ZKLOCK_LOST,
    ZKLOCK_NOT_HELD, ZKLOCK_NOT_OWNER, ZKLOCK_OK, ZKLOCK_PENDING, ZKLOCK_REFUSED, ZKLOCK_TIMEOUT,
    ZKLOCK_UNCERTAIN, ZKLOCK_UNREACHABLE,
};

/// Every status with its name.
const NAMES: [(zklock_status, &CStr); 18] = [
    (ZKLOCK_OK, c"ZKLOCK_OK"),
    (ZKLOCK_INVALID_ARGUMENT, c"ZKLOCK_INVALID_ARGUMENT"),
    (ZKLOCK_INVALID_HANDLE, c"ZKLOCK_INVALID_HANDLE"),
    (ZKLOCK_UNREACHABLE, c"ZKLOCK_UNREACHABLE"),
    (ZKLOCK_TIMEOUT, c"ZKLOCK_TIMEOUT"),
    (ZKLOCK_DEADLOCK, c"ZKLOCK_DEADLOCK"),
    (ZKLOCK_NOT_OWNER, c"ZKLOCK_NOT_OWNER"),
    (ZKLOCK_NOT_HELD, c"ZKLOCK_NOT_HELD"),
    (ZKLOCK_LOST, c"ZKLOCK_LOST"),
    (ZKLOCK_FOREIGN_CONTENDER, c"ZKLOCK_FOREIGN_CONTENDER"),
    (ZKLOCK_REFUSED, c"ZKLOCK_REFUSED"),
    (ZKLOCK_CLOSED, c"ZKLOCK_CLOSED"),
    (ZKLOCK_INTERRUPTED, c"ZKLOCK_INTERRUPTED"),
    (ZKLOCK_UNCERTAIN, c"ZKLOCK_UNCERTAIN"),
    (ZKLOCK_CONFLICT, c"ZKLOCK_CONFLICT"),
    (ZKLOCK_FORKED, c"ZKLOCK_FORKED"),
    (ZKLOCK_PENDING, c"ZKLOCK_PENDING"),
    (ZKLOCK_INTERNAL, c"ZKLOCK_INTERNAL"),
];

/// Why a call failed.
#[derive(Debug)]
pub(crate) struct Failure {
    status: zklock_status,
    message: String,
    /// Which of several writes failed.
    index: Option<usize>,
}

impl Failure {
    pub(crate) fn new(status: zklock_status, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), index: None }
    }

    pub(crate) fn argument(message: impl Into<String>) -> Self {
        Self::new(ZKLOCK_INVALID_ARGUMENT, message)
    }

    /// Leaves the sentence for this thread.
    pub(crate) fn tell(self, call: &str) -> zklock_status {
        keep(&format!("{call}: {}", self.message).replace('\0', "\u{fffd}"));
        let index = self.index.and_then(|index| i64::try_from(index).ok());
        INDEX.set(index.unwrap_or(NO_INDEX));
        self.status
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let status = match error.kind() {
            ErrorKind::InvalidInput => ZKLOCK_INVALID_ARGUMENT,
            ErrorKind::Unreachable => ZKLOCK_UNREACHABLE,
            ErrorKind::Timeout => ZKLOCK_TIMEOUT,
            ErrorKind::Deadlock => ZKLOCK_DEADLOCK,
            ErrorKind::NotOwner => ZKLOCK_NOT_OWNER,
            ErrorKind::NotHeld => ZKLOCK_NOT_HELD,
            ErrorKind::Lost(_) => ZKLOCK_LOST,
            ErrorKind::ForeignContender => ZKLOCK_FOREIGN_CONTENDER,
            ErrorKind::Refused => ZKLOCK_REFUSED,
            ErrorKind::Closed => ZKLOCK_CLOSED,
            ErrorKind::Interrupted => ZKLOCK_INTERRUPTED,
            ErrorKind::Uncertain => ZKLOCK_UNCERTAIN,
            ErrorKind::Conflict => ZKLOCK_CONFLICT,
            ErrorKind::Forked => ZKLOCK_FORKED,
            _ => ZKLOCK_INTERNAL,
        };
        let index = error.conflict().map(|conflict| conflict.index);
        Self { index, ..Self::new(status, error.to_string()) }
    }
}

/// A longer sentence is cut.
const SENTENCE: usize = 2048;

thread_local! {
    /// With the NUL at its end. It has no destructor, which glibc would have to be told of: that waits while another thread
    /// loads a shared object.
    static LAST: RefCell<[u8; SENTENCE]> = const { RefCell::new([0; SENTENCE]) };
    static INDEX: Cell<i64> = const { Cell::new(NO_INDEX) };
}

fn keep(sentence: &str) {
    let is_end = |at: &usize| sentence.is_char_boundary(*at);
    let end = (0..=sentence.len().min(SENTENCE - 1)).rev().find(is_end).unwrap_or(0);
    LAST.with_borrow_mut(|last| {
        for (place, byte) in last.iter_mut().zip(sentence[..end].bytes().chain([0])) {
            *place = byte;
        }
    });
}

const NO_INDEX: i64 = -1;

/// The name of a status, such as "ZKLOCK_TIMEOUT".
///
/// @param status what a call returned.
/// @return the name, or "unknown" for a number that is none. It is never NULL, and lives for ever.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_status_name(status: i32) -> *const c_char {
    call::plain("zklock_status_name", c"unknown".as_ptr(), || {
        let known = NAMES.iter().find(|(known, _)| *known as i32 == status);
        known.map_or(c"unknown", |(_, name)| name).as_ptr()
    })
}

/// A sentence about the last call that failed in this thread: what is wrong, and what to do.
///
/// For people: it is no part of the stable interface.
///
/// @return the sentence; "" if no call has failed in this thread. It is never NULL, and valid until
///         the next call of this thread that fails.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_last_error() -> *const c_char {
    call::plain("zklock_last_error", c"".as_ptr(), || LAST.with_borrow(|last| last.as_ptr().cast()))
}

/// Which write was refused, if the last call that failed in this thread was a zklock_hold_commit that gave
/// ZKLOCK_CONFLICT.
///
/// @return its index among the writes, from 0 on; -1 if the last call failed in another way.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_last_conflict() -> i64 {
    call::plain("zklock_last_conflict", NO_INDEX, || INDEX.get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_that_is_too_long_is_cut_between_letters() {
        let told = || {
            LAST.with_borrow(|last| CStr::from_bytes_until_nul(last).unwrap().to_str().unwrap().to_owned())
        };
        keep("short");
        assert_eq!(told(), "short");
        keep(&"ö".repeat(SENTENCE));
        assert_eq!(told(), "ö".repeat((SENTENCE - 1) / 2));
        keep("short again");
        assert_eq!(told(), "short again");
    }

    #[test]
    fn every_number_has_its_own_name() {
        for (number, (status, name)) in NAMES.iter().enumerate() {
            assert_eq!(*status as usize, number);
            assert_eq!(format!("{status:?}"), name.to_str().unwrap());
        }
    }
}
