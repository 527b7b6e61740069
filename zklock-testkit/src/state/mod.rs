//! The server without sockets, threads and a clock.

pub(crate) mod connection;
pub(crate) mod graveyard;
pub(crate) mod node;
pub(crate) mod report;
pub(crate) mod settings;
pub(crate) mod transaction;
pub(crate) mod tree;
pub(crate) mod watches;
pub(crate) mod world;
