//! Whether all servers refuse the client.

use crate::connect::options::ClientOptions;

/// Counts refusals, to find out whether any of the hosts may still let the client in. While passwords are being changed, some
/// servers know the new one and others do not. Each try begins with another host, so as many refusals in a row as there are
/// hosts come from all hosts that answer.
pub(super) struct Refusals(usize);

impl Refusals {
    pub(super) fn of(options: &ClientOptions) -> Self {
        Self(options.hosts.servers.len())
    }

    /// Counts one more. Returns whether they come from all hosts.
    pub(super) fn count_one(&mut self) -> bool {
        self.0 = self.0.saturating_sub(1);
        self.0 == 0
    }
}
