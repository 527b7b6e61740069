//! Promise 7: neither side is granted if the session is over, or the process slept through its lease.

use crate::support::delivery::{is_told_too_late, slept_through};
use crate::support::kinds::{READER, WRITER};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_told_of_its_turn_after_its_session_gets_no_dead_hold() {
    is_told_too_late(&READER).await;
    is_told_too_late(&WRITER).await;
}

#[tokio::test]
async fn a_grant_that_the_process_slept_through_is_not_delivered() {
    slept_through(&READER).await;
    slept_through(&WRITER).await;
}
