//! Promise 5, at every step: whatever message of an acquire is the last that its caller waits for, or is lost, what
//! is on the server afterwards is what ought to be there.

use crate::support::{SOON, client, operator, options, settled, soon};
use ground::wire::Admin;
use ground::{Action, Gate, Hook, Kind, Proxy, Side, Trigger, shared, until};
use std::time::Duration;
use tokio::task::JoinHandle;
use zklock_core::{Client, Error, Hold, Lock};

/// So short that a wait outlasts its heartbeat, and the grant needs a check.
const SHORT: Duration = Duration::from_secs(2);
const HEARTBEAT: Duration = Duration::from_millis(200);

/// The steps of an acquire that has to queue, as messages on the wire. Replies come first to what follows them.
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

/// Those of an acquire whose lock's node is not there yet.
const FRESH: [(Kind, Side, usize); 6] = [
    (Kind::Create, Side::Reply, 1),
    (Kind::CreateContainer, Side::Request, 1),
    (Kind::CreateContainer, Side::Reply, 1),
    (Kind::Create, Side::Request, 2),
    (Kind::Create, Side::Reply, 2),
    (Kind::GetChildren, Side::Reply, 2),
];

/// Those of the search for a node whose reply was lost.
const RECOVERY: [(Kind, Side, usize); 6] = [
    (Kind::Multi, Side::Request, 1),
    (Kind::Multi, Side::Reply, 1),
    (Kind::GetChildren, Side::Reply, 1),
    (Kind::Exists, Side::Request, 1),
    (Kind::Exists, Side::Reply, 1),
    (Kind::GetChildren, Side::Reply, 2),
];

struct Scene {
    holder: Client,
    client: Client,
    proxy: Proxy,
    admin: Admin,
}

impl Scene {
    async fn new() -> Self {
        let proxy = Proxy::before(shared().server(0));
        let options = options(&proxy.connect_string()).session_timeout(SHORT).unwrap();
        let client = Client::connect(options).await.unwrap();
        Self { holder: crate::support::client().await, client, proxy, admin: operator() }
    }

    async fn hold(&self, path: &str) -> Hold {
        soon(self.holder.mutex(path).unwrap().acquire()).await.unwrap()
    }

    fn lock(&self, path: &str) -> Lock {
        self.client.mutex(path).unwrap()
    }

    fn strike(&self, kind: Kind, side: Side, nth: usize, path: &str, action: Action) -> Hook {
        let trigger = if side == Side::Request { Trigger::request(kind) } else { Trigger::reply(kind) };
        // A sync and its like name no path in their reply but that of their request, so this does for all.
        self.proxy.on(trigger.nth(nth).path(path).then(action))
    }

    /// As [`strike`](Self::strike), for what comes after the loss. There is no new connection before that is set.
    fn after(&self, lost: &Hook, kind: Kind, side: Side, nth: usize, path: &str, action: Action) -> Hook {
        assert!(lost.wait(SOON));
        let hook = self.strike(kind, side, nth, path, action);
        self.proxy.refuse(false);
        hook
    }

    /// Drops the call while the message is held, lets the message go, and waits until all is paid.
    async fn cancel_at(&self, call: JoinHandle<Result<Hold, Error>>, held: &Hook, gate: &Gate, what: &str) {
        assert!(held.wait(SOON), "{what} never came");
        call.abort();
        let stopped = soon(call).await;
        assert!(stopped.is_err_and(|error| error.is_cancelled()), "{what}: the call was over");
        // The message is held, so what became of the node cannot be known yet.
        assert!(until(SOON, || self.client.stats().owed == 1), "{what}: nothing is owed");
        gate.open();
        settled(&self.client).await;
    }

    /// The hold has one node on the server, and its token is that node's; released, there is none.
    async fn is_one(&self, hold: Hold, what: &str) {
        let nodes = self.admin.children(hold.path());
        assert_eq!(nodes.len(), 1, "{what}: {nodes:?}");
        let stat = self.admin.stat(hold.node()).unwrap_or_else(|| panic!("{what}: {hold:?} has no node"));
        assert_eq!(hold.token().value(), stat.czxid as u64, "{what}");
        assert_eq!(Some(stat.ephemeral_owner), self.client.session_id(), "{what}");
        soon(hold.release()).await.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(self.admin.children_or_empty(hold.path()), [""; 0], "{what}");
    }
}

fn acquire(lock: Lock) -> JoinHandle<Result<Hold, Error>> {
    tokio::spawn(async move { lock.acquire().await })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_at_any_step_in_a_queue_leaves_no_node() {
    let scene = Scene::new().await;
    for (kind, side) in CONTENDED {
        let (path, what) = (format!("/cancel-{kind:?}-{side:?}"), format!("{kind:?} {side:?}"));
        let hold = scene.hold(&path).await;
        let gate = Gate::new();
        let held = scene.strike(kind, side, 1, &path, Action::Pause(gate.clone()));
        let call = acquire(scene.lock(&path));
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
    let scene = Scene::new().await;
    for (kind, side, nth) in FRESH {
        let path = format!("/cancel-fresh-{kind:?}-{side:?}-{nth}/a/b");
        let gate = Gate::new();
        // The path is cut: a container above the lock's node is one too.
        let part = path.trim_end_matches("/a/b");
        let held = scene.strike(kind, side, nth, part, Action::Pause(gate.clone()));
        scene.cancel_at(acquire(scene.lock(&path)), &held, &gate, &path).await;
        assert_eq!(scene.admin.children_or_empty(&path), [""; 0], "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_while_a_lost_node_is_sought_leaves_no_node() {
    let scene = Scene::new().await;
    for (kind, side, nth) in RECOVERY {
        let path = format!("/cancel-recovery-{kind:?}-{side:?}-{nth}");
        let hold = scene.hold(&path).await;
        let lost = scene.strike(Kind::Create, Side::Request, 1, &path, Action::DropReplyAndReset);
        scene.proxy.refuse(true);
        let call = acquire(scene.lock(&path));
        let gate = Gate::new();
        let held = scene.after(&lost, kind, side, nth, &path, Action::Pause(gate.clone()));
        scene.cancel_at(call, &held, &gate, &path).await;
        let left = scene.admin.children(&path);
        assert!(left.len() == 1 && hold.node().ends_with(&left[0]), "{path}: {left:?}");
        soon(hold.release()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reset_at_any_step_in_a_queue_leaves_exactly_one_node() {
    let scene = Scene::new().await;
    for (kind, side) in CONTENDED {
        let (path, what) = (format!("/reset-{kind:?}-{side:?}"), format!("{kind:?} {side:?}"));
        let hold = scene.hold(&path).await;
        let struck = scene.strike(kind, side, 1, &path, Action::DropAndReset);
        let call = acquire(scene.lock(&path));
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
        scene.is_one(granted, &what).await;
    }
    assert_eq!(scene.client.stats().sessions, 1, "all in one session");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reset_while_the_parents_are_made_leaves_exactly_one_node() {
    let scene = Scene::new().await;
    for (kind, side, nth) in FRESH {
        let path = format!("/reset-fresh-{kind:?}-{side:?}-{nth}/a/b");
        let struck = scene.strike(kind, side, nth, path.trim_end_matches("/a/b"), Action::DropAndReset);
        let granted = soon(acquire(scene.lock(&path))).await.unwrap().unwrap();
        assert!(struck.fired(), "{path}");
        scene.is_one(granted, &path).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reset_while_a_lost_node_is_sought_leaves_exactly_one_node() {
    let scene = Scene::new().await;
    for (kind, side, nth) in RECOVERY {
        let path = format!("/reset-recovery-{kind:?}-{side:?}-{nth}");
        let lost = scene.strike(Kind::Create, Side::Request, 1, &path, Action::DropReplyAndReset);
        scene.proxy.refuse(true);
        let hold = scene.hold(&path).await;
        let call = acquire(scene.lock(&path));
        let struck = scene.after(&lost, kind, side, nth, &path, Action::DropAndReset);
        assert!(struck.wait(SOON), "{path}");
        scene.admin.wait_for_children(&path, 2, SOON);
        soon(hold.release()).await.unwrap();
        scene.is_one(soon(call).await.unwrap().unwrap(), &path).await;
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
    // The grants come somewhere in the first quarter of this, the drops all over it.
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
    // Grants beyond those that were received had met their caller's end on the way.
    soon(lock.acquire()).await.unwrap().release().await.unwrap();
    assert_eq!(admin.children(path), [""; 0]);
}
