pub(crate) mod answers;
pub(crate) mod checks;
pub(crate) mod connecting;
mod connection;
pub(crate) mod doubts;
pub(crate) mod encryption;
pub(crate) mod ensemble;
#[cfg(feature = "tls")]
#[allow(clippy::disallowed_methods, reason = "it looks at hosts, which take real time")]
pub(crate) mod handshake;
pub(crate) mod login;
pub(crate) mod node_data;
pub(crate) mod operations;
pub(crate) mod password;
mod paths;
#[allow(clippy::disallowed_methods, reason = "it looks at hosts, which take real time")]
pub(crate) mod probe;
pub(crate) mod rights;
pub(crate) mod servers;
pub(crate) mod serving;
pub(crate) mod silence;
mod spawning;
pub(crate) mod zookeeper;
