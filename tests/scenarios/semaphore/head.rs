//! The head of the queue fails: the others go on.

use crate::support::permits::{has, head, semaphore};
use crate::support::{Waiting, client, operator, soon};
use ground::{Kind, Trigger};
use zklock::{ErrorKind, LossReason};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_directories_deleted_by_an_operator_stop_nobody() {
    let (client, operator) = (client().await, operator());
    for what in ["locks", "leases", ""] {
        let path = format!("/semaphore/head-directory-{what}");
        // All permits are held; one client waits at the head of the queue, and one for the contender ahead of it.
        let hold = soon(semaphore(&client, &path, 3, 3).acquire()).await.unwrap();
        let head = head(&path, 3, 1).await;
        let waits = Trigger::reply(Kind::GetData).path(format!("{path}/locks"));
        let next = Waiting::new(|client| semaphore(client, &path, 3, 1), waits).await;
        has(&operator, &path, 2, 4);
        operator.delete_tree(format!("{path}/{what}").trim_end_matches('/'));
        // A holder whose permits were deleted has lost its hold. In the other case it still holds.
        if what == "locks" {
            soon(hold.release()).await.unwrap();
        } else {
            soon(hold.lost()).await.expect("its permits are gone");
        }
        let (one, _one) = head.granted().await;
        let (other, _other) = next.granted().await;
        for hold in [one, other] {
            // The operator may have deleted its permits, too, before the directory was empty.
            let released = soon(hold.release()).await.map_err(|error| error.kind());
            assert!(
                matches!(released, Ok(()) | Err(ErrorKind::Lost(LossReason::NodeDeleted))),
                "{released:?}"
            );
        }
        has(&operator, &path, 0, 0);
    }
}
