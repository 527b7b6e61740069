//! What is known of a connection.

use std::net::SocketAddr;
use std::time::Duration;

use crate::wire::access::Id;

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) session: Option<i64>,
    /// The identities that it has proven. Its address counts as one.
    pub(crate) shown: Vec<Id>,
    pub(crate) peer: SocketAddr,
    /// When it was opened, by the wall clock, in ms.
    pub(crate) since: i64,
    pub(crate) received: u64,
    pub(crate) sent: u64,
    pub(crate) last: Last,
}

/// The last request of a connection, for `cons`.
#[derive(Debug)]
pub(crate) struct Last {
    pub(crate) operation: &'static str,
    pub(crate) xid: i32,
    pub(crate) zxid: i64,
    /// When it was answered, since the start.
    pub(crate) answered: Duration,
}
