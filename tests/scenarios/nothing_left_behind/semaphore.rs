//! Promise 5: a cancelled acquire, and one whose messages are lost, leave no permit and no place in the queue.

use crate::support::kinds::{PERMIT, PERMITS};
use crate::support::sweep::{given_up, not_heard_of};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_wants_a_permit_and_gives_up_leaves_no_node_and_one_that_is_not_heard_of_has_its_own() {
    given_up(&PERMIT).await;
    not_heard_of(&PERMIT).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_wants_three_permits_and_gives_up_leaves_no_node_and_one_that_is_not_heard_of_has_its_own() {
    given_up(&PERMITS).await;
    not_heard_of(&PERMITS).await;
}
