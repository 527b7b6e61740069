//! `--notify`: what systemd should know, in messages to the socket that NOTIFY_SOCKET names, as sd_notify(3) describes them.

use std::convert::Infallible;
use std::ffi::OsString;
use std::future::pending;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram as Socket};
use std::time::Duration;

use tokio::net::UnixDatagram;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep, timeout};
use zklock::{Client, Hold, Lock};

use crate::failure::Failure;
use crate::output::harmless;

/// The variables that are for us. A command that took them for its own would speak for the service as well.
pub(super) const VARIABLES: [&str; 3] = ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"];

/// A wait that is shorter costs no request for the queue.
const SHORT_WAIT: Duration = Duration::from_secs(1);
const BETWEEN_LOOKS: Duration = Duration::from_secs(10);
/// How long a message may wait for room. The lock cannot wait for systemd, whose own time limits see to the rest.
const FOR_ROOM: Duration = Duration::from_secs(1);

/// Does nothing where nobody wants to know.
pub(super) struct Notify {
    socket: Option<UnixDatagram>,
    /// Between two signs of life.
    period: Option<Duration>,
    /// Whether the user reads the status as well (`--verbose`).
    is_verbose: bool,
}

impl Notify {
    pub(super) fn new(is_wanted: bool, is_verbose: bool) -> Result<Self, Failure> {
        let variable = |name| std::env::var_os(name).filter(|value| is_wanted && !value.is_empty());
        let number = |name| variable(name)?.to_str()?.parse::<u64>().ok();
        let socket = variable("NOTIFY_SOCKET").map(|name| connect(&name)).transpose()?;
        let is_ours = variable("WATCHDOG_PID").is_none()
            || number("WATCHDOG_PID") == Some(u64::from(std::process::id()));
        let period = number("WATCHDOG_USEC").filter(|period| is_ours && *period > 1);
        Ok(Self { socket, period: period.map(|period| Duration::from_micros(period / 2)), is_verbose })
    }

    pub(super) async fn tell(&self, message: &str) {
        if let Some((_, status)) = message.split_once("STATUS=").filter(|_| self.is_verbose) {
            say!("{status}");
        }
        if let Some(socket) = &self.socket {
            let _ = timeout(FOR_ROOM, socket.send(message.as_bytes())).await;
        }
    }

    /// Says what the lock waits for, as long as it waits.
    pub(super) async fn describe_wait(&self, client: &Client, lock: &Lock) -> Infallible {
        if self.socket.is_none() && !self.is_verbose {
            return pending().await;
        }
        self.tell(&format!("STATUS=waiting for the lock {}", lock.path())).await;
        sleep(SHORT_WAIT).await;
        loop {
            // If the servers do not answer, what was said last stays.
            if let Some(place) = place(client, lock).await {
                self.tell(&format!("STATUS=waiting for the lock {}{place}", lock.path())).await;
            }
            sleep(BETWEEN_LOOKS).await;
        }
    }

    /// Gives signs of life while the hold has a lease.
    pub(super) async fn watch_over(&self, hold: &Hold) -> Infallible {
        let Some(period) = self.period else { return pending().await };
        let mut ticks = interval_at(Instant::now() + period, period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if let (Some(socket), false) = (&self.socket, hold.valid_for().is_zero()) {
                // It must not wait for room: the lease could end meanwhile.
                let _ = socket.try_send(b"WATCHDOG=1");
            }
        }
    }
}

fn connect(name: &OsString) -> Result<UnixDatagram, Failure> {
    let address = match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
        [b'/', ..] => SocketAddr::from_pathname(name),
        _ => {
            return Err(Failure::usage(format!(
                "NOTIFY_SOCKET is {name:?}, but has to be a path, or a name that begins with @"
            )));
        }
    };
    let connected = || {
        let socket = Socket::unbound()?;
        socket.connect_addr(&address?)?;
        socket.set_nonblocking(true)?;
        UnixDatagram::from_std(socket)
    };
    connected().map_err(|error: std::io::Error| {
        Failure::other(format!(
            "systemd cannot be notified at NOTIFY_SOCKET={}: {error}",
            name.to_string_lossy()
        ))
    })
}

/// Returns who holds the lock, and how many wait before us.
async fn place(client: &Client, lock: &Lock) -> Option<String> {
    let contenders = lock.contenders().await.ok()?;
    let holders: Vec<_> =
        contenders.iter().filter(|one| one.holds).map(|one| harmless(&one.identity)).collect();
    let mut place = match &*holders {
        [] => String::new(),
        holders => format!(", held by {}", holders.join(", ")),
    };
    let waiting = contenders.iter().filter(|one| !one.holds);
    let before = waiting.map(|one| one.session).position(|session| Some(session) == client.session_id());
    match before {
        Some(0) => place += "; we are next",
        Some(before) => place += &format!("; {before} before us in the queue"),
        None => {}
    }
    Some(place)
}
