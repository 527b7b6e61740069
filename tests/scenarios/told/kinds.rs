//! Promise 6, as every kind keeps it: a holder learns of a lost hold within one heartbeat, whatever the cause.

use crate::support::kinds::{self, LockKind, MUTEX, PERMITS, READER, WRITER, of_each};
use crate::support::loss::{Blow, just_after_a_heartbeat, told_of};
use crate::support::permits::semaphore;
use crate::support::timing::Noise;
use crate::support::{
    acquire, client, granted, held, operator, proxied_client, reentrant_write, settled, soon, told,
};
use std::time::Instant;
use zklock::{ErrorKind, HoldState, LossReason};

/// A set with a semaphore in it.
const SET: LockKind = LockKind {
    lock: |client, path| {
        let others = [client.mutex(&format!("{path}/a")), client.read_lock(&format!("{path}/b"))];
        let [mutex, read] = others.map(Result::unwrap);
        client.all(&[mutex, read, semaphore(client, &format!("{path}/c"), 2, 1)]).unwrap()
    },
    places: &["/a", "/b", "/c/locks", "/c/leases"],
    ..kinds::SET
};

async fn told_of_the_end_of_the_session(kind: &LockKind) {
    told_of(kind, None, Blow::Expiry).await;
}

async fn told_of_a_deletion(kind: &LockKind) {
    told_of(kind, None, Blow::NodeDeleted).await;
    told_of(kind, None, Blow::ParentDeleted).await;
}

/// A reader within its own writer.
async fn told_of_anything(kind: &LockKind) {
    for blow in Blow::ALL {
        told_of(kind, Some(reentrant_write), blow).await;
    }
}

/// Even without a release, its other nodes are deleted, so that others can have the locks.
async fn told_of_any_node(kind: &LockKind) {
    let (operator, (client, proxy), other) = (operator(), proxied_client().await, client().await);
    for at in 0..3 {
        let path = format!("/told-any/{}-{at}", kind.name);
        let hold = held(&(kind.lock)(&client, &path)).await;
        let beside = held(&client.mutex(&format!("{path}/beside")).unwrap()).await;
        let next = acquire(&(kind.lock)(&other, &path));
        let noise = Noise::measured();
        just_after_a_heartbeat(&proxy);
        let deleted = Instant::now();
        operator.delete(hold.nodes().nth(at).expect("it has three"));
        assert_eq!(told(&hold, &client, deleted, &noise).await, LossReason::NodeDeleted, "{path}");
        soon(granted(next).await.release()).await.unwrap();
        settled(&client).await;
        kind.is_gone(&operator, &path);
        assert_eq!(hold.state(), HoldState::Lost(LossReason::NodeDeleted));
        assert_eq!(beside.state(), HoldState::Held, "the client's other hold");
        let error = soon(hold.release()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Lost(LossReason::NodeDeleted), "{error}");
    }
    assert_eq!(client.stats().losses, 3);
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
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    with_any_one_of_its_nodes_the_whole_hold_is_lost_and_the_others_go_as_well: told_of_any_node(PERMITS, SET);
}
