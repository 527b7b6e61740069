//! Promise 7: permits are granted only to a client that has their nodes, in a session that is alive.

use crate::support::delivery::{is_told_too_late, slept_through, slept_through_a_try};
use crate::support::kinds::{PERMIT, PERMITS};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_head_that_is_told_of_its_permits_after_its_session_gets_no_dead_hold() {
    is_told_too_late(&PERMIT).await;
    is_told_too_late(&PERMITS).await;
}

#[tokio::test]
async fn a_grant_that_the_process_slept_through_is_not_delivered() {
    slept_through(&PERMITS).await;
    slept_through_a_try(&PERMITS).await;
}
