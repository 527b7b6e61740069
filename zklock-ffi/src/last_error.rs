//! What a call returned, in words.

use crate::call;
use crate::failure::{NO_INDEX, last_index, last_message};
use crate::status::zklock_status;
use std::ffi::c_char;

/// The name of a status, such as "ZKLOCK_TIMEOUT".
///
/// @param status what a call returned.
/// @return the name, or "unknown" if no status has this number. It is never NULL, and lives for
///         ever.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_status_name(status: i32) -> *const c_char {
    call::plain("zklock_status_name", c"unknown".as_ptr(), || {
        zklock_status::name(status).unwrap_or(c"unknown").as_ptr()
    })
}

/// A message about the last call that failed in this thread: what is wrong, and what to do.
///
/// For people: it is no part of the stable interface.
///
/// @return the message; "" if no call has failed in this thread. It is never NULL, and valid until
///         the next call of this thread that fails.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_last_error() -> *const c_char {
    call::plain("zklock_last_error", c"".as_ptr(), last_message)
}

/// Which write was refused, if the last function that failed in this thread was a
/// zklock_hold_commit that gave ZKLOCK_CONFLICT; or a zklock_call_finish or zklock_call_versions
/// that gave it for a zklock_hold_commit_start.
///
/// @return its index among the writes, from 0 on; -1 if the last function that failed did so in
///         another way.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_last_conflict() -> i64 {
    call::plain("zklock_last_conflict", NO_INDEX, last_index)
}
