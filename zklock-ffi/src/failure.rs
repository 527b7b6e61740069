//! Why a call failed, and the message that its thread can read afterwards.

use crate::status::zklock_status::{self, ZKLOCK_DONE, ZKLOCK_INVALID_ARGUMENT, ZKLOCK_PENDING};
use std::cell::{Cell, RefCell};
use std::ffi::c_char;
use zklock::Error;

/// Why a call failed.
#[derive(Clone, Debug)]
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

    /// Stores the message for this thread, and returns the status. A status with which nothing went wrong leaves the message
    /// alone, so that a program can still read it after its event loop.
    pub(crate) fn tell(self, call: &str) -> zklock_status {
        if matches!(self.status, ZKLOCK_PENDING | ZKLOCK_DONE) {
            return self.status;
        }
        keep(&format!("{call}: {}", self.message).replace('\0', "\u{fffd}"));
        let index = self.index.and_then(|index| i64::try_from(index).ok());
        INDEX.set(index.unwrap_or(NO_INDEX));
        self.status
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let index = error.conflict().map(|conflict| conflict.index);
        Self { index, ..Self::new(zklock_status::of(error.kind()), error.to_string()) }
    }
}

/// A longer message is cut off.
const MESSAGE: usize = 2048;

pub(crate) const NO_INDEX: i64 = -1;

thread_local! {
    /// The message and its NUL. It has no destructor, because a destructor would have to be
    /// registered with glibc, which waits while another thread loads a shared object.
    static LAST: RefCell<[u8; MESSAGE]> = const { RefCell::new([0; MESSAGE]) };
    static INDEX: Cell<i64> = const { Cell::new(NO_INDEX) };
}

/// Returns the last message of this thread. The next failure replaces it.
pub(crate) fn last_message() -> *const c_char {
    LAST.with_borrow(|last| last.as_ptr().cast())
}

/// Returns which write failed, if the last failure was a conflict.
pub(crate) fn last_index() -> i64 {
    INDEX.get()
}

fn keep(message: &str) {
    LAST.with_borrow_mut(|last| {
        for (place, byte) in last.iter_mut().zip(cut(message, MESSAGE - 1).bytes().chain([0])) {
            *place = byte;
        }
    });
}

/// Returns the beginning of a text that fits into so many bytes. It ends between two characters.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    let is_end = |at: &usize| text.is_char_boundary(*at);
    let end = (0..=text.len().min(most)).rev().find(is_end).unwrap_or(0);
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;

    #[test]
    fn a_message_that_is_too_long_is_cut_between_letters() {
        let told = || {
            LAST.with_borrow(|last| CStr::from_bytes_until_nul(last).unwrap().to_str().unwrap().to_owned())
        };
        keep("short");
        assert_eq!(told(), "short");
        keep(&"ö".repeat(MESSAGE));
        assert_eq!(told(), "ö".repeat((MESSAGE - 1) / 2));
        keep("short again");
        assert_eq!(told(), "short again");
    }
}
