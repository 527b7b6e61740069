//! Helpers for acquiring in a task, and for the nodes of a queue.

use crate::support::timing::Noise;
use crate::support::{SOON, client, proxied_client, soon};
use ground::wire::Admin;
use ground::{Kind, Proxy, Trigger, not_later};
use std::pin::Pin;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;
use zklock::{Client, Error, Hold, Lock, LockSpec, LossReason};

/// Acquires in a task, which checks that the hold is valid.
pub(crate) fn acquire(lock: &Lock) -> JoinHandle<Result<Hold, Error>> {
    let lock = lock.clone();
    tokio::spawn(async move {
        let hold = lock.acquire().await;
        // Check it here, before anything else can run.
        assert!(hold.as_ref().is_ok_and(|hold| !hold.valid_for().is_zero()) || hold.is_err(), "{hold:?}");
        hold
    })
}

/// The hold that a task acquires, which must not take long.
#[track_caller]
pub(crate) fn granted(task: JoinHandle<Result<Hold, Error>>) -> impl Future<Output = Hold> {
    let granted = soon(task);
    async move { granted.await.expect("the task goes on to its end").expect("it is its turn") }
}

/// Acquires a lock, which must not take long.
#[track_caller]
pub(crate) fn held(lock: &Lock) -> impl Future<Output = Hold> {
    granted(acquire(lock))
}

/// Acquires a mutex at each of these paths, a few at a time.
pub(crate) async fn all_held(client: &Client, paths: &[String]) -> Vec<Hold> {
    let mut holds = Vec::new();
    for some in paths.chunks(100) {
        let tasks: Vec<_> = some.iter().map(|path| acquire(&client.mutex(path).unwrap())).collect();
        for task in tasks {
            holds.push(granted(task).await);
        }
    }
    holds
}

/// A call that its caller polls, and may drop.
pub(crate) type Acquire = Pin<Box<dyn Future<Output = Result<Hold, Error>> + Send>>;

/// Joins the local queue now, in the order of the calls.
pub(crate) async fn join(lock: &Lock) -> Acquire {
    let lock = lock.clone();
    let mut acquire: Acquire = Box::pin(async move { lock.acquire().await });
    tokio::select! {
        biased;
        early = &mut acquire => panic!("the lock should be held by another: {early:?}"),
        () = std::future::ready(()) => {}
    }
    acquire
}

/// A waiter with its own client, once it is in the queue of `path`, behind `ahead` nodes.
pub(crate) struct Waiter {
    pub(crate) client: Client,
    pub(crate) task: JoinHandle<Result<Hold, Error>>,
}

impl Waiter {
    pub(crate) async fn behind(
        ahead: usize,
        operator: &Admin,
        path: &str,
        make: impl FnOnce(&Client) -> Lock,
    ) -> Self {
        let client = client().await;
        let task = acquire(&make(&client));
        operator.wait_for_children(path, ahead + 1, SOON);
        Self { client, task }
    }
}

/// A waiter behind its own proxy, which records from the reply on with which the wait begins.
pub(crate) struct Waiting {
    pub(crate) client: Client,
    pub(crate) proxy: Proxy,
    pub(crate) task: JoinHandle<Result<Hold, Error>>,
}

impl Waiting {
    pub(crate) async fn new(make: impl FnOnce(&Client) -> Lock, waits: Trigger) -> Self {
        let (client, proxy) = proxied_client().await;
        let waits = proxy.on(waits);
        let task = acquire(&make(&client));
        assert!(waits.wait(SOON), "it does not wait");
        proxy.record();
        Self { client, proxy, task }
    }

    /// How often it was woken since it began to wait.
    pub(crate) fn woken(&self) -> usize {
        self.proxy.counts().replies(Kind::Event)
    }

    /// The hold, with its client and proxy.
    pub(crate) async fn granted(self) -> (Hold, (Client, Proxy)) {
        (granted(self.task).await, (self.client, self.proxy))
    }
}

/// The paths of the nodes in a directory, the oldest first.
pub(crate) fn nodes(operator: &Admin, directory: &str) -> Vec<String> {
    let mut names = operator.children_or_empty(directory);
    names.sort_by_key(|name| name[name.len() - 10..].to_owned());
    names.iter().map(|name| format!("{directory}/{name}")).collect()
}

/// Waits until the hold is reported as lost, within a heartbeat of `since`.
pub(crate) async fn told(hold: &Hold, client: &Client, since: Instant, noise: &Noise) -> LossReason {
    let reason = soon(hold.lost()).await.unwrap().expect("it is lost, and not released");
    let heartbeat = client.session_timeout().expect("a session") / 10;
    let took = since.elapsed();
    not_later(took, heartbeat + noise.allowance());
    assert!(hold.valid_for().is_zero());
    reason
}

/// How long to wait to see that nothing happens: several heartbeats.
pub(crate) const A_WHILE: Duration = Duration::from_millis(1000);

/// A mutex that its owner may take again.
pub(crate) fn reentrant(client: &Client, path: &str) -> Lock {
    client.lock(&LockSpec::mutex(path).unwrap().reentrant(true)).unwrap()
}

/// The write side, for owners that also take the read side.
pub(crate) fn reentrant_write(client: &Client, path: &str) -> Lock {
    client.lock(&LockSpec::write_lock(path).unwrap().reentrant(true)).unwrap()
}
