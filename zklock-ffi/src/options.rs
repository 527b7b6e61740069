//! How a client connects.

use crate::convert::time;
use crate::export::export;
use crate::failure::Failure;
use crate::handle::{Object, handle};
use crate::raw::{out, text};
use crate::status::zklock_status;
use std::ffi::{c_char, c_int};
use std::sync::{Mutex, MutexGuard, PoisonError};
use zklock_core::face::hosts_from_env;
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
    /// For the next key.
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
    /// Makes the defaults. The hosts are set when a client is made.
    fn new() -> Result<Self, Failure> {
        let client = ClientOptions::new("localhost")?;
        Ok(Self(Mutex::new(Settings {
            client,
            #[cfg(feature = "tls")]
            pass_phrase: None,
        })))
    }

    /// Returns the options for a client. NULL means the defaults, and no hosts those of the environment.
    pub(crate) fn of(options: *const zklock_options, hosts: Option<&str>) -> Result<ClientOptions, Failure> {
        let hosts = &hosts.map_or_else(hosts_from_env, |hosts| Ok(hosts.to_owned()))?;
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

export! {
    /// Creates client options with the defaults. Free them with zklock_options_free, at any time after
    /// the client is made.
    ///
    /// @param[out] options the options.
    /// @return ZKLOCK_OK.
    pub fn zklock_options_new(options: *mut *mut zklock_options) -> zklock_status {
        out("options", options)?.set(Options::table().put(Options::new()?));
    }

    /// Frees client options. Clients that were made with them are not affected.
    ///
    /// @param options may be NULL. A handle that was already freed is ignored.
    pub fn zklock_options_free(options: *mut zklock_options) {
        drop(Options::table().take(options));
    }

    /// Sets the session timeout to ask the servers for. They may grant another. Default: 10 s.
    ///
    /// After a crash, the locks of a holder are free once its session has timed out. A shorter timeout
    /// frees them sooner, but also loses holds in shorter network outages.
    ///
    /// @param options the options.
    /// @param milliseconds 100 to 2147483647.
    /// @return ZKLOCK_OK.
    pub fn zklock_options_set_session_timeout(
        options: *mut zklock_options,
        milliseconds: i64,
    ) -> zklock_status {
        let timeout = time("timeout", milliseconds)?;
        Options::change(options, |options| options.session_timeout(timeout))?;
    }

    /// Sets how long zklock_client_new, and queries such as zklock_contenders, try to reach a server
    /// before they fail. Default: 10 s.
    ///
    /// @param options the options.
    /// @param milliseconds positive.
    /// @return ZKLOCK_OK.
    pub fn zklock_options_set_connect_timeout(
        options: *mut zklock_options,
        milliseconds: i64,
    ) -> zklock_status {
        let timeout = time("timeout", milliseconds)?;
        if timeout.is_zero() {
            let message = "a connect timeout of 0 ms leaves no time to connect: choose one such as 10000";
            return Err(Failure::argument(message));
        }
        Options::change(options, |options| Ok(options.connect_timeout(timeout)))?;
    }

    /// Sets how long a call with a timeout of 0, such as an acquire that tries once, waits for the
    /// servers' answer before it returns ZKLOCK_UNREACHABLE. Default: 1 s. If the servers answer, a try
    /// takes only a few round trips.
    ///
    /// @param options the options.
    /// @param milliseconds positive.
    /// @return ZKLOCK_OK.
    pub fn zklock_options_set_try_timeout(options: *mut zklock_options, milliseconds: i64) -> zklock_status {
        let timeout = time("timeout", milliseconds)?;
        Options::change(options, |options| options.try_timeout(timeout))?;
    }

    /// Puts all paths of the client below this node. The node must exist, unless it is created: see
    /// zklock_options_set_create_chroot. This replaces a chroot given with the hosts.
    ///
    /// @param options the options.
    /// @param path such as "/apps/billing".
    /// @return ZKLOCK_OK.
    pub fn zklock_options_set_chroot(options: *mut zklock_options, path: *const c_char) -> zklock_status {
        let path = text("path", path)?;
        Options::change(options, |options| options.chroot(path))?;
    }

    /// Sets whether the client creates the chroot, and the nodes above it, if they are missing when
    /// it opens a session. They are persistent nodes with the same access list as everything that the
    /// client creates. Default: no.
    ///
    /// @param options the options.
    /// @param creates 0 for no, any other number for yes.
    /// @return ZKLOCK_OK.
    pub fn zklock_options_set_create_chroot(options: *mut zklock_options, creates: c_int) -> zklock_status {
        Options::change(options, |options| Ok(options.create_chroot(creates != 0)))?;
    }

    /// Sets whether the client asks the servers to confirm its holds every twelfth of the session
    /// timeout. Default: yes.
    ///
    /// This heartbeat is one write to the ensemble, whether the client has one hold or a thousand. The
    /// writes add up if thousands of clients hold something all day, for example as leaders of
    /// thousands of elections.
    ///
    /// Without a heartbeat, such clients cost nothing, but nothing proves that a hold still exists.
    /// Half a session timeout after the grant, zklock_hold_valid_for drops to 0 for good. The hold is
    /// at risk while the client is disconnected. It is only reported as lost when the servers say that
    /// its session is over or its node is deleted. By then another client may have held the lock for a
    /// while. zklock_hold_confirm and guarded writes always ask the servers, with or without a
    /// heartbeat.
    ///
    /// @param options the options.
    /// @param beats 0 for no, any other number for yes.
    /// @return ZKLOCK_OK.
    pub fn zklock_options_set_heartbeat(options: *mut zklock_options, beats: c_int) -> zklock_status {
        Options::change(options, |options| Ok(options.heartbeat(beats != 0)))?;
    }

    /// Sets how soon a holder learns of a loss that no server reports. Default: a tenth of the session
    /// timeout. The maximum is a third of it. The longer this time is, the less often the client writes.
    ///
    /// A client that holds anything writes to the ensemble once in five sixths of this time: every
    /// twelfth of the session timeout by default, and 3.3 times less often with a third. The answers
    /// of zklock_hold_valid_for stay true. With more than a tenth, the client also watches the node
    /// of each hold, so it still learns of most losses in milliseconds. This time limits the other
    /// cases: a server lags behind, or no server answers.
    ///
    /// While replies take longer than a fortieth of the session timeout, the client writes more often
    /// again. A reply that takes longer than an eighth may put a hold at risk for a moment. So may a
    /// faster reply, if it is late soon after others were late. If the servers grant a shorter session
    /// timeout than you asked for, the limits are fractions of the granted one. Without a heartbeat,
    /// this option has no effect.
    ///
    /// @param options the options.
    /// @param milliseconds not negative. zklock_client_new refuses less than a tenth and more than a
    ///   third of the session timeout.
    /// @return ZKLOCK_OK.
    pub fn zklock_options_set_told_within(options: *mut zklock_options, milliseconds: i64) -> zklock_status {
        let told_within = time("told_within", milliseconds)?;
        Options::change(options, |options| Ok(options.told_within(told_within)))?;
    }

    /// Sets the name under which others see this client in a queue. It is the data of the nodes that
    /// the client creates. Default: "host/pid" of the process that connects.
    ///
    /// @param options the options.
    /// @param identity 1024 bytes at most.
    /// @return ZKLOCK_OK.
    pub fn zklock_options_set_identity(
        options: *mut zklock_options,
        identity: *const c_char,
    ) -> zklock_status {
        let identity = text("identity", identity)?;
        Options::change(options, |options| options.identity(identity))?;
    }

    /// Sets the version of the servers, such as 3 and 4 for 3.4.14. During an upgrade of the ensemble,
    /// give the oldest version.
    ///
    /// Servers before 3.5 do not support sets of locks, acquiring several permits at once, acquiring
    /// the read side while holding the write side, double barriers, or guarded writes that create a
    /// node. These give ZKLOCK_REFUSED there.
    ///
    /// By default, the client asks the first server of each session with the command srvr. A server
    /// that does not answer it, or that speaks TLS, is taken for 3.5 or later.
    ///
    /// @param options the options.
    /// @param major 3 to 4294967295.
    /// @param minor 4 to 4294967295 if major is 3, otherwise any number.
    /// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the version is older than 3.4.
    pub fn zklock_options_set_server_version(
        options: *mut zklock_options,
        major: u32,
        minor: u32,
    ) -> zklock_status {
        Options::change(options, |options| options.server_version(major, minor))?;
    }
}
