//! The head of the queue fails: the others go on.

use crate::support::permits::{Waiter, has, semaphore, take};
use crate::support::{SOON, client, expire_session, operator, proxied_client, soon};
use ground::Direction;
use ground::wire::Admin;
use std::time::Duration;
use zklock::{Client, ErrorKind, Hold, LossReason};

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
async fn the_permits_of_a_session_that_ends_come_back() {
    let operator = operator();
    let path = "/semaphore/dead-holder";
    let (dying, proxy) = proxied_client().await;
    let lost = soon(semaphore(&dying, path, 3, 2).acquire()).await.unwrap();
    let alive = client().await;
    let _holds = take(&alive, path, 3, 1).await;
    let waiter = Waiter::new(path, true, 3, 2).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!waiter.task.is_finished());
    expire_session(&proxy);
    let (hold, _client) = waiter.granted().await;
    assert_eq!(soon(lost.lost()).await, Ok(Some(LossReason::SessionExpired)));
    has(&operator, path, 0, 3);
    assert!(soon(semaphore(&alive, path, 3, 1).try_acquire()).await.unwrap().is_none());
    soon(hold.release()).await.unwrap();
}
