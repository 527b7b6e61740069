//! The one file that calls `zookeeper_client`.
//!
//! What is to be known of that library, and how it is dealt with:
//! * It sends a request when the method is called: so requests called one after the other, before
//!   any is awaited, fly together.
//! * It reports resets and its own timeouts as `Custom`, and more: only what a server answered counts
//!   as an answer, everything else is unknown.
//! * Requests made while it is disconnected wait without limit and run later, even if nobody waits
//!   for them any more: the driver sends nothing then, and cleans up by mark what slips through.
//! * It does not restore persistent watches after a reconnect: only one-shot watches are used.
//! * `Client::lock` leaks nodes and can deliver a dead grant: it is not used.
//! * It finds its runtime in a table that the linker may drop from a static library: it is told.

use crate::ensemble::{Check, Child, Ensemble, Landing, Pending, ReadFailure, Write, WriteFailure};
use crate::machine::exchange::{Node, Operation, Origin, Outcome, Refusal, WatchEvent};
use crate::options::ClientOptions;
use crate::platform;
use spawns_core::{Spawn, Task};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
#[cfg(feature = "tls")]
use zookeeper_client::TlsOptions;
use zookeeper_client::{
    Acls, Client, CreateMode, Error, EventType, MultiWriteError, SessionState, Stat, StateWatcher,
};

/// A session of a real ensemble.
pub(crate) struct ZooKeeper {
    client: Arc<Client>,
    identity: Arc<[u8]>,
}

/// What happens to the connection of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    Connected,
    Disconnected,
    /// The session is over.
    Over,
}

/// Hears of the changes of one session's connection. Short ones may be missed.
pub(crate) struct Changes {
    watcher: StateWatcher,
    /// The state at the start: the watcher takes it for known, whatever it is by then.
    first: Option<SessionState>,
}

impl Changes {
    fn of(client: &Client) -> Self {
        let watcher = client.state_watcher();
        Self { first: Some(client.state()), watcher }
    }

    /// Never comes to an end after [`Change::Over`]. May be dropped and called again.
    pub(crate) async fn next(&mut self) -> Change {
        let state = match self.first.take() {
            Some(state) => state,
            None => self.watcher.changed().await,
        };
        match state {
            SessionState::SyncConnected => Change::Connected,
            SessionState::Disconnected | SessionState::ConnectedReadOnly => Change::Disconnected,
            SessionState::AuthFailed | SessionState::Expired | SessionState::Closed => Change::Over,
        }
    }
}

/// A new session: its operations, the changes of its connection, its number and its timeout.
pub(crate) struct Opened {
    pub(crate) ensemble: ZooKeeper,
    pub(crate) changes: Changes,
    pub(crate) session: i64,
    pub(crate) timeout: Duration,
}

/// Opens a session. Gives up after one session timeout.
pub(crate) async fn open(options: &ClientOptions) -> Result<Opened, String> {
    let client = spawning(connect(options)).await.map_err(|error| error.to_string())?;
    Ok(Opened {
        changes: Changes::of(&client),
        session: client.session_id().0,
        timeout: client.session_timeout(),
        ensemble: ZooKeeper { client: Arc::new(client), identity: options.identity.as_bytes().into() },
    })
}

async fn connect(options: &ClientOptions) -> Result<Client, Error> {
    let connector = Client::connector().with_session_timeout(options.session_timeout);
    let hosts = options.hosts.connect_string();
    #[cfg(feature = "tls")]
    if let Some(tls) = &options.tls {
        let mut settings = TlsOptions::new().with_pem_ca(tls.authorities_pem())?;
        if let Some((certificate, key)) = tls.identity_pem() {
            settings = settings.with_pem_identity(certificate, key)?;
        }
        return connector.with_tls(settings).secure_connect(&hosts).await;
    }
    connector.connect(&hosts).await
}

/// The same future, whose tasks are spawned on the runtime that polls it.
async fn spawning<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    poll_fn(|context| {
        let _scope = spawns_core::enter(&OnTokio);
        future.as_mut().poll(context)
    })
    .await
}

struct OnTokio;

impl Spawn for OnTokio {
    fn spawn(&self, task: Task) {
        tokio::spawn(Box::into_pin(task.future));
    }
}

impl ZooKeeper {
    /// Whether the root of the paths, the chroot, exists. `None` if that could not be found out.
    pub(crate) async fn has_root(&self) -> Option<bool> {
        self.client.check_stat("/").await.ok().map(|stat| stat.is_some())
    }
}

impl Ensemble for ZooKeeper {
    fn send(&self, directory: Arc<str>, flight: Vec<Operation>) -> Pending<Landing> {
        let (client, identity) = (self.client.clone(), self.identity.clone());
        Box::pin(async move {
            let paths: Vec<String> = flight.iter().map(|operation| path_of(&directory, operation)).collect();
            let sent = platform::now();
            let calls = flight.iter().zip(&paths);
            // Each is on its way when `start` returns.
            let started: Vec<_> =
                calls.map(|(operation, path)| start(&client, operation, path, &identity)).collect();
            let mut landing = Landing { sent, outcomes: Vec::with_capacity(started.len()), watch: None };
            for call in started {
                let (outcome, watch) = call.await;
                landing.outcomes.push(outcome);
                landing.watch = landing.watch.or(watch);
            }
            landing
        })
    }

    fn check(&self, nodes: Vec<Arc<str>>) -> Pending<Check> {
        let client = self.client.clone();
        Box::pin(async move {
            match check_all(&client, &nodes).await {
                Outcome::Done => Check::Answered { missing: Vec::new() },
                // It names the first that is gone. All the others must not wait for a round trip each.
                Outcome::NoNode => check_each(&client, &nodes).await,
                Outcome::SessionOver => Check::SessionOver,
                _ => Check::Unknown,
            }
        })
    }

    fn commit(&self, guard: Arc<str>, writes: Vec<Write>) -> Pending<Result<(), WriteFailure>> {
        let client = self.client.clone();
        Box::pin(async move {
            let mut writer = client.new_multi_writer();
            let refused = |index, error: &Error| WriteFailure::Refused { index, problem: error.to_string() };
            writer.add_check_version(&guard, -1).map_err(|_| WriteFailure::GuardGone)?;
            for (index, write) in writes.iter().enumerate() {
                let added = match write {
                    Write::Create { path, data } => {
                        writer.add_create(path, data, &CreateMode::Persistent.with_acls(Acls::anyone_all()))
                    }
                    Write::SetData { path, data, version } => writer.add_set_data(path, data, *version),
                    Write::Delete { path, version } => writer.add_delete(path, *version),
                };
                added.map_err(|error| refused(index, &error))?;
            }
            match writer.commit().await {
                Ok(_) => Ok(()),
                Err(MultiWriteError::OperationFailed { index: 0, source: Error::NoNode }) => {
                    Err(WriteFailure::GuardGone)
                }
                Err(MultiWriteError::OperationFailed { index, source })
                    if index > 0 && is_answer(&source) =>
                {
                    Err(refused(index - 1, &source))
                }
                Err(error) => match outcome(&source_of(error)) {
                    Outcome::SessionOver => Err(WriteFailure::SessionOver),
                    _ => Err(WriteFailure::Unknown),
                },
            }
        })
    }

    fn children(&self, directory: Arc<str>) -> Pending<Result<Vec<Child>, ReadFailure>> {
        let client = self.client.clone();
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
}

type Call<'a> = std::pin::Pin<Box<dyn Future<Output = (Outcome, Option<Pending<WatchEvent>>)> + Send + 'a>>;

/// Hands one operation to the client, which sends it before this returns, but for the parents:
/// they take a request each.
fn start<'a>(client: &'a Client, operation: &'a Operation, path: &'a str, identity: &'a [u8]) -> Call<'a> {
    match operation {
        Operation::Create { .. } => {
            let options = CreateMode::EphemeralSequential.with_acls(Acls::anyone_all());
            let call = client.create(path, identity, &options);
            Box::pin(async move {
                let created = call.await.map(|(stat, sequence)| {
                    let name = format!("{}{sequence}", &path[path.rfind('/').map_or(0, |at| at + 1)..]);
                    Outcome::Created(Node { name, origin: origin(&stat) })
                });
                (created.unwrap_or_else(|error| outcome(&error)), None)
            })
        }
        Operation::CreateParents => Box::pin(async move {
            let result = create_parents(client, path).await;
            (result.map_or_else(|error| outcome(&error), |()| Outcome::Done), None)
        }),
        Operation::List => {
            let call = client.list_children(path);
            Box::pin(async move {
                (call.await.map_or_else(|error| listing(path, &error), Outcome::Children), None)
            })
        }
        Operation::Sync => {
            let call = client.sync(path);
            Box::pin(async move { (done(call.await), None) })
        }
        Operation::Inspect { name } => {
            let call = client.check_stat(path);
            Box::pin(async move {
                let found = call.await.map(|stat| match stat {
                    Some(stat) => Outcome::Found(Node { name: name.clone(), origin: origin(&stat) }),
                    None => Outcome::NoNode,
                });
                (found.unwrap_or_else(|error| outcome(&error)), None)
            })
        }
        Operation::Watch { .. } => {
            let call = client.get_and_watch_data(path);
            Box::pin(async move {
                match call.await {
                    Ok((_, _, watcher)) => {
                        let watch: Pending<WatchEvent> = Box::pin(async move {
                            match watcher.changed().await.event_type {
                                EventType::NodeDeleted => WatchEvent::Deleted,
                                _ => WatchEvent::Changed,
                            }
                        });
                        (Outcome::Done, Some(watch))
                    }
                    Err(error) => (outcome(&error), None),
                }
            })
        }
        Operation::Check { .. } => {
            let call = check_all(client, [path]);
            Box::pin(async move { (call.await, None) })
        }
        Operation::Delete { .. } => {
            let call = client.delete(path, None);
            Box::pin(async move { (done(call.await), None) })
        }
    }
}

/// Checks the nodes in one request, which is sent before this returns.
fn check_all<'a>(
    client: &'a Client,
    nodes: impl IntoIterator<Item = impl AsRef<str>>,
) -> impl Future<Output = Outcome> + Send + 'a {
    let mut writer = client.new_multi_writer();
    let added = nodes.into_iter().try_for_each(|node| writer.add_check_version(node.as_ref(), -1));
    let call = added.map(|()| writer.commit());
    async move {
        match call {
            Err(error) => outcome(&error),
            Ok(call) => call.await.map_or_else(|error| outcome(&source_of(error)), |_| Outcome::Done),
        }
    }
}

/// Checks each node by itself, all in one flight.
async fn check_each(client: &Client, nodes: &[Arc<str>]) -> Check {
    let calls: Vec<_> = nodes.iter().map(|node| check_all(client, [node])).collect();
    let mut missing = Vec::new();
    for (index, call) in calls.into_iter().enumerate() {
        match call.await {
            Outcome::Done => {}
            Outcome::NoNode => missing.push(index),
            Outcome::SessionOver => return Check::SessionOver,
            _ => return Check::Unknown,
        }
    }
    Check::Answered { missing }
}

fn source_of(error: MultiWriteError) -> Error {
    match error {
        MultiWriteError::OperationFailed { source, .. } | MultiWriteError::RequestFailed { source } => source,
    }
}

/// Containers, so that the server clears them away when they are empty; plain nodes on a server that
/// has none (before 3.5).
async fn create_parents(client: &Client, path: &str) -> Result<(), Error> {
    match client.mkdir(path, &CreateMode::Container.with_acls(Acls::anyone_all())).await {
        Err(Error::Unimplemented) => {
            client.mkdir(path, &CreateMode::Persistent.with_acls(Acls::anyone_all())).await
        }
        result => result,
    }
}

fn path_of(directory: &str, operation: &Operation) -> String {
    match operation {
        Operation::CreateParents | Operation::List | Operation::Sync => directory.to_owned(),
        Operation::Create { prefix: name }
        | Operation::Inspect { name }
        | Operation::Watch { name }
        | Operation::Check { name }
        | Operation::Delete { name } => join(directory, name),
    }
}

fn join(directory: &str, name: &str) -> String {
    format!("{directory}/{name}")
}

fn done(result: Result<(), Error>) -> Outcome {
    result.map_or_else(|error| outcome(&error), |()| Outcome::Done)
}

/// What an error says about a request.
fn outcome(error: &Error) -> Outcome {
    match error {
        Error::NoNode => Outcome::NoNode,
        error if is_over(error) => Outcome::SessionOver,
        Error::NoAuth | Error::InvalidAcl => Outcome::Refused(Refusal::Denied),
        Error::NoChildrenForEphemerals => Outcome::Refused(Refusal::Answer(
            "a node of this path is ephemeral, so it can have no children".into(),
        )),
        Error::QuotaExceeded | Error::BadArguments(_) | Error::MarshallingError | Error::Unimplemented => {
            Outcome::Refused(Refusal::Answer(error.to_string()))
        }
        // Whatever else there is may have been executed, or may yet be.
        _ => Outcome::Unknown,
    }
}

/// How the library's error begins where a string of a reply is not UTF-8.
const NOT_UTF8: &str = "invalid utf8 bytes";

/// A listing that arrived but cannot be read will not be better next time.
fn listing(directory: &str, error: &Error) -> Outcome {
    match error {
        Error::UnexpectedError(problem) if problem.starts_with(NOT_UTF8) => {
            Outcome::Refused(Refusal::Answer(unreadable(directory)))
        }
        error => outcome(error),
    }
}

fn unreadable(directory: &str) -> String {
    format!(
        "the list of the children of {directory} cannot be read: delete the child whose name is not UTF-8"
    )
}

fn read_failure(directory: &str, error: &Error) -> ReadFailure {
    match listing(directory, error) {
        Outcome::SessionOver => ReadFailure::SessionOver,
        Outcome::Refused(Refusal::Answer(answer)) => ReadFailure::Refused(answer),
        Outcome::Refused(_) => ReadFailure::Refused("the access list of the node does not allow it".into()),
        _ => ReadFailure::Unknown,
    }
}

/// Whether it is the server's answer to one of several writes.
fn is_answer(error: &Error) -> bool {
    let also = matches!(error, Error::NodeExists | Error::NotEmpty | Error::BadVersion);
    also || !matches!(outcome(error), Outcome::Unknown | Outcome::SessionOver)
}

fn is_over(error: &Error) -> bool {
    matches!(error, Error::SessionExpired | Error::AuthFailed | Error::ClientClosed)
}

/// Servers before 3.5 send no stat with a creation.
fn origin(stat: &Stat) -> Option<Origin> {
    (stat.czxid > 0 && stat.ephemeral_owner != 0)
        .then_some(Origin { czxid: stat.czxid, session: stat.ephemeral_owner })
}

fn child(name: String, data: Vec<u8>, stat: &Stat) -> Child {
    let created = UNIX_EPOCH + Duration::from_millis(u64::try_from(stat.ctime).unwrap_or_default());
    Child { name, data, czxid: stat.czxid, session: stat.ephemeral_owner, created }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_server_answered_counts_as_an_answer() {
        assert_eq!(outcome(&Error::NoNode), Outcome::NoNode);
        assert_eq!(outcome(&Error::NoAuth), Outcome::Refused(Refusal::Denied));
        for error in [
            Error::ConnectionLoss,
            Error::Timeout,
            Error::UnexpectedError("reset".into()),
            Error::SessionMoved,
            Error::NotReadOnly,
            Error::Throttled,
            Error::UnexpectedErrorCode(-7),
            Error::RuntimeInconsistent,
            Error::UnmarshalError { entity: "stat", reason: &"short" },
        ] {
            assert_eq!(outcome(&error), Outcome::Unknown, "{error}");
        }
        for error in [Error::SessionExpired, Error::ClientClosed, Error::AuthFailed] {
            assert_eq!(outcome(&error), Outcome::SessionOver, "{error}");
        }
    }

    #[test]
    fn a_listing_that_cannot_be_read_is_named() {
        let error = Error::UnexpectedError(format!("{NOT_UTF8} [255]"));
        let Outcome::Refused(Refusal::Answer(answer)) = listing("/locks/a", &error) else {
            panic!("not refused")
        };
        assert!(answer.contains("/locks/a") && answer.contains("UTF-8"), "{answer}");
    }
}
