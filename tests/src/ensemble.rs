//! Real ZooKeeper servers for a test: one, or a quorum of three.
//!
//! They are the servers of the distribution with small ticks, on loopback, with data in memory, so that an ensemble
//! costs a second or two and leaves nothing behind. There may be proxies between the servers of a quorum: the worst
//! case of a lease cannot be tested without them.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::fmt::Write as _;
use std::fs;
use std::hash::BuildHasher;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::certificates::Certificates;
use crate::embedded;
use crate::install::Install;
use crate::port::Port;
use crate::proxy::Proxy;
use crate::sasl;
use crate::secured;
use crate::server::{STARTED, Server};
use crate::talk::Talk;
use crate::wait::until;

/// The release of all servers for which a test names none.
const VERSION: &str = "ZKLOCK_SERVER_VERSION";
/// How a server says that its port is in use.
const TAKEN: [&str; 2] = ["BindException", "Address already in use"];

/// The kind of server.
#[derive(Debug)]
enum Origin {
    Real(Install),
    /// The path of its program.
    Embedded(PathBuf),
}

/// A running ensemble. Dropping it ends all its servers and removes their data.
#[derive(Debug)]
pub struct Ensemble {
    servers: Vec<Server>,
    tick: Duration,
    /// By (from, to), each a server's number.
    links: BTreeMap<(usize, usize), Proxy>,
    certificates: Option<Certificates>,
    /// The ports between servers, held while they are in use.
    _ports: Vec<Port>,
}

impl Ensemble {
    /// One server with ZooKeeper's ticks of 2 s.
    #[track_caller]
    pub fn standalone() -> Self {
        Self::builder().start()
    }

    /// Starts to configure an ensemble.
    pub fn builder() -> Builder {
        let open = Builder {
            servers: 1,
            tick: Duration::from_secs(2),
            max_session_timeout: None,
            quorum_proxies: false,
            tls: false,
            sasl: Vec::new(),
            // Longer than any test, so that containers stay, unless a test is about them.
            container_check: Duration::from_secs(3600),
            configuration: String::new(),
            properties: Vec::new(),
            under: Vec::new(),
            real: false,
            version: std::env::var(VERSION).ok().filter(|version| !version.is_empty()),
        };
        if secured::is_wanted() { secured::closed(open) } else { open }
    }

    /// The connect string for clients: `host:port,host:port`.
    pub fn connect_string(&self) -> String {
        if secured::is_wanted() && self.certificates.is_some() {
            return self.tls_connect_string();
        }
        connect_string(self.servers.iter().map(Server::address))
    }

    /// The connect string for clients that use TLS, with the servers' TLS ports.
    ///
    /// # Panics
    ///
    /// If the ensemble was built without [`Builder::tls`].
    #[track_caller]
    pub fn tls_connect_string(&self) -> String {
        connect_string(self.servers.iter().map(Server::tls_address))
    }

    /// The certificates of servers and clients.
    ///
    /// # Panics
    ///
    /// If the ensemble was built without [`Builder::tls`].
    #[track_caller]
    pub fn certificates(&self) -> &Certificates {
        self.certificates.as_ref().expect("an ensemble built with tls(true)")
    }

    /// The server with this index, counting from 0.
    pub fn server(&self, index: usize) -> &Server {
        &self.servers[index]
    }

    /// All servers.
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// The length of a tick. Sessions last between 2 and 20 ticks, unless configured otherwise.
    pub fn tick(&self) -> Duration {
        self.tick
    }

    /// The leader, or the only server. Waits for an election to end.
    ///
    /// # Panics
    ///
    /// If there is no leader in time.
    #[track_caller]
    pub fn leader(&self) -> &Server {
        let mut leader = None;
        until(STARTED, || {
            leader = self.leader_now();
            leader.is_some()
        });
        leader.expect("the ensemble has a leader")
    }

    /// The current leader, if there is one.
    pub fn leader_now(&self) -> Option<&Server> {
        self.servers.iter().find(|server| matches!(server.mode().as_deref(), Some("leader" | "standalone")))
    }

    /// The current followers.
    pub fn followers(&self) -> Vec<&Server> {
        self.servers.iter().filter(|server| server.mode().as_deref() == Some("follower")).collect()
    }

    /// The proxy on the quorum connection that `from` makes to `to` when `to` leads. Data from clients of `from` goes
    /// in the direction [`Direction::ToServer`](crate::Direction::ToServer).
    ///
    /// # Panics
    ///
    /// If the ensemble was built without [`Builder::quorum_proxies`].
    #[track_caller]
    pub fn quorum_link(&self, from: &Server, to: &Server) -> &Proxy {
        let link = self.links.get(&(from.number(), to.number()));
        link.expect("an ensemble built with quorum_proxies(true), and two different servers of it")
    }

    /// A client proxy in front of each server, in order.
    pub fn proxied(&self) -> Vec<Proxy> {
        self.servers.iter().map(Proxy::before).collect()
    }

    /// Waits until every server serves, and the leader has all followers in step.
    ///
    /// # Panics
    ///
    /// If that is not so by `bound`.
    #[track_caller]
    pub fn wait_until_whole(&self, bound: Duration) {
        self.await_whole(bound).unwrap_or_else(|reason| panic!("{reason}"));
    }

    /// Keeps a session busy on each server until the returned guard is dropped: ZooKeeper 3.8.0 can stall a lone client
    /// of an ensemble until another one sends something (ZOOKEEPER-4537).
    pub fn keep_talking(&self) -> Talk {
        Talk::start(self.servers.iter().map(Server::address))
    }

    /// Like [`wait_until_whole`](Self::wait_until_whole), but returns what is missing.
    pub fn await_whole(&self, bound: Duration) -> Result<(), String> {
        let end = Instant::now() + bound;
        for server in &self.servers {
            server.await_serving(end.saturating_duration_since(Instant::now()))?;
        }
        let followers = self.servers.len() - 1;
        let in_step = || {
            let figures = self.leader_now().map(Server::mntr).unwrap_or_default();
            // Some versions print it as a floating point number.
            let synced = figures.get("zk_synced_followers").and_then(|count| count.parse::<f64>().ok());
            synced.is_some_and(|count| count >= followers as f64)
        };
        if followers > 0 && !until(end.saturating_duration_since(Instant::now()), in_step) {
            return Err("the followers are not in step with the leader".to_owned());
        }
        Ok(())
    }
}

/// Settings for an [`Ensemble`].
#[derive(Debug, Clone)]
#[must_use = "nothing runs before start()"]
pub struct Builder {
    servers: usize,
    tick: Duration,
    max_session_timeout: Option<Duration>,
    quorum_proxies: bool,
    tls: bool,
    sasl: Vec<(String, String)>,
    container_check: Duration,
    configuration: String,
    properties: Vec<String>,
    under: Vec<String>,
    real: bool,
    /// `None`: the installed release.
    version: Option<String>,
}

impl Builder {
    /// How many servers: 1 or 3.
    pub fn servers(mut self, count: usize) -> Self {
        self.servers = count;
        self
    }

    /// ZooKeeper's unit of time, 2 s by default. A session lasts 2 to 20 ticks.
    pub fn tick(mut self, tick: Duration) -> Self {
        self.tick = tick;
        self
    }

    /// The longest session timeout granted, 20 ticks by default.
    pub fn max_session_timeout(mut self, timeout: Duration) -> Self {
        self.max_session_timeout = Some(timeout);
        self
    }

    /// Puts a [`Proxy`] on each connection that a follower makes to its leader; see [`Ensemble::quorum_link`].
    pub fn quorum_proxies(mut self, wanted: bool) -> Self {
        self.quorum_proxies = wanted;
        self
    }

    /// Makes each server also serve TLS, on a separate port, for clients with a certificate of
    /// [`Ensemble::certificates`]. Clients without one are only accepted after `configure("ssl.clientAuth=want")`.
    pub fn tls(mut self, wanted: bool) -> Self {
        self.tls = wanted;
        self
    }

    /// Makes each server accept these users with these passwords by SASL; [`Server::set_sasl_users`] changes them. It
    /// still accepts clients that do not log in, unless configured otherwise, for example by
    /// `configure("sessionRequireClientSASLAuth=true")`.
    pub fn sasl(mut self, users: &[(&str, &str)]) -> Self {
        self.sasl =
            users.iter().map(|(user, password)| ((*user).to_owned(), (*password).to_owned())).collect();
        self
    }

    /// How often the leader looks for empty containers to reap; once an hour by default.
    pub fn container_check(mut self, interval: Duration) -> Self {
        self.container_check = interval;
        self
    }

    /// Adds a line to `zoo.cfg`, such as `syncLimit=5`. If a line is given twice, the last one counts.
    pub fn configure(mut self, line: &str) -> Self {
        self.configuration.push_str(line);
        self.configuration.push('\n');
        self
    }

    /// Adds a Java system property, such as `zookeeper.skipACL=yes`.
    pub fn property(mut self, property: &str) -> Self {
        self.properties.push(format!("-D{property}"));
        self
    }

    /// The beginning of each server's command, such as `env NAME=VALUE`. `{home}` stands for its
    /// [folder](crate::Process::home).
    pub fn under(mut self, words: &[&str]) -> Self {
        self.under = words.iter().map(|&word| word.to_owned()).collect();
        self
    }

    /// A release of ZooKeeper, such as 3.4.14, whose jars are downloaded on first use. The default is the release that
    /// `ZKLOCK_SERVER_VERSION` names, otherwise the installed one.
    pub fn version(mut self, version: &str) -> Self {
        self.version = Some(version.to_owned());
        self
    }

    /// Uses a real server: for a test that is about servers, or needs what the server in memory does not have, such as data that
    /// outlive a restart.
    pub fn real(mut self) -> Self {
        self.real = true;
        self
    }

    /// Starts the servers and waits until all of them serve.
    ///
    /// # Panics
    ///
    /// If they do not serve, or if Java or ZooKeeper is not installed. The message says what to install.
    #[track_caller]
    pub fn start(self) -> Ensemble {
        self.try_start().unwrap_or_else(|reason| panic!("{reason}"))
    }

    /// Like [`Builder::start`], but returns the failure.
    pub fn try_start(self) -> Result<Ensemble, String> {
        let origin = if self.needs_a_real_server() || embedded::is_excluded()? {
            Origin::Real(Install::find(self.version.as_deref())?)
        } else {
            Origin::Embedded(embedded::embedded_program()?)
        };
        let mut attempts = 3;
        loop {
            attempts -= 1;
            let tried = self.launch(&origin).and_then(|ensemble| {
                ensemble.await_whole(STARTED)?;
                if let Some(certificates) = &ensemble.certificates {
                    secured::remember(ensemble.tls_connect_string(), certificates);
                }
                Ok(ensemble)
            });
            match tried {
                // Another program took one of the ports between our check and the server's bind.
                Err(reason) if attempts > 0 && TAKEN.iter().any(|taken| reason.contains(taken)) => {}
                other => return other,
            }
        }
    }

    fn launch(&self, origin: &Origin) -> Result<Ensemble, String> {
        if self.servers != 1 && self.servers != 3 {
            return Err(format!("an ensemble has 1 or 3 servers, not {}", self.servers));
        }
        let numbers = 1..=self.servers;
        let quorum: Vec<_> = numbers.clone().map(|_| (Port::claim(), Port::claim())).collect();
        let mut links = BTreeMap::new();
        if self.quorum_proxies && self.servers > 1 {
            for from in numbers.clone() {
                for to in numbers.clone().filter(|&to| to != from) {
                    links.insert((from, to), Proxy::plain(quorum[to - 1].0.address()));
                }
            }
        }
        let mut servers = Vec::new();
        let mut certificates: Option<Certificates> = None;
        for number in numbers.clone() {
            let port = Port::claim();
            let home = new_folder().map_err(|error| format!("a folder for the server's data: {error}"))?;
            let secure_port = self.tls.then(Port::claim);
            if self.tls && certificates.is_none() {
                certificates = Some(Certificates::make(&home)?);
            }
            let tls = secure_port.as_ref().zip(certificates.as_ref());
            let tls =
                tls.map(|(port, certificates)| certificates.server_configuration(port.address().port()));
            let mut text =
                self.configuration(&home, port.address().port(), tls.as_deref().unwrap_or_default());
            for other in numbers.clone().filter(|_| self.servers > 1) {
                let (data, election) = &quorum[other - 1];
                let data = links.get(&(number, other)).map_or(data.address(), Proxy::address);
                let _ = writeln!(text, "server.{other}={data}:{}", election.address().port());
            }
            let written = fs::write(home.join("zoo.cfg"), text)
                .and_then(|()| fs::write(home.join("data/myid"), number.to_string()))
                .and_then(|()| quiet_logging(&home))
                .and_then(|()| if self.sasl.is_empty() { Ok(()) } else { sasl::write(&home, &self.sasl) });
            written.map_err(|error| format!("writing to {}: {error}", home.display()))?;
            let command = match origin {
                Origin::Real(install) => self.command(install, &home),
                Origin::Embedded(program) => {
                    embedded::command(program, port.address().port(), self.tick, self.container_check)
                }
            };
            let server = Server::new(number, port, secure_port, &home, &command);
            servers.push(server.map_err(|error| format!("starting a watchdog shell: {error}"))?);
        }
        for server in &servers {
            server.start();
        }
        let ports = quorum.into_iter().flat_map(|(data, election)| [data, election]).collect();
        Ok(Ensemble { servers, tick: self.tick, links, certificates, _ports: ports })
    }

    fn needs_a_real_server(&self) -> bool {
        self.real
            || self.servers != 1
            || self.tls
            || !self.sasl.is_empty()
            || self.max_session_timeout.is_some()
            || !self.configuration.is_empty()
            || !self.properties.is_empty()
            || !self.under.is_empty()
            || self.version.is_some()
    }

    fn configuration(&self, home: &Path, port: u16, tls: &str) -> String {
        let mut text = format!(
            "tickTime={}\ninitLimit={}\nsyncLimit=10\ndataDir={}/data\nclientPortAddress=127.0.0.1\nclientPort={port}\n\
             maxClientCnxns=0\nadmin.enableServer=false\n4lw.commands.whitelist=*\nsnapCount=1000000\n",
            self.tick.as_millis(),
            // A server that wrongly believes that it leads should not do so for long.
            (3000 / self.tick.as_millis().max(1)).max(5),
            home.display(),
        );
        if let Some(timeout) = self.max_session_timeout {
            let _ = writeln!(text, "maxSessionTimeout={}", timeout.as_millis());
        }
        if !self.sasl.is_empty() {
            text += sasl::CONFIGURATION;
        }
        // If a line is given twice, the last one counts.
        text + tls + &self.configuration
    }

    fn command(&self, install: &Install, home: &Path) -> Vec<String> {
        let folder = home.display();
        let mut command: Vec<_> =
            self.under.iter().map(|word| word.replace("{home}", &folder.to_string())).collect();
        command.push(install.java.display().to_string());
        // For a quick start, and no files outside of the folder.
        command.extend(
            ["-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto", "-XX:-UsePerfData"]
                .map(str::to_owned),
        );
        command.extend([
            format!("-Djava.io.tmpdir={folder}"),
            format!("-Dznode.container.checkIntervalMs={}", self.container_check.as_millis()),
            // Test data need not survive a power cut.
            "-Dzookeeper.forceSync=no".to_owned(),
            "-Dzookeeper.jmx.log4j.disable=true".to_owned(),
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn".to_owned(),
            "-Dorg.slf4j.simpleLogger.showDateTime=true".to_owned(),
        ]);
        if !self.sasl.is_empty() {
            command.push(sasl::property(home));
        }
        command.extend(self.properties.iter().cloned());
        command.extend([
            "-cp".to_owned(),
            format!("{folder}:{}", install.class_path),
            "org.apache.zookeeper.server.quorum.QuorumPeerMain".to_owned(),
            format!("{folder}/zoo.cfg"),
        ]);
        command
    }
}

/// `host:port,host:port` of the given addresses.
pub fn connect_string(addresses: impl IntoIterator<Item = std::net::SocketAddr>) -> String {
    let addresses: Vec<_> = addresses.into_iter().map(|address| address.to_string()).collect();
    addresses.join(",")
}

/// A new folder, in memory if possible.
pub(crate) fn new_folder() -> io::Result<PathBuf> {
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let random = RandomState::new().hash_one(Instant::now());
    let home = parent.join(format!("zklock-ground-{random:016x}"));
    fs::create_dir(&home)?;
    fs::create_dir(home.join("data"))?;
    Ok(home)
}

/// ZooKeeper's own packages include logback or log4j, which print everything unless configured otherwise.
fn quiet_logging(home: &Path) -> io::Result<()> {
    fs::write(
        home.join("logback.xml"),
        "<configuration><appender name='A' class='ch.qos.logback.core.ConsoleAppender'><encoder><pattern>\
         %d %p %c - %m%n</pattern></encoder></appender><root level='WARN'><appender-ref ref='A'/></root>\
         </configuration>",
    )?;
    fs::write(
        home.join("log4j.properties"),
        "log4j.rootLogger=WARN, A\nlog4j.appender.A=org.apache.log4j.ConsoleAppender\n\
         log4j.appender.A.layout=org.apache.log4j.PatternLayout\n\
         log4j.appender.A.layout.ConversionPattern=%d %p %c - %m%n\n",
    )
}
