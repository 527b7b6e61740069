//! Members that die, and connections that do.

use crate::support::members::{enters, is_empty, is_open, leaves, there, waits_to_leave, within};
use crate::support::{SESSION, SOON, client, expire_session, operator, proxied_client, says, settled, soon};
use ground::{Action, Kind, Trigger, until};
use std::time::Duration;
use zklock_core::{ErrorKind, LossReason};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_comes_again_in_the_next_session() {
    let (operator, path) = (operator(), "/crash/waits");
    let (one, proxy) = proxied_client().await;
    let a = enters(&one, path, 2);
    let first = there(&operator, path, 1);
    expire_session(&proxy);
    assert!(until(SOON, || {
        let now = operator.children(path);
        now.len() == 1 && now != first
    }));
    assert!(!a.is_finished());
    let other = client().await;
    let b = soon(enters(&other, path, 2)).await.unwrap().unwrap();
    let a = soon(a).await.unwrap().unwrap();
    assert_eq!(one.stats().sessions, 2);
    let a = leaves(a);
    soon(b.leave()).await.unwrap();
    soon(a).await.unwrap().unwrap();
    is_empty(&operator, path);
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
    assert_eq!(soon(a.lost()).await, LossReason::SessionExpired);
    assert_eq!(a.loss(), Some(LossReason::SessionExpired));
    let error = soon(a.leave()).await.unwrap_err();
    says(&error, ErrorKind::Lost(LossReason::SessionExpired), &[path, "its session expired"]);
    settled(&one).await;
    // If it was the member that deletes `ready`, the next round has to delete it.
    there(&operator, path, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_who_died_among_those_who_come_does_not_count() {
    let (operator, path) = (operator(), "/crash/comes");
    let (one, proxy) = proxied_client().await;
    let _dies = enters(&one, path, 3);
    let a = enters(&client().await, path, 3);
    there(&operator, path, 2);
    proxy.refuse(true);
    proxy.reset();
    there(&operator, path, 1);
    let other = client().await;
    let b = enters(&other, path, 3);
    there(&operator, path, 2);
    tokio::time::sleep(Duration::from_millis(150)).await;
    assert!(!a.is_finished() && !b.is_finished() && !is_open(&operator, path));
    proxy.refuse(false);
    let (a, b) = (soon(a).await.unwrap().unwrap(), soon(b).await.unwrap().unwrap());
    assert_eq!(one.stats().sessions, 2, "it has come again");
    drop((a, b));
    drop(soon(_dies).await.unwrap().unwrap());
    there(&operator, path, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_who_crashes_while_all_leave_keeps_nobody() {
    let (operator, path) = (operator(), "/crash/leaves");
    // Whether the member that crashes would have stayed to the end.
    for crashes in [true, false] {
        let (mut others, mut dying) = (Vec::new(), None);
        // Which of the names comes first is a matter of chance.
        while dying.is_none() {
            let (one, proxy) = proxied_client().await;
            let a = enters(&one, path, 3);
            let (two, three) = (client().await, client().await);
            let (b, c) = (enters(&two, path, 3), enters(&three, path, 3));
            let mut members = Vec::new();
            for member in [a, b, c] {
                members.push(soon(member).await.unwrap().unwrap());
            }
            let a = members.remove(0);
            let is_first = members.iter().all(|member| a.node() < member.node());
            if is_first == crashes {
                others = members;
                dying = Some((a, one, proxy));
                break;
            }
            let leaving: Vec<_> = members.into_iter().chain([a]).map(leaves).collect();
            for left in leaving {
                soon(left).await.unwrap().unwrap();
            }
        }
        let (member, _one, proxy) = dying.unwrap();
        let leaving: Vec<_> = others.into_iter().map(leaves).collect();
        there(&operator, path, if crashes { 1 } else { 2 });
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(leaving.iter().all(|left| !left.is_finished()));
        proxy.refuse(true);
        proxy.reset();
        let bound = SESSION + SOON;
        for left in leaving {
            tokio::time::timeout(bound, left).await.unwrap().unwrap().unwrap();
        }
        there(&operator, path, 0);
        drop(member);
        // If it was the member that deletes `ready`, that node is left, but lets nobody in.
        let early = enters(&client().await, path, 2);
        there(&operator, path, 1);
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!early.is_finished());
        early.abort();
        there(&operator, path, 0);
        operator.delete_tree(path);
    }
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
async fn who_is_within_does_not_mind_a_connection_that_breaks() {
    let (operator, path) = (operator(), "/crash/reset");
    let (one, proxy) = proxied_client().await;
    let mut members = within(path, 2).await;
    let late = soon(enters(&one, path, 2)).await.unwrap().unwrap();
    proxy.reset();
    let leaving: Vec<_> = members.drain(..).map(|(member, client)| (leaves(member), client)).collect();
    soon(late.leave()).await.unwrap();
    for (left, _) in leaving {
        soon(left).await.unwrap().unwrap();
    }
    assert_eq!((late.loss(), one.stats().sessions), (None, 1));
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
