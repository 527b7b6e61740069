//! The head of the queue fails: the others go on.

use crate::support::permits::{has, head, semaphore};
use crate::support::{Waiting, client, operator, soon};
use ground::wire::Admin;
use ground::{Kind, Trigger};
use zklock::{Client, ErrorKind, Hold, LossReason};

/// All permits are held; one client waits at the head of the queue and one behind it.
struct Scene {
    operator: Admin,
    path: String,
    hold: Hold,
    _client: Client,
    head: Waiting,
    next: Waiting,
}

impl Scene {
    async fn new(name: &str, permits: u32) -> Self {
        let (client, operator, path) = (client().await, operator(), format!("/semaphore/head-{name}"));
        let hold = soon(semaphore(&client, &path, 3, 3).acquire()).await.unwrap();
        let head = head(&path, 3, permits).await;
        // It waits for the contender ahead of it.
        let waits = Trigger::reply(Kind::GetData).path(format!("{path}/locks"));
        let next = Waiting::new(|client| semaphore(client, &path, 3, 1), waits).await;
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
