//! Names of statuses, and messages about failures.

use crate::call;
use crate::failure::{NO_INDEX, last_index, last_message};
use crate::status::zklock_status;
use std::ffi::c_char;

/// Gets the name of a status, such as "ZKLOCK_TIMEOUT".
///
/// @param status what a call returned.
/// @return the name, or "unknown" if no status has this number. It is never NULL and is valid for
///         the life of the process.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_status_name(status: i32) -> *const c_char {
    call::plain("zklock_status_name", c"unknown".as_ptr(), || {
        zklock_status::name(status).unwrap_or(c"unknown").as_ptr()
    })
}

/// Gets the message of the last call on this thread that failed: what is wrong, and what to do. The
/// wording is meant for people and may change with any version.
///
/// ZKLOCK_PENDING and ZKLOCK_DONE are no failures, and leave the message alone. Any other status but
/// ZKLOCK_OK replaces it.
///
/// @return the message, or "" if no call on this thread has failed. It is never NULL, and is valid
///         until the next call on this thread that fails.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_last_error() -> *const c_char {
    call::plain("zklock_last_error", c"".as_ptr(), last_message)
}

/// Says which write was refused, after ZKLOCK_CONFLICT from zklock_hold_commit, or from
/// zklock_call_finish or zklock_call_versions for a zklock_hold_commit_start. Ask right away: the
/// next call on this thread that fails replaces the answer.
///
/// @return the index of the write, counting from 0; -1 if the last call that failed on this thread
///         failed in another way.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_last_conflict() -> i64 {
    call::plain("zklock_last_conflict", NO_INDEX, last_index)
}
