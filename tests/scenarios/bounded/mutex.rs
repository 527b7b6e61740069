//! Promise 4: an acquire with a deadline returns by then, whatever the network does, and says what the trouble is.

use crate::support::deadline::{A_WHILE, DIRECTIONS, in_time};
use crate::support::{
    SOON, client, client_of, comes_to_fail, expire_session, on_a_thread, operator, options, proxied,
    proxied_client, says, settled, soon,
};
use ground::wire::Admin;
use ground::{Direction, Ensemble, Proxy, shared, until};
use std::net::TcpListener;
use std::pin::pin;
use std::time::{Duration, Instant};
use zklock::{Client, ClientOptions, Error, ErrorKind, Lock};

/// Whether the time ran out. `an_outage_is_not_called_contention` tests which of the two errors it must be.
fn is_late(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Timeout | ErrorKind::Unreachable)
}

async fn times_out(lock: &Lock, timeout: Duration) -> Error {
    let start = Instant::now();
    let error = in_time(timeout, lock.acquire_timeout(timeout)).await.unwrap_err();
    assert!(is_late(&error), "{error}");
    assert!(start.elapsed() >= timeout, "too early: {:?}", start.elapsed());
    assert!(error.to_string().contains(lock.path()), "{error}");
    error
}

/// The same on a thread that waits.
async fn times_out_for_a_thread(lock: Lock, timeout: Duration) -> Error {
    let call = on_a_thread(move || lock.acquire_timeout(timeout).wait().map(drop).unwrap_err());
    let error = in_time(timeout, call).await;
    assert!(is_late(&error), "{error}");
    error
}

/// Asserts that the lock works (again), and its client owes nothing.
async fn works(client: &Client, lock: &Lock) {
    soon(lock.acquire()).await.unwrap().release().await.unwrap();
    settled(client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_stopped_or_dead_delays_nobody() {
    let own = Ensemble::builder().tick(Duration::from_millis(200)).start();
    let (server, hosts) = (own.server(0), own.connect_string());
    let (holder, waiter) = (client_of(&hosts).await, client_of(&hosts).await);
    let options = options(&hosts);
    let threads = soon(on_a_thread(move || Client::connect(options).wait().unwrap())).await;
    let hold = soon(holder.mutex("/queue").unwrap().acquire()).await.unwrap();

    let (queued, first) = (waiter.mutex("/queue").unwrap(), waiter.mutex("/first").unwrap());
    // In this task, because a test that is late is known by its thread.
    let mut in_queue = pin!(times_out(&queued, A_WHILE * 3));
    let admin = Admin::connect(server.address());
    tokio::select! {
        early = &mut in_queue => panic!("{early}"),
        _ = on_a_thread(move || admin.wait_for_children("/queue", 2, SOON)) => {}
    }
    server.pause();
    tokio::join!(
        in_queue,
        times_out(&first, A_WHILE),
        times_out_for_a_thread(threads.mutex("/threads").unwrap(), A_WHILE),
        connects_in_time(&hosts, A_WHILE),
    );

    server.kill();
    comes_to_fail(&first, "no server answers").await;
    let (dead, through_threads, connecting) = tokio::join!(
        times_out(&first, A_WHILE),
        times_out_for_a_thread(threads.mutex("/threads").unwrap(), A_WHILE),
        connects_in_time(&hosts, A_WHILE),
    );
    for error in [dead, through_threads] {
        assert!(error.to_string().contains("check hosts and network"), "{error}");
    }
    assert!(connecting.to_string().contains("refused"), "{connecting}");
    drop(hold);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_is_not_called_contention() {
    let (path, holder) = ("/bounded-outage", client().await);
    let hold = soon(holder.mutex(path).unwrap().acquire()).await.unwrap();
    let (client, proxy) = proxied(|options| options.try_timeout(A_WHILE * 2)).await;
    let (lock, other) = (client.mutex(path).unwrap(), client.mutex("/bounded-outage-other").unwrap());

    says(&times_out(&lock, A_WHILE).await, ErrorKind::Timeout, &["others are before us"]);
    says(&times_out(&lock, Duration::from_millis(1)).await, ErrorKind::Timeout, &[path]);

    // A server only counts as silent after it has been silent for the try timeout.
    proxy.freeze(Direction::ToClient);
    let error = times_out(&other, A_WHILE / 10).await;
    says(&error, ErrorKind::Timeout, &["too short for an answer: wait longer"]);
    // Callers that wait behind another of the same client get the same error, before and after they take its place.
    let (first, before, after) = tokio::join!(
        times_out(&other, A_WHILE * 4),
        times_out(&other, A_WHILE * 3),
        times_out(&other, A_WHILE * 5)
    );
    for error in [first, before, after] {
        says(&error, ErrorKind::Unreachable, &["check hosts and network"]);
    }
    proxy.thaw();
    works(&client, &other).await;

    // It had a place in the queue, and nobody knows what has become of that.
    let waits = lock.clone();
    let queued = tokio::spawn(async move { waits.acquire_timeout(A_WHILE * 4).await.map(drop).unwrap_err() });
    operator().wait_for_children(path, 2, SOON);
    proxy.refuse(true);
    proxy.reset();
    says(&soon(queued).await.unwrap(), ErrorKind::Unreachable, &["no server answers"]);
    says(&times_out(&lock, A_WHILE / 10).await, ErrorKind::Unreachable, &["no server answers"]);
    proxy.refuse(false);
    works(&client, &other).await;
    soon(hold.release()).await.unwrap();
    works(&client, &lock).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_timeout_of_zero_tries_once() {
    let path = "/bounded-zero";
    let (client, other) = (client().await, client().await);
    let lock = client.mutex(path).unwrap();
    let hold = soon(lock.acquire_timeout(Duration::ZERO)).await.unwrap();
    let error = soon(other.mutex(path).unwrap().acquire_timeout(Duration::ZERO)).await.unwrap_err();
    says(&error, ErrorKind::Timeout, &["/bounded-zero is held by another"]);
    operator().wait_for_children(path, 1, SOON);
    soon(hold.release()).await.unwrap();

    // It waits for an answer, but only for the try timeout, which is a second by default.
    let (client, proxy) = proxied(patient).await;
    proxy.freeze(Direction::Both);
    let lock = client.mutex(path).unwrap();
    let error = in_time(Duration::from_secs(1), lock.acquire_timeout(Duration::ZERO)).await.unwrap_err();
    says(&error, ErrorKind::Unreachable, &[path, "was not tried within 1s", "check hosts and network"]);
}

/// A client with these options would go on connecting for longer than any test lasts.
fn patient(options: ClientOptions) -> ClientOptions {
    options.connect_timeout(Duration::from_secs(3600))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_try_is_bounded_by_its_own_timeout_where_nobody_answers() {
    let (client, proxy) = proxied(|options| patient(options).try_timeout(A_WHILE)).await;
    let locks = |kind: &str| {
        let path = format!("/bounded-try-{kind}");
        [client.mutex(&path), client.write_lock(&path), client.semaphore(&path, 2), client.single_node(&path)]
            .map(Result::unwrap)
    };
    proxy.freeze(Direction::Both);
    // In the second round the first round's calls are still cleaning up, which must not look as if somebody held the lock.
    for _ in 0..2 {
        for lock in locks("frozen") {
            let error = soon(lock.acquire_timeout(Duration::ZERO)).await.unwrap_err();
            says(&error, ErrorKind::Unreachable, &[lock.path(), "was not tried within 300ms"]);
            let error = soon(lock.try_acquire()).await.unwrap_err();
            says(&error, ErrorKind::Unreachable, &[lock.path(), "check hosts and network"]);
        }
    }
    proxy.thaw();
    for lock in locks("frozen") {
        works(&client, &lock).await;
    }
    // The same when the connection is known to be broken.
    proxy.refuse(true);
    proxy.reset();
    let lock = client.mutex("/bounded-try-refused").unwrap();
    comes_to_fail(&lock, "no server answers").await;
    says(&soon(lock.try_acquire()).await.unwrap_err(), ErrorKind::Unreachable, &["no server answers"]);
    proxy.refuse(false);
    works(&client, &lock).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_timeout_beyond_the_end_of_time_waits_for_ever() {
    let path = "/bounded-huge";
    let holder = client().await;
    for timeout in
        [Duration::MAX, Duration::from_secs(u64::MAX), Duration::from_secs(u64::MAX / 4), end_of_time()]
    {
        let hold = soon(holder.mutex(path).unwrap().acquire()).await.unwrap();
        let other = client().await;
        let lock = other.mutex(path).unwrap();
        let waits = tokio::spawn(async move { lock.acquire_timeout(timeout).await?.release().await });
        operator().wait_for_children(path, 2, SOON);
        assert!(!waits.is_finished());
        soon(hold.release()).await.unwrap();
        soon(waits).await.unwrap().unwrap_or_else(|error| panic!("{timeout:?}: {error}"));
    }
}

/// The longest timeout whose deadline the clock can tell.
fn end_of_time() -> Duration {
    let (mut fits, mut exceeds) = (0, u64::MAX);
    let now = Instant::now();
    while exceeds - fits > 1 {
        let middle = fits + (exceeds - fits) / 2;
        let told = now.checked_add(Duration::from_secs(middle)).is_some();
        if told { fits = middle } else { exceeds = middle }
    }
    Duration::from_secs(fits - 60)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_session_and_a_new_place_in_the_queue_do_not_extend_the_deadline() {
    let path = "/bounded-expiry";
    let (holder, admin) = (client().await, operator());
    let hold = soon(holder.mutex(path).unwrap().acquire()).await.unwrap();
    let (waiter, proxy) = proxied_client().await;
    let (lock, timeout) = (waiter.mutex(path).unwrap(), A_WHILE * 5);
    let wait = tokio::spawn(async move { times_out(&lock, timeout).await });
    let before = admin.wait_for_children(path, 2, SOON);
    expire_session(&proxy);
    // It queues again, in the next session.
    assert!(until(SOON, || admin.children(path).len() == 2 && admin.children(path) != before));
    assert!(!wait.is_finished(), "the second wait is to be seen");
    wait.await.unwrap();
    assert_eq!(waiter.stats().sessions, 2);
    settled(&waiter).await;
    admin.wait_for_children(path, 1, SOON);
    soon(hold.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_close_takes_a_second_at_most() {
    for direction in DIRECTIONS {
        let (client, proxy) = proxied_client().await;
        let hold = soon(client.mutex("/bounded-close").unwrap().acquire()).await.unwrap();
        proxy.freeze(direction);
        in_time(Duration::from_secs(1), client.close()).await.unwrap();
        assert!(hold.valid_for().is_zero());
        proxy.thaw();
        // The session was closed after all, or has timed out: the lock is free for the next round.
        operator().wait_for_children("/bounded-close", 0, SOON);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connect_is_bounded_where_something_else_listens_or_nobody_does_or_the_network_is_frozen() {
    // The kernel accepts connections into the backlog, but nobody answers.
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let hosts = mute.local_addr().unwrap().to_string();
    let error = connects_in_time(&hosts, A_WHILE * 2).await;
    assert!(error.to_string().contains("accepts connections but opens no session"), "{error}");
    // A network that drops everything: addresses reserved for documentation, where nobody answers.
    let error =
        connects_in_time("192.0.2.1:2181,192.0.2.2:2181,192.0.2.3:2181,192.0.2.4:2181", A_WHILE).await;
    assert!(error.to_string().contains("192.0.2.4"), "{error}");
    for direction in DIRECTIONS {
        let proxy = Proxy::before(shared().server(0));
        proxy.freeze(direction);
        connects_in_time(&proxy.connect_string(), A_WHILE).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connect_has_all_of_its_time() {
    let proxy = Proxy::before(shared().server(0));
    proxy.delay(Duration::from_millis(300));
    let timeout = A_WHILE * 10;
    let options = options(&proxy.connect_string()).connect_timeout(timeout);
    // The greeting takes about 600 ms there and back: a fifth of the timeout.
    let client = in_time(timeout, Client::connect(options)).await.unwrap_or_else(|error| panic!("{error}"));
    assert!(client.session_id().is_some());
}

/// Opening a session fails as unreachable, in time.
async fn connects_in_time(hosts: &str, timeout: Duration) -> Error {
    let result = in_time(timeout, Client::connect(options(hosts).connect_timeout(timeout))).await;
    let error = result.map(drop).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    error
}
