//! Owners within one process: reentrancy, and waits that could never end.

use crate::support::deadline::A_WHILE;
use crate::support::{SOON, client, operator, proxied_client, says, soon};
use ground::Kind;
use std::time::Duration;
use zklock::{Client, ErrorKind, Lock, LockSpec};

fn sides(client: &Client, path: &str, reentrant: bool) -> [Lock; 2] {
    let specs = [LockSpec::read_lock(path), LockSpec::write_lock(path)];
    specs.map(|spec| client.lock(&spec.unwrap().reentrant(reentrant)).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_alone_can_release_and_wants_to_write_is_told_at_once_that_it_waits_for_itself() {
    let ((client, proxy), path) = (proxied_client().await, "/rwlock/upgrade");
    let [read, write] = sides(&client, path, true);
    let hold = soon(read.acquire()).await.unwrap();
    proxy.record();
    // The write side need not be reentrant for that.
    for write in [&write, &client.write_lock(path).unwrap()] {
        for timeout in [SOON, Duration::MAX] {
            let error = soon(write.acquire_timeout(timeout)).await.unwrap_err();
            says(&error, ErrorKind::Deadlock, &[path, "read side", "release"]);
        }
        // A try finds it busy.
        assert!(soon(write.try_acquire()).await.unwrap().is_none());
    }
    let created = proxy.counts().requests(Kind::Create);
    assert_eq!(created, 2, "only the tries cost a request");
    // Another task only waits.
    let other = write.clone();
    let waiter = tokio::spawn(async move { other.acquire().await?.release().await });
    operator().wait_for_children(path, 2, SOON);
    soon(hold.release()).await.unwrap();
    soon(waiter).await.unwrap().unwrap();
    soon(write.acquire()).await.unwrap().release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn and_so_within_the_write_side() {
    let (client, path) = (client().await, "/rwlock/twice-within");
    let [read, write] = sides(&client, path, false);
    let outer = soon(sides(&client, path, true)[1].acquire()).await.unwrap();
    let reads = [soon(read.acquire()).await.unwrap(), soon(read.acquire()).await.unwrap()];
    assert_eq!(soon(write.acquire()).await.unwrap_err().kind(), ErrorKind::Deadlock);
    soon(outer.release()).await.unwrap();
    says(&soon(write.acquire_timeout(A_WHILE)).await.unwrap_err(), ErrorKind::Timeout, &[path, "itself"]);
    soon(read.acquire()).await.unwrap().release().await.unwrap();
    for hold in reads {
        soon(hold.release()).await.unwrap();
    }
    soon(write.acquire()).await.unwrap().release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writer_and_reader_within_are_each_taken_again_and_end_each_by_itself() {
    let (client, path, operator) = (client().await, "/rwlock/nested", operator());
    let [read, write] = sides(&client, path, true);
    let writes = [soon(write.acquire()).await.unwrap(), soon(write.acquire()).await.unwrap()];
    let reads = [soon(read.acquire()).await.unwrap(), soon(read.acquire()).await.unwrap()];
    assert_eq!(operator.children(path).len(), 2);
    assert_eq!((writes[0].node(), reads[0].node()), (writes[1].node(), reads[1].node()));
    // It already has the write side, so this is not an upgrade.
    let third = soon(write.acquire()).await.unwrap();
    soon(third.release()).await.unwrap();
    for hold in &writes {
        soon(hold.release()).await.unwrap();
    }
    assert_eq!(operator.children(path).len(), 1);
    // Now it reads alone.
    assert_eq!(soon(write.acquire()).await.unwrap_err().kind(), ErrorKind::Deadlock);
    for hold in &reads {
        soon(hold.release()).await.unwrap();
    }
    assert_eq!(operator.children(path), [""; 0]);
}
