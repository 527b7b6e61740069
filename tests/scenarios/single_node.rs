//! The single-node lock: one plain node, which exists or not, and a companion whose name is unique to its holder.

use crate::support::register::clients;
use crate::support::{
    A_WHILE, SOON, acquire, client, granted, held, operator, proxied_client, settled, soon,
};
use ground::{Action, Direction, Kind, Trigger, shared};
use tokio::task::JoinSet;
use zklock::{ErrorKind, LossReason};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_job_that_is_tried_once_is_done_by_one_of_all_who_try() {
    let (operator, path) = (operator(), "/single-node/once");
    let clients = clients(&shared().connect_string(), 20).await;
    let mut tries = JoinSet::new();
    for client in &clients {
        let lock = client.single_node(path).unwrap();
        tries.spawn(async move { lock.try_acquire().await.unwrap() });
    }
    let mut holds: Vec<_> = soon(tries.join_all()).await.into_iter().flatten().collect();
    assert_eq!(holds.len(), 1, "they all tried at once");
    let hold = holds.pop().unwrap();
    assert_eq!(hold.node(), "/single-node/once/lock");
    let [node, companion] = hold.nodes().collect::<Vec<_>>()[..] else { panic!("it has two nodes") };
    let mut children: Vec<_> = operator.children(path).iter().map(|name| format!("{path}/{name}")).collect();
    children.sort();
    assert_eq!(children, [companion, node]);
    assert!(companion.ends_with("-of-lock"), "{companion} says what it is");
    let stat_of = |node| operator.stat(node).unwrap();
    assert_eq!(stat_of(companion).czxid, stat_of(node).czxid);
    assert_eq!(operator.data(companion), operator.data(node));
    let stat = operator.stat(hold.node()).unwrap();
    assert_eq!(stat.czxid.unsigned_abs(), hold.token().value());
    let lock = clients[0].single_node(path).unwrap();
    assert!(soon(lock.try_acquire()).await.unwrap().is_none(), "it is held");
    soon(hold.release()).await.unwrap();
    let again = soon(lock.try_acquire()).await.unwrap().expect("it is free");
    assert!(again.token() > hold.token());
    soon(again.release()).await.unwrap();
    assert_eq!(operator.children(path), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_that_it_guards_are_refused_once_it_is_lost() {
    let (path, operator, admin) = ("/single-node/guarded", operator(), client().await);
    let (holder, next) = (client().await, client().await);
    let written = "/single-node/written";
    let hold = held(&holder.single_node(path).unwrap()).await;
    soon(hold.guarded().create(written, b"first").commit()).await.unwrap();
    let waiter = acquire(&next.single_node(path).unwrap());
    assert_eq!(soon(admin.single_node(path).unwrap().break_lock()).await.unwrap().len(), 1);
    // By now another contender has a node of the same name.
    let next = granted(waiter).await;
    let error = soon(hold.guarded().set_data(written, b"too late", None).commit()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost(LossReason::NodeDeleted), "{error}");
    assert_eq!(operator.data(written), b"first");
    soon(next.guarded().delete(written, None).commit()).await.unwrap();
    assert!(operator.stat(written).is_none());
    soon(next.release()).await.unwrap();
}

/// Operators, and tools that do not know the companion, delete only one of the two.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_is_lost_with_either_of_its_nodes_and_nothing_is_left_of_it() {
    let (path, operator, client) = ("/single-node/one-of-two", operator(), client().await);
    let lock = client.single_node(path).unwrap();
    for index in 0..2 {
        let hold = held(&lock).await;
        operator.delete(hold.nodes().nth(index).unwrap());
        assert_eq!(soon(hold.lost()).await, Ok(Some(LossReason::NodeDeleted)));
        drop(hold);
        settled(&client).await;
        assert_eq!(operator.children(path), [""; 0]);
    }
}

/// The next attempt must not adopt nodes that an earlier one has not cleaned up yet, even if the earlier lock was dropped and
/// the next attempt is made through a new one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_begins_only_when_the_last_of_its_client_is_gone_though_no_handle_is_left() {
    let ((client, proxy), operator, path) = (proxied_client().await, operator(), "/single-node/handles");
    let lock = client.single_node(path).unwrap();
    let hold = held(&lock).await;
    let held_back =
        proxy.on(Trigger::request(Kind::Multi).path("-of-lock").then(Action::Freeze(Direction::ToServer)));
    drop((hold, lock));
    assert!(held_back.wait(SOON));
    proxy.record();
    let lock = client.single_node(path).unwrap();
    let next = acquire(&lock);
    let tried = tokio::spawn(async move { lock.acquire_timeout(A_WHILE / 4).await.map(drop) });
    assert_eq!(soon(tried).await.unwrap().unwrap_err().kind(), ErrorKind::Timeout);
    assert_eq!(proxy.counts().requests(Kind::Multi), 0, "the last is not gone yet");
    proxy.thaw();
    let next = granted(next).await;
    let stat = operator.stat(next.node()).expect("it is there");
    assert_eq!(stat.czxid.unsigned_abs(), next.token().value());
    soon(next.release()).await.unwrap();
    settled(&client).await;
    assert_eq!(operator.children(path), [""; 0]);
}
