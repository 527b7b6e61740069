//! What a server is told before it starts.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::{Server, StartError};
use crate::clock::Clock;
use crate::hub::Hub;
use crate::profile::UnknownProfile;
use crate::world::Settings;
use crate::{net, words};

/// Settings for a [`Server`].
#[derive(Debug, Clone)]
#[must_use = "nothing runs before start()"]
pub struct Builder {
    pub(super) address: Option<String>,
    pub(super) manual_clock: bool,
    pub(super) session_timeouts: Option<(Duration, Duration)>,
    pub(super) settings: Settings,
}

impl Builder {
    /// Where to listen, `host:port`; by default a free port of 127.0.0.1. There is no encryption, and everyone that can
    /// reach it can do everything.
    pub fn address(mut self, address: &str) -> Self {
        self.address = Some(address.to_owned());
        self
    }

    /// ZooKeeper's unit of time, 2 s by default. A session lasts 2 to 20 ticks, and ends at a full one.
    pub fn tick(mut self, tick: Duration) -> Self {
        self.settings.tick = tick.max(Duration::from_millis(1));
        self
    }

    /// The shortest and the longest session timeout that is granted, in place of 2 and 20 ticks.
    pub fn session_timeouts(mut self, shortest: Duration, longest: Duration) -> Self {
        self.session_timeouts = Some((shortest, longest.max(shortest)));
        self
    }

    /// The server's clock stands still, and goes on with [`Server::advance`] alone: no session ends by itself, however
    /// long somebody looks at it in a debugger.
    pub fn manual_clock(mut self) -> Self {
        self.manual_clock = true;
        self
    }

    /// How often empty containers are reaped; once a minute by default.
    pub fn container_check(mut self, interval: Duration) -> Self {
        self.settings.container_check = interval.max(Duration::from_millis(1));
        self
    }

    /// Whether nodes may have a time to live, as ZooKeeper has it with `extendedTypesEnabled`; by default not.
    pub fn extended_types(mut self, allowed: bool) -> Self {
        self.settings.extended_types = allowed;
        self
    }

    /// Whether a session is known to one server alone, as ZooKeeper has it with `localSessionsEnabled` and without
    /// `localSessionsUpgradingEnabled`: nobody can create an ephemeral node, and so nobody gets a lock. By default not.
    pub fn local_sessions(mut self, wanted: bool) -> Self {
        self.settings.local_sessions = wanted;
        self
    }

    /// Which server is copied: `"3.8"`, as by default; `"3.4"`, which is ZooKeeper 3.4.14; or `"keeper-25"`, which is ClickHouse
    /// Keeper 25. Neither of these knows `create2`, container nodes or how to remove a watch. Keeper closes the connection on what
    /// it does not know, without an answer, and gives a new session to each connection. What else is Keeper's own is not copied.
    ///
    /// # Errors
    ///
    /// When there is no such server to be copied. The error names those that there are.
    ///
    /// # Examples
    ///
    /// ```
    /// use zklock_testkit::Server;
    ///
    /// let server = Server::builder().like("3.4")?.start()?;
    /// let unknown = Server::builder().like("2.0").unwrap_err();
    /// assert!(unknown.to_string().contains("keeper-25"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn like(mut self, server: &str) -> Result<Self, UnknownProfile> {
        self.settings.profile = server.parse()?;
        Ok(self)
    }

    /// The longest message that is taken, in bytes; 1 MiB by default, as ZooKeeper's `jute.maxbuffer`.
    pub fn max_frame(mut self, bytes: usize) -> Self {
        self.settings.max_frame = bytes;
        self
    }

    /// How many connections there may be; 4,096 by default. Each has a descriptor and two threads; where the system gives
    /// no more of them, further clients are closed.
    pub fn max_connections(mut self, count: usize) -> Self {
        self.settings.max_connections = count;
        self
    }

    /// The words of four letters that are answered, as ZooKeeper has them in `4lw.commands.whitelist`: a list with commas, or `*` for
    /// all that it knows: `conf`, `cons`, `envi`, `isro`, `mntr`, `ruok`, `srvr`, `stat`, `wchs`. They are by default. A ZooKeeper that
    /// was not told otherwise answers `srvr` alone; the other words it refuses, and so does this server then.
    ///
    /// # Examples
    ///
    /// ```
    /// let server = zklock_testkit::Server::builder().words("srvr").start()?;
    /// # Ok::<(), zklock_testkit::StartError>(())
    /// ```
    pub fn words(mut self, list: &str) -> Self {
        self.settings.words = words::Allowed::new(list);
        self
    }

    /// Starts the server. It serves when this returns.
    ///
    /// # Errors
    ///
    /// When the address cannot be used, or no thread is to be had.
    pub fn start(self) -> Result<Server, StartError> {
        let address = self.address.clone().unwrap_or_else(|| format!("{}:0", Ipv4Addr::LOCALHOST));
        self.launch(&address).map_err(|reason| StartError { address, reason })
    }

    pub(crate) fn into_settings(self) -> Settings {
        let tick = self.settings.tick;
        let session_timeouts =
            self.session_timeouts.unwrap_or((tick.saturating_mul(2), tick.saturating_mul(20)));
        Settings { session_timeouts, ..self.settings }
    }

    fn launch(self, address: &str) -> io::Result<Server> {
        let addresses: Vec<_> = address.to_socket_addrs()?.collect();
        let clock = Clock::new(self.manual_clock);
        let listener = TcpListener::bind(&addresses[..])?;
        let address = listener.local_addr()?;
        let settings = Settings { port: address.port(), ..self.into_settings() };
        let hub = Arc::new(Hub::new(settings, clock));
        let listening = TcpStream::from(OwnedFd::from(listener.try_clone()?));
        let mut server = Server { address, hub: Arc::clone(&hub), listening, threads: Vec::new() };
        let accepting = Arc::clone(&hub);
        let start = |name: &str, work: Box<dyn FnOnce() + Send>| {
            thread::Builder::new().name(name.to_owned()).spawn(work)
        };
        server.threads.push(start("zk-accept", Box::new(move || net::accept(&accepting, &listener)))?);
        server.threads.push(start("zk-clock", Box::new(move || hub.keep_time()))?);
        Ok(server)
    }
}
