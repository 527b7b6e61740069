//! Helpers for most scenarios.

pub(crate) mod child;
pub(crate) mod deadline;
pub(crate) mod delivery;
pub(crate) mod embedded;
pub(crate) mod fake;
pub(crate) mod kinds;
pub(crate) mod loss;
pub(crate) mod members;
pub(crate) mod permits;
mod queue;
pub(crate) mod register;
pub(crate) mod strangers;
pub(crate) mod sweep;
pub(crate) mod texts;
pub(crate) mod threads;
pub(crate) mod timing;
pub(crate) mod users;
pub(crate) mod warnings;

pub(crate) use queue::{
    A_WHILE, Waiter, Waiting, acquire, all_held, granted, held, join, nodes, reentrant, reentrant_write, told,
};

use ground::wire::{Admin, try_expire};
use ground::{Proxy, secured, shared};
use std::time::{Duration, Instant};
use zklock::further::{Access, Credentials, Tls};
use zklock::{Client, ClientOptions, Error, ErrorKind, Hold, Lock};

/// The longest session of the shared server: its lease is long enough for a busy machine, its heartbeat short enough
/// for a test.
pub(crate) const SESSION: Duration = Duration::from_secs(4);
/// How long a holder may go without news of its node.
pub(crate) const HEARTBEAT: Duration = Duration::from_millis(SESSION.as_millis() as u64 / 10);
/// The limit for anything that takes almost no time on an idle machine.
pub(crate) const SOON: Duration = Duration::from_secs(30);
/// The delay beyond the deadline that promise 4 allows.
pub(crate) const GRACE: Duration = Duration::from_millis(50);

/// Options for these hosts. In a secured ensemble (see [`secured`]) the client logs in, and only it may use its nodes.
pub(crate) fn options(hosts: &str) -> ClientOptions {
    let options = ClientOptions::new(hosts).session_timeout(SESSION);
    if !secured::is_wanted() {
        return options;
    }
    let user = Credentials::sasl(secured::USER, secured::PASSWORD).unwrap();
    let options = options.credentials(user).access(Access::CreatorAll);
    let Some(files) = secured::tls_files(hosts) else { return options };
    let [authority, certificate, key] =
        [files.authority, files.certificate, files.key].map(|file| std::fs::read_to_string(file).unwrap());
    options.tls(Tls::new(&authority).unwrap().identity(&certificate, &key).unwrap())
}

/// A client of the shared server. Its tries wait for an answer, however busy the machine is.
pub(crate) async fn client() -> Client {
    Client::connect(on_the_shared_server()).await.unwrap()
}

pub(crate) fn on_the_shared_server() -> ClientOptions {
    options(&shared().connect_string()).try_timeout(SOON)
}

pub(crate) async fn client_of(hosts: &str) -> Client {
    Client::connect(options(hosts)).await.unwrap()
}

/// A client of the shared server with this identity.
pub(crate) async fn named(identity: &str) -> Client {
    Client::connect(on_the_shared_server().identity(identity)).await.unwrap()
}

/// A client of the shared server, behind its own proxy.
pub(crate) async fn proxied_client() -> (Client, Proxy) {
    proxied(|options| options).await
}

/// The same, with these options.
pub(crate) async fn proxied(with: impl FnOnce(ClientOptions) -> ClientOptions) -> (Client, Proxy) {
    let proxy = Proxy::before(shared().server(0));
    let options = with(options(&proxy.connect_string()));
    (Client::connect(options).await.unwrap(), proxy)
}

/// How long the hold is certain to last, as soon as the quorum confirms it: on a busy machine one answer may come too late.
pub(crate) async fn confirmed(hold: &Hold) -> Duration {
    confirmed_or_lost(hold).await.unwrap()
}

/// The same, or why that is not known.
pub(crate) async fn confirmed_or_lost(hold: &Hold) -> Result<Duration, ErrorKind> {
    soon(async {
        loop {
            match hold.confirm().await.map_err(|error| error.kind()) {
                Err(ErrorKind::Unreachable) => {}
                result => return result,
            }
        }
    })
    .await
}

/// The operator of the shared server.
pub(crate) fn operator() -> Admin {
    Admin::connect(shared().server(0).address())
}

/// The result of a future that must not take long.
#[track_caller]
pub(crate) fn soon<F: Future>(future: F) -> impl Future<Output = F::Output> {
    let caller = std::panic::Location::caller();
    async move {
        match tokio::time::timeout(SOON, future).await {
            Ok(result) => result,
            Err(_) => panic!("took longer than {SOON:?} at {caller}"),
        }
    }
}

/// Waits until this is so.
#[track_caller]
pub(crate) fn comes(mut is_so: impl AsyncFnMut() -> bool) -> impl Future<Output = ()> {
    soon(async move {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
}

/// Tries to acquire until the error says this. At first it may be about what was before, such as the last connection.
#[track_caller]
pub(crate) fn comes_to_fail(lock: &Lock, part: &str) -> impl Future<Output = Error> {
    soon(async move {
        loop {
            let error = lock.try_acquire().await.expect_err(part);
            if error.to_string().contains(part) {
                break error;
            }
            tokio::task::yield_now().await;
        }
    })
}

/// Runs all of these at the same time.
pub(crate) fn all_of<F: Future<Output = ()> + Send + 'static>(
    futures: impl IntoIterator<Item = F>,
) -> impl Future<Output = ()> {
    let tasks: Vec<_> = futures.into_iter().map(tokio::spawn).collect();
    async {
        for task in tasks {
            task.await.unwrap();
        }
    }
}

/// Waits until the client owes no clean-up any more.
pub(crate) async fn settled(client: &Client) {
    comes(async || client.stats().owed == 0).await;
}

/// Ends the latest session that came through the proxy, on the server, and returns when that began. Keeps its client out
/// meanwhile: if it came back just then, it could take its session back, or keep a connection that is never answered.
#[track_caller]
pub(crate) fn expire_session(proxy: &Proxy) -> Instant {
    let (id, password, _) = proxy.session().pop().expect("a session");
    proxy.refuse(true);
    let start = Instant::now();
    let gone = || matches!(try_expire(shared().server(0).address(), id, &password), Ok(false));
    assert!(ground::until(SOON, gone), "session {id:#x} cannot be ended");
    proxy.refuse(false);
    start
}

/// The result of a call that blocks, on a thread that nobody joins. If the call never comes back, its test fails. On a
/// thread of the runtime the test would hang.
pub(crate) async fn on_a_thread<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, result) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || sender.send(call()).ok());
    result.await.expect("the thread has not panicked")
}

/// Asserts that the error is of this kind, and its message has all these parts.
#[track_caller]
pub(crate) fn says(error: &Error, kind: ErrorKind, parts: &[&str]) {
    assert_eq!(error.kind(), kind, "{error}");
    for part in parts {
        assert!(error.to_string().contains(part), "{part:?} is not in: {error}");
    }
}
