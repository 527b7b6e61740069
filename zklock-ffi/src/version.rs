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

/// Gets the number of the interface of the running library. A binding that does not read this header
/// compares it with the number for which it was written, and refuses to run with any other.
///
/// @return 1 for all versions 0.1.x, 2 for 0.2.x, and so on; 1000 for all versions 1.x, 2000 for 2.x
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_abi() -> u32 {
    call::plain("zklock_abi", 0, || {
        let part = |part: &str| part.parse().unwrap_or(0);
        match part(env!("CARGO_PKG_VERSION_MAJOR")) {
            0 => part(env!("CARGO_PKG_VERSION_MINOR")),
            major => major * 1000,
        }
    })
}
