//! The one file that calls `zookeeper_client`, with the modules below it.
//!
//! The traps of that library, and how this file deals with them:
//! * It reconnects by itself, badly. So each of its clients serves one connection, and is given up when that breaks. The
//!   next one is attached to the same session. See [`serving`](super::serving) and
//!   [`connecting`](super::connecting).
//! * It sends a request when the method is called. So requests that are called one after the other, before any is
//!   awaited, travel together.
//! * It reports resets and its own timeouts as `Custom`, among other things. So only what a server answered counts as an
//!   answer, and everything else is unknown.
//! * It waits without limit for a reply on a connection that lives. The session gives that up in time.
//! * It closes the session when a client that is being served is dropped. So the task that serves a client keeps one
//!   until the session should be closed. A client that is given up is no longer served.
//! * A session that is attached again has forgotten how far it had read, so it would accept a server that is behind. So
//!   the quorum answers the first request on each connection.
//! * A watch may stay silent for ever if a server has lost what it should report. So we ask about silent ones. See
//!   [`silence`](super::silence) and [`doubts`](super::doubts).
//! * Persistent watches may miss events. Only one-shot watches are used.
//! * It removes a watch that is dropped, or whose request is dropped, with a request on which servers of 3.4 close the
//!   connection. So there, watches are kept.
//! * `Client::lock` leaks nodes and can deliver a dead grant. It is not used.
//! * It finds its runtime in a table that the linker may drop from a static library. So we name the runtime explicitly.

use super::answers::{is_answer, outcome, read_failure, refusal_of_write, source_of};
use super::checks::{check_all, check_each, others, watch_each, watch_queues};
use super::connection::Connection;
use super::login::{has_other_names, has_sasl};
use super::operations::{self, start, version_of};
use super::password;
use super::paths::join;
use super::rights;
use super::servers::SessionInfo;
use super::serving::End;
use crate::base::clock;
use crate::base::error::Conflict;
use crate::base::failure::Failure;
use crate::base::platform;
use crate::connect::level::{Newer, ServerLevel};
use crate::connect::options::ClientOptions;
use crate::machine::protocol::{Operation, Outcome};
use crate::zookeeper::ensemble::{
    Check, Child, Deletion, Ensemble, HeldNode, Landing, NodeData, NodeVersion, Pending, Versions, Watch,
    Watched, WatchedQueues, Write, either, text_of,
};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use zookeeper_client::{Acls, Client, CreateMode, Error, MultiWriteError, Stat};

/// The most bytes of access lists in one request.
const LISTS_AT_MOST: usize = 256 * 1024;
const LISTS_TOO_LONG: &str =
    "with this access list that is too much for one request: create fewer nodes at once, or name fewer users";

/// One connection of a session to a real ensemble.
pub(crate) struct ZooKeeper {
    pub(super) connection: Connection,
}

impl ZooKeeper {
    /// Keeps watches from being removed, because the session is about to be closed.
    pub(crate) fn keep_watches(&self) {
        self.connection.serving.keep_watches();
    }

    /// Whether the root of all paths, the chroot, exists; `None` if that could not be found out.
    pub(crate) async fn has_root(&self) -> Option<bool> {
        self.connection.client.check_stat("/").await.ok().map(|stat| stat.is_some())
    }

    /// Creates the chroot and the nodes above it. Another client may do so at the same time. The error says why it
    /// cannot be created; `false` means that this could not be found out.
    pub(crate) async fn create_root(&self) -> Result<bool, String> {
        let Connection { client, access, .. } = &self.connection;
        let path = client.path().to_owned();
        let Ok(above) = Client::clone(client).chroot("/") else { return Ok(false) };
        let refused = |problem: &str| Err(format!("the chroot {path} cannot be created: {problem}"));
        match above.mkdir(&path, &CreateMode::Persistent.with_acls(access.list())).await {
            Ok(()) => Ok(true),
            Err(Error::NoAuth) => refused(&rights::to_create(&above, &path).await),
            Err(error) => match outcome(&error) {
                Outcome::Refused(refusal) => refused(&text_of(&refusal)),
                _ => Ok(false),
            },
        }
    }

    /// Returns the information that is needed to attach another connection to the session.
    pub(crate) fn session(&self) -> SessionInfo {
        let Connection { client, servers, .. } = &self.connection;
        SessionInfo { library: client.session().clone(), servers: servers.clone() }
    }

    /// Waits until the connection has ended, and says how. It does not keep the connection.
    pub(crate) fn ended(&self) -> impl Future<Output = End> + Send + use<> {
        let serving = self.connection.serving.clone();
        async move { serving.ended().await }
    }

    /// Makes the quorum answer something. Whatever is read afterwards is at least as fresh as that answer. `false` if
    /// there was no answer.
    pub(super) async fn barrier(&self) -> bool {
        // An error comes from the quorum too.
        !matches!(check_all(&self.connection.client, ["/"]).await, Outcome::Unknown | Outcome::SessionOver)
    }

    /// Whether a client that logs in by SASL is logged in, as far as the server says.
    ///
    /// A node cannot be created for an owner who is not logged in at all, and a server says that before it sees that the
    /// node's parent does not exist. For a client with several identities this is not enough. It asks for its identities, on
    /// the first connection of a session: servers before 3.7 do not know that question, and close the connection.
    pub(super) async fn is_logged_in(&self, options: &ClientOptions, is_first: bool) -> bool {
        let client = &self.connection.client;
        if !has_sasl(options) {
            true
        } else if !has_other_names(options) {
            let nowhere = format!("/{}/nobody", platform::uuid());
            let created =
                client.create(&nowhere, b"", &CreateMode::Persistent.with_acls(Acls::creator_all()));
            created.await.err().map(|error| self.connection.unless_too_old(error)) != Some(Error::InvalidAcl)
        } else if is_first && self.connection.level != ServerLevel::V3_4 {
            let names = client.list_auth_users().await;
            names.map_or(true, |names| names.iter().any(|name| name.scheme() == "sasl"))
        } else {
            true
        }
    }
}

impl Ensemble for ZooKeeper {
    fn send(&self, flight: Vec<Operation>) -> Pending<Landing> {
        let connection = self.connection.clone();
        let serving = self.connection.serving.clone();
        serving.see_through(Box::pin(async move {
            let paths: Vec<String> = flight.iter().map(operations::path_of).collect();
            let sent = clock::now();
            let calls = flight.iter().zip(&paths);
            // Each request is on its way when `start` returns.
            let started: Vec<_> =
                calls.map(|(operation, path)| start(&connection, operation, path)).collect();
            let mut landing = Landing { sent, outcomes: Vec::with_capacity(started.len()), watch: None };
            for (call, operation) in started.into_iter().zip(&flight) {
                let (outcome, watch) = call.await;
                landing.outcomes.push(rights::explained(&connection.client, operation, outcome).await);
                landing.watch = match (landing.watch, watch) {
                    (Some(first), Some(second)) => Some(either(first, second)),
                    (first, second) => first.or(second),
                };
            }
            landing
        }))
    }

    fn check(&self, nodes: Vec<HeldNode>) -> Pending<Check> {
        let client = self.connection.client.clone();
        Box::pin(async move {
            let paths: Vec<&str> = nodes.iter().map(|node| &*node.path).collect();
            // Sent together, so that what is seen is not older than the check.
            let (check, others) = (check_each(&client, &paths), others(&client, &nodes));
            let check = check.await;
            match (check, others.await) {
                (Check::Answered { mut missing }, Some(others)) => {
                    missing.extend(others);
                    Check::Answered { missing }
                }
                (Check::Answered { .. }, None) => Check::Unknown,
                (check, _) => check,
            }
        })
    }

    fn watch(&self, nodes: Vec<HeldNode>) -> Pending<Vec<Watch>> {
        let Connection { client, serving, .. } = self.connection.clone();
        self.connection
            .serving
            .see_through(Box::pin(async move { watch_each(&client, &serving, &nodes).await }))
    }

    fn watch_queues(&self, directories: Vec<Arc<str>>) -> Pending<WatchedQueues> {
        let Connection { client, serving, .. } = self.connection.clone();
        self.connection
            .serving
            .see_through(Box::pin(async move { watch_queues(&client, &serving, &directories).await }))
    }

    fn commit(&self, guards: Vec<Arc<str>>, writes: Vec<Write>) -> Pending<Result<Versions, Failure>> {
        let connection = self.connection.clone();
        Box::pin(async move {
            let Connection { client, access, level, .. } = &connection;
            let is_creation = |write: &&Write| matches!(write, Write::Create { .. });
            let creates = writes.iter().any(|write| is_creation(&write));
            let mut writer = client.new_multi_writer();
            let refused = |index: usize, error: &Error| {
                let (path, problem) = writes.get(index).map_or_else(
                    || (String::new(), error.to_string()),
                    |write| (write.path().to_owned(), refusal_of_write(error, write)),
                );
                Failure::Conflict { at: Conflict { index, path: path.into() }, problem }
            };
            if *level == ServerLevel::V3_4 && creates {
                let ([], [Write::Create { path, data }]) = (&guards[..], &writes[..]) else {
                    return Err(Failure::Refused(Newer::GuardedCreation.refusal()));
                };
                let options = CreateMode::Persistent.with_acls(access.list());
                return match client.create(path, data, &options).await {
                    Ok(_) => Ok(vec![Some(0)]),
                    Err(error) if is_answer(&error) => Err(refused(0, &error)),
                    Err(error) => Err(unwritten(&error)),
                };
            }
            // Servers close the connection on a request that is too long. (The writes without the lists are not.)
            let first = writes.iter().position(|write| is_creation(&write));
            let lists = writes.iter().filter(is_creation).count() * access.bytes();
            if let Some(index) = first.filter(|_| lists > LISTS_AT_MOST) {
                let (path, problem) = (writes[index].path().into(), LISTS_TOO_LONG.to_owned());
                return Err(Failure::Conflict { at: Conflict { index, path }, problem });
            }
            for guard in &guards {
                writer.add_check_version(guard, -1).map_err(|_| Failure::GuardGone)?;
            }
            for (index, write) in writes.iter().enumerate() {
                let added = match write {
                    Write::Create { path, data } => {
                        writer.add_create(path, data, &CreateMode::Persistent.with_acls(access.list()))
                    }
                    Write::SetData { path, data, version } => writer.add_set_data(path, data, *version),
                    Write::Delete { path, version } => writer.add_delete(path, *version),
                };
                added.map_err(|error| refused(index, &error))?;
            }
            match writer.commit().await {
                Ok(results) => Ok(results.iter().filter_map(version_of).collect()),
                Err(MultiWriteError::OperationFailed { index, source: Error::NoNode })
                    if index < guards.len() =>
                {
                    Err(Failure::GuardGone)
                }
                Err(MultiWriteError::OperationFailed { index, source })
                    if index >= guards.len() && is_answer(&source) =>
                {
                    Err(refused(index - guards.len(), &source))
                }
                Err(error) if creates => {
                    let (error, is_alone) = (source_of(error), guards.is_empty() && writes.len() == 1);
                    let is_unread = matches!(error, Error::MarshallingError | Error::Unimplemented);
                    match connection.unless_unread(error) {
                        _ if is_unread && !is_alone => {
                            Err(Failure::Refused(Newer::GuardedCreation.refusal()))
                        }
                        error @ Error::Unimplemented => Err(refused(0, &error)),
                        error => Err(unwritten(&error)),
                    }
                }
                Err(error) => Err(unwritten(&source_of(error))),
            }
        })
    }

    fn read(&self, path: Arc<str>) -> Pending<Result<Option<NodeData>, Failure>> {
        let client = self.connection.client.clone();
        Box::pin(async move {
            // In one flight. An error from the quorum is as good as an answer.
            let (barrier, read) = (check_all(&client, ["/"]), client.get_data(&path));
            match barrier.await {
                Outcome::Unknown => return Err(Failure::Unknown),
                Outcome::SessionOver => return Err(Failure::SessionOver),
                _ => {}
            }
            match read.await {
                Ok((data, stat)) => {
                    Ok(Some(NodeData { data, version: stat.version, modified: date(stat.mtime) }))
                }
                Err(Error::NoNode) => Ok(None),
                Err(error) => Err(read_failure(&path, &error)),
            }
        })
    }

    fn children(&self, directory: Arc<str>) -> Pending<Result<Vec<Child>, Failure>> {
        let client = self.connection.client.clone();
        Box::pin(async move {
            let names = match client.list_children(&directory).await {
                Ok(names) => names,
                Err(Error::NoNode) => return Ok(Vec::new()),
                Err(error) => return Err(read_failure(&directory, &error)),
            };
            let paths: Vec<String> = names.iter().map(|name| join(&directory, name)).collect();
            let reads: Vec<_> = paths.iter().map(|path| client.get_data(path)).collect();
            let mut children = Vec::with_capacity(names.len());
            for (name, read) in names.into_iter().zip(reads) {
                match read.await {
                    Ok((data, stat)) => children.push(child(name, data, &stat)),
                    Err(Error::NoNode) => {}
                    Err(error) => return Err(read_failure(&directory, &error)),
                }
            }
            Ok(children)
        })
    }

    fn shown(&self, directory: Arc<str>, name: String) -> Pending<Result<Option<Child>, Failure>> {
        let client = self.connection.client.clone();
        Box::pin(async move {
            match client.get_data(&join(&directory, &name)).await {
                Ok((data, stat)) => Ok(Some(child(name, data, &stat))),
                Err(Error::NoNode) => Ok(None),
                Err(error) => Err(read_failure(&directory, &error)),
            }
        })
    }

    fn look(&self, path: Arc<str>) -> Pending<Result<Option<NodeVersion>, Failure>> {
        let client = self.connection.client.clone();
        Box::pin(async move {
            let found = client.check_stat(&path).await.map_err(|error| read_failure(&path, &error))?;
            Ok(found.map(|stat| NodeVersion { czxid: stat.czxid, mzxid: stat.mzxid, version: stat.version }))
        })
    }

    fn delete(&self, path: Arc<str>, version: Option<i32>) -> Pending<Result<Deletion, Failure>> {
        let client = self.connection.client.clone();
        Box::pin(async move {
            match client.delete(&path, version).await {
                Ok(()) => Ok(Deletion::Done),
                Err(Error::NoNode) => Ok(Deletion::NotThere),
                Err(Error::BadVersion) => Ok(Deletion::Changed),
                Err(Error::NoAuth) => Err(Failure::Refused(rights::to_delete(&path))),
                Err(error) => Err(read_failure(&path, &error)),
            }
        })
    }

    fn child(&self, directory: Arc<str>, name: String) -> Pending<Result<Option<Watched>, Failure>> {
        let Connection { client, watches, .. } = self.connection.clone();
        self.connection.serving.see_through(Box::pin(async move {
            let path = join(&directory, &name);
            match client.get_and_watch_data(&path).await {
                Ok((data, stat, watcher)) => {
                    let watch = watches.attended(&path, &stat, watcher);
                    Ok(Some((child(name, data, &stat), watch)))
                }
                Err(Error::NoNode) => Ok(None),
                Err(error) => Err(read_failure(&directory, &error)),
            }
        }))
    }

    fn password(&self) -> Pending<Option<Vec<u8>>> {
        Box::pin(password::password_of(self.connection.client.session().clone()))
    }

    fn give_up(&self) {
        self.connection.serving.give_up();
    }

    fn is_open(&self) -> bool {
        self.connection.serving.is_open()
    }

    fn creates_in_transactions(&self) -> bool {
        self.connection.level != ServerLevel::V3_4
    }
}

/// When nobody uses the connection any more, it closes its session, unless it has ended.
impl Drop for ZooKeeper {
    fn drop(&mut self) {
        self.connection.serving.close();
    }
}

/// Returns what an error means for writes that may have been done.
fn unwritten(error: &Error) -> Failure {
    match outcome(error) {
        Outcome::SessionOver => Failure::SessionOver,
        _ => Failure::Unknown,
    }
}

/// Returns the date in a stat.
fn date(millis: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(u64::try_from(millis).unwrap_or_default())
}

fn child(name: String, data: Vec<u8>, stat: &Stat) -> Child {
    let created = date(stat.ctime);
    Child { name, data, czxid: stat.czxid, session: stat.ephemeral_owner, created }
}
