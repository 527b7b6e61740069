//! How a lock behaves.

use crate::export::export;
use crate::failure::Failure;
use crate::handle::{Object, handle};
use crate::raw::{out, text};
use crate::status::zklock_status;
use std::ffi::c_char;
use std::sync::{Mutex, PoisonError};
use zklock::LockSpec;

/// How a lock behaves. The defaults suit most programs.
#[allow(non_camel_case_types, reason = "the name in C")]
#[derive(Debug)]
pub struct zklock_lock_options {
    _opaque: [u8; 0],
}

/// A lock that nobody makes, with the options.
pub(crate) struct LockOptions(Mutex<LockSpec>);

handle!(
    LockOptions: zklock_lock_options, 6,
    fn inherited(&self) -> Option<Self> {
        Some(Self(Mutex::new(self.0.try_lock().ok()?.clone())))
    }
);

impl LockOptions {
    /// Applies options to a lock. NULL means the defaults.
    pub(crate) fn apply(options: *const zklock_lock_options, spec: LockSpec) -> Result<LockSpec, Failure> {
        if options.is_null() {
            return Ok(spec);
        }
        let options = Self::table().find(options)?;
        let chosen = options.0.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(spec.with_options_of(&chosen))
    }
}

export! {
    /// Creates lock options with the defaults. Free them with zklock_lock_options_free, at any time
    /// after the lock is made.
    ///
    /// @param[out] options the options.
    /// @return ZKLOCK_OK.
    pub fn zklock_lock_options_new(options: *mut *mut zklock_lock_options) -> zklock_status {
        let defaults = LockOptions(Mutex::new(LockSpec::mutex("/any")?));
        out("options", options)?.set(LockOptions::table().put(defaults));
    }

    /// Frees lock options. Locks that were made with them are not affected.
    ///
    /// @param options may be NULL. A handle that was already freed is ignored.
    pub fn zklock_lock_options_free(options: *mut zklock_lock_options) {
        drop(LockOptions::table().take(options));
    }

    /// Sets an option of a lock:
    ///
    /// @LOCK_OPTIONS@
    ///
    /// Contenders of every naming scheme are recognised, whichever one the lock itself uses. Grants on one
    /// node, because of linger or max-local-handoffs, have the same token, so the resource that the lock guards
    /// must accept a token equal to the largest that it has seen. docs/interop.md says more about naming
    /// and foreign, docs/performance.md about linger and max-local-handoffs, and docs/monitoring.md about
    /// metrics-name.
    ///
    ///     if (zklock_lock_options_new(&options) != ZKLOCK_OK ||
    ///         zklock_lock_options_set(options, "linger", "10s") != ZKLOCK_OK ||
    ///         zklock_mutex_new(client, "/locks/report", options, &lock) != ZKLOCK_OK)
    ///         return fail(zklock_last_error());
    ///     zklock_lock_options_free(options);
    ///
    /// @param options the options.
    /// @param option the name of the option.
    /// @param value its value.
    /// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if there is no such option, or it cannot have this
    ///         value: zklock_last_error() names what is possible.
    pub fn zklock_lock_options_set(
        options: *mut zklock_lock_options,
        option: *const c_char,
        value: *const c_char,
    ) -> zklock_status {
        let options = LockOptions::table().find(options)?;
        let mut chosen = options.0.lock().unwrap_or_else(PoisonError::into_inner);
        *chosen = chosen.clone().set(text("option", option)?, text("value", value)?)?;
    }
}
