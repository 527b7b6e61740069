//! Promise 6: a holder of either side learns of its loss within one heartbeat, and no other hold is lost.

use crate::support::{SOON, client, confirmed, operator, soon};
use ground::until;
use zklock::{HoldState, LossReason};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_readers_together_only_the_one_whose_node_was_deleted_is_told() {
    let (one, path, operator) = (client().await, "/rwlock/told-one", operator());
    let mut holds = Vec::new();
    for _ in 0..3 {
        let lock = one.read_lock(path).unwrap();
        holds.push(tokio::spawn(async move { lock.acquire().await.unwrap() }).await.unwrap());
    }
    let other = soon(client().await.read_lock(path).unwrap().acquire()).await.unwrap();
    operator.delete(holds[1].node());
    assert_eq!(soon(holds[1].lost()).await, Ok(Some(LossReason::NodeDeleted)));
    for hold in [&holds[0], &holds[2], &other] {
        confirmed(hold).await;
        assert_eq!(hold.state(), HoldState::Held);
    }
    // The task that has the node counts it, and may run later than what is above.
    assert!(until(SOON, || one.stats().losses == 1), "{:?}", one.stats());
    drop((holds, other));
    operator.wait_for_children(path, 0, SOON);
}
