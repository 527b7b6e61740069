//! Promise 5 for sets of locks: all of its nodes, or none.

use crate::support::kinds::SET;
use crate::support::sweep::{given_up, not_heard_of};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_gives_up_leaves_no_node_in_any_queue() {
    given_up(&SET).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_not_heard_of_has_exactly_one_set() {
    not_heard_of(&SET).await;
}
