//! What the session knows of a node at one moment.

/// How far the nodes of a place that was granted can be relied on at this moment. The shell works it out when it is asked,
/// because a session may learn of a loss at any time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Trust {
    /// Its hold is good, its lease runs, and there is a connection, so that its loss would be reported. So it may be taken
    /// without a request.
    Known,
    /// As far as is known it is good, but the quorum has to confirm it before it is taken.
    Unproven,
    /// It is lost, or its release has begun.
    Over,
}
