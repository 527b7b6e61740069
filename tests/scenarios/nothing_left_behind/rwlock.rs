//! Promise 5: a cancelled acquire, and one whose messages are lost, leave no node of either side.

use crate::support::kinds::{READER, WRITER};
use crate::support::sweep::{given_up, not_heard_of};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_gives_up_leaves_no_node_and_one_that_is_not_heard_of_has_one() {
    given_up(&READER).await;
    not_heard_of(&READER).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_that_gives_up_leaves_no_node_and_one_that_is_not_heard_of_has_one() {
    given_up(&WRITER).await;
    not_heard_of(&WRITER).await;
}
