//! The options of a client, as a builder, so that new options break no program.

use crate::base::error::{Error, ErrorKind};
use crate::base::message::{Given, Message};
use crate::connect::access::Access;
use crate::connect::credentials::Credentials;
use crate::connect::level::{self, ServerLevel};
use crate::connect::named::{self, Named, Value, duration, invalid, named, yes_or_no};
use crate::connect::path::{Hosts, check_path};
#[cfg(feature = "tls")]
use crate::connect::tls::{Parts, Tls};
use crate::machine::times;
use std::path::Path;
use std::time::Duration;

/// The protocol has 32 bits for milliseconds.
const LONGEST_SESSION_TIMEOUT: Duration = Duration::from_millis(i32::MAX as u64);
/// With less, the heartbeat would come every few milliseconds.
pub(crate) const SHORTEST_SESSION_TIMEOUT: Duration = Duration::from_millis(100);
const LONGEST_IDENTITY: usize = 1024;
/// The key after which a message has options.
const HOSTS: &str = "hosts";
const CONNECT_TIMEOUT: &str = "connect-timeout";
const SERVER_VERSION: &str = "server-version";

/// How a [`Client`](crate::Client) connects.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use zklock::ClientOptions;
///
/// let options = ClientOptions::new("zk1:2181,zk2:2181,zk3:2181")
///     .session_timeout(Duration::from_secs(20))
///     .connect_timeout(Duration::from_secs(3))
///     .chroot("/apps/billing")
///     .identity("billing/worker-7");
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct ClientOptions {
    /// As they were given, or why there are none.
    pub(crate) given_hosts: Result<String, Error>,
    /// In place of that of the hosts.
    chroot: Option<String>,
    /// What both of them say, once they are [checked](Self::checked).
    pub(crate) hosts: Hosts,
    pub(crate) session_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) try_timeout: Duration,
    /// `None` means that it is made when the client connects, by the process that connects.
    pub(crate) identity: Option<String>,
    pub(crate) credentials: Vec<Credentials>,
    pub(crate) access: Access,
    pub(crate) create_chroot: bool,
    pub(crate) heartbeat: bool,
    /// `None` means as soon as can be.
    pub(crate) loss_timeout: Option<Duration>,
    /// `None` means that the servers are asked.
    server_version: Option<(u32, u32)>,
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<Tls>,
    /// What was set by name, until all of it is known.
    #[cfg(feature = "tls")]
    parts: Parts,
}

/// The options of a client, by name.
#[rustfmt::skip]
const NAMED: &[Named<ClientOptions>] = &[
    named("session-timeout", Value::Duration, "10s",
        "The session timeout to ask for, 100 ms to 24 days: after a crash of its holder, a lock is free when this time is over",
        |options, text| Ok(options.session_timeout(duration(text)?))),
    named(CONNECT_TIMEOUT, Value::Duration, "10s", "How long connecting, and queries such as those for contenders, try to reach a server",
        |options, text| Ok(options.connect_timeout(duration(text)?))),
    named("try-timeout", Value::Duration, "1s", "How long a call that tries once waits for the servers' answer",
        |options, text| Ok(options.try_timeout(duration(text)?))),
    named("loss-timeout", Value::Duration, "a tenth of the session timeout",
        "How soon to learn of a loss that no server reports: with more, the client writes less often. At most a third of the session \
         timeout, and a fifth for the command",
        |options, text| Ok(options.loss_timeout(duration(text)?))),
    named("heartbeat", Value::YesNo, "yes",
        "Whether the servers are asked to confirm what is held. Otherwise nothing proves a hold from half a session timeout after its \
         grant on, and its loss may be reported late",
        |options, text| Ok(options.heartbeat(yes_or_no(text)?))),
    named("chroot", Value::Text("PATH"), "", "The node below which all paths are, in place of one that follows the hosts",
        |options, text| Ok(options.chroot(text))),
    named("create-chroot", Value::YesNo, "no", "Whether the chroot, and the nodes above it, are created if they are missing",
        |options, text| Ok(options.create_chroot(yes_or_no(text)?))),
    named("identity", Value::Text("NAME"), "host/pid", "The name under which others see the holder, up to 1024 bytes",
        |options, text| Ok(options.identity(text))),
    named(SERVER_VERSION, Value::Text("VERSION"), "the servers are asked",
        "The version of the servers, such as 3.4; during an upgrade, the oldest",
        |options, text| {
            let unknown = || invalid(&format!("{text:?} is not a version: write it as 3.4"));
            let (major, minor) = level::parse(text).ok_or_else(unknown)?;
            Ok(options.server_version(major, minor))
        }),
    named("auth", Value::Secret("USER:PASSWORD"), "", "A user to log in as, by the scheme digest. Each further one is added",
        |options, text| options.take("auth", &Given::Text(text))),
    named("auth-file", Value::File, "", "A file with USER:PASSWORD on each line, for the scheme digest, which is read again for each connection",
        |options, text| options.take("auth", &Given::File(Path::new(text)))),
    named("auth-env", Value::Text("VARIABLE"), "", "The environment variable with USER:PASSWORD, for the scheme digest",
        |options, text| options.take("auth", &Given::Variable(text))),
    named("sasl", Value::Secret("USER:PASSWORD"), "", "The user to log in as by SASL, with the mechanism DIGEST-MD5: one at most",
        |options, text| options.take("sasl", &Given::Text(text))),
    named("sasl-file", Value::File, "", "A file with USER:PASSWORD, for SASL, which is read again for each connection",
        |options, text| options.take("sasl", &Given::File(Path::new(text)))),
    named("sasl-env", Value::Text("VARIABLE"), "", "The environment variable with USER:PASSWORD, for SASL",
        |options, text| options.take("sasl", &Given::Variable(text))),
    named("kerberos", Value::Text("SERVICE[/HOST]"), "",
        "Log in with the Kerberos ticket of this process, to servers of this principal, such as zookeeper. The host is otherwise the one that is \
         connected to",
        |options, text| options.take("kerberos", &Given::Text(text))),
    named("access", Value::Text("ACCESS"), "open",
        "Who may use the nodes that are created: open, creator-all, read-open, or a list such as sasl:billing:cdrwa,world:anyone:r",
        |options, text| Ok(options.access(text.parse()?))),
    named("tls", Value::YesNo, "no", "Connect with TLS, and trust the authorities that the system trusts",
        |options, text| {
            let trusted = if yes_or_no(text)? { "yes" } else { "" };
            options.take("system", &Given::Text(trusted))
        }),
    named("ca", Value::File, "", "Connect with TLS, and trust the authorities in this PEM file. All files of TLS are read again for each connection",
        |options, text| options.take("ca", &Given::File(Path::new(text)))),
    named("cert", Value::File, "", "The client's certificate, a PEM file", |options, text| options.take("cert", &Given::File(Path::new(text)))),
    named("key", Value::File, "", "The certificate's key, a PEM file", |options, text| options.take("key", &Given::File(Path::new(text)))),
    named("pass-phrase", Value::Secret("TEXT"), "", "The pass phrase of the key", |options, text| options.take("pass-phrase", &Given::Text(text))),
    named("pass-phrase-file", Value::File, "", "A file with the pass phrase of the key on its first line",
        |options, text| options.take("pass-phrase", &Given::File(Path::new(text)))),
    named("pass-phrase-env", Value::Text("VARIABLE"), "", "The environment variable with the pass phrase of the key",
        |options, text| options.take("pass-phrase", &Given::Variable(text))),
];

impl ClientOptions {
    /// The session timeout that is asked for by default.
    ///
    /// # Examples
    ///
    /// ```
    /// use zklock::ClientOptions;
    ///
    /// let twice_as_long = ClientOptions::DEFAULT_SESSION_TIMEOUT * 2;
    /// let options = ClientOptions::new("zk1:2181").session_timeout(twice_as_long);
    /// ```
    pub const DEFAULT_SESSION_TIMEOUT: Duration = Duration::from_secs(10);

    /// Makes the default options, for the ensemble at `hosts`: `host:port,host:port`, optionally followed by a `/chroot`.
    ///
    /// # Examples
    ///
    /// ```
    /// use zklock::ClientOptions;
    ///
    /// assert!(ClientOptions::new("zk1:2181,zk2:2181,[2001:db8::7]:2181/apps/billing").check().is_ok());
    /// assert!(ClientOptions::new("http://zk1:2181").check().is_err());
    /// ```
    pub fn new(hosts: &str) -> Self {
        Self::at(Ok(hosts.to_owned()))
    }

    fn at(given_hosts: Result<String, Error>) -> Self {
        Self {
            given_hosts,
            chroot: None,
            hosts: Hosts::default(),
            session_timeout: Self::DEFAULT_SESSION_TIMEOUT,
            connect_timeout: Duration::from_secs(10),
            try_timeout: Duration::from_secs(1),
            identity: None,
            credentials: Vec::new(),
            access: Access::default(),
            create_chroot: false,
            heartbeat: true,
            loss_timeout: None,
            server_version: None,
            #[cfg(feature = "tls")]
            tls: None,
            #[cfg(feature = "tls")]
            parts: Parts::default(),
        }
    }

    /// Makes the default options, for the ensemble that the environment variable `ZKLOCK_HOSTS` names, as for the command
    /// `zklock`. It is read now. [`check`](Self::check) and [`connect`](crate::Client::connect) fail if it is not set.
    ///
    /// # Examples
    ///
    /// ```
    /// # use zklock::ClientOptions;
    /// let options = ClientOptions::from_env().chroot("/apps/billing");
    /// ```
    pub fn from_env() -> Self {
        Self::at(hosts_from_env())
    }

    /// All options that have names, for [`set`](Self::set).
    #[doc(hidden)]
    pub const NAMED: &'static [Named<Self>] = NAMED;

    /// Sets an option by its name, as the command and its configuration file name it, and C and C++. A duration is written as
    /// `10s`, a choice as `yes` or `no`. For `tls`, `ca`, `cert`, `key` and `pass-phrase`, the files are read when the client
    /// is made.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if there is no such option, or it cannot have this value. The message names the nearest
    /// option, or the values that are possible. It quotes no password.
    ///
    /// # Examples
    ///
    /// ```
    /// use zklock::ClientOptions;
    ///
    /// let options = ClientOptions::new("zk1:2181").set("session-timeout", "20s")?.set("create-chroot", "yes")?;
    /// let error = options.set("sessiontimeout", "20s").unwrap_err();
    /// assert!(error.to_string().ends_with("did you mean session-timeout?"));
    /// # Ok::<(), zklock::Error>(())
    /// ```
    pub fn set(self, name: &str, value: &str) -> Result<Self, Error> {
        let options = named::set(NAMED, self, name, value)?;
        options.check_each().map_err(|error| error.within(name))?;
        Ok(options)
    }

    /// Replaces the hosts and keeps the rest. A [chroot](Self::chroot) that was set stays.
    ///
    /// # Examples
    ///
    /// ```
    /// use zklock::ClientOptions;
    ///
    /// // What all environments share, and the hosts of one of them.
    /// let common = ClientOptions::new("localhost:2181").chroot("/apps/billing");
    /// let production = common.hosts("zk1:2181,zk2:2181,zk3:2181");
    /// ```
    pub fn hosts(mut self, hosts: &str) -> Self {
        self.given_hosts = Ok(hosts.to_owned());
        self
    }

    /// Sets the session timeout to ask for. The servers may grant another. Default: 10 s.
    ///
    /// After a crash, a holder's lock is free once its session has timed out. A shorter timeout frees it sooner, but
    /// also loses holds in shorter network outages.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use zklock::ClientOptions;
    ///
    /// // The locks of a process that crashes are free after 4 s. An outage of 4 s loses them, too.
    /// let options = ClientOptions::new("zk1:2181").session_timeout(Duration::from_secs(4));
    /// ```
    pub fn session_timeout(mut self, timeout: Duration) -> Self {
        self.session_timeout = timeout;
        self
    }

    /// Sets how long [`connect`](crate::Client::connect), and queries such as
    /// [`contenders`](crate::Lock::contenders), try to reach a server before they fail. Default: 10 s.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use zklock::ClientOptions;
    ///
    /// // A command that somebody waits for should fail soon.
    /// let options = ClientOptions::new("zk1:2181,zk2:2181").connect_timeout(Duration::from_secs(2));
    /// ```
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets how long the servers have to answer a [`try_acquire`](crate::Lock::try_acquire), or any call with a timeout
    /// of zero, before it fails. Default: 1 s.
    ///
    /// While the servers answer, a try takes a few round trips, and never this long. This time does not
    /// limit connecting: see [`connect_timeout`](Self::connect_timeout).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use zklock::ClientOptions;
    ///
    /// let options = ClientOptions::new("zk1:2181").try_timeout(Duration::from_millis(200));
    /// ```
    pub fn try_timeout(mut self, timeout: Duration) -> Self {
        self.try_timeout = timeout;
        self
    }

    /// Puts all paths below this node, which must exist unless the client [creates](Self::create_chroot) it. This
    /// replaces a chroot given with the hosts.
    ///
    /// # Examples
    ///
    /// ```
    /// use zklock::ClientOptions;
    ///
    /// // The mutex "/locks/report" is at /apps/billing/locks/report.
    /// let options = ClientOptions::new("zk1:2181,zk2:2181").chroot("/apps/billing");
    /// ```
    pub fn chroot(mut self, path: &str) -> Self {
        self.chroot = Some(path.to_owned());
        self
    }

    /// Sets the name that others see: the data of the client's nodes. Default: `host/pid`, of the process
    /// that connects.
    ///
    /// # Examples
    ///
    /// ```
    /// use zklock::ClientOptions;
    ///
    /// // What a timeout and `zklock ls` say about who holds a lock.
    /// let name = format!("billing/worker-7 ({})", std::process::id());
    /// let options = ClientOptions::new("zk1:2181").identity(&name);
    /// ```
    pub fn identity(mut self, identity: &str) -> Self {
        self.identity = Some(identity.to_owned());
        self
    }

    /// Sets the version of the servers, such as 3 and 4 for 3.4.14. During an upgrade of the ensemble, give the oldest
    /// version. It only matters whether they are older than 3.5, which has every feature. Default: the client asks the
    /// first server of each session, with the command `srvr`. If a server may not answer it (see
    /// `4lw.commands.whitelist`), or uses TLS, the client assumes 3.5 or later.
    ///
    /// # Examples
    ///
    /// ```
    /// # use zklock::ClientOptions;
    /// let options = ClientOptions::new("zk1:2181").server_version(3, 4);
    /// ```
    pub fn server_version(mut self, major: u32, minor: u32) -> Self {
        self.server_version = Some((major, minor));
        self
    }

    pub(crate) fn server_level(&self) -> Option<ServerLevel> {
        self.server_version.and_then(|(major, minor)| ServerLevel::of(major, minor))
    }

    /// Connects with TLS. The ports of all hosts must expect it. Default: no TLS.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock::ClientOptions;
    /// use zklock::further::Tls;
    ///
    /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let tls = Tls::new(&std::fs::read_to_string("ca.pem")?)?;
    /// let options = ClientOptions::new("zk1:2281,zk2:2281,zk3:2281").tls(tls);
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Logs in with these credentials, in addition to those given before. The client sends them on every connection.
    /// Only one of all its credentials can be for [SASL](Credentials::sasl).
    ///
    /// # Examples
    ///
    /// ```
    /// # use zklock::ClientOptions;
    /// # use zklock::further::Credentials;
    /// let options = ClientOptions::new("zk1:2181").credentials(Credentials::digest("billing", "secret")?);
    /// # Ok::<(), zklock::Error>(())
    /// ```
    pub fn credentials(mut self, credentials: Credentials) -> Self {
        self.credentials.push(credentials);
        self
    }

    /// Sets who may use the nodes that the client creates. Default: everyone.
    ///
    /// # Examples
    ///
    /// ```
    /// use zklock::{ClientOptions, ErrorKind};
    /// use zklock::further::{Access, Credentials};
    ///
    /// let options = ClientOptions::new("zk1:2181").access(Access::CreatorAll);
    /// assert_eq!(options.check().unwrap_err().kind(), ErrorKind::InvalidInput);
    /// assert!(options.credentials(Credentials::digest("billing", "secret")?).check().is_ok());
    /// # Ok::<(), zklock::Error>(())
    /// ```
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Sets whether the client creates the [chroot](Self::chroot), and the nodes above it, if they are missing when it
    /// opens a session. They are persistent nodes with the same [access](Self::access) list as everything that the client
    /// creates. Default: no.
    ///
    /// # Examples
    ///
    /// ```
    /// # use zklock::ClientOptions;
    /// let options = ClientOptions::new("zk1:2181/apps/billing").create_chroot(true);
    /// ```
    pub fn create_chroot(mut self, creates: bool) -> Self {
        self.create_chroot = creates;
        self
    }

    /// Sets whether the client asks the servers to confirm what it holds, every twelfth of the session timeout. Default:
    /// yes.
    ///
    /// This heartbeat is one write to the ensemble, whether the client holds one lock or a thousand. The writes add up if
    /// thousands of clients hold something all day, for example as leaders of thousands of elections. Without a
    /// heartbeat, such clients cost nothing.
    ///
    /// But without a heartbeat, nothing proves that a hold still exists. Half a session timeout after the grant,
    /// [`valid_for`](crate::Hold::valid_for) drops to zero for good. The hold is [at risk](crate::HoldState::AtRisk)
    /// while the client is disconnected. It is only reported as lost when the servers say that its session is over or
    /// its node is deleted. By then another client may have held the lock for a while. [`confirm`](crate::Hold::confirm)
    /// and [guarded writes](crate::Hold::guarded) always ask the servers, with or without a heartbeat.
    ///
    /// # Examples
    ///
    /// ```
    /// # use zklock::ClientOptions;
    /// let options = ClientOptions::new("zk1:2181").heartbeat(false);
    /// ```
    pub fn heartbeat(mut self, beats: bool) -> Self {
        self.heartbeat = beats;
        self
    }

    /// Sets how soon a holder learns of a loss that no server reports. Default: a tenth of the session timeout. The maximum
    /// is a third of it. The longer this time is, the less often the client writes.
    ///
    /// A client that holds anything writes to the ensemble once in five sixths of this time: every twelfth of the session
    /// timeout by default, and 3.3 times less often with a third. The answers of [`valid_for`](crate::Hold::valid_for) stay
    /// true, and are never less than a tenth of the session timeout while the servers answer as usual. With more than a tenth,
    /// the client also watches the node of each hold, so it still learns of most losses in milliseconds. This time limits the
    /// other cases: a server lags behind, or no server answers.
    ///
    /// While replies take longer than a fortieth of the session timeout, the client writes more often again. A reply that
    /// takes longer than an eighth may put a hold [at risk](crate::HoldState::AtRisk) for a moment. So may a faster reply, if
    /// it is late soon after others were late.
    ///
    /// If the servers grant a shorter session timeout than you asked for, the limits are fractions of the granted
    /// one. Without a [heartbeat](Self::heartbeat), this option has no effect.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use zklock::ClientOptions;
    ///
    /// // Thousands of these clients lead something all day. Each writes every 5 s, not every 1.7 s.
    /// let options = ClientOptions::new("zk1:2181")
    ///     .session_timeout(Duration::from_secs(20))
    ///     .loss_timeout(Duration::from_secs(6));
    /// assert!(options.check().is_ok());
    /// assert!(options.loss_timeout(Duration::from_secs(60)).check().is_err());
    /// ```
    pub fn loss_timeout(mut self, time: Duration) -> Self {
        self.loss_timeout = Some(time);
        self
    }

    /// Checks whether each option is possible, and they can be used together. [`Client::connect`](crate::Client::connect) checks
    /// that too.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if
    ///
    /// * there are no hosts, or they cannot be parsed;
    /// * the access list gives rights to the creator, but there are neither [credentials](Self::credentials) nor a
    ///   client certificate;
    /// * several credentials are for SASL;
    /// * TLS is used with a host that no certificate can name;
    /// * the [session timeout](Self::session_timeout) is less than 100 ms or more than 24 days, or the
    ///   [connect](Self::connect_timeout) or [try](Self::try_timeout) timeout is zero;
    /// * the [chroot](Self::chroot) is no path, the [identity](Self::identity) is longer than 1 KiB, or the [servers'
    ///   version](Self::server_version) is older than 3.4;
    /// * [`loss_timeout`](Self::loss_timeout) is not between a tenth and a third of the session timeout.
    ///
    /// # Examples
    ///
    /// ```
    /// # use zklock::ClientOptions;
    /// assert!(ClientOptions::new("zk1:2181").check().is_ok());
    /// ```
    pub fn check(&self) -> Result<(), Error> {
        self.clone().checked().map(drop)
    }

    /// Puts together what belongs together, and [checks](Self::check) everything.
    #[doc(hidden)]
    pub fn checked(self) -> Result<Self, Error> {
        self.check_each()?;
        let mut hosts = Hosts::parse(self.given_hosts.as_ref().map_err(Error::clone)?)?;
        if let Some(chroot) = &self.chroot {
            chroot.trim_end_matches('/').clone_into(&mut hosts.chroot);
        }
        let options = Self { hosts, ..self };
        #[cfg(feature = "tls")]
        let options = match options.parts.clone().tls()? {
            Some(tls) => Self { tls: Some(tls), parts: Parts::default(), ..options },
            None => options,
        };
        if options.access.needs_creator() && !options.is_somebody() {
            // A list is not shown, because it may contain hashes of passwords.
            let access = match &options.access {
                Access::List(_) => "list".to_owned(),
                named => named.to_string(),
            };
            let message = format!(
                "the access {access}: without credentials, no node has a creator: log in, or leave it open"
            );
            return Err(invalid(&message));
        }
        if options.credentials.iter().filter(|credentials| credentials.is_sasl()).count() > 1 {
            let message = "several credentials are for SASL, but a client can log in as only one user by \
                           SASL: keep one of them";
            return Err(invalid(message));
        }
        let (soonest, latest) =
            (times::HEARTBEAT.of(options.session_timeout), times::RAREST.of(options.session_timeout));
        if let Some(told) = options.loss_timeout.filter(|told| !(soonest..=latest).contains(told)) {
            let shown = Duration::from_millis(latest.as_millis() as u64);
            let message = format!(
                "a loss timeout of {told:?} is not possible: with a session timeout of {:?} choose {soonest:?} to {shown:?}, \
                 or another session timeout",
                options.session_timeout
            );
            return Err(invalid(&message));
        }
        #[cfg(feature = "tls")]
        if let Some(tls) = &options.tls {
            tls.check_names(&options.hosts)?;
        }
        Ok(options)
    }

    /// Checks each option by itself.
    fn check_each(&self) -> Result<(), Error> {
        let timeout = self.session_timeout;
        if !(SHORTEST_SESSION_TIMEOUT..=LONGEST_SESSION_TIMEOUT).contains(&timeout) {
            let message =
                format!("a session timeout of {timeout:?} is not possible: choose 100 ms to 24 days");
            return Err(invalid(&message));
        }
        if self.connect_timeout.is_zero() {
            return Err(invalid(
                "a connect timeout of zero leaves no time to connect: choose one such as 10 s",
            ));
        }
        if self.try_timeout.is_zero() {
            let message = "a try timeout of zero leaves the servers no time to answer: choose one that a few round \
                           trips fit in, such as 1 s";
            return Err(invalid(message));
        }
        if let Some(chroot) = &self.chroot {
            check_path(chroot).map_err(|error| error.within("the chroot"))?;
        }
        let length = self.identity.as_ref().map_or(0, String::len);
        if length > LONGEST_IDENTITY {
            let message = format!("the identity has {length} bytes: at most {LONGEST_IDENTITY} are allowed");
            return Err(invalid(&message));
        }
        match self.server_version.filter(|_| self.server_level().is_none()) {
            Some((major, minor)) => Err(invalid(&format!(
                "servers of version {major}.{minor} are too old: zklock needs 3.4 or later"
            ))),
            None => Ok(()),
        }
    }

    /// Takes a login, or a part of TLS. It is hidden, because only Python has files whose names are no text.
    #[doc(hidden)]
    pub fn take(mut self, key: &str, given: &Given<'_>) -> Result<Self, Error> {
        #[cfg(feature = "tls")]
        if self.parts.take(key, given)? {
            return Ok(self);
        }
        #[cfg(not(feature = "tls"))]
        if ["system", "ca", "cert", "key", "pass-phrase"].contains(&key) {
            let message = "zklock was built without TLS: build it with the feature tls";
            return Err(Error::new(ErrorKind::Refused, message));
        }
        self.credentials.push(Credentials::take(key, given)?);
        Ok(self)
    }

    // How a client connects, for a guardian that has to reach the same servers as the same user.

    /// Adds everything that another process needs to reach the servers, passwords included. The options have been
    /// [put together](Self::checked). It is hidden, because only the
    /// guardian of the same version understands it.
    #[doc(hidden)]
    pub fn pass_on(&self, message: Message) -> Message {
        let hosts = self.hosts.connect_string();
        let mut message =
            message.and(HOSTS, &hosts).and(CONNECT_TIMEOUT, &format!("{:?}", self.connect_timeout));
        if let Some((major, minor)) = self.server_version {
            message = message.and(SERVER_VERSION, &format!("{major}.{minor}"));
        }
        message = self.credentials.iter().fold(message, |message, credentials| credentials.pass_on(message));
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            message = tls.pass_on(message);
        }
        message
    }

    /// Makes the options that [`pass_on`](Self::pass_on) has added. Files are read, and what is in them is checked.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if there are none, or a file cannot be used; [`ErrorKind::Refused`] if this program was
    /// built without a feature that they need.
    #[doc(hidden)]
    pub fn passed_on(message: &Message) -> Result<Self, Error> {
        let hosts = message.need::<String>(HOSTS)?;
        let (servers, chroot) = hosts.split_at(hosts.find('/').unwrap_or(hosts.len()));
        let mut options = Self::new(servers);
        if !chroot.is_empty() {
            options = options.chroot(chroot);
        }
        for passed_on in message.after(HOSTS) {
            options = match passed_on? {
                (key @ (CONNECT_TIMEOUT | SERVER_VERSION), Given::Text(text)) => options.set(key, text)?,
                (key, given) => options.take(key, &given)?,
            };
        }
        options.checked()
    }

    /// Whether TLS is used, once the options are [checked](Self::checked). It is hidden, because only the command asks.
    #[doc(hidden)]
    pub fn is_encrypted(&self) -> bool {
        #[cfg(feature = "tls")]
        return self.tls.is_some();
        #[cfg(not(feature = "tls"))]
        false
    }

    /// Whether the servers can know who the client is.
    fn is_somebody(&self) -> bool {
        #[cfg(feature = "tls")]
        let has_certificate = self.tls.as_ref().is_some_and(Tls::has_identity);
        #[cfg(not(feature = "tls"))]
        let has_certificate = false;
        has_certificate || !self.credentials.is_empty()
    }
}

/// Returns the hosts that the environment variable `ZKLOCK_HOSTS` names.
///
/// # Errors
///
/// [`ErrorKind::InvalidInput`] if it is not set, or empty.
///
/// # Examples
///
/// ```
/// let named = std::env::var("ZKLOCK_HOSTS").ok().filter(|hosts| !hosts.is_empty());
/// assert_eq!(zklock::face::hosts_from_env().ok(), named);
/// ```
pub fn hosts_from_env() -> Result<String, Error> {
    std::env::var("ZKLOCK_HOSTS").ok().filter(|hosts| !hosts.is_empty()).ok_or_else(|| {
        let message = "no hosts are given, and the variable ZKLOCK_HOSTS names none: set it, such as \
                       ZKLOCK_HOSTS=zk1:2181,zk2:2181";
        Error::new(ErrorKind::InvalidInput, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_cannot_be_had_is_refused() {
        let options = || ClientOptions::new("zk:2181");
        let days = Duration::from_secs(86_400 * 25);
        for wrong in [
            options().session_timeout(Duration::from_millis(99)),
            options().session_timeout(days),
            options().chroot("apps"),
            options().try_timeout(Duration::ZERO),
            options().server_version(2, 9),
            options().server_version(3, 3),
            options().identity(&"x".repeat(1025)),
            options().connect_timeout(Duration::ZERO),
            options().hosts("zk:2181,"),
        ] {
            assert_eq!(wrong.check().unwrap_err().kind(), ErrorKind::InvalidInput, "{wrong:?}");
        }
        for millis in [0, 999, 3_334, 60_000] {
            let error = options().loss_timeout(Duration::from_millis(millis)).check().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error}");
        }
        assert!(options().loss_timeout(Duration::from_secs(1)).check().is_ok());
        let connect_string = |options: ClientOptions| options.checked().unwrap().hosts.connect_string();
        assert_eq!(connect_string(options().chroot("/")), "zk:2181");
        let sasl = || Credentials::sasl("user", "secret").unwrap();
        let twice = options().credentials(sasl()).credentials(sasl());
        assert_eq!(twice.check().unwrap_err().kind(), ErrorKind::InvalidInput);
        let hash = "digest:ann:kYo25pPOT0HKGgdUmL8MxA259qk=:cdrwa,auth::r".parse().unwrap();
        let error = options().access(hash).check().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(!error.to_string().contains("kYo25pPOT0"), "{error}");
        let chrooted = options().chroot("/a");
        assert_eq!(connect_string(chrooted.clone()), "zk:2181/a");
        assert_eq!(connect_string(chrooted.hosts("other/b")), "other:2181/a");
        assert_eq!(connect_string(options().hosts("other/b")), "other:2181/b");
    }

    #[test]
    fn every_name_sets_its_option_and_a_wrong_value_is_told_what_is_right() {
        let options = || ClientOptions::new("zk:2181");
        let set = |name: &str, value: &str| {
            let set = options().set(name, value);
            set.map(|options| format!("{options:?}")).map_err(|error| error.to_string())
        };
        for (name, good, wrong, right) in [
            ("session-timeout", "20s", "20 years", "write it as 90, 1.5s"),
            ("session-timeout", "1d", "1ms", "choose 100 ms to 24 days"),
            ("connect-timeout", "0.5", "0", "choose one such as 10 s"),
            ("try-timeout", "2", "0s", "such as 1 s"),
            ("loss-timeout", "2s", "-1", "is not a duration"),
            ("heartbeat", "no", "never", "neither yes nor no"),
            ("chroot", "/apps", "apps", "a path begins with /"),
            ("create-chroot", "1", "", "neither yes nor no"),
            ("identity", "db7", &"x".repeat(1025), "at most 1024"),
            ("server-version", "3.4.14", "3", "write it as 3.4"),
            ("server-version", "3.5", "3.3", "needs 3.4 or later"),
            ("auth", "ann:secret", "secret", "user:password"),
            ("sasl", "ann:secret", "secret", "user:password"),
            ("access", "read-open", "secret", "\"creator-all\" or"),
        ] {
            let refused = set(name, wrong).unwrap_err();
            assert!(refused.starts_with(&format!("{name}: ")) && refused.contains(right), "{refused}");
            assert!(!refused.contains("secret"), "{refused}");
            assert_ne!(set(name, good).unwrap(), format!("{:?}", options()), "{name}");
        }
        let certificate = options().set("cert", "client.pem").unwrap();
        assert!(certificate.check().is_err());
        assert!(set("session", "1s").unwrap_err().contains("there are session-timeout, connect-timeout"));
    }

    fn passed_on(options: &ClientOptions) -> Message {
        options.clone().checked().unwrap().pass_on(Message::new("options"))
    }

    fn again(options: &ClientOptions) -> ClientOptions {
        ClientOptions::passed_on(&passed_on(options)).unwrap()
    }

    #[test]
    fn another_process_can_connect_with_the_same_options() {
        let file = std::env::temp_dir().join(format!("zklock-passed-on-{}", std::process::id()));
        fs::write(&file, "bob:secret\n").unwrap();
        let options = ClientOptions::new("zk1:2182,[::1]:99/apps").server_version(3, 4);
        let options = options
            .credentials(Credentials::digest("ann", "with:colon").unwrap())
            .credentials(Credentials::from_file(&file).unwrap())
            .credentials(Credentials::sasl_from_file(&file).unwrap());
        let other = again(&options);
        assert_eq!(format!("{:?}", other.credentials), format!("{:?}", options.credentials));
        assert_eq!(other.hosts.connect_string(), "zk1:2182,[::1]:99/apps");
        assert_eq!(other.server_version, options.server_version);
        // Only the message shows the passwords.
        assert_eq!(passed_on(&other), passed_on(&options));
        let chrooted = options.clone().chroot("/with,comma");
        assert_eq!(again(&chrooted).hosts.chroot, "/with,comma");
        let message = passed_on(&options);
        fs::remove_file(&file).unwrap();
        let error = ClientOptions::passed_on(&message).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains(file.to_str().unwrap()), "{error}");
    }

    #[test]
    fn what_is_of_another_version_is_refused() {
        let good = passed_on(&ClientOptions::new("zk1"));
        for strange in
            [Message::new("options"), good.clone().and("color", "red"), good.bytes("auth", b"\xff:secret")]
        {
            let error = ClientOptions::passed_on(&strange).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{strange:?}");
            assert!(error.to_string().contains("the same version"), "{error}");
        }
    }
}
