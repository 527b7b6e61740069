//! Checks of nodes, and watches on them: above all, of the nodes of holds.

use super::answers::{outcome, source_of};
use super::serving::{Serving, WatchKind};
use crate::machine::protocol::{Outcome, Refusal};
use crate::zookeeper::ensemble::{Check, HeldNode, Watch, WatchedQueues, either};
use std::cmp::Ordering;
use std::sync::Arc;
use zookeeper_client::{Client, Error, MultiWriteError, MultiWriter};

/// How often nodes are checked again without those that were missing.
const REPEATS_AT_MOST: usize = 4;

/// Returns the outcome of a barrier, from that of its check. A transaction that the quorum has committed as an error is as
/// good as any other. Only a single write may be refused by the server that we are connected to.
pub(super) fn barrier(checked: Outcome) -> Outcome {
    match checked {
        Outcome::NoNode | Outcome::Refused(Refusal::Denied) => Outcome::Done,
        outcome => outcome,
    }
}

/// Checks the nodes in one request, which is sent before this returns.
pub(super) fn check_all<'a>(
    client: &'a Client,
    nodes: impl IntoIterator<Item = impl AsRef<str>>,
) -> impl Future<Output = Outcome> + Send + 'a {
    let call = check(checks(client, nodes));
    async move { call.await.map_or_else(|(_, outcome)| outcome, |()| Outcome::Done) }
}

fn checks<'a>(
    client: &'a Client,
    nodes: impl IntoIterator<Item = impl AsRef<str>>,
) -> Result<MultiWriter<'a>, Error> {
    let mut writer = client.new_multi_writer();
    nodes.into_iter().try_for_each(|node| writer.add_check_version(node.as_ref(), -1))?;
    Ok(writer)
}

/// The index of an answer that is about none of the checks.
const NONE_OF_THEM: usize = usize::MAX;

/// Sends the checks before it returns. The error contains the index of the first check that failed, counted from 0.
fn check<'a>(
    writer: Result<MultiWriter<'a>, Error>,
) -> impl Future<Output = Result<(), (usize, Outcome)>> + Send + 'a {
    let call = writer.map(|mut writer| writer.commit());
    async move {
        match call.map_err(|error| (NONE_OF_THEM, outcome(&error)))?.await {
            Ok(_) => Ok(()),
            Err(MultiWriteError::OperationFailed { index, source }) => Err((index, outcome(&source))),
            Err(error) => Err((NONE_OF_THEM, outcome(&source_of(error)))),
        }
    }
}

/// Checks the nodes in one request, which is sent before this returns. The error contains the index of the first one whose
/// check failed: those before it exist. If it is larger than all, there is no answer about any.
pub(super) fn check_in_order<'a>(
    client: &'a Client,
    nodes: &[String],
) -> impl Future<Output = Result<(), (usize, Outcome)>> + Send + use<'a> {
    check(checks(client, nodes))
}

/// Finds out which of the nodes do not exist. The first request is sent before this returns.
///
/// An answer names the first missing node only. So that one is left out, and the others are checked again. If many are
/// missing, this would take a round trip for each, so after a few, the rest are checked one by one. A node that may no
/// longer be read does exist, because servers look for it first.
pub(super) fn check_each<'a>(
    client: &'a Client,
    nodes: &'a [&'a str],
) -> impl Future<Output = Check> + Send + 'a {
    let mut call = Some(check(checks(client, nodes)));
    async move {
        let mut left: Vec<usize> = (0..nodes.len()).collect();
        let mut missing = Vec::new();
        while let Some(checked) = call.take() {
            match checked.await {
                Ok(()) => return Check::Answered { missing },
                Err((index, Outcome::NoNode)) if index < left.len() => missing.push(left.remove(index)),
                Err((index, Outcome::Refused(Refusal::Denied))) if index < left.len() => {
                    left.remove(index);
                }
                Err((_, Outcome::SessionOver)) => return Check::SessionOver,
                Err(_) => return Check::Unknown,
            }
            if left.is_empty() {
                return Check::Answered { missing };
            }
            if nodes.len() - left.len() <= REPEATS_AT_MOST {
                call = Some(check(checks(client, left.iter().map(|index| nodes[*index]))));
            }
        }
        check_one_by_one(client, nodes, &left, missing).await
    }
}

/// Checks the nodes in one flight, with a request for each.
async fn check_one_by_one(client: &Client, nodes: &[&str], left: &[usize], mut missing: Vec<usize>) -> Check {
    let calls: Vec<_> = left.iter().map(|index| (*index, check(checks(client, [nodes[*index]])))).collect();
    for (index, call) in calls {
        match call.await {
            Ok(()) | Err((0, Outcome::Refused(Refusal::Denied))) => {}
            Err((0, Outcome::NoNode)) => missing.push(index),
            Err((_, Outcome::SessionOver)) => return Check::SessionOver,
            Err(_) => return Check::Unknown,
        }
    }
    Check::Answered { missing }
}

/// Finds the nodes, counted from 0, that were created by a later transaction than the given one, or may have been: newer
/// servers do not show a node to clients that may not read it. If a server shows an older node, it has lost its deletion,
/// because no node existed when ours was created. `None` if that is not known. The requests are sent before this returns.
pub(super) fn others<'a>(
    client: &'a Client,
    nodes: &'a [HeldNode],
) -> impl Future<Output = Option<Vec<usize>>> + Send + 'a {
    let given = nodes.iter().enumerate().filter_map(|(index, node)| Some((index, &node.path, node.origin?)));
    let calls: Vec<_> = given.map(|(index, path, origin)| (index, origin, client.check_stat(path))).collect();
    async move {
        let mut others = Vec::new();
        for (index, origin, call) in calls {
            match call.await {
                Ok(Some(stat)) if stat.czxid <= origin => {}
                Ok(_) | Err(Error::NoAuth) => others.push(index),
                Err(_) => return None,
            }
        }
        Some(others)
    }
}

/// Leaves a watch on each of the nodes. The requests are sent together, when this is first polled.
pub(super) async fn watch_each(client: &Client, serving: &Arc<Serving>, nodes: &[HeldNode]) -> Vec<Watch> {
    // Reads the data, and does not ask whether the node exists: newer servers hide nodes from clients that may not read
    // them, but refuse such a read.
    let calls: Vec<_> = nodes.iter().map(|node| client.get_and_watch_data(&node.path)).collect();
    let mut watches = Vec::with_capacity(nodes.len());
    for (node, call) in nodes.iter().zip(calls) {
        watches.push(match call.await {
            Ok((_, stat, watcher)) => {
                let event = serving.watch(&node.path, WatchKind::Data, watcher);
                match node.origin.map_or(Ordering::Equal, |origin| stat.czxid.cmp(&origin)) {
                    Ordering::Equal => Watch::There(event),
                    Ordering::Greater => Watch::Gone,
                    // See `others`.
                    Ordering::Less => Watch::Unknown,
                }
            }
            Err(Error::NoNode) => Watch::Gone,
            Err(_) => Watch::Unknown,
        });
    }
    watches
}

/// Lists the children of the directories, and leaves a watch on each. The requests are sent together, when this is first polled.
/// The silence of such a watch is not doubted: a question for each hold would cost more than its heartbeat.
pub(super) async fn watch_queues(
    client: &Client,
    serving: &Arc<Serving>,
    directories: &[Arc<str>],
) -> WatchedQueues {
    let calls: Vec<_> =
        directories.iter().map(|directory| client.list_and_watch_children(directory)).collect();
    let mut watched = WatchedQueues::default();
    for (directory, call) in directories.iter().zip(calls) {
        let (children, watcher) = call.await.ok().unzip();
        watched.children.push(children);
        let watch = watcher.map(|watcher| serving.watch(directory, WatchKind::Children, watcher));
        watched.watch = match (watched.watch, watch) {
            (Some(first), Some(second)) => Some(either(first, second)),
            (first, second) => first.or(second),
        };
    }
    watched
}
