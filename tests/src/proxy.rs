//! A TCP connection that fails on demand.
//!
//! A [`Proxy`] stands before one server, on a port of its own. It can cut, reset, freeze, delay and refuse; before a
//! client port it also understands ZooKeeper's messages, so that a fault can strike at exactly the message that a
//! test is about ([`Proxy::on`]), and so that a test can count what went by ([`Proxy::record`]).
//!
//! One thread serves all connections of a proxy, and every order is carried out before the call returns: a test that
//! freezes a proxy need not wait for the freeze to be felt.

mod hook;
mod link;
mod message;
mod rules;
mod shared;

pub use hook::{Action, Direction, Gate, Hook, Rewriter, Trigger};
pub use message::{Counts, Kind, Message, Side, one_flight};

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::server::Server;
use shared::{Fault, Shared};

/// A faulty way to one server. Dropping it closes all its connections.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    /// A proxy before a client port, which understands ZooKeeper's messages.
    ///
    /// # Panics
    ///
    /// When no port is free.
    #[track_caller]
    pub fn start(upstream: SocketAddr) -> Self {
        Self::launch(upstream, true)
    }

    /// A proxy that passes bytes, whatever they are: for the ports between servers.
    ///
    /// # Panics
    ///
    /// When no port is free.
    #[track_caller]
    pub fn plain(upstream: SocketAddr) -> Self {
        Self::launch(upstream, false)
    }

    /// A proxy before a server's client port.
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

    /// Where clients are to connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The same as a client is told it.
    pub fn connect_string(&self) -> String {
        self.address.to_string()
    }

    /// Closes all connections in an orderly way (FIN on both sides). New ones are welcome.
    pub fn cut(&self) {
        self.shared.change(|state| state.strike(Fault::Cut));
    }

    /// Resets all connections (RST on both sides). New ones are welcome.
    pub fn reset(&self) {
        self.shared.change(|state| state.strike(Fault::Reset));
    }

    /// Closes the server's side of all connections, and tells the clients nothing: what they send is swallowed. New
    /// connections work.
    pub fn half_open(&self) {
        self.shared.change(|state| state.strike(Fault::HalfOpen));
    }

    /// Holds all bytes of a direction, and the end of a connection too, as a broken network would. New connections
    /// are accepted and held; one that its client gives up meanwhile never reaches the server.
    pub fn freeze(&self, direction: Direction) {
        self.shared.change(|state| state.rules.freeze(direction));
    }

    /// Lets go on what was frozen.
    pub fn thaw(&self) {
        self.shared.change(|state| state.rules.thaw());
    }

    /// While `true`, new connections are reset at once. Those that are there stay.
    pub fn refuse(&self, refused: bool) {
        self.shared.change(|state| state.refuse(refused));
    }

    /// From now on, everything arrives this much later, each way. Zero ends it.
    pub fn delay(&self, delay: Duration) {
        self.shared.change(|state| state.rules.set_delay(delay));
    }

    /// Sets a fault for a message to come.
    pub fn on(&self, trigger: Trigger) -> Hook {
        let proxy = Arc::downgrade(&self.shared);
        let (id, outcome) = self.shared.change(|state| state.rules.arm(trigger));
        Hook { id, outcome, proxy }
    }

    /// Starts recording, from nothing.
    pub fn record(&self) {
        self.shared.change(|state| state.rules.recorder.start());
    }

    /// What was recorded so far; recording goes on from nothing.
    pub fn take_record(&self) -> Vec<Message> {
        self.shared.change(|state| state.rules.recorder.take())
    }

    /// What was recorded so far.
    pub fn messages(&self) -> Vec<Message> {
        self.shared.change(|state| state.rules.recorder.messages())
    }

    /// How many messages were recorded so far.
    pub fn counts(&self) -> Counts {
        self.shared.change(|state| state.rules.recorder.counts())
    }

    /// The sessions that were granted through this proxy, the latest last: id, password, timeout. See
    /// [`wire::expire`](crate::wire::expire).
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
