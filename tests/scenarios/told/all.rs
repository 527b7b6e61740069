//! A set of locks, after one of its nodes is deleted.

use crate::support::queue::{held, nodes, told};
use crate::support::timing::Noise;
use crate::support::{SOON, client, operator, settled, soon};
use std::time::Instant;
use zklock::{Client, HoldState, Lock, LossReason};

fn set(client: &Client, root: &str) -> Lock {
    let locks = [
        client.mutex(&format!("{root}/mutex")),
        client.read_lock(&format!("{root}/read")),
        client.semaphore(&format!("{root}/semaphore"), 2),
    ];
    client.all(&locks.map(Result::unwrap)).unwrap()
}

const PLACES: [&str; 4] = ["mutex", "read", "semaphore/leases", "semaphore/locks"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_any_one_of_its_nodes_the_whole_hold_is_lost_and_the_others_go_as_well() {
    let (operator, client) = (operator(), client().await);
    for place in ["mutex", "read", "semaphore/leases"] {
        let root = format!("/all/lost-{}", place.replace('/', "-"));
        let hold = held(&set(&client, &root)).await;
        let noise = Noise::measured();
        let deleted = Instant::now();
        operator.delete(&nodes(&operator, &format!("{root}/{place}"))[0]);
        assert_eq!(told(&hold, &client, deleted, &noise).await, LossReason::NodeDeleted, "{place}");
        // Even without a release, the set's other nodes are deleted, so that others can have the locks.
        for place in PLACES {
            operator.wait_for_children(&format!("{root}/{place}"), 0, SOON);
        }
        settled(&client).await;
        assert_eq!(hold.state(), HoldState::Lost(LossReason::NodeDeleted));
        assert!(soon(hold.release()).await.is_err());
    }
}
