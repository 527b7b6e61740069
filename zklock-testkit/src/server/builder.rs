//! The settings of a server.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::{Server, StartError};
use crate::clock::Clock;
use crate::hub::Hub;
use crate::net;
use crate::state::settings::Settings;
use crate::wire::profile::UnknownProfile;
use crate::wire::words;

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
    /// The address to listen on, `host:port`; by default a free port on 127.0.0.1. There is no encryption, and every client
    /// that can reach the server may do everything.
    pub fn address(mut self, address: &str) -> Self {
        self.address = Some(address.to_owned());
        self
    }

    /// ZooKeeper's unit of time, 2 s by default. A session lasts 2 to 20 ticks, and ends on a whole tick.
    pub fn tick(mut self, tick: Duration) -> Self {
        self.settings.tick = tick.max(Duration::from_millis(1));
        self
    }

    /// The shortest and the longest session timeout to grant, instead of 2 and 20 ticks.
    pub fn session_timeouts(mut self, shortest: Duration, longest: Duration) -> Self {
        self.session_timeouts = Some((shortest, longest.max(shortest)));
        self
    }

    /// Makes the server's clock stand still, except when [`Server::advance`] moves it. No session ends by itself, however
    /// long you look at it in a debugger.
    pub fn manual_clock(mut self) -> Self {
        self.manual_clock = true;
        self
    }

    /// How often empty containers are reaped; every minute by default.
    pub fn container_check(mut self, interval: Duration) -> Self {
        self.settings.container_check = interval.max(Duration::from_millis(1));
        self
    }

    /// Whether nodes may have a time to live, as with ZooKeeper's `extendedTypesEnabled`; `false` by default.
    pub fn extended_types(mut self, allowed: bool) -> Self {
        self.settings.extended_types = allowed;
        self
    }

    /// Whether sessions are local to one server, as with ZooKeeper's `localSessionsEnabled` without
    /// `localSessionsUpgradingEnabled`. No client can then create an ephemeral node, or get a lock. `false` by default.
    pub fn local_sessions(mut self, wanted: bool) -> Self {
        self.settings.local_sessions = wanted;
        self
    }

    /// The server to imitate: `"3.8"`, the default; `"3.4"`, which is ZooKeeper 3.4.14; or `"keeper-25"`, which is
    /// ClickHouse Keeper 25. The last two do not know `create2`, container nodes or requests to remove a watch. Keeper
    /// closes the connection on a request that it does not know, without an answer, and gives each connection a new
    /// session. Other peculiarities of Keeper are not imitated.
    ///
    /// # Errors
    ///
    /// If there is no such server. The error names the valid ones.
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

    /// The longest message that is accepted, in bytes; 1 MiB by default, like ZooKeeper's `jute.maxbuffer`.
    pub fn max_frame(mut self, bytes: usize) -> Self {
        self.settings.max_frame = bytes;
        self
    }

    /// The maximum number of connections; 4,096 by default. Each needs a descriptor and two threads. If the system has no
    /// more of these, further connections are closed.
    pub fn max_connections(mut self, count: usize) -> Self {
        self.settings.max_connections = count;
        self
    }

    /// The four-letter words that are answered, in the format of ZooKeeper's `4lw.commands.whitelist`: a list with commas,
    /// or `*` for all that this server knows. These are `conf`, `cons`, `envi`, `isro`, `mntr`, `ruok`, `srvr`, `stat` and
    /// `wchs`, and all are answered by default. A ZooKeeper with its default settings answers only `srvr` and refuses the
    /// others, and so does this server with `words("srvr")`.
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

    /// Starts the server. It accepts connections when this returns.
    ///
    /// # Errors
    ///
    /// If the address cannot be used, or no thread is available.
    pub fn start(self) -> Result<Server, StartError> {
        let address = self.address.clone().unwrap_or_else(|| format!("{}:0", Ipv4Addr::LOCALHOST));
        self.launch(&address).map_err(|reason| StartError { address, reason })
    }

    fn launch(self, address: &str) -> io::Result<Server> {
        let addresses: Vec<_> = address.to_socket_addrs()?.collect();
        let clock = Clock::new(self.manual_clock);
        let listener = TcpListener::bind(&addresses[..])?;
        let address = listener.local_addr()?;
        let tick = self.settings.tick;
        let session_timeouts =
            self.session_timeouts.unwrap_or((tick.saturating_mul(2), tick.saturating_mul(20)));
        let settings = Settings { port: address.port(), session_timeouts, ..self.settings };
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
