//! A TCP connection that fails on demand.
//!
//! A [`Proxy`] is in front of one server, on its own port. It can cut, reset, freeze, delay and refuse. In front of a
//! client port it also understands ZooKeeper's messages, so that a fault can strike at exactly the message that a test
//! is about ([`Proxy::on`]), and a test can count messages ([`Proxy::record`]).
//!
//! One thread serves all connections of a proxy, and every order is carried out before the call returns: a test that
//! freezes a proxy need not wait until the freeze takes effect.

mod hook;
mod link;
mod message;
mod rules;
mod shared;

pub use hook::{Action, Direction, Gate, Hook, Rewriter, Trigger};
pub use message::{Counts, Kind, Message, Side};

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::server::Server;
use shared::{Fault, Shared};

/// A faulty connection to one server. Dropping it closes all its connections.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    /// A proxy in front of a client port, which understands ZooKeeper's messages.
    ///
    /// # Panics
    ///
    /// If no port is free.
    #[track_caller]
    pub fn start(upstream: SocketAddr) -> Self {
        Self::launch(upstream, true)
    }

    /// A proxy that passes any bytes, for the ports between servers.
    ///
    /// # Panics
    ///
    /// If no port is free.
    #[track_caller]
    pub fn plain(upstream: SocketAddr) -> Self {
        Self::launch(upstream, false)
    }

    /// A proxy in front of a server's client port.
    #[track_caller]
    pub fn before(server: &Server) -> Self {
        Self::start(server.address())
    }

    #[track_caller]
    fn launch(upstream: SocketAddr, framed: bool) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port on loopback");
        listener.set_nonblocking(true).expect("a listener can be made non-blocking");
        let address = listener.local_addr().expect("a bound listener has an address");
        let shared = Shared::new(upstream, framed);
        let thread = thread::Builder::new().name("proxy".to_owned()).spawn({
            let shared = Arc::clone(&shared);
            move || shared.run(&listener)
        });
        Self { address, shared, thread: Some(thread.expect("a thread can be started")) }
    }

    /// The address for clients.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The same address as a connect string.
    pub fn connect_string(&self) -> String {
        self.address.to_string()
    }

    /// Closes all connections in an orderly way (FIN on both sides). New ones are accepted.
    pub fn cut(&self) {
        self.shared.change(|state| state.strike(Fault::Cut));
    }

    /// Resets all connections (RST on both sides). New ones are accepted.
    pub fn reset(&self) {
        self.shared.change(|state| state.strike(Fault::Reset));
    }

    /// Closes the server's side of all connections, and does not tell the clients: what they send is dropped. New
    /// connections work.
    pub fn half_open(&self) {
        self.shared.change(|state| state.strike(Fault::HalfOpen));
    }

    /// Holds all bytes of a direction, and the end of a connection too, as a broken network would. New connections are
    /// accepted and held. If a client gives up such a connection meanwhile, it never reaches the server.
    pub fn freeze(&self, direction: Direction) {
        self.shared.change(|state| state.rules.freeze(direction));
    }

    /// Lets everything that was frozen pass.
    pub fn thaw(&self) {
        self.shared.change(|state| state.rules.thaw());
    }

    /// With `true`, new connections are reset at once. Existing connections stay.
    pub fn refuse(&self, refused: bool) {
        self.shared.change(|state| state.refusing = refused);
    }

    /// From now on, everything arrives this much later, in both directions. Zero ends the delay.
    pub fn delay(&self, delay: Duration) {
        self.shared.change(|state| state.rules.delay = delay);
    }

    /// Sets a fault for a future message.
    pub fn on(&self, trigger: Trigger) -> Hook {
        let proxy = Arc::downgrade(&self.shared);
        let (id, outcome) = self.shared.change(|state| state.rules.arm(trigger));
        Hook { id, outcome, proxy }
    }

    /// Starts a new recording.
    pub fn record(&self) {
        self.shared.change(|state| state.rules.recorder.start());
    }

    /// The recording so far. Starts a new one.
    pub fn take_record(&self) -> Vec<Message> {
        self.shared.change(|state| state.rules.recorder.take())
    }

    /// The recording so far.
    pub fn messages(&self) -> Vec<Message> {
        self.shared.change(|state| state.rules.recorder.messages())
    }

    /// The requests in the recording so far, without pings.
    pub fn requests(&self) -> Vec<Message> {
        let is_one = |message: &Message| message.side == Side::Request && message.kind != Kind::Ping;
        self.messages().into_iter().filter(is_one).collect()
    }

    /// How many messages were recorded so far.
    pub fn counts(&self) -> Counts {
        self.shared.change(|state| state.rules.recorder.counts())
    }

    /// The sessions that were granted through this proxy, the latest last: id, password, timeout. See
    /// [`wire::try_expire`](crate::wire::try_expire).
    pub fn session(&self) -> Vec<(i64, Vec<u8>, Duration)> {
        let greetings = self.shared.change(|state| state.rules.greetings.clone());
        let timeout = |millis| Duration::from_millis(u64::try_from(millis).unwrap_or(0));
        greetings.into_iter().map(|(id, password, millis)| (id, password, timeout(millis))).collect()
    }

    /// How many connections are open.
    pub fn connections(&self) -> usize {
        self.shared.change(|state| state.links.len())
    }

    /// How many connections have been accepted since the start; refused ones do not count.
    pub fn accepted(&self) -> u64 {
        self.shared.change(|state| state.accepted)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.change(shared::State::end);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
