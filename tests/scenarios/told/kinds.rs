//! Promise 6, as every kind keeps it: a holder learns of a lost hold within one heartbeat, whatever the cause.

use crate::support::kinds::{LockKind, MUTEX, PERMITS, READER, WRITER, of_each};
use crate::support::loss::{Blow, loss_timeout, told_of};
use crate::support::queue::reentrant_write;

async fn told_of_the_end_of_the_session(kind: &LockKind) {
    told_of(kind, Blow::Expiry).await;
}

async fn told_of_a_deletion(kind: &LockKind) {
    told_of(kind, Blow::NodeDeleted).await;
    told_of(kind, Blow::ParentDeleted).await;
}

/// A reader within its own writer.
async fn told_of_anything(kind: &LockKind) {
    for blow in Blow::ALL {
        loss_timeout(kind, Some(reentrant_write), blow).await;
    }
}

of_each! {
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    a_holder_is_told_within_a_heartbeat_that_its_session_has_expired:
        told_of_the_end_of_the_session(MUTEX, READER, WRITER, PERMITS);
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    a_holder_is_told_within_a_heartbeat_that_its_node_or_everything_was_deleted:
        told_of_a_deletion(MUTEX, READER, WRITER, PERMITS);
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    a_reader_within_its_writer_is_told_within_a_heartbeat: told_of_anything(READER);
}
