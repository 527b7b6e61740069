pub(crate) mod attempts;
pub(crate) mod clock;
pub(crate) mod debt;
pub(crate) mod error;
pub(crate) mod failure;
pub(crate) mod files;
pub(crate) mod histogram;
pub(crate) mod leaving;
pub(crate) mod owner;
pub(crate) mod parts;
pub(crate) mod platform;
pub(crate) mod sockets;
pub(crate) mod stats;
pub(crate) mod sync;
#[allow(clippy::disallowed_methods, reason = "its deadlines are the callers'")]
pub(crate) mod wait;
