//! Promise 6: a holder of either side learns of its loss within one heartbeat, and nobody else is told.

use crate::support::queue::reentrant_write;
use crate::support::timing::{Noise, Observer};
use crate::support::{SESSION, SOON, client, expire_session, operator, proxied_client, soon};
use ground::{Kind, Trigger, not_later};
use std::sync::Arc;
use std::time::{Duration, Instant};
use zklock_core::{Client, ErrorKind, Hold, HoldState, LossReason};

/// A tenth of the session timeout.
const HEARTBEAT: Duration = Duration::from_millis(SESSION.as_millis() as u64 / 10);

/// A hold of the read side, of the write side, and of the read side within the write side.
async fn hold(client: &Client, path: &str, kind: usize) -> (Hold, Option<Hold>) {
    let write = match kind {
        0 => None,
        _ => Some(soon(reentrant_write(client, path).acquire()).await.unwrap()),
    };
    match kind {
        1 => (write.unwrap(), None),
        _ => (soon(client.read(path).unwrap().acquire()).await.unwrap(), write),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_of_either_side_is_told_within_a_heartbeat_whatever_the_cause() {
    let operator = operator();
    for kind in 0..3 {
        for (cause, reason) in
            [(0, LossReason::NodeDeleted), (1, LossReason::NodeDeleted), (2, LossReason::SessionExpired)]
        {
            let (client, proxy) = proxied_client().await;
            let path = format!("/rwlock/told-{kind}-{cause}");
            let (hold, outer) = hold(&client, &path, kind).await;
            let hold = Arc::new(hold);
            let (noise, observer) = (Noise::measured(), Observer::of(hold.clone()));
            // The worst moment for bad news.
            assert!(proxy.on(Trigger::reply(Kind::Multi)).wait(SOON), "no heartbeat");
            let mut struck = Instant::now();
            match cause {
                0 => operator.delete(hold.node()),
                1 => operator.delete_tree(&path),
                _ => struck = expire_session(&proxy),
            }
            let (told, seen) = observer.told(SOON);
            let late = told.saturating_duration_since(struck);
            not_later(late, HEARTBEAT + noise.allowance());
            assert_eq!((seen, soon(hold.lost()).await), (reason, Some(reason)), "{path}");
            observer.finish();
            assert_eq!(soon(hold.release()).await.unwrap_err().kind(), ErrorKind::Lost(reason), "{path}");
            if let Some(outer) = outer {
                // Only what has happened to its own node is told of a hold.
                let fine = soon(outer.release()).await.is_ok();
                assert_eq!(fine, cause == 0, "{path}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_readers_together_only_the_one_whose_node_was_deleted_is_told() {
    let (one, path, operator) = (client().await, "/rwlock/told-one", operator());
    let mut holds = Vec::new();
    for _ in 0..3 {
        let lock = one.read(path).unwrap();
        holds.push(tokio::spawn(async move { lock.acquire().await.unwrap() }).await.unwrap());
    }
    let other = soon(client().await.read(path).unwrap().acquire()).await.unwrap();
    operator.delete(holds[1].node());
    assert_eq!(soon(holds[1].lost()).await, Some(LossReason::NodeDeleted));
    for hold in [&holds[0], &holds[2], &other] {
        assert!(soon(hold.confirm()).await.is_ok());
        assert_eq!(hold.state(), HoldState::Held);
    }
    assert_eq!(one.stats().losses, 1);
    drop((holds, other));
    operator.wait_for_children(path, 0, SOON);
}
