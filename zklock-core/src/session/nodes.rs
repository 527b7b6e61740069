//! What is known about the nodes of a session.

/// The state of a session's nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Nodes {
    /// They may exist: the session is open, or is being closed.
    Kept,
    /// They are gone: the servers have said that the session is over.
    Gone,
    /// They may exist until the servers end the session by themselves, and nobody will hear of that.
    Left,
}
