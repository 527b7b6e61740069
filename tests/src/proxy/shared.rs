//! The state of a proxy and the thread that serves it.
//!
//! One lock keeps a test's orders and the thread's work apart. Both end by passing on everything that may pass, so an
//! order is carried out when its call returns. It also wakes the thread, which may now have to wait for something else.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::net::connect_unspec;

use super::link::Link;
use super::message::Side;
use super::rules::Rules;

/// A fault that strikes all connections at once.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fault {
    Cut,
    Reset,
    HalfOpen,
}

/// State that a proxy shares with its thread, its hooks and its gates.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    wake: OwnedFd,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) rules: Rules,
    pub(super) links: Vec<Link>,
    pub(super) accepted: u64,
    upstream: SocketAddr,
    framed: bool,
    pub(super) refusing: bool,
    ending: bool,
}

impl Shared {
    pub(super) fn new(upstream: SocketAddr, framed: bool) -> Arc<Self> {
        let wake = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC);
        Arc::new_cyclic(|this: &Weak<Self>| Self {
            state: Mutex::new(State {
                rules: Rules::new(Weak::clone(this)),
                links: Vec::new(),
                accepted: 0,
                upstream,
                framed,
                refusing: false,
                ending: false,
            }),
            wake: wake.expect("an eventfd can be made"),
        })
    }

    /// Carries out an order, and everything that follows from it.
    pub(super) fn change<T>(&self, order: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state();
        let result = order(&mut state);
        state.flush();
        drop(state);
        // It can only fail when it is full of wakes already.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        result
    }

    /// Serves until the proxy is dropped.
    pub(super) fn run(&self, listener: &TcpListener) {
        loop {
            let state = self.state();
            if state.ending {
                return;
            }
            let (waits, deadline) = state.interests();
            drop(state);

            let mut polled =
                vec![PollFd::new(&self.wake, PollFlags::IN), PollFd::new(listener, PollFlags::IN)];
            polled.extend(
                waits.iter().map(|(_, _, socket, flags)| PollFd::from_borrowed_fd(socket.as_fd(), *flags)),
            );
            let timeout = deadline.map(|due| {
                let left = due.saturating_duration_since(Instant::now());
                Timespec::try_from(left).expect("delays are short")
            });
            // After an interrupt, look again, as after any other wait.
            let _ = poll(&mut polled, timeout.as_ref());
            let ready: Vec<_> = polled.iter().map(|waited| !waited.revents().is_empty()).collect();
            let _ = rustix::io::read(&self.wake, &mut [0; 8]);

            let mut state = self.state();
            if ready[1] {
                state.accept(listener);
            }
            for ((number, side, ..), _) in waits.iter().zip(&ready[2..]).filter(|(_, ready)| **ready) {
                state.read(*number, *side);
            }
            state.flush();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Strikes all connections.
    pub(super) fn strike(&mut self, fault: Fault) {
        self.links.iter_mut().for_each(|link| link.close(fault));
    }

    pub(super) fn end(&mut self) {
        self.ending = true;
        self.strike(Fault::Cut);
    }

    #[allow(clippy::type_complexity, reason = "used once, by the loop above")]
    fn interests(&self) -> (Vec<(u64, Side, Arc<TcpStream>, PollFlags)>, Option<Instant>) {
        let of_link = |link: &Link| {
            let number = link.number;
            link.interests(&self.rules)
                .into_iter()
                .map(move |(socket, side, flags)| (number, side, socket, flags))
        };
        let deadline = self.links.iter().filter_map(|link| link.deadline(&self.rules)).min();
        (self.links.iter().flat_map(of_link).collect(), deadline)
    }

    fn accept(&mut self, listener: &TcpListener) {
        loop {
            match listener.accept() {
                Ok((client, _)) if self.refusing || client.set_nonblocking(true).is_err() => {
                    let _ = connect_unspec(&client);
                }
                Ok((client, _)) => {
                    let _ = client.set_nodelay(true);
                    self.accepted += 1;
                    self.links.push(Link::new(self.accepted, client, self.framed));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Nobody waits, or a client has already gone, and the next poll shows whether there are more.
                Err(_) => return,
            }
        }
    }

    fn read(&mut self, number: u64, side: Side) {
        if let Some(link) = self.links.iter_mut().find(|link| link.number == number) {
            link.read(side, &mut self.rules);
        }
    }

    /// Passes on everything that may pass.
    fn flush(&mut self) {
        self.links.iter_mut().for_each(|link| link.pump(&mut self.rules, self.upstream));
        self.links.retain(|link| !link.over);
    }
}
