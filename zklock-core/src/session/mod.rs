pub(crate) mod ask;
pub(crate) mod connection;
#[allow(clippy::disallowed_methods, reason = "it looks at hosts, which take real time")]
pub(crate) mod diagnose;
#[cfg(test)]
pub(crate) mod fake;
pub(crate) mod guardian;
pub(crate) mod heartbeat;
pub(crate) mod pool;
pub(crate) mod session;
pub(crate) mod session_key;
