//! A session on each server that is never silent.
//!
//! ZooKeeper 3.8.0 can leave a request of a lone client unanswered until another request comes by (ZOOKEEPER-4537).
//! Tests that are not about that keep other sessions talking. Four-letter words would not help: they do not go through
//! the request pipeline.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use crate::wire::Connection;

const PAUSE: Duration = Duration::from_millis(200);

/// Sessions that send requests until this is dropped.
#[derive(Debug)]
#[must_use = "the talk ends when this is dropped"]
pub struct Talk {
    /// Dropping them ends the threads. They are not joined: a thread in the middle of a request to a dead server ends
    /// at its own time limit.
    _talkers: Vec<Sender<()>>,
}

impl Talk {
    pub(crate) fn start(addresses: impl IntoIterator<Item = SocketAddr>) -> Self {
        let talkers = addresses.into_iter().map(|address| {
            let (talker, ended) = channel();
            thread::spawn(move || talk(address, &ended));
            talker
        });
        Self { _talkers: talkers.collect() }
    }
}

fn talk(address: SocketAddr, ended: &Receiver<()>) {
    let mut slot: Option<Connection> = None;
    while ended.recv_timeout(PAUSE) == Err(RecvTimeoutError::Timeout) {
        // A server that is down or silent is tried again in the next round, with a new session.
        let Some(mut connection) = slot.take().or_else(|| open(address)) else { continue };
        slot = connection.exists("/", false).is_ok().then_some(connection);
    }
    if let Some(connection) = slot {
        connection.farewell();
    }
}

fn open(address: SocketAddr) -> Option<Connection> {
    let mut connection = Connection::open(address, Duration::from_secs(10)).ok()?;
    connection.set_patience(Duration::from_secs(1));
    Some(connection)
}
