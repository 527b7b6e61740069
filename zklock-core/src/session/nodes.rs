//! What is known about the nodes of a session.

use crate::zookeeper::serving::End;

/// The state of a session's nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SessionNodes {
    /// They may exist: the session is open, or is being closed.
    Live,
    /// They are gone: the servers have said that the session is over.
    Gone,
    /// They may exist until the servers end the session by themselves, and nobody will hear of that.
    Abandoned,
}

impl SessionNodes {
    /// Returns their state if the connection ended in this way while the session was being closed.
    pub(super) fn after(end: End) -> Self {
        match end {
            End::SessionOver | End::Closed => Self::Gone,
            End::Lost | End::Refused => Self::Abandoned,
        }
    }
}
