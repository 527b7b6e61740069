//! Options, as builders, so that new ones break nobody.

mod passed_on;

use crate::access::Access;
use crate::credentials::Credentials;
use crate::error::{Error, ErrorKind};
use crate::level::ServerLevel;
use crate::path::{Hosts, check_path};
use crate::platform;
#[cfg(feature = "tls")]
use crate::tls::Tls;
use std::time::Duration;

const SESSION_TIMEOUT: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const TRY_TIMEOUT: Duration = Duration::from_secs(1);
/// The protocol counts milliseconds in 32 bits.
const LONGEST_SESSION_TIMEOUT: Duration = Duration::from_millis(i32::MAX as u64);
/// Below this a heartbeat is a matter of milliseconds.
pub(crate) const SHORTEST_SESSION_TIMEOUT: Duration = Duration::from_millis(100);
const LONGEST_IDENTITY: usize = 1024;

/// How a [`Client`](crate::Client) connects.
///
/// ```
/// use std::time::Duration;
/// use zklock_core::ClientOptions;
///
/// let options = ClientOptions::new("zk1:2181,zk2:2181,zk3:2181")?
///     .session_timeout(Duration::from_secs(20))?
///     .connect_timeout(Duration::from_secs(3))
///     .chroot("/apps/billing")?
///     .identity("billing/worker-7")?;
/// # Ok::<(), zklock_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ClientOptions {
    pub(crate) hosts: Hosts,
    /// Set apart from the hosts.
    chroot: Option<String>,
    pub(crate) session_timeout: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) try_timeout: Duration,
    pub(crate) identity: String,
    pub(crate) credentials: Vec<Credentials>,
    pub(crate) access: Access,
    pub(crate) create_chroot: bool,
    pub(crate) heartbeat: bool,
    /// `None`: the servers are asked.
    pub(crate) server_level: Option<ServerLevel>,
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<Tls>,
}

impl ClientOptions {
    /// The defaults, for the ensemble at `hosts`: `host:port,host:port` and perhaps a `/chroot`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if `hosts` cannot be read.
    pub fn new(hosts: &str) -> Result<Self, Error> {
        Ok(Self {
            hosts: Hosts::parse(hosts)?,
            chroot: None,
            session_timeout: SESSION_TIMEOUT,
            connect_timeout: CONNECT_TIMEOUT,
            try_timeout: TRY_TIMEOUT,
            identity: platform::identity(),
            credentials: Vec::new(),
            access: Access::default(),
            create_chroot: false,
            heartbeat: true,
            server_level: None,
            #[cfg(feature = "tls")]
            tls: None,
        })
    }

    /// Other hosts, and the rest as it is: a [chroot](Self::chroot) that was set stays.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if `hosts` cannot be read.
    pub fn hosts(mut self, hosts: &str) -> Result<Self, Error> {
        self.hosts = Hosts::parse(hosts)?;
        if let Some(chroot) = &self.chroot {
            self.hosts.chroot.clone_from(chroot);
        }
        Ok(self)
    }

    /// The session timeout to ask for; the servers may grant another. Default: 10 s.
    ///
    /// After a crash, a holder's lock is free again when its session has timed out. A short timeout
    /// frees it sooner, and loses holds on shorter network troubles.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if it is under 100 ms or over 24 days.
    pub fn session_timeout(mut self, timeout: Duration) -> Result<Self, Error> {
        if !(SHORTEST_SESSION_TIMEOUT..=LONGEST_SESSION_TIMEOUT).contains(&timeout) {
            let message = format!("a session timeout of {timeout:?} cannot be had: choose 100 ms to 24 days");
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        self.session_timeout = timeout;
        Ok(self)
    }

    /// How long to try to reach a server before [`connect`](crate::Client::connect), or a question such as
    /// [`contenders`](crate::Lock::contenders), fails. Default: 10 s.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// How long the servers have to answer a [`try_acquire`](crate::Lock::try_acquire), and any call whose timeout is
    /// zero, before it fails. Default: 1 s.
    ///
    /// If they answer, a try takes a few round trips and never that long. It does not bound connecting: that is
    /// for [`connect_timeout`](Self::connect_timeout).
    ///
    /// ```
    /// use std::time::Duration;
    /// use zklock_core::{ClientOptions, ErrorKind};
    ///
    /// let options = ClientOptions::new("zk1:2181")?.try_timeout(Duration::from_millis(200))?;
    /// let error = options.try_timeout(Duration::ZERO).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::InvalidInput);
    /// # Ok::<(), zklock_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if it is zero.
    pub fn try_timeout(mut self, timeout: Duration) -> Result<Self, Error> {
        if timeout.is_zero() {
            let message = "a try timeout of zero leaves the servers no time to answer: choose one that a few round \
                           trips fit in, such as 1 s";
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        self.try_timeout = timeout;
        Ok(self)
    }

    /// Put all paths below this node, which must exist unless it is [created](Self::create_chroot). It replaces a chroot among the hosts.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if it is not a path.
    pub fn chroot(mut self, path: &str) -> Result<Self, Error> {
        check_path(path).map_err(|error| error.within("the chroot"))?;
        path.trim_end_matches('/').clone_into(&mut self.hosts.chroot);
        self.chroot = Some(self.hosts.chroot.clone());
        Ok(self)
    }

    /// What others see as the contender's name: the data of its nodes. Default: `host/pid`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if it is longer than 1 KiB.
    pub fn identity(mut self, identity: &str) -> Result<Self, Error> {
        if identity.len() > LONGEST_IDENTITY {
            let message =
                format!("the identity has {} bytes: at most {LONGEST_IDENTITY} are allowed", identity.len());
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        identity.clone_into(&mut self.identity);
        Ok(self)
    }

    /// The version of the servers, such as 3 and 4 for 3.4.14. Of an ensemble that is being upgraded it is the oldest. It
    /// counts whether they are older than 3.5, the version that can do all. Default: the first server of each session is
    /// asked, by the word `srvr`. One that may not answer it (see `4lw.commands.whitelist`), or speaks TLS, is taken for
    /// 3.5 or later.
    ///
    /// ```
    /// use zklock_core::{ClientOptions, ErrorKind};
    ///
    /// let options = ClientOptions::new("zk1:2181")?.server_version(3, 4)?;
    /// let error = options.server_version(3, 3).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::InvalidInput);
    /// # Ok::<(), zklock_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if it is older than 3.4.
    pub fn server_version(mut self, major: u32, minor: u32) -> Result<Self, Error> {
        let level = ServerLevel::of(major, minor).ok_or_else(|| {
            let message =
                format!("servers of version {major}.{minor} cannot be used: 3.4 is the oldest that can");
            Error::new(ErrorKind::InvalidInput, message)
        })?;
        self.server_level = Some(level);
        Ok(self)
    }

    /// Connect with TLS. All the hosts' ports must expect it. Default: no.
    ///
    /// ```no_run
    /// use zklock_core::{ClientOptions, Tls};
    ///
    /// # fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let tls = Tls::new(&std::fs::read_to_string("ca.pem")?)?;
    /// let options = ClientOptions::new("zk1:2281,zk2:2281,zk3:2281")?.tls(tls);
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Log in with these credentials, and with those that were given before. They are sent on every connection. One of them
    /// can be for [SASL](Credentials::sasl).
    ///
    /// ```
    /// # use zklock_core::{ClientOptions, Credentials};
    /// let options = ClientOptions::new("zk1:2181")?.credentials(Credentials::digest("billing", "secret")?);
    /// # Ok::<(), zklock_core::Error>(())
    /// ```
    #[must_use]
    pub fn credentials(mut self, credentials: Credentials) -> Self {
        self.credentials.push(credentials);
        self
    }

    /// Who may use the nodes that the client creates. Default: everyone.
    ///
    /// ```
    /// use zklock_core::{Access, ClientOptions, Credentials, ErrorKind};
    ///
    /// let options = ClientOptions::new("zk1:2181")?.access(Access::CreatorAll);
    /// assert_eq!(options.check().unwrap_err().kind(), ErrorKind::InvalidInput);
    /// assert!(options.credentials(Credentials::digest("billing", "secret")?).check().is_ok());
    /// # Ok::<(), zklock_core::Error>(())
    /// ```
    #[must_use]
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Create the [chroot](Self::chroot), and the nodes above it, if it is missing when a session is opened. They are
    /// persistent, and have the [access](Self::access) list of what the client creates. Default: no.
    ///
    /// ```
    /// # use zklock_core::ClientOptions;
    /// let options = ClientOptions::new("zk1:2181/apps/billing")?.create_chroot(true);
    /// # Ok::<(), zklock_core::Error>(())
    /// ```
    #[must_use]
    pub fn create_chroot(mut self, creates: bool) -> Self {
        self.create_chroot = creates;
        self
    }

    /// Whether the servers are asked to confirm what is held, every twelfth of the session timeout. Default: yes.
    ///
    /// A client that holds anything, be it one lock or a thousand, writes that often to the ensemble. That is a load where
    /// thousands of clients hold something all day, such as the leaders of as many elections. Without a heartbeat they cost
    /// nothing. But then nothing proves that a hold is still there: half a session timeout after it was granted,
    /// [`valid_for`](crate::Hold::valid_for) is zero for good. The hold is [at risk](crate::HoldState::AtRisk) while the
    /// client is disconnected. It is lost when the servers say that its session is over, or that its node is deleted. By
    /// then another may have held the lock for a while. [`confirm`](crate::Hold::confirm) and
    /// [guarded writes](crate::Hold::guarded) ask the servers, with a heartbeat or without.
    ///
    /// ```
    /// # use zklock_core::ClientOptions;
    /// let options = ClientOptions::new("zk1:2181")?.heartbeat(false);
    /// # Ok::<(), zklock_core::Error>(())
    /// ```
    #[must_use]
    pub fn heartbeat(mut self, beats: bool) -> Self {
        self.heartbeat = beats;
        self
    }

    /// Whether a client can have these options together. [`Client::connect`](crate::Client::connect) checks it as well.
    ///
    /// ```
    /// # use zklock_core::ClientOptions;
    /// assert!(ClientOptions::new("zk1:2181")?.check().is_ok());
    /// # Ok::<(), zklock_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if the creator is to have rights and there are neither [credentials](Self::credentials)
    /// nor a client certificate, if several credentials are for SASL, or with TLS and a host that no certificate can name.
    pub fn check(&self) -> Result<(), Error> {
        if self.access.needs_creator() && !self.is_somebody() {
            // A list is not shown: it may have hashes of passwords.
            let access = match &self.access {
                Access::List(_) => "list".to_owned(),
                named => named.to_string(),
            };
            let message = format!(
                "the access {access}: without credentials nobody would be the creator: log in, or leave it open"
            );
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        if self.credentials.iter().filter(|credentials| credentials.is_sasl()).count() > 1 {
            let message =
                "several credentials are for SASL, and by SASL a client logs in as one user: leave one";
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            tls.check_names(&self.hosts)?;
        }
        Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_had_is_refused() {
        let options = || ClientOptions::new("zk:2181").unwrap();
        for timeout in
            [Duration::ZERO, Duration::from_millis(99), Duration::from_secs(86_400 * 25), Duration::MAX]
        {
            let error = options().session_timeout(timeout).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
        }
        assert_eq!(options().chroot("apps").unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(options().try_timeout(Duration::ZERO).unwrap_err().kind(), ErrorKind::InvalidInput);
        for (major, minor) in [(0, 0), (2, 9), (3, 0), (3, 3)] {
            let error = options().server_version(major, minor).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
        }
        assert_eq!(options().identity(&"x".repeat(1025)).unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(options().chroot("/").unwrap().hosts.chroot, "");
        let sasl = || Credentials::sasl("user", "secret").unwrap();
        let twice = options().credentials(sasl()).credentials(sasl());
        assert_eq!(twice.check().unwrap_err().kind(), ErrorKind::InvalidInput);
        let hash = "digest:ann:kYo25pPOT0HKGgdUmL8MxA259qk=:cdrwa,auth::r".parse().unwrap();
        let error = options().access(hash).check().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(!error.to_string().contains("kYo25pPOT0"), "{error}");
        let chrooted = options().chroot("/a").unwrap();
        assert_eq!(chrooted.hosts.connect_string(), "zk:2181/a");
        assert_eq!(chrooted.hosts("other/b").unwrap().hosts.connect_string(), "other:2181/a");
        assert_eq!(options().hosts("other/b").unwrap().hosts.connect_string(), "other:2181/b");
    }
}
