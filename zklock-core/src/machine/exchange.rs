//! The words in which a contender and its driver talk: requests, what became of them, the verdict.

use super::Moment;

/// A request to the ensemble. Names are those of children of the lock's node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Operation {
    /// Create an ephemeral sequential child whose name begins with this.
    Create {
        /// The name up to the sequence number.
        prefix: String,
    },
    /// Create the lock's node and those above it, where they are missing.
    CreateParents,
    /// List the children.
    List,
    /// Let the server catch up with the leader before it answers what follows.
    Sync,
    /// Read who owns the child, and its `czxid`.
    Inspect {
        /// The child.
        name: String,
    },
    /// Read the child and leave a watch on it.
    Watch {
        /// The child.
        name: String,
    },
    /// Let the quorum commit that the child is there.
    Check {
        /// The child.
        name: String,
    },
    /// Delete the child.
    Delete {
        /// The child.
        name: String,
    },
}

/// What became of an [`Operation`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// The child was created.
    Created(Node),
    /// The children.
    Children(Vec<String>),
    /// The child is there.
    Found(Node),
    /// Done: synced, watched, checked, deleted, parents created.
    Done,
    /// The node is not there, or its parent.
    NoNode,
    /// The ensemble answered that it will not do it.
    Refused(Refusal),
    /// It may have been done, or may yet be done, or not.
    Unknown,
    /// The session is over, and with it every node that it owned.
    SessionOver,
}

/// A node as the server described it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Node {
    /// The child's name.
    pub name: String,
    /// The transaction that created it and the session that owns it, where the server told.
    pub origin: Option<Origin>,
}

/// Where a node comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Origin {
    /// The transaction that created it: the fencing token.
    pub czxid: i64,
    /// The session that owns it.
    pub session: i64,
}

/// Why an attempt came to nothing.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Refusal {
    /// Somebody else holds the lock, and the attempt was not to wait.
    Busy,
    /// This contender and ours could both believe that they hold.
    ForeignContender(String),
    /// The node with our mark belongs to another session.
    NotOurs(String),
    /// The lock's node vanishes again whenever it is created.
    NoParent,
    /// The chroot is missing.
    NoRoot,
    /// The access list does not allow it.
    Denied,
    /// The server answered with something else that retrying does not mend.
    Answer(String),
}

/// What the caller is told, once.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Verdict {
    /// The lock is held by the node of this name and origin.
    Granted {
        /// The node's name.
        name: String,
        /// The fencing token.
        czxid: i64,
        /// When the latest write was sent that proved the node.
        proven: Moment,
    },
    /// The attempt is over; its node, if any, is being deleted.
    Failed(Refusal),
}

/// What a watch told of the node it was left on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WatchEvent {
    /// It was deleted.
    Deleted,
    /// Something else happened.
    Changed,
}

/// The time, and how long the session is proven to be alive.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Now {
    /// The time.
    pub moment: Moment,
    /// The end of the session's lease.
    pub lease_until: Moment,
}

/// Whether an attempt waits for its turn.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Patience {
    /// Until it is its turn.
    Waits,
    /// Not at all: it fails with [`Refusal::Busy`].
    TriesOnce,
}
