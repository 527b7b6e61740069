//! The requests of the machine, in the words of the library.

use super::answers::{listing, outcome, source_of};
use super::serving::{Serving, WatchKind};
use super::silence::attended;
use super::{Connection, Newer, ServerLevel};
use crate::ensemble::{Check, HeldNode, Pending, Watch};
use crate::machine::protocol::{NewNode, Node, Operation, Origin, Outcome, Refusal, WatchEvent};
use crate::node_data;
use std::cmp::Ordering;
use std::sync::Arc;
use zookeeper_client::{
    Acls, Client, CreateMode, Error, MultiWriteError, MultiWriteResult, MultiWriter, Stat,
};

/// The owner that servers tell of a container.
const CONTAINER: i64 = i64::MIN;
/// How often nodes are checked again without those that were missing.
const REPEATS_AT_MOST: usize = 4;

type Call<'a> = std::pin::Pin<Box<dyn Future<Output = (Outcome, Option<Pending<WatchEvent>>)> + Send + 'a>>;

/// The path of a node that is created in a request of its own.
pub(super) fn path_of(operation: &Operation) -> String {
    match operation {
        Operation::Create(NewNode { directory, prefix, .. }) => join(directory, prefix),
        _ => String::new(),
    }
}

/// Hands one operation to the client, which sends it before this returns, but for the parents and what follows
/// on a missing limit: they take a request each.
pub(super) fn start<'a>(connection: &'a Connection, operation: &'a Operation, path: &'a str) -> Call<'a> {
    let Connection { client, serving, access, level, servers: _ } = connection;
    if let Some(newer) = too_new(*level, operation) {
        let outcome = Outcome::Refused(Refusal::Answer(newer.refusal()));
        return Box::pin(async move { (outcome, None) });
    }
    match operation {
        Operation::Create(new) => {
            let options = CreateMode::EphemeralSequential.with_acls(access.list());
            let call = client.create(path, &new.data, &options);
            unwatched(async move {
                call.await
                    .map(|(stat, sequence)| Outcome::Created(vec![node(&format!("{path}{sequence}"), &stat)]))
                    .map_err(|error| connection.unless_too_old(error))
            })
        }
        Operation::CreateAll(nodes) => {
            let mut writer = client.new_multi_writer();
            let options = CreateMode::EphemeralSequential.with_acls(access.list());
            let added = nodes.iter().try_for_each(|new| {
                writer.add_create(&join(&new.directory, &new.prefix), &new.data, &options)
            });
            created(connection, writer, added, false)
        }
        Operation::CreateWithin { path, guard, data } => {
            let mut writer = client.new_multi_writer();
            let options = CreateMode::Ephemeral.with_acls(access.list());
            let added =
                writer.add_check_version(guard, -1).and_then(|()| writer.add_create(path, data, &options));
            created(connection, writer, added, false)
        }
        Operation::CreateSingle { path, data } => {
            let options = CreateMode::Ephemeral.with_acls(access.list());
            let call = client.create(path, data, &options);
            unwatched(async move {
                call.await
                    .map(|(stat, _)| Outcome::Created(vec![node(path, &stat)]))
                    .map_err(|error| connection.unless_too_old(error))
            })
        }
        Operation::CreatePair { path, companion, data } => {
            // The answer to the next request tells of that.
            if *level == ServerLevel::V3_4 {
                return Box::pin(async { (Outcome::Unknown, None) });
            }
            let mut writer = client.new_multi_writer();
            let options = CreateMode::Ephemeral.with_acls(access.list());
            let added = [companion, path].iter().try_for_each(|it| writer.add_create(it, data, &options));
            created(connection, writer, added, true)
        }
        Operation::CreateParents { directory } => {
            unwatched(async move { create_parents(connection, directory).await.map(|()| Outcome::Done) })
        }
        Operation::DeleteDirectory { directory } => {
            unwatched(async move { delete_directory(client, directory).await })
        }
        Operation::List { directory } => {
            let call = client.list_children(directory);
            Box::pin(async move {
                (call.await.map_or_else(|error| listing(directory, &error), Outcome::Children), None)
            })
        }
        Operation::ListAndWatch { directory } => {
            let call = client.list_and_watch_children(directory);
            Box::pin(async move {
                match call.await {
                    Ok((children, watcher)) => {
                        let watch = attended(serving, directory, &children[..], watcher);
                        (Outcome::Children(children), Some(watch))
                    }
                    Err(error) => (listing(directory, &error), None),
                }
            })
        }
        Operation::Barrier { directory } => {
            let call = check_all(client, [directory]);
            Box::pin(async move { (barrier(call.await), None) })
        }
        Operation::Inspect { path } => {
            let call = client.check_stat(path);
            unwatched(async move {
                let found = |stat: Stat| Outcome::Found(node(path, &stat));
                call.await.map(|stat| stat.map_or(Outcome::NoNode, found))
            })
        }
        Operation::Owns { path } => {
            // Only of newer servers than 3.5, which do not know this request: older ones let all read who owns a node.
            let call = client.list_ephemerals(path);
            unwatched(async move {
                let is_ours = |own: Vec<String>| own.iter().any(|own| own == path);
                call.await.map(|own| if is_ours(own) { Outcome::Done } else { Outcome::NoNode })
            })
        }
        Operation::Read { path } => {
            let call = client.get_data(path);
            unwatched(async move { call.await.map(|(_, stat)| Outcome::Found(node_of_any(path, &stat))) })
        }
        Operation::Survey { directory } => unwatched(async move { survey(client, directory).await }),
        Operation::InspectAndWatch { path } => {
            let call = client.check_and_watch_stat(path);
            Box::pin(async move {
                match call.await {
                    Ok((stat, watcher)) => {
                        let watch = attended(serving, path, stat.as_ref(), watcher);
                        (stat.map_or(Outcome::NoNode, |stat| Outcome::Found(node(path, &stat))), Some(watch))
                    }
                    Err(error) => (outcome(&error), None),
                }
            })
        }
        Operation::Watch { path } => {
            let call = client.get_and_watch_data(path);
            Box::pin(async move {
                match call.await {
                    Ok((_, stat, watcher)) => (Outcome::Done, Some(attended(serving, path, &stat, watcher))),
                    Err(error) => (outcome(&error), None),
                }
            })
        }
        Operation::WatchOwn { path } => {
            let call = client.get_and_watch_data(path);
            Box::pin(async move {
                match call.await {
                    Ok((data, _, watcher)) => {
                        let outcome = if node_data::asks(&data) { Outcome::Revoked } else { Outcome::Done };
                        (outcome, Some(serving.watch(path, WatchKind::Own, watcher)))
                    }
                    Err(error) => (outcome(&error), None),
                }
            })
        }
        Operation::ReadLimit { path } => {
            let call = client.get_and_watch_data(path);
            Box::pin(async move {
                match call.await {
                    Ok((data, stat, watcher)) => {
                        (limit(path, &data), Some(attended(serving, path, &stat, watcher)))
                    }
                    Err(Error::NoNode) => awaited_limit(connection, path).await,
                    Err(error) => (outcome(&error), None),
                }
            })
        }
        Operation::Check { paths } => {
            let call = check_all(client, paths);
            Box::pin(async move { (call.await, None) })
        }
        Operation::Open { guards, path, replaces, data } => {
            let mut writer = client.new_multi_writer();
            let options = CreateMode::Persistent.with_acls(access.list());
            let added = guards.iter().try_for_each(|guard| writer.add_check_version(guard, -1));
            let added = added.and_then(|()| if *replaces { writer.add_delete(path, None) } else { Ok(()) });
            let added = added.and_then(|()| writer.add_create(path, data, &options));
            done(connection, writer, added)
        }
        Operation::DeleteAll { paths } => {
            let mut writer = client.new_multi_writer();
            let added = paths.iter().try_for_each(|path| writer.add_delete(path, None));
            done(connection, writer, added)
        }
        Operation::DeletePair { path, companion } => {
            let mut writer = client.new_multi_writer();
            let added = [companion, path].iter().try_for_each(|it| writer.add_delete(it, None));
            done(connection, writer, added)
        }
        Operation::Delete { path } => {
            let call = client.delete(path, None);
            unwatched(async move { call.await.map(|()| Outcome::Done) })
        }
    }
}

/// What of it servers of 3.4 cannot do, by this library at least: its transactions create nodes as 3.5 does.
fn too_new(level: ServerLevel, operation: &Operation) -> Option<Newer> {
    match operation {
        _ if level != ServerLevel::V3_4 => None,
        // Those of a set are each in a directory of their own.
        Operation::CreateAll(nodes) if nodes.iter().all(|node| node.directory == nodes[0].directory) => {
            Some(Newer::Permits)
        }
        Operation::CreateAll(_) => Some(Newer::Set),
        Operation::CreateWithin { .. } => Some(Newer::Downgrade),
        Operation::Open { .. } => Some(Newer::DoubleBarrier),
        _ => None,
    }
}

fn unwatched<'a>(call: impl Future<Output = Result<Outcome, Error>> + Send + 'a) -> Call<'a> {
    Box::pin(async move { (call.await.unwrap_or_else(|error| outcome(&error)), None) })
}

/// What comes of creations in one transaction, which is sent before this returns. The first may have a name that nobody else
/// chooses: if that is there, an earlier request has been executed.
fn created<'a>(
    connection: &'a Connection,
    mut writer: MultiWriter<'a>,
    added: Result<(), Error>,
    is_first_unique: bool,
) -> Call<'a> {
    let call = added.map(|()| writer.commit());
    Box::pin(async move {
        let results = match call {
            Err(error) => return (outcome(&error), None),
            Ok(call) => call.await,
        };
        let outcome = match results {
            Err(MultiWriteError::OperationFailed { index: 0, source: Error::NodeExists })
                if is_first_unique =>
            {
                Outcome::Unknown
            }
            Err(error) => outcome(&connection.unless_unread(source_of(error))),
            Ok(results) => Outcome::Created(results.iter().filter_map(node_of).collect()),
        };
        (outcome, None)
    })
}

/// Whether all the writes of one transaction were done, which is sent before this returns.
fn done<'a>(connection: &'a Connection, mut writer: MultiWriter<'a>, added: Result<(), Error>) -> Call<'a> {
    let call = added.map(|()| writer.commit());
    unwatched(async move {
        let unread = |error| connection.unless_unread(source_of(error));
        call?.await.map(|_| Outcome::Done).map_err(unread)
    })
}

/// The children with their origins. They are listed first; then all children are read in one flight.
async fn survey(client: &Client, directory: &str) -> Result<Outcome, Error> {
    let names = match client.list_children(directory).await {
        Ok(names) => names,
        Err(Error::NoNode) => return Ok(Outcome::Surveyed(Vec::new())),
        Err(error) => return Ok(listing(directory, &error)),
    };
    let paths: Vec<String> = names.iter().map(|name| join(directory, name)).collect();
    let reads: Vec<_> = paths.iter().map(|path| client.get_data(path)).collect();
    let mut nodes = Vec::with_capacity(paths.len());
    for (path, read) in paths.iter().zip(reads) {
        match read.await {
            Ok((_, stat)) => nodes.push(node_of_any(path, &stat)),
            Err(Error::NoNode) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Outcome::Surveyed(nodes))
}

fn node_of(result: &MultiWriteResult) -> Option<Node> {
    match result {
        MultiWriteResult::Create { path, stat } => Some(node(path, stat)),
        _ => None,
    }
}

/// The version of a node after a write; `None` of what wrote nothing. Where a node was created it is not read from the
/// stat, which older servers leave empty there.
pub(super) fn version_of(result: &MultiWriteResult) -> Option<Option<i32>> {
    match result {
        MultiWriteResult::Create { .. } => Some(Some(0)),
        MultiWriteResult::SetData { stat } => Some(Some(stat.version)),
        MultiWriteResult::Delete => Some(None),
        _ => None,
    }
}

fn node(path: &str, stat: &Stat) -> Node {
    let name = path.rsplit('/').next().unwrap_or(path).to_owned();
    Node { name, origin: origin(stat) }
}

/// A node that was read, with its origin even if it is not ephemeral.
fn node_of_any(path: &str, stat: &Stat) -> Node {
    let origin = Origin { czxid: stat.czxid, session: stat.ephemeral_owner };
    Node { origin: Some(origin), ..node(path, stat) }
}

/// Servers before 3.5 send no stat with a creation, those before 3.8.2 none within a transaction.
fn origin(stat: &Stat) -> Option<Origin> {
    (stat.czxid > 0 && stat.ephemeral_owner != 0)
        .then_some(Origin { czxid: stat.czxid, session: stat.ephemeral_owner })
}

/// What a count of Curator's says: four bytes.
fn limit(path: &str, data: &[u8]) -> Outcome {
    match data.try_into().map(i32::from_be_bytes) {
        Ok(count) => Outcome::Limit(Some(u32::try_from(count).unwrap_or(0))),
        Err(_) => Outcome::Refused(Refusal::Answer(format!(
            "the node {path} does not say how many permits there are: it needs the four bytes of a shared count"
        ))),
    }
}

/// The limit, if the node was not there just now.
async fn awaited_limit(connection: &Connection, path: &str) -> (Outcome, Option<Pending<WatchEvent>>) {
    match connection.client.check_and_watch_stat(path).await {
        // If it has come meanwhile, the watch fires at once, and we read it again.
        Ok((Some(_), watcher)) => {
            drop(connection.serving.watch(path, WatchKind::Data, watcher));
            (Outcome::Limit(None), Some(Box::pin(async { WatchEvent::Changed })))
        }
        Ok((None, watcher)) => {
            (Outcome::Limit(None), Some(attended(&connection.serving, path, None, watcher)))
        }
        Err(error) => (outcome(&error), None),
    }
}

/// A transaction that the quorum has committed as an error is as good as any other. Only a single write may be
/// refused by the server that we are connected to.
fn barrier(checked: Outcome) -> Outcome {
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

/// Of an answer that is about none of the checks.
const NONE_OF_THEM: usize = usize::MAX;

/// Sends the checks before it returns. Says which was the first, counted from 0, that failed.
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

/// Looks which of the nodes are not there. The first request is sent before this returns.
///
/// It names the first that is missing, so that one is left out and the others are checked again. Where many are
/// missing that would take a round trip for each: so after a few the rest is checked one by one. One that may not be read
/// any more is there: servers look for it first.
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

/// In one flight.
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

/// Which of the nodes, counted from 0, were created by a later transaction than the one that is given, or may have been:
/// newer servers do not show a node to those who may not read it. One that is older is shown by a server that has lost its
/// deletion: none was there when ours was created. `None` if that is not known. The requests are sent before
/// this returns.
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
    // Not whether it exists: newer servers tell nothing of a node to those who may not read it, and this is refused then.
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

/// Containers, so that the server clears them away when they are empty; plain nodes on a server that
/// has none (before 3.5).
async fn create_parents(connection: &Connection, path: &str) -> Result<(), Error> {
    let Connection { client, level, access, .. } = connection;
    if *level == ServerLevel::V3_4 {
        return client.mkdir(path, &CreateMode::Persistent.with_acls(access.list())).await;
    }
    match client.mkdir(path, &CreateMode::Container.with_acls(access.list())).await {
        Err(Error::Unimplemented) => {
            client.mkdir(path, &CreateMode::Persistent.with_acls(access.list())).await
        }
        result => result,
    }
}

/// Deletes a directory that the server itself would delete when it is empty, or one without data that anybody may
/// delete: there is nothing of an operator's in them that would be lost.
async fn delete_directory(client: &Client, directory: &str) -> Result<Outcome, Error> {
    let (data, stat) = client.get_data(directory).await?;
    if stat.ephemeral_owner != CONTAINER {
        let (rights, _) = client.get_acl(directory).await?;
        if !data.is_empty() || rights[..] != Acls::anyone_all()[..] {
            return Ok(Outcome::Refused(Refusal::UsedUp(directory.to_owned())));
        }
    }
    client.delete(directory, Some(stat.version)).await.map(|()| Outcome::Done)
}

pub(super) fn join(directory: &str, name: &str) -> String {
    format!("{directory}/{name}")
}
