//! What is known of the servers of a session, over all its connections.

use super::Connection;
use crate::level::ServerLevel;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use zookeeper_client::Error;

/// What it takes to attach another connection to a session.
#[derive(Clone)]
pub(crate) struct SessionInfo {
    pub(super) library: zookeeper_client::SessionInfo,
    pub(super) servers: Servers,
}

/// What the servers know.
#[derive(Clone)]
pub(super) struct Servers {
    /// Whether the options say so.
    is_stated: bool,
    are_old: Arc<AtomicBool>,
}

impl Servers {
    pub(super) fn new(stated: Option<ServerLevel>, asked: ServerLevel) -> Self {
        let are_old = stated.unwrap_or(asked) == ServerLevel::V3_4;
        Self { is_stated: stated.is_some(), are_old: Arc::new(are_old.into()) }
    }

    pub(super) fn level(&self) -> ServerLevel {
        if self.are_old.load(Ordering::Relaxed) { ServerLevel::V3_4 } else { ServerLevel::V3_5 }
    }
}

impl Connection {
    /// What came of a creation. If the server does not know the request though it was taken for a newer one, it did not say
    /// in time which version it is, or another server of the ensemble is older: the next connection of the session asks
    /// for no more than it knows, and the attempt goes on there.
    pub(super) fn unless_too_old(&self, error: Error) -> Error {
        let Self { serving, level, servers, .. } = self;
        if error != Error::Unimplemented || servers.is_stated || *level == ServerLevel::V3_4 {
            return error;
        }
        tracing::info!("a server is older than 3.5");
        servers.are_old.store(true, Ordering::Relaxed);
        serving.give_up();
        Error::ConnectionLoss
    }

    /// The same of a transaction with a creation. A server of 3.4 cannot read it, and says only that.
    pub(super) fn unless_unread(&self, error: Error) -> Error {
        match error {
            Error::MarshallingError => self.unless_too_old(Error::Unimplemented),
            error => self.unless_too_old(error),
        }
    }
}
