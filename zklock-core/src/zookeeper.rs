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

mod answers;
mod operations;

use crate::ensemble::{
    Check, Child, Deletion, Ensemble, Landing, Pending, ReadFailure, Seen, Watched, Write, WriteFailure,
};
use crate::machine::exchange::{Operation, Outcome, WatchEvent};
use crate::options::ClientOptions;
use crate::platform;
use answers::{is_answer, outcome, read_failure, source_of};
use operations::{check_all, check_each, join, others, start, watch};
use spawns_core::{Spawn, Task};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
#[cfg(feature = "tls")]
use zookeeper_client::TlsOptions;
use zookeeper_client::{Acls, Client, CreateMode, Error, MultiWriteError, SessionState, Stat, StateWatcher};

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
    fn send(&self, flight: Vec<Operation>) -> Pending<Landing> {
        let (client, identity) = (self.client.clone(), self.identity.clone());
        Box::pin(async move {
            let paths: Vec<String> = flight.iter().map(operations::path_of).collect();
            let sent = platform::now();
            let calls = flight.iter().zip(&paths);
            // Each is on its way when `start` returns.
            let started: Vec<_> =
                calls.map(|(operation, path)| start(&client, operation, path, &identity)).collect();
            let mut landing = Landing { sent, outcomes: Vec::with_capacity(started.len()), watch: None };
            for call in started {
                let (outcome, watch) = call.await;
                landing.outcomes.push(outcome);
                landing.watch = match (landing.watch, watch) {
                    (Some(first), Some(second)) => Some(either(first, second)),
                    (first, second) => first.or(second),
                };
            }
            landing
        })
    }

    fn check(&self, nodes: Vec<(Arc<str>, Option<i64>)>) -> Pending<Check> {
        let client = self.client.clone();
        Box::pin(async move {
            let paths: Vec<&str> = nodes.iter().map(|(path, _)| &**path).collect();
            // Together: so what is seen is not from before the check.
            let (check, others) = (check_all(&client, &paths), others(&client, &nodes));
            let check = match check.await {
                Outcome::Done => Check::Answered { missing: Vec::new() },
                // It names the first that is gone. All the others must not wait for a round trip each.
                Outcome::NoNode => check_each(&client, &paths).await,
                Outcome::SessionOver => Check::SessionOver,
                _ => Check::Unknown,
            };
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

    fn commit(&self, guards: Vec<Arc<str>>, writes: Vec<Write>) -> Pending<Result<(), WriteFailure>> {
        let client = self.client.clone();
        Box::pin(async move {
            let mut writer = client.new_multi_writer();
            let refused = |index, error: &Error| WriteFailure::Refused { index, problem: error.to_string() };
            for guard in &guards {
                writer.add_check_version(guard, -1).map_err(|_| WriteFailure::GuardGone)?;
            }
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
                Err(MultiWriteError::OperationFailed { index, source: Error::NoNode })
                    if index < guards.len() =>
                {
                    Err(WriteFailure::GuardGone)
                }
                Err(MultiWriteError::OperationFailed { index, source })
                    if index >= guards.len() && is_answer(&source) =>
                {
                    Err(refused(index - guards.len(), &source))
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

    fn look(&self, path: Arc<str>) -> Pending<Result<Option<Seen>, ReadFailure>> {
        let client = self.client.clone();
        Box::pin(async move {
            let found = client.check_stat(&path).await.map_err(|error| read_failure(&path, &error))?;
            Ok(found.map(|stat| Seen { czxid: stat.czxid, version: stat.version }))
        })
    }

    fn delete(&self, path: Arc<str>, version: i32) -> Pending<Result<Deletion, ReadFailure>> {
        let client = self.client.clone();
        Box::pin(async move {
            match client.delete(&path, Some(version)).await {
                Ok(()) => Ok(Deletion::Done),
                Err(Error::NoNode) => Ok(Deletion::NotThere),
                Err(Error::BadVersion) => Ok(Deletion::Changed),
                Err(error) => Err(read_failure(&path, &error)),
            }
        })
    }

    fn child(&self, directory: Arc<str>, name: String) -> Pending<Result<Option<Watched>, ReadFailure>> {
        let client = self.client.clone();
        Box::pin(async move {
            match client.get_and_watch_data(&join(&directory, &name)).await {
                Ok((data, stat, watcher)) => Ok(Some((child(name, data, &stat), watch(watcher)))),
                Err(Error::NoNode) => Ok(None),
                Err(error) => Err(read_failure(&directory, &error)),
            }
        })
    }
}

/// The first of two watches to tell. The other is taken back then.
fn either(first: Pending<WatchEvent>, second: Pending<WatchEvent>) -> Pending<WatchEvent> {
    Box::pin(async move {
        tokio::select! {
            biased;
            event = first => event,
            event = second => event,
        }
    })
}

fn child(name: String, data: Vec<u8>, stat: &Stat) -> Child {
    let created = UNIX_EPOCH + Duration::from_millis(u64::try_from(stat.ctime).unwrap_or_default());
    Child { name, data, czxid: stat.czxid, session: stat.ephemeral_owner, created }
}
