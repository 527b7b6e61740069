//! Promise 5 for the lock without a queue: its node has no mark, so a node that is found may be another client's. Its companion
//! has a mark.

use crate::support::kinds::SINGLE_NODE;
use crate::support::sweep::{given_up, not_heard_of};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_gives_up_leaves_anothers_node_and_none_of_its_own() {
    given_up(&SINGLE_NODE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_not_heard_of_has_exactly_its_nodes() {
    not_heard_of(&SINGLE_NODE).await;
}
