//! The operations of ZooKeeper that the layers above need, and no more.
//!
//! Nothing above this trait knows a client library. So the library can be replaced, and the layers above can run on
//! something that is not a network.

use crate::base::failure::Failure;
use crate::machine::Moment;
pub(crate) use crate::machine::keeper::{Check, HeldNode};
use crate::machine::protocol::{Operation, Outcome, Refusal, WatchEvent};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::SystemTime;

/// A request that is sent when it is first polled. Dropping it does not undo it.
pub(crate) type Pending<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// One connection of a session.
pub(crate) trait Ensemble: Send + Sync {
    /// Sends the operations back to back, in this order.
    fn send(&self, flight: Vec<Operation>) -> Pending<Landing>;

    /// Has the quorum commit that these nodes exist. If the transaction that created a node is given, this also checks
    /// that the node has not been created again.
    fn check(&self, nodes: Vec<HeldNode>) -> Pending<Check>;

    /// Sets a watch on each of these nodes that exists and is still the same node. A watch fires before anything that the
    /// same connection answers later.
    fn watch(&self, nodes: Vec<HeldNode>) -> Pending<Vec<Watch>>;

    /// Lists the children of these directories, and leaves watches that report when that changes.
    fn watch_queues(&self, directories: Vec<Arc<str>>) -> Pending<WatchedQueues>;

    /// Does the writes, all or none, if the nodes `guards` exist.
    fn commit(&self, guards: Vec<Arc<str>>, writes: Vec<Write>) -> Pending<Result<Versions, Failure>>;

    /// Returns the data of a node, as new as anything that the quorum has committed by now; `None` if the node does not
    /// exist.
    fn read(&self, path: Arc<str>) -> Pending<Result<Option<NodeData>, Failure>>;

    /// Returns the children of a node, each with its data, without those that went away meanwhile.
    fn children(&self, directory: Arc<str>) -> Pending<Result<Vec<Child>, Failure>>;

    /// Returns a child with its data; `None` if it does not exist.
    fn shown(&self, directory: Arc<str>, name: String) -> Pending<Result<Option<Child>, Failure>>;

    /// Returns which node is at this path; `None` if there is none.
    fn look(&self, path: Arc<str>) -> Pending<Result<Option<NodeVersion>, Failure>>;

    /// Deletes the node, if its data has this version; `None` stands for any.
    fn delete(&self, path: Arc<str>, version: Option<i32>) -> Pending<Result<Deletion, Failure>>;

    /// Returns a child with its data, and the event of a watch on it; `None` if it does not exist.
    fn child(&self, directory: Arc<str>, name: String) -> Pending<Result<Option<Watched>, Failure>>;

    /// Returns the password of the session, with which another process can end it; `None` if it cannot be had.
    fn password(&self) -> Pending<Option<Vec<u8>>> {
        Box::pin(std::future::ready(None))
    }

    /// Ends the connection. Requests under way end at once with an unknown outcome, and nothing more is sent. The session
    /// lives on.
    fn give_up(&self) {}

    /// Whether a node can be created in one transaction with other writes.
    fn creates_in_transactions(&self) -> bool {
        true
    }

    /// Whether the connection has not ended.
    fn is_open(&self) -> bool {
        true
    }
}

/// The outcome of a request to watch a node.
pub(crate) enum Watch {
    /// The node exists, and this reports what happens to it. Dropping it removes the watch.
    There(Pending<WatchEvent>),
    /// The node does not exist, or is another one.
    Gone,
    Unknown,
}

/// The children of some directories.
#[derive(Default)]
pub(crate) struct WatchedQueues {
    /// The children of each; `None` if they are not known.
    pub(crate) children: Vec<Option<Vec<String>>>,
    /// The event of the first watch that fires. Dropping it removes them all.
    pub(crate) watch: Option<Pending<WatchEvent>>,
}

/// The result of a flight.
pub(crate) struct Landing {
    /// The time before the first operation was sent.
    pub(crate) sent: Moment,
    /// One for each operation.
    pub(crate) outcomes: Vec<Outcome>,
    /// The event of the first watch that fires, if any were set. Dropping it removes them.
    pub(crate) watch: Option<Pending<WatchEvent>>,
}

/// One of the writes that go together.
#[derive(Clone, Debug)]
pub(crate) enum Write {
    Create { path: String, data: Vec<u8> },
    SetData { path: String, data: Vec<u8>, version: Option<i32> },
    Delete { path: String, version: Option<i32> },
}

impl Write {
    pub(crate) fn path(&self) -> &str {
        let (Self::Create { path, .. } | Self::SetData { path, .. } | Self::Delete { path, .. }) = self;
        path
    }
}

/// The version of each node after the writes; `None` if the write deleted it.
pub(crate) type Versions = Vec<Option<i32>>;

/// A node's data and version, as [`Hold::read`](crate::Hold::read) returns them.
///
/// # Examples
///
/// ```no_run
/// # async fn example(hold: &zklock::Hold) -> Result<(), zklock::Error> {
/// if let Some(node) = hold.read("/report/state").await? {
///     println!("version {}, {} bytes", node.version, node.data.len());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct NodeData {
    /// Its data.
    pub data: Vec<u8>,
    /// How many times its data has been set. A write that must not undo somebody else's names the version that was read.
    pub version: i32,
    /// When its data was last set, on the clock of the server that led the ensemble then.
    pub(crate) modified: SystemTime,
}

/// A child, and the event of a watch on it.
pub(crate) type Watched = (Child, Pending<WatchEvent>);

/// A child and its data.
#[derive(Clone, Debug)]
pub(crate) struct Child {
    pub(crate) name: String,
    pub(crate) data: Vec<u8>,
    pub(crate) czxid: i64,
    pub(crate) session: i64,
    /// On the clock of the server that led the ensemble then.
    pub(crate) created: SystemTime,
}

/// Identifies one of the nodes that may follow one another at one path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NodeVersion {
    pub(crate) czxid: i64,
    /// The transaction that wrote its data.
    pub(crate) mzxid: i64,
    /// How many times its data has been written.
    pub(crate) version: i32,
}

/// The outcome of a deletion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Deletion {
    Done,
    NotThere,
    /// Its data has another version.
    Changed,
}

/// Returns why the ensemble refuses a request.
pub(crate) fn text_of(refusal: &Refusal) -> String {
    // There is no catch-all arm, because it would give its reason to every refusal that is added later.
    let text = match refusal {
        Refusal::Denied => "the access list does not allow it",
        Refusal::NoParent => "it vanishes whenever it is created: something deletes it in a loop",
        Refusal::NoRoot => "the chroot does not exist; create it first",
        Refusal::Busy => "another holds it",
        Refusal::WriterGone => "the write side around it is lost",
        Refusal::Answer(answer) => answer,
        Refusal::UsedUp(directory) => return format!("the sequence numbers of {directory} are used up"),
        Refusal::NotOurs(name) => return format!("the node {name} belongs to another session"),
        Refusal::ForeignContender(name) => return format!("the contender {name} cannot see ours"),
    };
    text.to_owned()
}

/// Returns the first of two watches to fire. The other one is then removed.
pub(crate) fn either(first: Pending<WatchEvent>, second: Pending<WatchEvent>) -> Pending<WatchEvent> {
    Box::pin(async move {
        tokio::select! {
            biased;
            event = first => event,
            event = second => event,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_access_list_forbids_is_laid_to_it() {
        let name = || "a".to_owned();
        for refusal in [
            Refusal::Busy,
            Refusal::ForeignContender(name()),
            Refusal::NotOurs(name()),
            Refusal::NoParent,
            Refusal::UsedUp(name()),
            Refusal::NoRoot,
            Refusal::WriterGone,
            Refusal::Answer(name()),
        ] {
            assert!(!text_of(&refusal).contains("access list"), "{refusal:?}");
        }
        assert!(text_of(&Refusal::Denied).contains("access list"));
    }
}
