//! Nothing left behind: whichever message of an enter or a leave is lost, or is the last before its caller gives up, exactly
//! the right nodes are left on the server.

use crate::support::members::{enters, is_empty, leaves, there, waits_to_leave};
use crate::support::sweep;
use crate::support::{SOON, client, operator, proxied_client, settled, soon};
use ground::wire::Admin;
use ground::{Action, Gate, Hook, Kind, Proxy, Side, Trigger, until};
use tokio::task::JoinHandle;
use zklock::further::Member;
use zklock::{Client, Error};

/// The messages at which a fault does most harm to a member that comes first, and waits until the barrier is open. The model
/// check goes through all others.
const WAITS: [(Kind, Side); 3] =
    [(Kind::Create, Side::Request), (Kind::Create, Side::Reply), (Kind::Event, Side::Reply)];

struct Scene {
    other: Client,
    client: Client,
    proxy: Proxy,
    admin: Admin,
}

impl Scene {
    async fn new() -> Self {
        let (other, (client, proxy)) = (client().await, proxied_client().await);
        Self { other, client, proxy, admin: operator() }
    }

    fn strike(&self, kind: Kind, side: Side, path: &str, action: Action) -> Hook {
        sweep::strike(&self.proxy, (kind, side, 1, ""), path, action)
    }

    /// Drops the call while the message is held, lets the message go, and waits until nothing is owed.
    async fn cancel_at<T>(&self, call: JoinHandle<Result<T, Error>>, held: &Hook, gate: &Gate, what: &str) {
        sweep::drop_at(call, held, what).await;
        // The message is held, so the client cannot know yet what became of the node. In a leave it may know.
        if !what.contains("leaves") {
            assert!(until(SOON, || self.client.stats().owed == 1), "{what}: nothing is owed");
        }
        gate.open();
        settled(&self.client).await;
    }

    /// Two members that are within: ours, and the other client's.
    async fn two(&self, path: &str) -> (Member, Member) {
        let other = enters(&self.other, path, 2);
        let ours = soon(enters(&self.client, path, 2)).await.unwrap().unwrap();
        (ours, soon(other).await.unwrap().unwrap())
    }
}

fn steps(part: &str) -> impl Iterator<Item = (Kind, Side, String, String)> {
    WAITS.into_iter().map(move |(kind, side)| {
        (kind, side, format!("/sweep/{part}-{kind:?}-{side:?}"), format!("{part} {kind:?} {side:?}"))
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_enter_that_is_given_up_leaves_no_node() {
    let scene = Scene::new().await;
    for (kind, side, path, what) in steps("waits") {
        scene.admin.create_all(&path, "");
        let gate = Gate::new();
        let held = scene.strike(kind, side, &path, Action::Pause(gate.clone()));
        let listed = scene.proxy.on(Trigger::reply(Kind::GetChildren).path(&path));
        let call = enters(&scene.client, &path, 2);
        let mut other = None;
        if kind == Kind::Event {
            // If the other member came before ours has listed the nodes, ours would open the barrier itself.
            assert!(listed.wait(SOON), "{what}: ours did not look around");
            other = Some(soon(enters(&scene.other, &path, 2)).await.unwrap().unwrap());
        }
        scene.cancel_at(call, &held, &gate, &what).await;
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
    let scene = Scene::new().await;
    for (kind, side, path, what) in steps("reset-waits") {
        scene.admin.create_all(&path, "");
        let listed = scene.proxy.on(Trigger::reply(Kind::GetChildren).path(&path));
        let struck = scene.strike(kind, side, &path, Action::DropAndReset);
        let call = enters(&scene.client, &path, 2);
        if kind == Kind::Event {
            // As above.
            assert!(listed.wait(SOON), "{what}: ours did not look around");
        } else {
            assert!(struck.wait(SOON), "{what}");
        }
        there(&scene.admin, &path, 1);
        let other = soon(enters(&scene.other, &path, 2)).await.unwrap().unwrap();
        let member = soon(call).await.unwrap().unwrap();
        // After a reconnect the client may learn of the change without the event.
        assert!(struck.fired() || kind == Kind::Event, "{what}");
        let nodes = there(&scene.admin, &path, 2);
        assert!(nodes.iter().any(|node| member.node().ends_with(node)), "{what}");
        let left = leaves(member);
        soon(other.leave()).await.unwrap();
        soon(left).await.unwrap().unwrap();
        is_empty(&scene.admin, &path);
    }
    assert_eq!(scene.client.stats().sessions, 1, "all in one session");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leave_that_is_given_up_leaves_all_the_same() {
    let (scene, path) = (Scene::new().await, "/sweep/leaves");
    let (member, other) = scene.two(path).await;
    let gate = Gate::new();
    let watches = waits_to_leave(&scene.proxy, &member, &other);
    let held = scene.strike(Kind::Event, Side::Reply, path, Action::Pause(gate.clone()));
    let call = leaves(member);
    assert!(watches.wait(SOON), "ours did not wait");
    let left = leaves(other);
    scene.cancel_at(call, &held, &gate, "leaves").await;
    soon(left).await.unwrap().unwrap();
    is_empty(&scene.admin, path);

    // The last member, which deletes `ready`.
    let member = soon(enters(&scene.client, path, 1)).await.unwrap().unwrap();
    let gate = Gate::new();
    let held = scene.strike(Kind::Multi, Side::Reply, path, Action::Pause(gate.clone()));
    scene.cancel_at(leaves(member), &held, &gate, "last").await;
    is_empty(&scene.admin, path);
}
