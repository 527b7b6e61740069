//! The barrier that one client sets and others wait at.

use crate::support::members::still_waits;
use crate::support::{
    SESSION, SOON, client, client_of, expire_session, operator, proxied_client, says, soon,
};
use ground::{Action, Ensemble, Kind, Proxy, Trigger, not_later};
use std::time::{Duration, Instant};
use tokio::task::{JoinHandle, JoinSet};
use zklock::further::Barrier;
use zklock::{Client, Error, ErrorKind};

fn waits(client: &Client, path: &str) -> JoinHandle<Result<(), Error>> {
    let barrier = client.barrier(path).unwrap();
    tokio::spawn(async move { barrier.wait().await })
}

async fn set(path: &str) -> Barrier {
    let barrier = client().await.barrier(path).unwrap();
    assert!(soon(barrier.set()).await.unwrap());
    barrier
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_is_a_node_that_belongs_to_nobody() {
    let (client, operator, path) = (client().await, operator(), "/barrier/plain/a");
    let barrier = client.barrier(path).unwrap();
    assert!(!soon(barrier.is_set()).await.unwrap());
    assert!(!soon(barrier.remove()).await.unwrap());
    assert!(soon(barrier.set()).await.unwrap());
    assert!(!soon(barrier.set()).await.unwrap());
    assert!(soon(barrier.is_set()).await.unwrap());
    assert_eq!(operator.stat(path).unwrap().ephemeral_owner, 0);
    soon(client.close()).await.unwrap();
    assert!(operator.stat(path).is_some());

    let other = crate::support::client().await;
    let barrier = other.barrier(path).unwrap();
    assert!(soon(barrier.remove()).await.unwrap());
    assert!(!soon(barrier.remove()).await.unwrap());
    assert!(operator.stat(path).is_none());
    assert!(soon(barrier.set()).await.unwrap());
    assert!(soon(barrier.remove()).await.unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_not_set_stops_nobody() {
    let (client, operator) = (client().await, operator());
    soon(waits(&client, "/barrier/nowhere/at/all")).await.unwrap().unwrap();
    assert!(operator.stat("/barrier/nowhere").is_none(), "to wait creates nothing");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_who_wait_go_on_when_it_is_removed_and_nobody_before() {
    let path = "/barrier/all";
    let barrier = set(path).await;
    let (mut waiters, mut clients) = (JoinSet::new(), Vec::new());
    for _ in 0..3 {
        let (client, proxy) = proxied_client().await;
        let watching = proxy.on(Trigger::reply(Kind::Exists).nth(3).path(path));
        for _ in 0..3 {
            let barrier = client.barrier(path).unwrap();
            waiters.spawn(async move { barrier.wait().await });
        }
        assert!(watching.wait(SOON));
        clients.push((client, proxy));
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(waiters.try_join_next().is_none());
    assert!(soon(barrier.remove()).await.unwrap());
    while let Some(waited) = soon(waiters.join_next()).await {
        waited.unwrap().unwrap();
    }
}

/// A waiter that watches, behind its own proxy.
struct Waiting {
    barrier: Barrier,
    client: Client,
    proxy: Proxy,
    waiter: JoinHandle<Result<(), Error>>,
}

impl Waiting {
    async fn at(path: &str) -> Self {
        let (barrier, (client, proxy)) = (set(path).await, proxied_client().await);
        let watching = proxy.on(Trigger::reply(Kind::Exists).path(path));
        let waiter = waits(&client, path);
        assert!(watching.wait(SOON));
        Self { barrier, client, proxy, waiter }
    }

    async fn passes(self) {
        soon(self.waiter).await.unwrap().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_written_to_its_node_and_a_new_session_make_it_look_again_but_do_not_let_pass() {
    let path = "/barrier/again";
    let at = Waiting::at(path).await;
    let again = at.proxy.on(Trigger::reply(Kind::Exists).path(path));
    operator().set(path, "something");
    assert!(again.wait(SOON), "it has looked again");
    still_waits(&at.waiter).await;
    let again = at.proxy.on(Trigger::reply(Kind::Exists).path(path));
    expire_session(&at.proxy);
    assert!(again.wait(SOON), "it has looked again");
    still_waits(&at.waiter).await;
    assert_eq!(at.client.stats().sessions, 2);
    assert!(soon(at.barrier.remove()).await.unwrap());
    at.passes().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_notification_delays_by_a_session_timeout_at_most() {
    let path = "/barrier/lost-event";
    let at = Waiting::at(path).await;
    let swallowed = at.proxy.on(Trigger::reply(Kind::Event).path(path).then(Action::Swallow));
    let removed = Instant::now();
    assert!(soon(at.barrier.remove()).await.unwrap());
    at.passes().await;
    assert!(swallowed.fired());
    not_later(removed.elapsed(), SESSION + Duration::from_secs(2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removal_while_the_waiter_is_cut_off_is_noticed() {
    let at = Waiting::at("/barrier/cut-off").await;
    at.proxy.refuse(true);
    at.proxy.reset();
    assert!(soon(at.barrier.remove()).await.unwrap());
    still_waits(&at.waiter).await;
    at.proxy.refuse(false);
    at.passes().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_done_when_a_reply_was_lost_is_found_done() {
    let (operator, path) = (operator(), "/barrier-reply-lost");
    let (client, proxy) = proxied_client().await;
    let barrier = client.barrier(path).unwrap();
    for what in ["reply", "request"] {
        let action = || if what == "reply" { Action::DropReplyAndReset } else { Action::DropAndReset };
        let struck = proxy.on(Trigger::request(Kind::Multi).path(path).then(action()));
        assert!(soon(barrier.set()).await.unwrap(), "{what}");
        assert!(struck.fired() && operator.stat(path).is_some(), "{what}");
        let struck = proxy.on(Trigger::request(Kind::Multi).path(path).then(action()));
        assert!(soon(barrier.remove()).await.unwrap(), "{what}");
        assert!(struck.fired() && operator.stat(path).is_none(), "{what}");
    }
    assert_eq!(client.stats().sessions, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_behind_lets_nobody_pass() {
    let ensemble = Ensemble::builder().servers(3).tick(Duration::from_millis(200)).start();
    let _talk = ensemble.keep_talking();
    let leader = client_of(&ensemble.connect_string()).await;
    let mut others = Vec::new();
    for server in 0..3 {
        others.push(client_of(&ensemble.server(server).address().to_string()).await);
    }
    for round in 0..30 {
        let path = format!("/barrier/behind/{round}");
        assert!(soon(leader.barrier(&path).unwrap().set()).await.unwrap());
        for other in &others {
            assert!(soon(other.barrier(&path).unwrap().is_set()).await.unwrap(), "{path}");
        }
        assert!(soon(leader.barrier(&path).unwrap().remove()).await.unwrap());
        for other in &others {
            assert!(!soon(other.barrier(&path).unwrap().is_set()).await.unwrap(), "{path}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_done_is_said() {
    let (client, operator, path) = (client().await, operator(), "/barrier/refused");
    for wrong in ["", "barrier", "/", "/barrier/", "/zookeeper/a"] {
        assert_eq!(client.barrier(wrong).unwrap_err().kind(), ErrorKind::InvalidInput, "{wrong}");
    }
    let barrier = client.barrier(path).unwrap();
    assert!(soon(barrier.set()).await.unwrap());
    operator.create(&format!("{path}/child"), "");
    let error = soon(barrier.remove()).await.unwrap_err();
    says(&error, ErrorKind::Refused, &[path, "was not removed", "has children: delete those first"]);
    operator.delete_tree(path);
    soon(client.close()).await.unwrap();
    assert_eq!(soon(barrier.set()).await.unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(soon(barrier.wait()).await.unwrap_err().kind(), ErrorKind::Closed);
}
