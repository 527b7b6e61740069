//! Why a request, a connection or a login did not work. This is for the code of this crate; users get an
//! [`Error`](crate::base::error::Error).

use crate::base::error::Conflict;

/// Why something did not work, sorted by what the receiver can do about it. It displays the problem, for a message or a log.
///
/// No function fails in all of these ways. A match names those that its caller acts upon. Its last arm takes the cautious view
/// of the others: the write may have been done, the session may live on.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// The problem may pass, and other servers may not have it: pause, then try the next server.
    #[error("{0}")]
    TryAgain(String),
    /// Like `TryAgain`. Besides, the server sent something that was not passed on to the client library: keep the reason for
    /// those who ask why no session is open.
    #[error("{server} {why}")]
    NotZooKeeper { server: String, why: String },
    /// The same request would be refused again, until somebody changes a password, rights or a setup: report the reason. A
    /// login is first tried at all servers, because some may know a new password before others.
    #[error("{0}")]
    Refused(String),
    /// The connection broke, no reply came in time, or the node changed meanwhile: ask again. A write may have been done, so
    /// find out, or report that it is uncertain.
    #[error("the reply was lost")]
    Unknown,
    /// The session is over, by the servers' word or by ours: go on in the next one. Whether its nodes are gone, only the
    /// session knows. While a connection is made, it is the servers' word.
    #[error("the session is over")]
    SessionOver,
    /// The session cannot be taken up again, though it may live on at the servers: stop trying.
    #[error("{0}")]
    GivenUp(String),
    /// A node that guards writes is gone, so nothing was written: its owner neither holds nor waits any more.
    #[error("a node that guards the writes is gone")]
    GuardGone,
    /// One of the writes could not be done, so nothing was written: report which one and why, or see whether its node is
    /// already as it should be.
    #[error("{problem}")]
    Conflict { at: Conflict, problem: String },
}
