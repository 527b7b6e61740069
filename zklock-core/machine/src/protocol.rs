//! The language between a machine and its driver: requests, their outcomes, and verdicts.

use super::Moment;
use std::sync::Arc;

/// The data of a node whose holder is asked to release the lock. It is the word that Curator's `Revoker` writes.
pub const REVOKE: &[u8] = b"__REVOKE__";

/// A request to the ensemble. Nodes are named by their paths.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[expect(missing_docs, reason = "the variants say what their fields are")]
pub enum Operation {
    /// Create an ephemeral sequential node.
    Create(NewNode),
    /// Create ephemeral sequential nodes in one transaction.
    CreateAll(Vec<NewNode>),
    /// Create an ephemeral node, in one transaction with a check that another node exists.
    CreateWithin { path: String, guard: String, data: Arc<[u8]> },
    /// Create an ephemeral node.
    CreateSingle { path: String, data: Arc<[u8]> },
    /// Create two ephemeral nodes of one directory in one transaction, the companion first. No other attempt has one of that
    /// name: if it already exists, an earlier request has created both, so the outcome is [`Unknown`](Outcome::Unknown).
    /// [`NodeExists`](Outcome::NodeExists) is about the other node.
    CreatePair { path: String, companion: String, data: Arc<[u8]> },
    /// Create a directory and those above it, if they are missing.
    CreateParents { directory: Arc<str> },
    /// The same with directories that stay when they are empty, for others that create theirs once.
    CreateLastingParents { directory: Arc<str> },
    /// Delete a directory that has no children and no data, so that the numbers of its children begin again.
    DeleteDirectory { directory: Arc<str> },
    /// List the children of a directory.
    List { directory: Arc<str> },
    /// List those children of a directory that belong to this session, whose names begin in this way, and whose data have the
    /// same [mark](crate::name::marked) below them as these.
    ListMarked { directory: Arc<str>, prefix: String, data: Arc<[u8]> },
    /// List the children of a directory and leave a watch on it.
    ListAndWatch { directory: Arc<str> },
    /// Let the quorum commit something that changes nothing, so that later reads on the same connection are at least as
    /// new. A `sync` would not do: a leader that has been deposed and does not know it yet answers it from its own state.
    Barrier { directory: Arc<str> },
    /// Read the owner of a node, and its `czxid`.
    Inspect { path: String },
    /// Like [`Inspect`](Self::Inspect), and leave a watch, whether the node exists or not.
    InspectAndWatch { path: String },
    /// Ask whether the node belongs to this session. Unlike [`Inspect`](Self::Inspect), this takes no right to read the
    /// node, and does not report the transaction.
    Owns { path: String },
    /// Read all children of a directory, to see which transactions created them.
    Survey { directory: Arc<str> },
    /// Read a node and leave a watch on it.
    Watch { path: String },
    /// Read whether a node [asks](REVOKE) its holder to let go, and leave a watch on it. The node is our own.
    WatchOwn { path: String },
    /// Read the number of permits, and leave a watch on the node that stores it, even if it does not exist yet.
    ReadLimit { path: Arc<str> },
    /// Let the quorum commit that the nodes exist.
    Check { paths: Vec<String> },
    /// Create a persistent node, if the guards exist, in one transaction. Or renew it: write its data, so that it is as old as
    /// one that is created now, and has another version.
    Open { guards: Vec<String>, path: String, renews: bool, data: Arc<[u8]> },
    /// Delete a node.
    Delete { path: String },
    /// Delete two nodes in one transaction. If one does not exist, the other stays.
    DeletePair { path: String, companion: String },
    /// Delete a node, and the persistent one if it has this version, in one transaction.
    Close { path: String, opened: String, version: i32 },
}

impl Operation {
    /// Whether it deletes a node of ours that must go before others can have the lock.
    pub const fn is_deletion(&self) -> bool {
        matches!(self, Self::Delete { .. } | Self::DeletePair { .. })
    }

    /// Returns the directory all of whose children it lists.
    pub const fn listed(&self) -> Option<&Arc<str>> {
        match self {
            Self::List { directory } | Self::ListAndWatch { directory } => Some(directory),
            _ => None,
        }
    }

    /// Whether success means that the quorum has committed it.
    pub const fn is_quorum_write(&self) -> bool {
        match self {
            Self::Create(_)
            | Self::CreateAll(_)
            | Self::CreateWithin { .. }
            | Self::CreateSingle { .. }
            | Self::CreatePair { .. }
            | Self::DeleteDirectory { .. }
            | Self::Barrier { .. }
            | Self::Check { .. }
            | Self::Open { .. }
            | Self::Delete { .. }
            | Self::DeletePair { .. }
            | Self::Close { .. } => true,
            // Creating parents that exist writes nothing. The others only read.
            Self::CreateParents { .. }
            | Self::CreateLastingParents { .. }
            | Self::List { .. }
            | Self::ListMarked { .. }
            | Self::ListAndWatch { .. }
            | Self::Inspect { .. }
            | Self::InspectAndWatch { .. }
            | Self::Owns { .. }
            | Self::Survey { .. }
            | Self::Watch { .. }
            | Self::WatchOwn { .. }
            | Self::ReadLimit { .. } => false,
        }
    }
}

/// A node to be created, to whose name the server appends a sequence number.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct NewNode {
    /// The directory of the node.
    pub directory: Arc<str>,
    /// The name before the number.
    pub prefix: String,
    /// The data of the node.
    pub data: Arc<[u8]>,
}

/// The outcome of an [`Operation`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// The nodes were created, in the order in which they were asked for.
    Created(Vec<Node>),
    /// The children.
    Children(Vec<String>),
    /// The children, each with its origin. Children that were deleted meanwhile are missing.
    Surveyed(Vec<Node>),
    /// The node exists.
    Found(Node),
    /// The number of permits; `None` if the node does not exist.
    Limit(Option<u32>),
    /// Done: committed, watched, checked, deleted, parents created; or the node belongs to this session.
    Done,
    /// The node is watched, and it [asks](REVOKE) its holder to let go.
    Revoked,
    /// The node, its parent or its guard does not exist, or the node does not belong to this session.
    NoNode,
    /// A node of this name already exists.
    NodeExists,
    /// The directory has children.
    NotEmpty,
    /// The ensemble refused the request.
    Refused(Refusal),
    /// It is not known whether the request was executed, or will yet be.
    Unknown,
    /// The session is over, and so all its nodes are gone.
    SessionOver,
}

impl Outcome {
    /// Returns the reason if it was refused.
    pub const fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }
}

/// A node as the server described it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Node {
    /// Its name, within its directory.
    pub name: String,
    /// The transaction that created it and the session that owns it, if the server reported them.
    pub origin: Option<Origin>,
}

/// The origin of a node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Origin {
    /// The transaction that created it: the fencing token. Of a persistent node, the one that last wrote it.
    pub czxid: i64,
    /// The session that owns it; 0 for a persistent node.
    pub session: i64,
}

/// The reason why an attempt failed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Refusal {
    /// Others hold the lock, and the attempt should not wait.
    Busy,
    /// This contender and ours could both believe that they hold.
    ForeignContender(String),
    /// The node with our mark belongs to another session.
    NotOurs(String),
    /// The lock's node disappears whenever it has been created.
    NoParent,
    /// The numbers of this directory's children are used up, and it cannot be replaced.
    UsedUp(String),
    /// The chroot is missing.
    NoRoot,
    /// The writer within which a reader wanted to queue no longer exists.
    WriterGone,
    /// The access list does not allow it.
    Denied,
    /// The server gave another answer, which a retry would not change.
    Answer(String),
}

/// A report to the caller.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Verdict {
    /// The lock is held by these nodes.
    Granted {
        /// Their paths.
        nodes: Vec<String>,
        /// The fencing token: the transaction in which the attempt queued.
        czxid: i64,
        /// Since when all of them have been proven.
        proven: Moment,
        /// Contenders that nobody can read, and that it was told to ignore: one of each directory.
        ignored: Vec<String>,
    },
    /// The attempt is over; its node, if any, is being deleted.
    Failed(Refusal),
    /// Others wait for the lock or ask for it, or it cannot be seen whether they do. This is reported only if it was [asked
    /// for](crate::drive::Machine::handle_notice).
    Wanted,
    /// A node of the hold has been deleted. This is reported only under the same condition.
    Deleted,
}

/// The report of the first watch that fired.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum WatchEvent {
    /// The node was deleted.
    Deleted,
    /// Something else happened.
    Changed,
}

/// The time, and the end of the lease.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_answers_by_itself_is_no_quorum_write() {
        let path = || "/a/b".to_owned();
        let directory = || "/a".into();
        for write in [
            Operation::CreateSingle { path: path(), data: Arc::default() },
            Operation::CreatePair { path: path(), companion: path(), data: Arc::default() },
            Operation::DeletePair { path: path(), companion: path() },
            Operation::DeleteDirectory { directory: directory() },
            Operation::Barrier { directory: directory() },
            Operation::Check { paths: vec![path()] },
            Operation::Open { guards: vec![path()], path: path(), renews: false, data: Arc::default() },
            Operation::Delete { path: path() },
            Operation::Close { path: path(), opened: path(), version: 0 },
        ] {
            assert!(write.is_quorum_write(), "{write:?}");
        }
        for read in [
            Operation::CreateParents { directory: directory() },
            Operation::List { directory: directory() },
            Operation::ListAndWatch { directory: directory() },
            Operation::Inspect { path: path() },
            Operation::Owns { path: path() },
            Operation::Watch { path: path() },
            Operation::WatchOwn { path: path() },
        ] {
            assert!(!read.is_quorum_write(), "{read:?}");
        }
    }
}
