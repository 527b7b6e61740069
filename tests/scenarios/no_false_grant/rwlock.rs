//! Promise 7: neither side is granted to one whose session is over, whose node is gone, or who slept through it.

use crate::support::{
    SESSION, SOON, client, expire_session, operator, options, proxied_client, settled, soon,
};
use ground::wire::Admin;
use ground::{Action, Gate, Kind, Proxy, Trigger, shared};
use std::task::Poll;
use std::time::Duration;
use tokio::task::JoinHandle;
use zklock_core::{Client, Hold, HoldState, Lock};

/// Longer than a write proves where only one went before it (T/4), shorter than the client library waits for a sign of
/// life (2/5 T).
const BEYOND_A_LEASE: Duration = Duration::from_millis(SESSION.as_millis() as u64 / 3);
const HEARTBEAT: Duration = Duration::from_millis(SESSION.as_millis() as u64 / 10);

fn side(client: &Client, path: &str, reads: bool) -> Lock {
    if reads { client.read(path) } else { client.write(path) }.unwrap()
}

/// What must be so of a hold that was just delivered.
#[track_caller]
fn is_live(hold: &Hold, client: &Client, operator: &Admin) {
    assert_eq!(hold.state(), HoldState::Held);
    let stat = operator.stat(hold.node()).expect("a hold without a node was delivered");
    assert_eq!(Some(stat.ephemeral_owner), client.session_id(), "the node of another session");
}

/// A holder of the other side, and one that waits for it through a proxy, with its node.
struct Wait {
    first: Hold,
    waiter: Client,
    proxy: Proxy,
    task: JoinHandle<Hold>,
    operator: Admin,
    node: String,
}

async fn one_waits(path: &str, reads: bool) -> Wait {
    let ((waiter, proxy), operator) = (proxied_client().await, operator());
    let first = soon(side(&client().await, path, !reads).acquire()).await.unwrap();
    let watching = proxy.on(Trigger::reply(Kind::GetData).path(path));
    let lock = side(&waiter, path, reads);
    let task = tokio::spawn(async move {
        let hold = lock.acquire().await.unwrap();
        // Here, before anything else can come between.
        assert!(!hold.valid_for().is_zero(), "a dead hold was delivered: {hold:?}");
        hold
    });
    assert!(watching.wait(SOON));
    let children = operator.children(path);
    let name = children.iter().find(|name| !first.node().ends_with(*name)).expect("the waiter's node");
    let node = format!("{path}/{name}");
    Wait { first, waiter, proxy, task, operator, node }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_waiter_whose_session_expires_or_whose_node_is_deleted_queues_again() {
    for (reads, expires) in [(true, true), (true, false), (false, true), (false, false)] {
        let path = format!("/rwlock/again-{reads}-{expires}");
        let mut wait = one_waits(&path, reads).await;
        if expires {
            expire_session(&wait.proxy);
            wait.operator.wait_for_node(&wait.node, false, SOON);
            wait.operator.wait_for_children(&path, 2, SOON);
        } else {
            wait.operator.delete(&wait.node);
        }
        let early = tokio::time::timeout(HEARTBEAT * 3 / 2, &mut wait.task).await;
        assert!(early.is_err(), "{path}: beside the holder");
        soon(wait.first.release()).await.unwrap();
        let hold = soon(wait.task).await.unwrap();
        is_live(&hold, &wait.waiter, &wait.operator);
        assert!(hold.node() != wait.node && hold.token() > wait.first.token());
        assert_eq!(wait.waiter.stats().sessions, if expires { 2 } else { 1 });
        settled(&wait.waiter).await;
        assert_eq!(wait.operator.children(&path).len(), 1, "{path}");
        soon(hold.release()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_comes_after_the_session_lets_nobody_in_beside_the_other_side() {
    for reads in [true, false] {
        let path = format!("/rwlock/late-{reads}");
        let wait = one_waits(&path, reads).await;
        let gate = Gate::new();
        let told = wait.proxy.on(Trigger::reply(Kind::Event).path(&path).then(Action::Pause(gate.clone())));
        soon(wait.first.release()).await.unwrap();
        assert!(told.wait(SOON));
        expire_session(&wait.proxy);
        let second = soon(side(&client().await, &path, !reads).acquire()).await.unwrap();
        tokio::time::sleep(BEYOND_A_LEASE).await;
        gate.open();
        wait.operator.wait_for_children(&path, 2, SOON);
        assert!(!wait.task.is_finished(), "{path}: beside {second:?}");
        soon(second.release()).await.unwrap();
        let hold = soon(wait.task).await.unwrap();
        is_live(&hold, &wait.waiter, &wait.operator);
        assert!(hold.token() > second.token());
    }
}

/// All on one thread, so that the process can be made to stand still between the grant and its delivery.
#[tokio::test]
async fn a_grant_of_either_side_that_the_process_slept_through_is_not_delivered() {
    let session = Duration::from_secs(1);
    for (number, stall) in [session * 11 / 16, session * 7 / 4].into_iter().enumerate() {
        for reads in [true, false] {
            let path = format!("/rwlock/slept-{number}-{reads}");
            let hosts = shared().connect_string();
            let client = Client::connect(options(&hosts).session_timeout(session).unwrap()).await.unwrap();
            let (lock, counted) = (side(&client, &path, reads), client.clone());
            let stalled = tokio::spawn(async move {
                // It is always in the run queue, so it comes between the task that counts the grant and the one
                // that gets it.
                std::future::poll_fn(|context| {
                    context.waker().wake_by_ref();
                    if counted.stats().grants == 0 { Poll::Pending } else { Poll::Ready(()) }
                })
                .await;
                std::thread::sleep(stall);
            });
            let acquired = tokio::spawn(async move {
                let hold = lock.acquire().await.unwrap();
                (hold.valid_for(), hold)
            });
            let (valid_for, hold) = soon(acquired).await.unwrap();
            assert!(stalled.is_finished(), "the grant was delivered before the stall: this tests nothing");
            assert!(!valid_for.is_zero(), "{path}: a dead hold was delivered");
            is_live(&hold, &client, &operator());
            soon(hold.release()).await.unwrap();
            client.close().await;
        }
    }
}
