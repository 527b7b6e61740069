//! A connection that breaks, or on which a reply never comes: the client attaches its session to the next one.

use crate::support::{SESSION, SOON, operator, options, proxied_client, soon};
use ground::{Action, Direction, Kind, Proxy, Side, Trigger, shared, until};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use zklock::{Client, Error, ErrorKind};

/// Waits until the client is connected: a lock that is acquired needs the server.
async fn attached(client: &Client) {
    let lock = client.mutex("/reconnect/attached").unwrap();
    soon(lock.acquire()).await.unwrap().release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_that_never_comes_on_a_connection_that_lives_is_given_up() {
    let (client, proxy) = proxied_client().await;
    let path = "/reconnect/swallowed";
    soon(client.mutex(path).unwrap().acquire()).await.unwrap().release().await.unwrap();
    let session = client.session_id();
    for kind in [Kind::Create, Kind::GetChildren] {
        let swallowed = proxy.on(Trigger::reply(kind).path(path).then(Action::Swallow));
        let start = Instant::now();
        let hold = tokio::time::timeout(SOON * 2, client.mutex(path).unwrap().acquire()).await;
        let hold = hold.expect("the request is given up").unwrap();
        assert!(swallowed.fired());
        println!("{kind:?} swallowed: acquired after {:?} of a session of {SESSION:?}", start.elapsed());
        // The node of the request itself, and no other.
        assert_eq!(operator().children(path).len(), 1);
        let swallowed = proxy.on(Trigger::reply(Kind::Delete).path(path).then(Action::Swallow));
        soon(hold.release()).await.unwrap();
        assert!(swallowed.fired());
    }
    assert_eq!(client.session_id(), session);
    operator().wait_for_children(path, 0, SOON);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_sent_before_the_connection_broke_is_never_sent_again() {
    let (client, proxy) = proxied_client().await;
    let path = "/reconnect/resent";
    attached(&client).await;
    proxy.freeze(Direction::ToServer);
    let lock = client.mutex(path).unwrap();
    let gives_up = soon(lock.acquire_timeout(Duration::from_millis(100))).await;
    assert!(gives_up.is_err());
    proxy.reset();
    proxy.thaw();
    proxy.record();
    attached(&client).await;
    let sent = proxy.take_record();
    let created = |message: &&ground::Message| {
        message.side == Side::Request && message.kind == Kind::Create && message.path.starts_with(path)
    };
    assert_eq!(sent.iter().filter(created).count(), 0, "{sent:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_waiters_of_one_client_outlive_a_reconnect() {
    const WAITERS: usize = 2_000;
    let paths: Vec<String> = (0..WAITERS).map(|index| format!("/reconnect-many/{index:04}")).collect();
    // On a busy machine so many requests at once may keep the leases from being renewed. These holds must survive that.
    let patient = options(&shared().connect_string()).session_timeout(SESSION * 5).heartbeat(false);
    let (holder, (waiter, proxy)) = (soon(Client::connect(patient)).await.unwrap(), proxied_client().await);
    let mut holds = JoinSet::new();
    for path in paths.clone() {
        let lock = holder.mutex(&path).unwrap();
        holds.spawn(async move { lock.acquire().await.unwrap() });
    }
    let holds = tokio::time::timeout(SOON * 12, holds.join_all()).await.expect("all are free");
    proxy.record();
    let mut waits = JoinSet::new();
    for path in &paths {
        let lock = waiter.mutex(path).unwrap();
        // So many releases at once may take longer to be confirmed than one waits for that.
        waits.spawn(async move { lock.acquire().await.unwrap().release().await });
    }
    let watched = |proxy: &Proxy| {
        let answered = proxy.counts().answered;
        answered.iter().filter(|kind| **kind == Kind::GetData).count()
    };
    let all_watch = || {
        let all = tokio::task::block_in_place(|| until(SOON * 12, || watched(&proxy) >= WAITERS));
        assert!(
            all,
            "{} watch; {:?}, {:?}, {:?}",
            watched(&proxy),
            waiter.stats(),
            holder.stats(),
            holds[0].state()
        );
    };
    all_watch();
    proxy.record();
    let start = Instant::now();
    proxy.reset();
    all_watch();
    let counts = proxy.messages().len();
    println!("{WAITERS} waiters watch again {:?} after the reset, with {counts} messages", start.elapsed());
    assert_eq!(waiter.stats().sessions, 1, "they need no other session, and lose none");
    drop(holds);
    for released in tokio::time::timeout(SOON * 12, waits.join_all()).await.expect("all are free again") {
        assert!(
            matches!(released.as_ref().map_err(Error::kind), Ok(()) | Err(ErrorKind::Timeout)),
            "{released:?}"
        );
    }
    assert!(until(SOON * 12, || waiter.stats().owed == 0), "{:?}", waiter.stats());
}
