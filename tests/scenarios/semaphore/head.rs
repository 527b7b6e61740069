//! The head of the queue fails: the others go on.

use crate::support::permits::{Waiter, has, semaphore, take};
use crate::support::queue::nodes;
use crate::support::{SOON, client, expire_session, operator, soon};
use ground::wire::Admin;
use ground::{Direction, Kind, Trigger};
use std::time::Duration;
use zklock_core::{Client, ErrorKind, Hold, LossReason};

/// All permits are held; one client waits at the head of the queue and one behind it.
struct Scene {
    operator: Admin,
    path: String,
    hold: Hold,
    _client: Client,
    head: Waiter,
    next: Waiter,
}

impl Scene {
    async fn new(name: &str, permits: u32) -> Self {
        let (client, operator, path) = (client().await, operator(), format!("/semaphore/head-{name}"));
        let hold = soon(semaphore(&client, &path, 3, 3).acquire()).await.unwrap();
        let head = Waiter::new(&path, true, 3, permits).await;
        let next = Waiter::new(&path, false, 3, 1).await;
        has(&operator, &path, 2, 3 + permits as usize);
        Self { operator, path, hold, _client: client, head, next }
    }

    fn locks(&self) -> Vec<String> {
        nodes(&self.operator, &format!("{}/locks", self.path))
    }

    fn leases(&self) -> Vec<String> {
        nodes(&self.operator, &format!("{}/leases", self.path))
    }

    /// Everybody gets their permits, beginning with the current head.
    async fn goes_on(self, head_is_first: bool) {
        let Self { operator, path, hold, head, next, .. } = self;
        soon(hold.release()).await.unwrap();
        let (first, second) = if head_is_first { (head, next) } else { (next, head) };
        let (first, _one) = first.granted().await;
        let held = first.nodes().count();
        assert!(first.nodes().all(|node| operator.stat(node).is_some()));
        soon(first.release()).await.unwrap();
        let (second, _other) = second.granted().await;
        assert!(first.token() < second.token(), "{held} permits");
        soon(second.release()).await.unwrap();
        has(&operator, &path, 0, 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_place_of_the_head_deleted_by_an_operator_makes_it_the_last() {
    for permits in [1, 3] {
        let scene = Scene::new(&format!("place-{permits}"), permits).await;
        let (place, before) = (scene.locks().remove(0), scene.leases());
        let becomes_head = scene.next.proxy.on(Trigger::reply(Kind::Exists).path(&scene.path));
        scene.operator.delete(&place);
        assert!(becomes_head.wait(SOON), "nobody is the head any more");
        // The head finds out when it looks again, and is in nobody's way until then. Both waiters count its permits.
        soon(scene.hold.confirm()).await.unwrap();
        assert!(before.iter().filter(|node| scene.operator.stat(node).is_some()).count() >= 3);
        assert!(!scene.head.task.is_finished() && !scene.next.task.is_finished());
        scene.goes_on(false).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_permit_of_the_head_deleted_by_an_operator_is_created_anew() {
    for permits in [1, 3] {
        let scene = Scene::new(&format!("permit-{permits}"), permits).await;
        let own = scene.leases().remove(3);
        scene.operator.delete(&own);
        // It has lost one of its nodes, so it queues again, behind the next.
        has(&scene.operator, &scene.path, 2, 3 + 1);
        assert!(!scene.head.task.is_finished() && !scene.next.task.is_finished());
        scene.goes_on(false).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_directories_deleted_by_an_operator_stop_nobody() {
    for what in ["locks", "leases", ""] {
        let scene = Scene::new(&format!("directory-{what}"), 1).await;
        let directory = format!("{}/{what}", scene.path);
        scene.operator.delete_tree(directory.trim_end_matches('/'));
        // A holder whose permits were deleted has lost its hold. In the other case it still holds.
        if what == "locks" {
            soon(scene.hold.release()).await.unwrap();
        } else {
            soon(scene.hold.lost()).await.expect("its permits are gone");
        }
        let (one, _one) = scene.head.granted().await;
        let (other, _other) = scene.next.granted().await;
        for hold in [one, other] {
            // The operator may have deleted its permits, too, before the directory was empty.
            let released = soon(hold.release()).await.map_err(|error| error.kind());
            assert!(
                matches!(released, Ok(()) | Err(ErrorKind::Lost(LossReason::NodeDeleted))),
                "{released:?}"
            );
        }
        has(&scene.operator, &scene.path, 0, 0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_head_whose_session_ends_makes_way_with_its_permits_and_queues_again() {
    for permits in [1, 3] {
        let scene = Scene::new(&format!("session-{permits}"), permits).await;
        let becomes_head = scene.next.proxy.on(Trigger::reply(Kind::Exists).path(&scene.path));
        expire_session(&scene.head.proxy);
        assert!(becomes_head.wait(SOON), "nobody is the head any more");
        has(&scene.operator, &scene.path, 2, 3 + 1);
        let head = scene.head.client.clone();
        scene.goes_on(false).await;
        assert_eq!((head.stats().sessions, head.stats().losses), (2, 0));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_head_that_is_never_heard_of_again_holds_up_nobody_for_longer_than_its_session() {
    let scene = Scene::new("silent", 3).await;
    scene.head.proxy.freeze(Direction::Both);
    soon(scene.hold.release()).await.unwrap();
    let (next, _client) = tokio::time::timeout(SOON, scene.next.granted()).await.expect("its turn comes");
    soon(next.release()).await.unwrap();
    scene.head.proxy.thaw();
    let (head, _client) = scene.head.granted().await;
    assert!(head.token() > next.token());
    soon(head.release()).await.unwrap();
    has(&scene.operator, &scene.path, 0, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_head_that_gives_up_makes_way_with_its_permits() {
    let scene = Scene::new("quits", 3).await;
    scene.head.task.abort();
    has(&scene.operator, &scene.path, 1, 3 + 1);
    soon(scene.hold.release()).await.unwrap();
    let (next, _client) = scene.next.granted().await;
    soon(next.release()).await.unwrap();
    has(&scene.operator, &scene.path, 0, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_permits_of_a_session_that_ends_come_back() {
    let operator = operator();
    let path = "/semaphore/dead-holder";
    let (dying, proxy) = crate::support::proxied_client().await;
    let lost = soon(semaphore(&dying, path, 3, 2).acquire()).await.unwrap();
    let (alive, _holds) = {
        let client = client().await;
        let holds = take(&client, path, 3, 1).await;
        (client, holds)
    };
    let waiter = Waiter::new(path, true, 3, 2).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!waiter.task.is_finished());
    expire_session(&proxy);
    let (hold, _client) = waiter.granted().await;
    assert_eq!(soon(lost.lost()).await, Some(LossReason::SessionExpired));
    has(&operator, path, 0, 3);
    assert!(soon(semaphore(&alive, path, 3, 1).try_acquire()).await.unwrap().is_none());
    soon(hold.release()).await.unwrap();
}
