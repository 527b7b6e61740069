//! Nothing left behind: whichever message of an enter or a leave is lost, or is the last before its caller gives up, exactly
//! the right nodes are left on the server.

use crate::support::members::{enters, is_empty, leaves, there, waits_to_leave};
use crate::support::sweep::{self, Scene};
use crate::support::{SOON, client, settled, soon};
use ground::{Action, Gate, Hook, Kind, Side, Trigger, until};
use tokio::task::JoinHandle;
use zklock::Error;

/// The messages at which a fault does most harm to a member that comes first, and waits until the barrier is open. The model
/// check goes through all others.
const WAITS: [(Kind, Side); 3] =
    [(Kind::Create, Side::Request), (Kind::Create, Side::Reply), (Kind::Event, Side::Reply)];

fn strike(scene: &Scene, kind: Kind, side: Side, path: &str, action: Action) -> Hook {
    sweep::strike(&scene.proxy, (kind, side, 1, ""), path, action)
}

/// Drops the call while the message is held, lets the message go, and waits until nothing is owed.
async fn cancel_at<T>(
    scene: &Scene,
    call: JoinHandle<Result<T, Error>>,
    held: &Hook,
    gate: &Gate,
    what: &str,
) {
    sweep::drop_at(call, held, what).await;
    // The message is held, so the client cannot know yet what became of the node. In a leave it may know.
    if !what.contains("leaves") {
        assert!(until(SOON, || scene.client.stats().owed == 1), "{what}: nothing is owed");
    }
    gate.open();
    settled(&scene.client).await;
}

fn steps(part: &str) -> impl Iterator<Item = (Kind, Side, String)> {
    WAITS.into_iter().map(move |(kind, side)| (kind, side, format!("/sweep/{part}-{kind:?}-{side:?}")))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_enter_that_is_given_up_leaves_no_node() {
    let (scene, other_client) = (Scene::new().await, client().await);
    for (kind, side, path) in steps("waits") {
        scene.admin.create_all(&path, "");
        let gate = Gate::new();
        let held = strike(&scene, kind, side, &path, Action::Pause(gate.clone()));
        let listed = scene.proxy.on(Trigger::reply(Kind::GetChildren).path(&path));
        let call = enters(&scene.client, &path, 2);
        let mut other = None;
        if kind == Kind::Event {
            // If the other member came before ours has listed the nodes, ours would open the barrier itself.
            assert!(listed.wait(SOON), "{path}: ours did not look around");
            other = Some(soon(enters(&other_client, &path, 2)).await.unwrap().unwrap());
        }
        cancel_at(&scene, call, &held, &gate, &path).await;
        if let Some(other) = other {
            there(&scene.admin, &path, 1);
            soon(other.leave()).await.unwrap();
        }
        is_empty(&scene.admin, &path);
    }
    assert_eq!(scene.client.stats().sessions, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_enter_that_is_not_heard_of_leaves_one_member() {
    let (scene, other_client) = (Scene::new().await, client().await);
    for (kind, side, path) in steps("reset-waits") {
        scene.admin.create_all(&path, "");
        let listed = scene.proxy.on(Trigger::reply(Kind::GetChildren).path(&path));
        let struck = strike(&scene, kind, side, &path, Action::DropAndReset);
        let call = enters(&scene.client, &path, 2);
        if kind == Kind::Event {
            // As above.
            assert!(listed.wait(SOON), "{path}: ours did not look around");
        } else {
            assert!(struck.wait(SOON), "{path}");
        }
        there(&scene.admin, &path, 1);
        let other = soon(enters(&other_client, &path, 2)).await.unwrap().unwrap();
        let member = soon(call).await.unwrap().unwrap();
        // After a reconnect the client may learn of the change without the event.
        assert!(struck.fired() || kind == Kind::Event, "{path}");
        let nodes = there(&scene.admin, &path, 2);
        assert!(nodes.iter().any(|node| member.node().ends_with(node)), "{path}");
        let left = leaves(member);
        soon(other.leave()).await.unwrap();
        soon(left).await.unwrap().unwrap();
        is_empty(&scene.admin, &path);
    }
    assert_eq!(scene.client.stats().sessions, 1, "all in one session");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leave_that_is_given_up_leaves_all_the_same() {
    let (scene, other_client, path) = (Scene::new().await, client().await, "/sweep/leaves");
    let other = enters(&other_client, path, 2);
    let member = soon(enters(&scene.client, path, 2)).await.unwrap().unwrap();
    let other = soon(other).await.unwrap().unwrap();
    let gate = Gate::new();
    let watches = waits_to_leave(&scene.proxy, &member, &other);
    let held = strike(&scene, Kind::Event, Side::Reply, path, Action::Pause(gate.clone()));
    let call = leaves(member);
    assert!(watches.wait(SOON), "ours did not wait");
    let left = leaves(other);
    cancel_at(&scene, call, &held, &gate, "leaves").await;
    soon(left).await.unwrap().unwrap();
    is_empty(&scene.admin, path);

    // The last member, which deletes `ready`.
    let member = soon(enters(&scene.client, path, 1)).await.unwrap().unwrap();
    let gate = Gate::new();
    let held = strike(&scene, Kind::Multi, Side::Reply, path, Action::Pause(gate.clone()));
    cancel_at(&scene, leaves(member), &held, &gate, "last").await;
    is_empty(&scene.admin, path);
}
