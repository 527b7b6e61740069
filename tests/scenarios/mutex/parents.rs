//! The lock's own node is deleted under its contenders: they queue again, and leave no second node.

use crate::support::{SOON, acquire, client, operator, proxied, proxied_client, says, settled, soon};
use ground::wire::Admin;
use ground::{Action, Direction, Gate, Kind, Proxy, Trigger};
use std::time::Duration;
use zklock::{Error, ErrorKind, Hold};

async fn is_the_only_one(hold: Hold, admin: &Admin) {
    let nodes = admin.children(hold.path());
    assert!(nodes.len() == 1 && hold.node().ends_with(&nodes[0]), "{nodes:?} and {}", hold.node());
    soon(hold.release()).await.unwrap();
    assert!(admin.children_or_empty(hold.path()).is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parent_deleted_while_one_waits_is_made_again() {
    for again in [false, true] {
        let (admin, path) = (operator(), format!("/parents-waiting-{again}/a"));
        let short = Duration::from_secs(1);
        let (waiter, proxy) = proxied(|options| options.session_timeout(short)).await;
        let holder = client().await;
        let hold = soon(holder.mutex(&path).unwrap().acquire()).await.unwrap();
        let call = acquire(&waiter.mutex(&path).unwrap());
        admin.wait_for_children(&path, 2, SOON);
        // Once a node is older than a heartbeat, a grant needs a check of it.
        tokio::time::sleep(Duration::from_millis(150)).await;
        // The waiter must learn of it only after the whole deletion: before that it could queue again, and its new node be deleted.
        proxy.freeze(Direction::Both);
        admin.delete_tree(&path);
        if again {
            let _ = admin.try_create(&path, "", ground::wire::Mode::Persistent);
        }
        proxy.thaw();
        is_the_only_one(soon(call).await.unwrap().unwrap(), &admin).await;
        drop(hold);
        settled(&holder).await;
        assert!(admin.children_or_empty(&path).is_empty());
    }
}

/// Deletes the lock's node before each of the next `times` creations in it, as a server may reap a container.
async fn reaps(times: u32, path: &str) -> (Result<Hold, Error>, Proxy) {
    let ((client, proxy), admin) = (proxied_client().await, operator());
    let lock = client.mutex(path).unwrap();
    let mut gate = Gate::new();
    let creation =
        |gate: &Gate| proxy.on(Trigger::request(Kind::Create).path(path).then(Action::Pause(gate.clone())));
    let mut creating = creation(&gate);
    let call = acquire(&lock);
    for _ in 0..times {
        if !tokio::task::block_in_place(|| creating.wait(Duration::from_secs(2))) {
            break;
        }
        let _ = admin.try_delete(path);
        let passed = std::mem::take(&mut gate);
        creating = creation(&gate);
        passed.open();
    }
    creating.cancel();
    gate.open();
    let result = soon(call).await.unwrap();
    if result.is_err() {
        settled(&client).await;
    }
    (result, proxy)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parent_that_is_reaped_a_few_times_does_no_harm() {
    let (hold, _proxy) = reaps(5, "/parents-reaped").await;
    is_the_only_one(hold.unwrap(), &operator()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_parent_that_is_always_reaped_is_named_and_not_made_for_ever() {
    let error = reaps(100, "/parents-always").await.0.unwrap_err();
    says(&error, ErrorKind::Refused, &["/parents-always vanishes whenever it is created"]);
    assert!(operator().children_or_empty("/parents-always").is_empty());
}
