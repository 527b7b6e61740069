//! Promise 5 at chosen messages, and a client for that.

use crate::support::delivery::is_live;
use crate::support::kinds::LockKind;
use crate::support::{SOON, acquire, client, operator, proxied_client, settled, soon};
use ground::wire::Admin;
use ground::{Action, Gate, Hook, Kind, Proxy, Side, Trigger, until};
use tokio::task::JoinHandle;
use zklock::{Client, Error, Hold};

/// A message of an acquire: its kind, its sender, its number among those, and its directory.
pub(crate) type Step = (Kind, Side, usize, &'static str);

pub(crate) struct Scene {
    pub(crate) client: Client,
    pub(crate) proxy: Proxy,
    pub(crate) admin: Admin,
}

impl Scene {
    pub(crate) async fn new() -> Self {
        let (client, proxy) = proxied_client().await;
        Self { client, proxy, admin: operator() }
    }
}

pub(crate) fn strike(proxy: &Proxy, (kind, side, nth, place): Step, path: &str, action: Action) -> Hook {
    let trigger = if side == Side::Request { Trigger::request(kind) } else { Trigger::reply(kind) };
    // A reply is matched by the path of its request, so this works for all kinds.
    proxy.on(trigger.nth(nth).path(format!("{path}{place}")).then(action))
}

/// Drops the call when the message is held.
pub(crate) async fn drop_at<T>(call: JoinHandle<Result<T, Error>>, held: &Hook, what: &str) {
    assert!(held.wait(SOON), "{what} never came");
    call.abort();
    let stopped = soon(call).await;
    assert!(stopped.is_err_and(|error| error.is_cancelled()), "{what}: the call was over");
}

/// The messages at which a fault does most harm: the creation of the first node, and what tells a waiter that it is its turn.
/// The model check goes through all others.
fn steps(kind: &LockKind) -> [Step; 3] {
    let (creation, place) = kind.enters;
    [
        (creation, Side::Request, 1, place),
        (creation, Side::Reply, 1, place),
        (Kind::Event, Side::Reply, 1, kind.told_at),
    ]
}

/// A call that a fault strikes at this step. The lock is free; at the last step it has waited until a rival released it.
async fn struck(
    scene: &Scene,
    kind: &LockKind,
    path: &str,
    step: Step,
    action: Action,
) -> (Hook, JoinHandle<Result<Hold, Error>>) {
    let (other, waits) = (client().await, step.0 == Kind::Event);
    let before = if waits { kind.rival } else { kind.lock };
    let before = soon(before(&other, path).acquire()).await.unwrap();
    if !waits {
        // It has left the directories, so the first creation succeeds.
        soon(before.release()).await.unwrap();
    }
    let struck = strike(&scene.proxy, step, path, action);
    let queued = waits.then(|| scene.proxy.on((kind.waits)(path)));
    let call = acquire(&(kind.lock)(&scene.client, path));
    if let Some(queued) = queued {
        assert!(queued.wait(SOON), "{path}: it does not wait");
        soon(before.release()).await.unwrap();
    }
    assert!(struck.wait(SOON), "{path} never came");
    (struck, call)
}

/// A caller that gives up leaves no node, even if the message is on its way.
pub(crate) async fn given_up(kind: &LockKind) {
    let scene = Scene::new().await;
    for (number, step) in steps(kind).into_iter().enumerate() {
        let (path, gate) = (format!("/left-given-up-{}-{number}", kind.name), Gate::new());
        let (held, call) = struck(&scene, kind, &path, step, Action::Pause(gate.clone())).await;
        drop_at(call, &held, &path).await;
        gate.open();
        settled(&scene.client).await;
        kind.is_gone(&scene.admin, &path);
    }
    assert_eq!(scene.client.stats().sessions, 1, "all in one session");
}

/// A caller that loses the message and its connection ends up with exactly its own nodes, and has none after the release.
pub(crate) async fn not_heard_of(kind: &LockKind) {
    let scene = Scene::new().await;
    for (number, step) in steps(kind).into_iter().enumerate() {
        let path = format!("/left-not-heard-of-{}-{number}", kind.name);
        let (_, call) = struck(&scene, kind, &path, step, Action::DropAndReset).await;
        let hold = soon(call).await.unwrap().unwrap_or_else(|error| panic!("{path}: {error}"));
        is_live(kind, &hold, &scene.client, &scene.admin);
        let nodes = |place: &&str| scene.admin.children_or_empty(&format!("{path}{place}")).len();
        // A holder of permits leaves the queue a moment later.
        let is_all = || kind.places.iter().map(nodes).sum::<usize>() == hold.nodes().count();
        assert!(
            until(SOON, is_all),
            "{path}: there are other nodes than {:?}",
            hold.nodes().collect::<Vec<_>>()
        );
        soon(hold.release()).await.unwrap_or_else(|error| panic!("{path}: {error}"));
        kind.is_gone(&scene.admin, &path);
        settled(&scene.client).await;
    }
    assert_eq!(scene.client.stats().sessions, 1, "all in one session");
}
