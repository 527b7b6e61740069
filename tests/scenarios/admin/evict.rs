//! The operator takes a contender out of a queue.

use crate::support::kinds::{ELECTION, LockKind, MUTEX, PERMIT, READER, SINGLE_NODE, WRITER};
use crate::support::timing::Noise;
use crate::support::{
    A_WHILE, SOON, Waiter, acquire, client, granted, held, nodes, operator, proxied_client, says, settled,
    soon, told,
};
use ground::wire::Mode;
use ground::{Action, Gate, Kind, Trigger, until};
use std::time::Instant;
use tokio::task::JoinHandle;
use zklock::{Client, Error, ErrorKind, Hold, HoldState, Lock, LossReason};

/// A lock with holders, each with its own client, and a rival that waits.
pub(super) struct Scene {
    pub(super) holders: Vec<(Hold, Client)>,
    /// The operator's lock.
    pub(super) lock: Lock,
    pub(super) rival: JoinHandle<Result<Hold, Error>>,
    _clients: [Client; 2],
}

impl Scene {
    pub(super) async fn new(kind: &LockKind, count: usize, path: &str) -> Self {
        let mut holders = Vec::new();
        for _ in 0..count {
            let client = client().await;
            holders.push((held(&(kind.lock)(&client, path)).await, client));
        }
        let clients = [client().await, client().await];
        let rival = acquire(&(kind.rival)(&clients[0], path));
        match kind.places {
            // A waiter for it has no node.
            _ if kind.name == SINGLE_NODE.name => {}
            [queue] => drop(operator().wait_for_children(&format!("{path}{queue}"), count + 1, SOON)),
            places => drop(operator().wait_for_children(&format!("{path}{}", places[0]), 1, SOON)),
        }
        Self { holders, lock: (kind.lock)(&clients[1], path), rival, _clients: clients }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_is_told_within_a_heartbeat_and_the_next_is_granted() {
    for kind in [MUTEX, READER, WRITER, PERMIT, ELECTION, SINGLE_NODE] {
        let path = format!("/evict/holder-{}", kind.name);
        let Scene { holders, lock, rival, _clients } = Scene::new(&kind, 1, &path).await;
        let (hold, holder) = &holders[0];
        let found = soon(lock.contenders()).await.unwrap();
        assert!(found[0].holds && found[0].node == hold.node(), "{found:?}");
        let noise = Noise::measured();
        let evicted = Instant::now();
        assert!(soon(lock.evict(&found[0].node)).await.unwrap(), "{path}");
        assert_eq!(told(hold, holder, evicted, &noise).await, LossReason::NodeDeleted, "{path}");
        let next = granted(rival).await;
        assert!(next.token() > hold.token(), "{path}");
        if kind.name != SINGLE_NODE.name {
            assert!(!soon(lock.evict(hold.node())).await.unwrap(), "{path}: it is gone");
        }
        assert!(soon(hold.release()).await.is_err());
        assert_eq!(next.state(), HoldState::Held);
        soon(next.release()).await.unwrap();
        kind.is_gone(&operator(), &path);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_queues_again_behind_those_who_were_behind_it() {
    let (path, operator, admin) = ("/evict/waiter", operator(), client().await);
    let holder = client().await;
    let hold = held(&holder.mutex(path).unwrap()).await;
    let mut waiters = Vec::new();
    for ahead in 1..=2 {
        waiters.push(Waiter::behind(ahead, &operator, path, |it| it.mutex(path).unwrap()).await);
    }
    let victim = nodes(&operator, path)[1].clone();
    assert!(soon(admin.mutex(path).unwrap().evict(&victim)).await.unwrap());
    // Long enough that the next grant needs a proof of its node.
    tokio::time::sleep(A_WHILE / 2).await;
    soon(hold.release()).await.unwrap();
    let second = waiters.pop().unwrap();
    let first = waiters.pop().unwrap();
    let hold = granted(second.task).await;
    assert!(until(SOON, || nodes(&operator, path).len() == 2), "the victim queues again");
    assert!(!first.task.is_finished());
    soon(hold.release()).await.unwrap();
    let last = granted(first.task).await;
    assert!(last.token() > hold.token() && last.node() != victim);
    soon(last.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_evicted_but_contenders_of_the_lock() {
    let (operator, client) = (operator(), client().await);
    for path in ["/evict/input", "/evict/input/settings", "/evict/input2"] {
        operator.create_all(path, "");
    }
    let other = held(&client.mutex("/evict/input2").unwrap()).await;
    let lease = held(&client.semaphore("/evict/input-semaphore", 1).unwrap()).await;
    let lock = client.mutex("/evict/input").unwrap();
    let inside = other.node().replace("/evict/input2/", "");
    for node in [
        "/evict/input",
        "/evict/input/settings",
        "/evict/input/lock",
        "/evict/input/",
        "/evict/input2",
        "",
        "/",
        "settings",
        other.node(),
        lease.node(),
        &inside,
        &format!("/evict/input/../input2/{inside}"),
        &format!("/evict/input/settings/{inside}"),
    ] {
        let error = soon(lock.evict(node)).await.unwrap_err();
        says(&error, ErrorKind::InvalidInput, &["not a contender", "/evict/input"]);
    }
    assert!(operator.stat("/evict/input/settings").is_some());
    // A node that could be a contender, but does not exist.
    assert!(!soon(lock.evict(&format!("/evict/input/{inside}"))).await.unwrap());
    // Only for the single-node lock is the node `lock` a contender.
    let single = client.single_node("/evict/input").unwrap();
    assert!(!soon(single.evict("/evict/input/lock")).await.unwrap());
    for hold in [other, lease] {
        assert_eq!(hold.state(), HoldState::Held);
        soon(hold.release()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_eviction_of_which_the_answer_was_lost_has_been_done() {
    let (path, operator) = ("/evict/lost", operator());
    let (admin, proxy) = proxied_client().await;
    let holder = client().await;
    for action in [Action::DropReplyAndReset, Action::DropAndReset] {
        let hold = held(&holder.mutex(path).unwrap()).await;
        let lost = proxy.on(Trigger::request(Kind::Delete).path(path).then(action));
        assert!(soon(admin.mutex(path).unwrap().evict(hold.node())).await.unwrap());
        assert!(lost.fired());
        operator.wait_for_children(path, 0, SOON);
        soon(hold.lost()).await.expect("told");
        settled(&holder).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_eviction_of_which_the_answer_was_lost_spares_the_next_holder_of_a_single_node_lock() {
    let (path, operator, holder, next) =
        ("/evict/exclusive-lost", operator(), client().await, client().await);
    let (admin, proxy) = proxied_client().await;
    let hold = held(&holder.single_node(path).unwrap()).await;
    let task = acquire(&next.single_node(path).unwrap());
    let lost = proxy.on(Trigger::request(Kind::Multi).path("-of-lock").then(Action::DropReplyAndReset));
    let (lock, node) = (admin.single_node(path).unwrap(), hold.node().to_owned());
    let evicting = tokio::spawn(async move { lock.evict(&node).await });
    assert!(lost.wait(SOON));
    proxy.refuse(true);
    let next = granted(task).await;
    proxy.refuse(false);
    assert!(soon(evicting).await.unwrap().unwrap(), "it has been done");
    let stat = operator.stat(next.node()).expect("its node is there");
    assert_eq!(stat.czxid.unsigned_abs(), next.token().value());
    soon(next.release()).await.expect("it kept the lock");
}

/// The node was created by another library, so it has no companion.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_single_node_lock_a_strangers_node_is_evicted_in_the_state_in_which_it_was_seen() {
    let (path, operator) = ("/evict/exclusive-changed", operator());
    operator.create_all(path, "");
    let create = || operator.create_mode(&format!("{path}/lock"), "stranger", Mode::Ephemeral);
    let (admin, proxy) = proxied_client().await;
    let node = create();
    for (case, is_replaced) in [("replaced", true), ("only written", false)] {
        if is_replaced {
            operator.set(&node, "somebody wrote");
        }
        let gate = Gate::new();
        let paused = proxy.on(Trigger::request(Kind::Delete).path(path).then(Action::Pause(gate.clone())));
        let (lock, seen) = (admin.single_node(path).unwrap(), node.clone());
        let evicting = tokio::spawn(async move { lock.evict(&seen).await });
        assert!(paused.wait(SOON), "{case}");
        if is_replaced {
            operator.delete(&node);
            create();
        } else {
            operator.set(&node, "somebody wrote");
        }
        gate.open();
        assert_eq!(soon(evicting).await.unwrap().unwrap(), !is_replaced, "{case}");
        assert_eq!(operator.stat(&node).is_some(), is_replaced, "{case}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_is_lost_as_a_whole_and_a_node_in_any_of_its_queues_can_be_evicted() {
    let (operator, admin, holder) = (operator(), client().await, client().await);
    let set = |client: &Client| {
        let locks = ["a", "b"].map(|name| client.mutex(&format!("/evict/set/{name}")).unwrap());
        client.all(&locks).unwrap()
    };
    let hold = held(&set(&holder)).await;
    let victim = nodes(&operator, "/evict/set/b").pop().unwrap();
    assert!(soon(set(&admin).evict(&victim)).await.unwrap());
    assert_eq!(soon(hold.lost()).await, Ok(Some(LossReason::NodeDeleted)));
    operator.wait_for_children("/evict/set/a", 0, SOON);
}
