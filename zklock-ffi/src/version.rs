//! The version of the library.

use crate::call;
use std::ffi::{CStr, c_char};

const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => panic!("a version has no NUL"),
};

/// Gets the version of the running library. ZKLOCK_VERSION is the version of the header.
///
/// @return the version, such as "1.2.3". It is never NULL and is valid for the life of the process.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_version() -> *const c_char {
    call::plain("zklock_version", VERSION.as_ptr(), || VERSION.as_ptr())
}

/// Gets the version of the running library as a number. ZKLOCK_VERSION_NUMBER is the version of the
/// header.
///
/// @return major * 1000000 + minor * 1000 + patch
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_version_number() -> u32 {
    call::plain("zklock_version_number", 0, || {
        let parts = env!("CARGO_PKG_VERSION").split('.').map(|part| part.parse().unwrap_or(0));
        parts.fold(0, |number, part: u32| number * 1000 + part)
    })
}
