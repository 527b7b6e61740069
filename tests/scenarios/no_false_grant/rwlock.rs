//! Promise 7: neither side is granted if the session is over, the node is gone, or the process slept through its lease.

use crate::support::delivery::{is_told_too_late, queues_again, slept_through};
use crate::support::kinds::{READER, WRITER};
use crate::support::loss::Blow;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_whose_session_expires_queues_again_in_the_next() {
    queues_again(&READER, Blow::Expiry).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_whose_session_expires_queues_again_in_the_next() {
    queues_again(&WRITER, Blow::Expiry).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_whose_node_was_deleted_long_ago_gets_no_hold_without_a_node() {
    queues_again(&READER, Blow::NodeDeleted).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_whose_node_was_deleted_long_ago_gets_no_hold_without_a_node() {
    queues_again(&WRITER, Blow::NodeDeleted).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_is_told_of_its_turn_after_its_session_gets_no_dead_hold() {
    is_told_too_late(&READER).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_that_is_told_of_its_turn_after_its_session_gets_no_dead_hold() {
    is_told_too_late(&WRITER).await;
}

#[tokio::test]
async fn a_grant_of_the_read_side_that_the_process_slept_through_is_not_delivered() {
    slept_through(&READER).await;
}

#[tokio::test]
async fn a_grant_of_the_write_side_that_the_process_slept_through_is_not_delivered() {
    slept_through(&WRITER).await;
}
