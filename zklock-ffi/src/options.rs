//! How a client connects.

use crate::call;
use crate::convert::time;
use crate::failure::Failure;
use crate::handle::{Object, handle};
use crate::raw::{out, text};
use crate::status::zklock_status;
use std::ffi::{c_char, c_int};
use std::sync::{Mutex, MutexGuard, PoisonError};
use zklock_core::{ClientOptions, Error};

/// How a client connects. The defaults suit most programs.
#[allow(non_camel_case_types, reason = "the name in C")]
#[derive(Debug)]
pub struct zklock_options {
    _opaque: [u8; 0],
}

pub(crate) struct Options(Mutex<Settings>);

#[derive(Clone)]
struct Settings {
    client: ClientOptions,
    /// Of the key that is given next.
    #[cfg(feature = "tls")]
    pass_phrase: Option<zklock_core::PassPhrase>,
}

handle!(
    Options: zklock_options, 1,
    fn inherited(&self) -> Option<Self> {
        Some(Self(Mutex::new(self.0.try_lock().ok()?.clone())))
    }
);

impl Options {
    /// The defaults; the hosts come with the client.
    fn new() -> Result<Self, Failure> {
        let client = ClientOptions::new("localhost")?;
        Ok(Self(Mutex::new(Settings {
            client,
            #[cfg(feature = "tls")]
            pass_phrase: None,
        })))
    }

    /// The options of a client; those that are NULL are the defaults.
    pub(crate) fn of(options: *const zklock_options, hosts: &str) -> Result<ClientOptions, Failure> {
        if options.is_null() {
            return Ok(ClientOptions::new(hosts)?);
        }
        let options = Self::table().find(options)?.settings().client.clone().hosts(hosts)?;
        options.check()?;
        Ok(options)
    }

    pub(crate) fn change(
        options: *const zklock_options,
        change: impl FnOnce(ClientOptions) -> Result<ClientOptions, Error>,
    ) -> Result<(), Failure> {
        let options = Self::table().find(options)?;
        let mut settings = options.settings();
        settings.client = change(settings.client.clone())?;
        Ok(())
    }

    #[cfg(feature = "tls")]
    pub(crate) fn pass_phrase(&self) -> Option<zklock_core::PassPhrase> {
        self.settings().pass_phrase.clone()
    }

    #[cfg(feature = "tls")]
    pub(crate) fn set_pass_phrase(&self, pass_phrase: zklock_core::PassPhrase) {
        self.settings().pass_phrase = Some(pass_phrase);
    }

    fn settings(&self) -> MutexGuard<'_, Settings> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes options with the defaults. Free them with zklock_options_free, which may be done as soon
/// as the client is made.
///
/// @param[out] options the options.
/// @return ZKLOCK_OK.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_options_new(options: *mut *mut zklock_options) -> zklock_status {
    call::status("zklock_options_new", || {
        out("options", options)?.set(Options::table().put(Options::new()?));
        Ok(())
    })
}

/// Frees options. Clients made with them are not touched.
///
/// @param options may be NULL; a handle that was freed before is ignored.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_options_free(options: *mut zklock_options) {
    call::free("zklock_options_free", || drop(Options::table().take(options)));
}

/// The session timeout to ask for, 100 ms at least; the servers may grant another. Default: 10 s.
///
/// After a crash, a holder's lock is free again when its session has timed out. A short timeout
/// frees it sooner, and loses holds on shorter network troubles.
///
/// @param options the options.
/// @param milliseconds 100 to 2147483647.
/// @return ZKLOCK_OK.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_options_set_session_timeout(
    options: *mut zklock_options,
    milliseconds: i64,
) -> zklock_status {
    call::status("zklock_options_set_session_timeout", || {
        let timeout = time("timeout", milliseconds)?;
        Options::change(options, |options| options.session_timeout(timeout))
    })
}

/// How long to try to reach a server before zklock_client_new, or a question such as
/// zklock_contenders, fails. Default: 10 s.
///
/// @param options the options.
/// @param milliseconds not negative.
/// @return ZKLOCK_OK.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_options_set_connect_timeout(
    options: *mut zklock_options,
    milliseconds: i64,
) -> zklock_status {
    call::status("zklock_options_set_connect_timeout", || {
        let timeout = time("timeout", milliseconds)?;
        Options::change(options, |options| Ok(options.connect_timeout(timeout)))
    })
}

/// How long the servers have to answer an acquire that tries once, and any other call whose timeout
/// is 0, before it is ZKLOCK_UNREACHABLE. Default: 1 s. If they answer, a try takes a few round
/// trips and never that long.
///
/// @param options the options.
/// @param milliseconds positive.
/// @return ZKLOCK_OK.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_options_set_try_timeout(
    options: *mut zklock_options,
    milliseconds: i64,
) -> zklock_status {
    call::status("zklock_options_set_try_timeout", || {
        let timeout = time("timeout", milliseconds)?;
        Options::change(options, |options| options.try_timeout(timeout))
    })
}

/// Put all paths below this node, which must exist unless it is created: see
/// zklock_options_set_create_chroot. It replaces a chroot among the hosts.
///
/// @param options the options.
/// @param path such as "/apps/billing".
/// @return ZKLOCK_OK.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_options_set_chroot(
    options: *mut zklock_options,
    path: *const c_char,
) -> zklock_status {
    call::status("zklock_options_set_chroot", || {
        let path = text("path", path)?;
        Options::change(options, |options| options.chroot(path))
    })
}

/// Whether to create the chroot, and the nodes above it, if it is missing when a session is opened.
/// They are persistent, and have the access list of what the client creates. Default: no.
///
/// @param options the options.
/// @param creates 0 for no, any other number for yes.
/// @return ZKLOCK_OK.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_options_set_create_chroot(
    options: *mut zklock_options,
    creates: c_int,
) -> zklock_status {
    call::status("zklock_options_set_create_chroot", || {
        Options::change(options, |options| Ok(options.create_chroot(creates != 0)))
    })
}

/// Whether the servers are asked to confirm what is held, every twelfth of the session timeout.
/// Default: yes.
///
/// A client that holds anything, be it one lock or a thousand, writes that often to the ensemble.
/// That is a load where thousands of clients hold something all day, such as the leaders of as many
/// elections. Without a heartbeat they cost nothing. But then nothing proves that a hold is still
/// there: half a session timeout after it was granted, zklock_hold_valid_for is zero for good. The
/// hold is at risk while the client is disconnected. It is lost when the servers say that its
/// session is over, or that its node is deleted. By then another may have held the lock for a
/// while. zklock_hold_confirm and guarded writes ask the servers, with a heartbeat or without.
///
/// @param options the options.
/// @param beats 0 for no, any other number for yes.
/// @return ZKLOCK_OK.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_options_set_heartbeat(
    options: *mut zklock_options,
    beats: c_int,
) -> zklock_status {
    call::status("zklock_options_set_heartbeat", || {
        Options::change(options, |options| Ok(options.heartbeat(beats != 0)))
    })
}

/// What others see as the contender's name: the data of its nodes. Default: "host/pid".
///
/// @param options the options.
/// @param identity 1024 bytes at most.
/// @return ZKLOCK_OK.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_options_set_identity(
    options: *mut zklock_options,
    identity: *const c_char,
) -> zklock_status {
    call::status("zklock_options_set_identity", || {
        let identity = text("identity", identity)?;
        Options::change(options, |options| options.identity(identity))
    })
}

/// The version of the servers, such as 3 and 4 for 3.4.14; of an ensemble that is being upgraded it
/// is the oldest. Servers before 3.5 have no sets of locks, no several permits at once, no read
/// side within the own write side, no double barriers and no guarded writes that create a node:
/// that is ZKLOCK_REFUSED there. Default: the first server of each session is asked, by the word
/// srvr; one that does not answer it, or speaks TLS, is taken for 3.5 or later.
///
/// @param options the options.
/// @param major 3 to 4294967295.
/// @param minor 4 to 4294967295 if the first is 3, otherwise any.
/// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if it is older than 3.4.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_options_set_server_version(
    options: *mut zklock_options,
    major: u32,
    minor: u32,
) -> zklock_status {
    call::status("zklock_options_set_server_version", || {
        Options::change(options, |options| options.server_version(major, minor))
    })
}
