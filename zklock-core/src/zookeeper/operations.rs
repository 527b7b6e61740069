//! The requests of the machine, in the words of the library.

use super::answers::{listing, outcome, source_of};
use super::checks::{barrier, check_all};
use super::connection::Connection;
use super::paths::join;
use super::serving::WatchKind;
use crate::connect::level::{Newer, ServerLevel};
use crate::machine::name::have_one_mark;
use crate::machine::protocol::{NewNode, Node, Operation, Origin, Outcome, Refusal, WatchEvent};
use crate::zookeeper::ensemble::Pending;
use crate::zookeeper::node_data;
use zookeeper_client::{
    Acls, Client, CreateMode, Error, MultiWriteError, MultiWriteResult, MultiWriter, Stat,
};

/// The owner that servers report for a container.
const CONTAINER: i64 = i64::MIN;

type Sent<'a> = std::pin::Pin<Box<dyn Future<Output = (Outcome, Option<Pending<WatchEvent>>)> + Send + 'a>>;

/// Returns the path of a node that is created in a request of its own.
pub(super) fn path_of(operation: &Operation) -> String {
    match operation {
        Operation::Create(NewNode { directory, prefix, .. }) => join(directory, prefix),
        _ => String::new(),
    }
}

/// Hands one operation to the client, which sends it before this returns. Only an operation that takes several requests may
/// send them later.
pub(super) fn start<'a>(connection: &'a Connection, operation: &'a Operation, path: &'a str) -> Sent<'a> {
    let Connection { client, serving, watches, access, level, servers: _ } = connection;
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
            // Nothing is sent. The driver tells the machine that the servers are old before it asks for the next flight.
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
        Operation::CreateLastingParents { directory } => unwatched(async move {
            let persistent = CreateMode::Persistent.with_acls(access.list());
            client.mkdir(directory, &persistent).await.map(|()| Outcome::Done)
        }),
        Operation::DeleteDirectory { directory } => {
            unwatched(async move { delete_directory(client, directory).await })
        }
        Operation::List { directory } => {
            let call = client.list_children(directory);
            Box::pin(async move {
                (call.await.map_or_else(|error| listing(directory, &error), Outcome::Children), None)
            })
        }
        Operation::ListMarked { directory, prefix, data } => {
            unwatched(async move { marked(client, directory, prefix, data).await })
        }
        Operation::ListAndWatch { directory } => {
            let call = client.list_and_watch_children(directory);
            Box::pin(async move {
                match call.await {
                    Ok((children, watcher)) => {
                        let watch = watches.attended(directory, &children[..], watcher);
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
            // Sent to servers newer than 3.5 only. Older ones do not know this request, but there, everybody may read who
            // owns a node.
            let call = client.list_ephemerals(path);
            unwatched(async move {
                let is_ours = |own: Vec<String>| own.iter().any(|own| own == path);
                call.await.map(|own| if is_ours(own) { Outcome::Done } else { Outcome::NoNode })
            })
        }
        Operation::Survey { directory } => unwatched(async move { survey(client, directory).await }),
        Operation::InspectAndWatch { path } => {
            let call = client.check_and_watch_stat(path);
            Box::pin(async move {
                match call.await {
                    Ok((stat, watcher)) => {
                        let watch = watches.attended(path, stat.as_ref(), watcher);
                        (
                            stat.map_or(Outcome::NoNode, |stat| Outcome::Found(node_of_any(path, &stat))),
                            Some(watch),
                        )
                    }
                    Err(error) => (outcome(&error), None),
                }
            })
        }
        Operation::Watch { path } => {
            let call = client.get_and_watch_data(path);
            Box::pin(async move {
                match call.await {
                    Ok((_, stat, watcher)) => (Outcome::Done, Some(watches.attended(path, &stat, watcher))),
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
                        (limit(path, &data), Some(watches.attended(path, &stat, watcher)))
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
        Operation::Open { guards, path, renews, data } => {
            let mut writer = client.new_multi_writer();
            let options = CreateMode::Persistent.with_acls(access.list());
            let added = guards.iter().try_for_each(|guard| writer.add_check_version(guard, -1));
            let added = added.and_then(|()| match renews {
                true => writer.add_set_data(path, data, None),
                false => writer.add_create(path, data, &options),
            });
            done(connection, writer, added)
        }
        Operation::Close { path, opened, version } => {
            let mut writer = client.new_multi_writer();
            let added = writer.add_delete(path, None);
            let added = added.and_then(|()| writer.add_delete(opened, Some(*version)));
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

/// Returns what servers of version 3.4 cannot do, if the operation needs it. The library creates nodes in transactions in
/// the form of version 3.5.
fn too_new(level: ServerLevel, operation: &Operation) -> Option<Newer> {
    match operation {
        _ if level != ServerLevel::V3_4 => None,
        // The nodes of a set are each in a directory of their own.
        Operation::CreateAll(nodes) if nodes.iter().all(|node| node.directory == nodes[0].directory) => {
            Some(Newer::Permits)
        }
        Operation::CreateAll(_) => Some(Newer::Set),
        Operation::CreateWithin { .. } => Some(Newer::Downgrade),
        Operation::Open { .. } => Some(Newer::DoubleBarrier),
        _ => None,
    }
}

fn unwatched<'a>(call: impl Future<Output = Result<Outcome, Error>> + Send + 'a) -> Sent<'a> {
    Box::pin(async move { (call.await.unwrap_or_else(|error| outcome(&error)), None) })
}

/// Returns the outcome of creations in one transaction, which is sent before this returns. The first node may have a name
/// that nobody else chooses. If that node exists, an earlier request has been executed.
fn created<'a>(
    connection: &'a Connection,
    mut writer: MultiWriter<'a>,
    added: Result<(), Error>,
    is_first_unique: bool,
) -> Sent<'a> {
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

/// Sends the writes of one transaction before it returns. The outcome says whether all were done.
fn done<'a>(connection: &'a Connection, mut writer: MultiWriter<'a>, added: Result<(), Error>) -> Sent<'a> {
    let call = added.map(|()| writer.commit());
    unwatched(async move {
        let unread = |error| connection.unless_unread(source_of(error));
        call?.await.map(|_| Outcome::Done).map_err(unread)
    })
}

/// Reads the children with their origins. They are listed first; then all are read in one flight.
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

/// Finds the children whose data have the same mark as these. Every client may see who owns a node. So only nodes of this session
/// are read, and the access lists of other nodes do not matter.
async fn marked(client: &Client, directory: &str, prefix: &str, marked: &[u8]) -> Result<Outcome, Error> {
    let mut names = match client.list_children(directory).await {
        Ok(names) => names,
        Err(error) => return Ok(listing(directory, &error)),
    };
    names.retain(|name| name.starts_with(prefix));
    let paths: Vec<String> = names.iter().map(|name| join(directory, name)).collect();
    let looks: Vec<_> = paths.iter().map(|path| client.check_stat(path)).collect();
    let mut own = Vec::new();
    for ((name, path), look) in names.into_iter().zip(&paths).zip(looks) {
        if look.await?.is_some_and(|stat| stat.ephemeral_owner == client.session_id().0) {
            own.push((name, client.get_data(path)));
        }
    }
    let mut found = Vec::new();
    for (name, read) in own {
        match read.await {
            Ok((data, _)) if have_one_mark(marked, &data) => found.push(name),
            Ok(_) | Err(Error::NoNode) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Outcome::Children(found))
}

fn node_of(result: &MultiWriteResult) -> Option<Node> {
    match result {
        MultiWriteResult::Create { path, stat } => Some(node(path, stat)),
        _ => None,
    }
}

/// Returns the version of a node after a write; `None` for an operation that wrote nothing. For a created node, it is not
/// read from the stat, which older servers leave empty there.
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

/// Returns a node that was read, with its origin even if it is not ephemeral. A node that stays is as old as its data.
fn node_of_any(path: &str, stat: &Stat) -> Node {
    let czxid = if stat.ephemeral_owner == 0 { stat.mzxid } else { stat.czxid };
    let origin = Origin { czxid, session: stat.ephemeral_owner };
    Node { origin: Some(origin), ..node(path, stat) }
}

/// Returns the origin in the stat of an ephemeral node. Servers before 3.5 send no stat with a creation, those before 3.8.2
/// none within a transaction.
fn origin(stat: &Stat) -> Option<Origin> {
    (stat.czxid > 0 && ![0, CONTAINER].contains(&stat.ephemeral_owner))
        .then_some(Origin { czxid: stat.czxid, session: stat.ephemeral_owner })
}

/// Reads the data of a Curator count: four bytes.
fn limit(path: &str, data: &[u8]) -> Outcome {
    match data.try_into().map(i32::from_be_bytes) {
        Ok(count) => Outcome::Limit(Some(u32::try_from(count).unwrap_or(0))),
        Err(_) => Outcome::Refused(Refusal::Answer(format!(
            "the node {path} does not say how many permits there are: it needs the four bytes of a shared count"
        ))),
    }
}

/// Watches the limit, whose node did not exist just now.
async fn awaited_limit(connection: &Connection, path: &str) -> (Outcome, Option<Pending<WatchEvent>>) {
    match connection.client.check_and_watch_stat(path).await {
        // If the node has been created meanwhile, the watch fires at once, and we read it again.
        Ok((Some(_), watcher)) => {
            drop(connection.serving.watch(path, WatchKind::Data, watcher));
            (Outcome::Limit(None), Some(Box::pin(async { WatchEvent::Changed })))
        }
        Ok((None, watcher)) => (Outcome::Limit(None), Some(connection.watches.attended(path, None, watcher))),
        Err(error) => (outcome(&error), None),
    }
}

/// Creates the directory as a container, so that the server clears it away when it is empty; as a plain node on a server
/// that has no containers (before 3.5).
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

/// Deletes a directory that the server itself would delete when it is empty, or one without data that anybody may delete.
/// So nothing that an operator put there is lost.
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
