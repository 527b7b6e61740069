//! How a client connects.

use crate::export::export;
use crate::failure::Failure;
use crate::handle::{Object, handle};
use crate::raw::{out, text};
use crate::status::zklock_status;
use std::ffi::c_char;
use std::sync::{Mutex, PoisonError};
use zklock::ClientOptions;
use zklock::face::hosts_from_env;

/// How a client connects. The defaults suit most programs.
#[allow(non_camel_case_types, reason = "the name in C")]
#[derive(Debug)]
pub struct zklock_options {
    _opaque: [u8; 0],
}

pub(crate) struct Options(Mutex<ClientOptions>);

handle!(
    Options: zklock_options, 1,
    fn inherited(&self) -> Option<Self> {
        Some(Self(Mutex::new(self.0.try_lock().ok()?.clone())))
    }
);

impl Options {
    /// Returns the options for a client. NULL means the defaults, and no hosts those of the environment.
    pub(crate) fn of(options: *const zklock_options, hosts: Option<&str>) -> Result<ClientOptions, Failure> {
        let hosts = &hosts.map_or_else(hosts_from_env, |hosts| Ok(hosts.to_owned()))?;
        if options.is_null() {
            return Ok(ClientOptions::new(hosts)?);
        }
        let options = Self::table().find(options)?;
        let options = options.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(options.hosts(hosts)?.checked()?)
    }
}

export! {
    /// Creates client options with the defaults. Free them with zklock_options_free, at any time after
    /// the client is made.
    ///
    /// @param[out] options the options.
    /// @return ZKLOCK_OK.
    pub fn zklock_options_new(options: *mut *mut zklock_options) -> zklock_status {
        let defaults = Options(Mutex::new(ClientOptions::new("localhost")?));
        out("options", options)?.set(Options::table().put(defaults));
    }

    /// Frees client options. Clients that were made with them are not affected.
    ///
    /// @param options may be NULL. A handle that was already freed is ignored.
    pub fn zklock_options_free(options: *mut zklock_options) {
        drop(Options::table().take(options));
    }

    /// Sets an option of a client. The configuration file of the command zklock has the same names and
    /// values:
    ///
    /// @CLIENT_OPTIONS@
    ///
    /// A DURATION has a unit, as in "250ms", "10s" or "1h30m". Without one it is in seconds. Whether
    /// options go together, and what is in the files of TLS, is checked when the client is made. No
    /// password appears in an error message or in the log. docs/securing.md says more about logging in,
    /// TLS and access lists, and docs/performance.md about loss-timeout.
    ///
    ///     if (zklock_options_new(&options) != ZKLOCK_OK ||
    ///         zklock_options_set(options, "session-timeout", "20s") != ZKLOCK_OK ||
    ///         zklock_options_set(options, "auth", "billing:secret") != ZKLOCK_OK)
    ///         return fail(zklock_last_error());
    ///
    /// @param options the options.
    /// @param option the name of the option.
    /// @param value its value.
    /// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if there is no such option, or it cannot have this
    ///         value: zklock_last_error() names what is possible; ZKLOCK_REFUSED if this library was built
    ///         without TLS or Kerberos, and the option is about that.
    pub fn zklock_options_set(
        options: *mut zklock_options,
        option: *const c_char,
        value: *const c_char,
    ) -> zklock_status {
        let options = Options::table().find(options)?;
        let mut options = options.0.lock().unwrap_or_else(PoisonError::into_inner);
        *options = options.clone().set(text("option", option)?, text("value", value)?)?;
    }
}
