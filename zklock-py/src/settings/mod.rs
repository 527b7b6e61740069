//! How to connect, and as whom.

pub(crate) mod credentials;
pub(crate) mod guardian;
pub(crate) mod hosts;
pub(crate) mod keyword;
pub(crate) mod options;
pub(crate) mod secret;
pub(crate) mod tls;
