//! A connection that breaks, or on which a reply never comes: the client attaches its session to the next one.

use crate::support::{SESSION, SOON, operator, proxied_client, soon};
use ground::{Action, Direction, Kind, Trigger};
use std::time::{Duration, Instant};
use zklock::Client;

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
    let sent = proxy.requests();
    let created = sent.iter().filter(|it| it.kind == Kind::Create && it.path.starts_with(path)).count();
    assert_eq!(created, 0, "{sent:?}");
}
