pub(crate) mod ask;
mod attachment;
mod attempt_marks;
pub(crate) mod connection;
#[allow(clippy::disallowed_methods, reason = "it looks at hosts, which take real time")]
pub(crate) mod diagnose;
pub(crate) mod ensemble_id;
#[cfg(test)]
#[path = "../../tests/support/fake.rs"]
pub(crate) mod fake;
pub(crate) mod guardian;
pub(crate) mod heartbeat;
pub(crate) mod lateness;
pub(crate) mod nodes;
pub(crate) mod pool;
mod refusals;
pub(crate) mod session;
mod session_keeper;
pub(crate) mod session_key;
pub(crate) mod slot;
