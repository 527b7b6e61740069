//! What the requests of one connection need.

use super::rights::NodeList;
use super::servers::Servers;
use super::serving::Serving;
use super::silence::Watches;
use crate::connect::level::ServerLevel;
use std::sync::Arc;
use zookeeper_client::{Client, Error};

/// A connection, while it is open and after that.
#[derive(Clone)]
pub(super) struct Connection {
    pub(super) client: Arc<Client>,
    pub(super) serving: Arc<Serving>,
    pub(super) watches: Arc<Watches>,
    pub(super) access: NodeList,
    /// The level of the requests that this connection may send.
    pub(super) level: ServerLevel,
    pub(super) servers: Servers,
}

impl Connection {
    /// Returns the error of a creation, corrected if the server is older than it was taken for. Such a server did not say
    /// in time which version it is, or another server of the ensemble is older than it. The next connection of the session
    /// then asks only for what old servers know, and the attempt goes on there.
    pub(super) fn unless_too_old(&self, error: Error) -> Error {
        let Self { serving, level, servers, .. } = self;
        if error != Error::Unimplemented || *level == ServerLevel::V3_4 || !servers.note_old() {
            return error;
        }
        serving.give_up();
        Error::ConnectionLoss
    }

    /// Does the same for a transaction with a creation. A server of version 3.4 cannot read it, and says only that.
    pub(super) fn unless_unread(&self, error: Error) -> Error {
        match error {
            Error::MarshallingError => self.unless_too_old(Error::Unimplemented),
            error => self.unless_too_old(error),
        }
    }
}
