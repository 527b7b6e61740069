//! Promise 5, at every step: whichever message of an acquire is lost, or is the last before its caller gives up, exactly
//! the right nodes are left on the server.

use crate::support::sweep::{HEARTBEAT, Scene, acquire};
use crate::support::{SOON, client, operator, settled, soon};
use ground::{Action, Gate, Hook, Kind, Side};
use tokio::task::JoinHandle;
use zklock_core::{Client, Error, Hold};

/// The steps of an acquire that has to queue, as messages on the wire.
const CONTENDED: [(Kind, Side); 9] = [
    (Kind::Create, Side::Request),
    (Kind::Create, Side::Reply),
    (Kind::GetChildren, Side::Request),
    (Kind::GetChildren, Side::Reply),
    (Kind::GetData, Side::Request),
    (Kind::GetData, Side::Reply),
    (Kind::Event, Side::Reply),
    (Kind::Multi, Side::Request),
    (Kind::Multi, Side::Reply),
];

/// The steps of an acquire if the lock's node does not exist yet.
const FRESH: [(Kind, Side, usize); 6] = [
    (Kind::Create, Side::Reply, 1),
    (Kind::CreateContainer, Side::Request, 1),
    (Kind::CreateContainer, Side::Reply, 1),
    (Kind::Create, Side::Request, 2),
    (Kind::Create, Side::Reply, 2),
    (Kind::GetChildren, Side::Reply, 2),
];

/// The steps of the search for a node whose reply was lost.
const RECOVERY: [(Kind, Side, usize); 6] = [
    (Kind::Multi, Side::Request, 1),
    (Kind::Multi, Side::Reply, 1),
    (Kind::GetChildren, Side::Reply, 1),
    (Kind::Exists, Side::Request, 1),
    (Kind::Exists, Side::Reply, 1),
    (Kind::GetChildren, Side::Reply, 2),
];

/// A scene, and another client that holds the lock.
struct Queue {
    holder: Client,
    scene: Scene,
}

impl Queue {
    async fn new() -> Self {
        Self { holder: client().await, scene: Scene::new().await }
    }

    async fn hold(&self, path: &str) -> Hold {
        soon(self.holder.mutex(path).unwrap().acquire()).await.unwrap()
    }

    fn acquire(&self, path: &str) -> JoinHandle<Result<Hold, Error>> {
        acquire(self.scene.client.mutex(path).unwrap())
    }

    /// Sets a fault for a step after the loss, and only then lets the client connect again.
    fn strike_after(
        &self,
        lost: &Hook,
        (kind, side, nth): (Kind, Side, usize),
        path: &str,
        action: Action,
    ) -> Hook {
        assert!(lost.wait(SOON));
        let hook = self.scene.strike((kind, side, nth, ""), path, action);
        self.scene.proxy.refuse(false);
        hook
    }

    /// The hold has one node on the server, and its token is that of the node. After the release there is no node.
    async fn is_one(&self, hold: Hold, what: &str) {
        let Scene { client, admin, .. } = &self.scene;
        let nodes = admin.children(hold.path());
        assert_eq!(nodes.len(), 1, "{what}: {nodes:?}");
        let stat = admin.stat(hold.node()).unwrap_or_else(|| panic!("{what}: {hold:?} has no node"));
        assert_eq!(hold.token().value(), stat.czxid as u64, "{what}");
        assert_eq!(Some(stat.ephemeral_owner), client.session_id(), "{what}");
        soon(hold.release()).await.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(admin.children_or_empty(hold.path()), [""; 0], "{what}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_at_any_step_in_a_queue_leaves_no_node() {
    let queue = Queue::new().await;
    let scene = &queue.scene;
    for (kind, side) in CONTENDED {
        let (path, what) = (format!("/cancel-{kind:?}-{side:?}"), format!("{kind:?} {side:?}"));
        let hold = queue.hold(&path).await;
        let gate = Gate::new();
        let held = scene.strike((kind, side, 1, ""), &path, Action::Pause(gate.clone()));
        let call = queue.acquire(&path);
        let late = matches!(kind, Kind::Event | Kind::Multi);
        if late {
            scene.admin.wait_for_children(&path, 2, SOON);
            tokio::time::sleep(HEARTBEAT).await;
            drop(hold);
            scene.cancel_at(call, &held, &gate, &what).await;
            assert_eq!(scene.admin.children(&path), [""; 0], "{what}");
        } else {
            scene.cancel_at(call, &held, &gate, &what).await;
            let left = scene.admin.children(&path);
            assert!(left.len() == 1 && hold.node().ends_with(&left[0]), "{what}: {left:?}");
            soon(hold.release()).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_while_the_parents_are_made_leaves_no_node() {
    let queue = Queue::new().await;
    let scene = &queue.scene;
    for (kind, side, nth) in FRESH {
        let path = format!("/cancel-fresh-{kind:?}-{side:?}-{nth}/a/b");
        let gate = Gate::new();
        // Only the beginning of the path counts, so that creations of the nodes above match, too.
        let part = path.trim_end_matches("/a/b");
        let held = scene.strike((kind, side, nth, ""), part, Action::Pause(gate.clone()));
        scene.cancel_at(queue.acquire(&path), &held, &gate, &path).await;
        assert_eq!(scene.admin.children_or_empty(&path), [""; 0], "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_while_a_lost_node_is_sought_leaves_no_node() {
    let queue = Queue::new().await;
    let scene = &queue.scene;
    for (kind, side, nth) in RECOVERY {
        let path = format!("/cancel-recovery-{kind:?}-{side:?}-{nth}");
        let hold = queue.hold(&path).await;
        let lost = scene.strike((Kind::Create, Side::Request, 1, ""), &path, Action::DropReplyAndReset);
        scene.proxy.refuse(true);
        let call = queue.acquire(&path);
        let gate = Gate::new();
        let held = queue.strike_after(&lost, (kind, side, nth), &path, Action::Pause(gate.clone()));
        scene.cancel_at(call, &held, &gate, &path).await;
        let left = scene.admin.children(&path);
        assert!(left.len() == 1 && hold.node().ends_with(&left[0]), "{path}: {left:?}");
        soon(hold.release()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reset_at_any_step_in_a_queue_leaves_exactly_one_node() {
    let queue = Queue::new().await;
    let scene = &queue.scene;
    for (kind, side) in CONTENDED {
        let (path, what) = (format!("/reset-{kind:?}-{side:?}"), format!("{kind:?} {side:?}"));
        let hold = queue.hold(&path).await;
        let struck = scene.strike((kind, side, 1, ""), &path, Action::DropAndReset);
        let call = queue.acquire(&path);
        if matches!(kind, Kind::Event | Kind::Multi) {
            scene.admin.wait_for_children(&path, 2, SOON);
            tokio::time::sleep(HEARTBEAT).await;
            drop(hold);
        } else {
            assert!(struck.wait(SOON), "{what} never came");
            scene.admin.wait_for_children(&path, 2, SOON);
            soon(hold.release()).await.unwrap();
        }
        let granted = soon(call).await.unwrap().unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(struck.fired(), "{what} never came");
        queue.is_one(granted, &what).await;
    }
    assert_eq!(scene.client.stats().sessions, 1, "all in one session");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reset_while_the_parents_are_made_leaves_exactly_one_node() {
    let queue = Queue::new().await;
    let scene = &queue.scene;
    for (kind, side, nth) in FRESH {
        let path = format!("/reset-fresh-{kind:?}-{side:?}-{nth}/a/b");
        let struck = scene.strike((kind, side, nth, ""), path.trim_end_matches("/a/b"), Action::DropAndReset);
        let granted = soon(queue.acquire(&path)).await.unwrap().unwrap();
        assert!(struck.fired(), "{path}");
        queue.is_one(granted, &path).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reset_while_a_lost_node_is_sought_leaves_exactly_one_node() {
    let queue = Queue::new().await;
    let scene = &queue.scene;
    for (kind, side, nth) in RECOVERY {
        let path = format!("/reset-recovery-{kind:?}-{side:?}-{nth}");
        let lost = scene.strike((Kind::Create, Side::Request, 1, ""), &path, Action::DropReplyAndReset);
        scene.proxy.refuse(true);
        let hold = queue.hold(&path).await;
        let call = queue.acquire(&path);
        let struck = queue.strike_after(&lost, (kind, side, nth), &path, Action::DropAndReset);
        assert!(struck.wait(SOON), "{path}");
        scene.admin.wait_for_children(&path, 2, SOON);
        soon(hold.release()).await.unwrap();
        queue.is_one(soon(call).await.unwrap().unwrap(), &path).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acquire_of_a_free_lock_dropped_at_any_moment_leaves_no_node() {
    let (client, admin, path) = (client().await, operator(), "/race-at-the-grant");
    let lock = client.mutex(path).unwrap();
    let one = std::time::Instant::now();
    for _ in 0..10 {
        soon(lock.acquire()).await.unwrap().release().await.unwrap();
    }
    // The grants come in the first quarter of this span, the drops at any time in it.
    let span = one.elapsed() / 5;
    let (mut granted, mut dropped) = (0, 0);
    for round in 0_u32..300 {
        let call = acquire(lock.clone());
        let pause = span * (round * 37 % 100) / 100;
        let start = std::time::Instant::now();
        // A timer would be too coarse by a factor of ten.
        while start.elapsed() < pause {
            std::thread::yield_now();
        }
        call.abort();
        match soon(call).await {
            Ok(hold) => {
                granted += 1;
                drop(hold.unwrap());
            }
            Err(_) => dropped += 1,
        }
    }
    assert!(granted > 0 && dropped > 0, "no race: {granted} granted, {dropped} dropped");
    admin.wait_for_children(path, 0, SOON);
    settled(&client).await;
    // Whatever the drops met, the lock is free.
    soon(lock.acquire()).await.unwrap().release().await.unwrap();
    assert_eq!(admin.children(path), [""; 0]);
}
