//! How a server is set up.

use std::time::Duration;

use crate::wire::profile::Profile;
use crate::wire::words;

/// The configuration of a server.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) tick: Duration,
    pub(crate) session_timeouts: (Duration, Duration),
    pub(crate) container_check: Duration,
    pub(crate) extended_types: bool,
    pub(crate) local_sessions: bool,
    /// The imitated server.
    pub(crate) profile: Profile,
    /// The longest message that is accepted.
    pub(crate) max_frame: usize,
    pub(crate) max_connections: usize,
    /// The four-letter words that are answered.
    pub(crate) words: words::Allowed,
    /// The address that it listens on.
    pub(crate) port: u16,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            tick: Duration::from_secs(2),
            session_timeouts: (Duration::from_secs(4), Duration::from_secs(40)),
            container_check: Duration::from_secs(60),
            extended_types: false,
            local_sessions: false,
            profile: Profile::default(),
            max_frame: 0xf_ffff,
            max_connections: 4096,
            words: words::Allowed::new("*"),
            port: 0,
        }
    }
}
