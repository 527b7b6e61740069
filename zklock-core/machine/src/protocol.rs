//! The words in which a machine and its driver talk: requests, what became of them, the verdict.

use super::Moment;
use std::sync::Arc;

/// What a node says once its holder is asked to let go. It is the word of Curator's `Revoker`.
pub const REVOKE: &[u8] = b"__REVOKE__";

/// A request to the ensemble. Nodes are named by their paths.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Operation {
    /// Create an ephemeral sequential node.
    Create(NewNode),
    /// Create ephemeral sequential nodes in one transaction.
    CreateAll(Vec<NewNode>),
    /// Create an ephemeral node, in one transaction with a check that another is there.
    CreateWithin {
        /// The node.
        path: String,
        /// The other.
        guard: String,
        /// What the node says.
        data: Arc<[u8]>,
    },
    /// Create an ephemeral node.
    CreateSingle {
        /// The node.
        path: String,
        /// What it says.
        data: Arc<[u8]>,
    },
    /// Create two ephemeral nodes of one directory in one transaction, the companion first. If the companion is there already,
    /// an earlier request has done it, so the outcome is [`Unknown`](Outcome::Unknown): [`NodeExists`](Outcome::NodeExists)
    /// is about the other node.
    CreatePair {
        /// The node.
        path: String,
        /// The companion, whose name nobody else has.
        companion: String,
        /// What both say.
        data: Arc<[u8]>,
    },
    /// Create a directory and those above it, if they are missing.
    CreateParents {
        /// The directory.
        directory: Arc<str>,
    },
    /// Delete a directory that is empty and says nothing, so that the numbers of its children begin again.
    DeleteDirectory {
        /// The directory.
        directory: Arc<str>,
    },
    /// List the children of a directory.
    List {
        /// The directory.
        directory: Arc<str>,
    },
    /// List the children of a directory and leave a watch on it.
    ListAndWatch {
        /// The directory.
        directory: Arc<str>,
    },
    /// Let the quorum commit something that changes nothing: what is read after it on the same connection is as
    /// new as that. A `sync` would not do, because a leader that has been deposed and does not know it yet answers
    /// it from what it has.
    Barrier {
        /// A node that may be there or not.
        directory: Arc<str>,
    },
    /// Read who owns a node, and its `czxid`.
    Inspect {
        /// The node.
        path: String,
    },
    /// As [`Inspect`](Self::Inspect), and leave a watch, whether the node is there or not.
    InspectAndWatch {
        /// The node.
        path: String,
    },
    /// Ask whether the node is one of this session's. Unlike [`Inspect`](Self::Inspect) it takes no right to read the node,
    /// and does not tell the transaction.
    Owns {
        /// The node.
        path: String,
    },
    /// Read a node's data to see which transaction created it.
    Read {
        /// The node.
        path: String,
    },
    /// Read all children of a directory, to see which transactions created them.
    Survey {
        /// The directory.
        directory: Arc<str>,
    },
    /// Read a node and leave a watch on it.
    Watch {
        /// The node.
        path: String,
    },
    /// Read whether a node [asks](REVOKE) its holder to let go, and leave a watch on it. The node is our own.
    WatchOwn {
        /// The node.
        path: String,
    },
    /// Read how many permits there are, and leave a watch on the node that says so, or will.
    ReadLimit {
        /// The node.
        path: Arc<str>,
    },
    /// Let the quorum commit that the nodes are there.
    Check {
        /// The nodes.
        paths: Vec<String>,
    },
    /// Create a node that stays, if the guards are there, in one transaction.
    Open {
        /// The guards.
        guards: Vec<String>,
        /// The node.
        path: String,
        /// Whether a node of that name is deleted with that.
        replaces: bool,
        /// What the node says.
        data: Arc<[u8]>,
    },
    /// Delete a node.
    Delete {
        /// The node.
        path: String,
    },
    /// Delete two nodes in one transaction. If one is not there, the other stays.
    DeletePair {
        /// The node.
        path: String,
        /// Its companion.
        companion: String,
    },
    /// Delete nodes in one transaction.
    DeleteAll {
        /// The nodes.
        paths: Vec<String>,
    },
}

impl Operation {
    /// Whether it deletes a node of ours, that must go for others to have the lock.
    pub const fn is_deletion(&self) -> bool {
        matches!(self, Self::Delete { .. } | Self::DeletePair { .. })
    }

    /// Whether the quorum has committed it when it is done.
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
            | Self::DeleteAll { .. } => true,
            // Creating parents that are there writes nothing; the rest reads.
            Self::CreateParents { .. }
            | Self::List { .. }
            | Self::ListAndWatch { .. }
            | Self::Inspect { .. }
            | Self::InspectAndWatch { .. }
            | Self::Owns { .. }
            | Self::Read { .. }
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
    /// Where.
    pub directory: Arc<str>,
    /// The name up to the number.
    pub prefix: String,
    /// What it says.
    pub data: Arc<[u8]>,
}

/// What became of an [`Operation`].
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Outcome {
    /// The nodes were created, in the order in which they were asked for.
    Created(Vec<Node>),
    /// The children.
    Children(Vec<String>),
    /// The children, each with its origin. Those that went away meanwhile are not among them.
    Surveyed(Vec<Node>),
    /// The node is there.
    Found(Node),
    /// How many permits there are; `None` if the node is not there.
    Limit(Option<u32>),
    /// Done: committed, watched, checked, deleted, parents created; the node is this session's.
    Done,
    /// The node is watched, and it [asks](REVOKE) its holder to let go.
    Revoked,
    /// The node is not there, or its parent, or the node that guards it, or it is not this session's.
    NoNode,
    /// A node of this name is there already.
    NodeExists,
    /// The directory has children.
    NotEmpty,
    /// The ensemble answered that it will not do it.
    Refused(Refusal),
    /// It may have been done, or may yet be done, or not.
    Unknown,
    /// The session is over, and with it every node that it owned.
    SessionOver,
}

impl Outcome {
    /// Why it was refused, if it was.
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
    /// The transaction that created it and the session that owns it, if the server said so.
    pub origin: Option<Origin>,
}

/// Where a node comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Origin {
    /// The transaction that created it: the fencing token.
    pub czxid: i64,
    /// The session that owns it; 0 for a node that stays.
    pub session: i64,
}

/// Why an attempt came to nothing.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Refusal {
    /// Another holds the lock, and the attempt was not to wait.
    Busy,
    /// This contender and ours could both believe that they hold.
    ForeignContender(String),
    /// The node with our mark belongs to another session.
    NotOurs(String),
    /// The lock's node vanishes again whenever it is created.
    NoParent,
    /// The numbers of this directory's children are used up, and it cannot be replaced.
    UsedUp(String),
    /// The chroot is missing.
    NoRoot,
    /// The writer within which a reader was to stand is not there any more.
    WriterGone,
    /// The access list does not allow it.
    Denied,
    /// The server answered with something else that retrying does not mend.
    Answer(String),
}

/// What the caller is told, once.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Verdict {
    /// The lock is held by these nodes.
    Granted {
        /// Their paths.
        nodes: Vec<String>,
        /// The fencing token: the transaction by which the attempt queued.
        czxid: i64,
        /// Since when all of them have been proved.
        proven: Moment,
    },
    /// The attempt is over; its node, if any, is being deleted.
    Failed(Refusal),
    /// Others wait for what is held or have asked for it, or it cannot be seen whether they do. It comes only if it was
    /// [asked for](crate::drive::Machine::handle_notice).
    Wanted,
}

/// What the first watch that fired reports of its node.
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
            Operation::Open { guards: vec![path()], path: path(), replaces: false, data: Arc::default() },
            Operation::Delete { path: path() },
            Operation::DeleteAll { paths: vec![path()] },
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
