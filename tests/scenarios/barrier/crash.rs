//! Members that die, and connections that do.

use crate::support::members::{enters, is_empty, is_open, leaves, looks_at, there, waits_to_leave};
use crate::support::{SOON, client, embedded, expire_session, operator, proxied_client, says, settled, soon};
use ground::{Action, Gate, Kind, Proxy, Trigger};
use std::time::Duration;
use zklock::{Client, ClientOptions, ErrorKind, LossReason};
use zklock_testkit::Server;

/// So long a session timeout that a member which only looks again after that fails the test.
const LONG: Duration = Duration::from_secs(120);

fn patient() -> Server {
    Server::builder().session_timeouts(LONG, LONG).start().unwrap()
}

/// A client of this server behind a proxy.
async fn behind_a_proxy(server: &Server) -> (Client, Proxy) {
    let proxy = Proxy::start(server.address());
    let options = ClientOptions::new(&proxy.connect_string()).session_timeout(LONG);
    (soon(Client::connect(options)).await.unwrap(), proxy)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_whose_session_ends_is_told_and_the_others_do_not_wait_for_it() {
    let (operator, path) = (operator(), "/crash/within");
    let (one, proxy) = proxied_client().await;
    let a = enters(&one, path, 2);
    let other = client().await;
    let b = soon(enters(&other, path, 2)).await.unwrap().unwrap();
    let a = soon(a).await.unwrap().unwrap();
    let left = leaves(b);
    expire_session(&proxy);
    soon(left).await.unwrap().unwrap();
    assert_eq!(soon(a.lost()).await, Ok(LossReason::SessionExpired));
    assert_eq!(a.loss(), Some(LossReason::SessionExpired));
    let error = soon(a.leave()).await.unwrap_err();
    says(&error, ErrorKind::Lost(LossReason::SessionExpired), &[path, "its session expired"]);
    settled(&one).await;
    // If it was the member that deletes `ready`, the next round has to delete it.
    there(&operator, path, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_round_after_one_that_crashed_is_as_any_other() {
    let (operator, path) = (operator(), "/crash/round");
    let mut proxies = Vec::new();
    let mut members = Vec::new();
    for _ in 0..2 {
        let (client, proxy) = proxied_client().await;
        members.push(enters(&client, path, 2));
        proxies.push((proxy, client));
    }
    for member in &mut members {
        std::mem::forget(soon(member).await.unwrap().unwrap());
    }
    for (proxy, _) in &proxies {
        expire_session(proxy);
    }
    there(&operator, path, 0);
    assert!(is_open(&operator, path), "nobody was left to take it away");
    let other = client().await;
    let a = enters(&other, path, 2);
    there(&operator, path, 1);
    tokio::time::sleep(Duration::from_millis(150)).await;
    assert!(!a.is_finished());
    let b = soon(enters(&other, path, 2)).await.unwrap().unwrap();
    let left = leaves(soon(a).await.unwrap().unwrap());
    soon(b.leave()).await.unwrap();
    soon(left).await.unwrap().unwrap();
    is_empty(&operator, path);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_notification_delays_by_a_session_timeout_at_most() {
    let (operator, path) = (operator(), "/crash/lost-event");
    let (one, proxy) = proxied_client().await;
    let swallowed = proxy.on(Trigger::reply(Kind::Event).path(path).then(Action::Swallow));
    let a = enters(&one, path, 2);
    there(&operator, path, 1);
    let other = client().await;
    let b = soon(enters(&other, path, 2)).await.unwrap().unwrap();
    let a = soon(a).await.unwrap().unwrap();
    assert!(swallowed.fired());
    let swallowed = proxy.on(Trigger::reply(Kind::Event).path(path).then(Action::Swallow));
    let also = proxy.on(Trigger::reply(Kind::Event).nth(2).path(path).then(Action::Swallow));
    let watches = waits_to_leave(&proxy, &a, &b);
    let left = leaves(a);
    assert!(watches.wait(SOON));
    let other = leaves(b);
    soon(left).await.unwrap().unwrap();
    soon(other).await.unwrap().unwrap();
    assert!(swallowed.fired() || also.fired());
    is_empty(&operator, path);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leaver_does_not_wait_for_one_that_came_after_the_barrier_was_opened() {
    let (operator, path) = (operator(), "/crash/next");
    let (one, proxy) = proxied_client().await;
    let listed = proxy.on(Trigger::reply(Kind::GetChildren).path(path));
    let gate = Gate::new();
    let held = proxy.on(Trigger::reply(Kind::Event).path(path).then(Action::Pause(gate.clone())));
    operator.create_all(path, "");
    let a = enters(&one, path, 2);
    assert!(listed.wait(SOON));
    // The other opens the barrier for both, and leaves before ours has looked.
    let other = client().await;
    drop(soon(enters(&other, path, 2)).await.unwrap().unwrap());
    assert!(held.wait(SOON));
    there(&operator, path, 1);
    // Its name is the first, so ours does not stay to the end.
    let next = format!("{path}/00000000-0000-4000-8000-000000000000");
    operator.create(&next, "");
    gate.open();
    let a = soon(a).await.unwrap().unwrap();
    soon(a.leave()).await.unwrap();
    operator.delete(&next);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_changes_while_a_member_looks_around_is_not_missed() {
    let (server, path) = (patient(), "/crash/meanwhile");
    let ((one, proxy), other) = (behind_a_proxy(&server).await, embedded::client_with(&server, LONG).await);
    // A round that crashed has left it behind, so a member reads who is older before it waits.
    let ready = format!("{path}/ready");
    server.put(&ready, "").unwrap();
    let gate = Gate::new();
    let reads = Trigger::reply(Kind::GetData).path(&ready).then(Action::Pause(gate.clone()));
    let reads = proxy.on(reads);
    let a = enters(&one, path, 2);
    assert!(reads.wait(SOON), "it does not look whose `ready` that is");
    let b = soon(enters(&other, path, 2)).await.unwrap().unwrap();
    gate.open();
    let a = soon(a).await.unwrap().unwrap();

    let gate = Gate::new();
    let watches = looks_at(Trigger::request(Kind::GetData), &a, &b).then(Action::Pause(gate.clone()));
    let (watches, node) = (proxy.on(watches), b.node().to_owned());
    let left = leaves(a);
    assert!(watches.wait(SOON), "it does not wait for the other");
    assert!(server.delete(&node));
    gate.open();
    soon(left).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_ends_ends_neither_the_wait_for_others_to_come_nor_that_for_them_to_leave() {
    let (server, path) = (patient(), "/crash/goes-on");
    let clients = [embedded::client_with(&server, LONG).await, embedded::client_with(&server, LONG).await];
    let expire = |number: usize| clients[number].session_id().filter(|session| server.expire(*session));
    let a = enters(&clients[0], path, 2);
    let first = embedded::queue_of(&server, path, 1);
    let ended = expire(0);
    let comes_again = || server.children(path).is_some_and(|there| there.len() == 1 && there != first);
    assert!(ground::until(SOON, comes_again), "it does not come again:\n{}", server.dump(path));
    let b = soon(enters(&clients[1], path, 2)).await.unwrap().unwrap();
    let mut members = [(soon(a).await.unwrap().unwrap(), 0), (b, 1)];
    // The first keeps its node until the other has left.
    members.sort_by(|(one, _), (other, _)| one.node().cmp(other.node()));
    let [(stays, _), (leaver, number)] = members;
    let node = leaver.node().to_owned();
    let left = leaves(leaver);
    assert!(ground::until(SOON, || server.owner(&node).is_none()));
    let ended = expire(number).or(ended);
    let has_another = || clients[number].session_id().is_some_and(|session| Some(session) != ended);
    assert!(ground::until(SOON, has_another), "no new session");
    tokio::time::sleep(embedded::A_WHILE).await;
    assert!(!left.is_finished(), "the other is within");
    soon(stays.leave()).await.unwrap();
    soon(left).await.unwrap().unwrap();
    embedded::queue_of(&server, path, 0);
}
