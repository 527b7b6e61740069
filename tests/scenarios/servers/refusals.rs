//! Servers of 3.4 do not support locks that create nodes in a transaction. The error comes before anything is sent, and the
//! session goes on.

use super::{old_client, old_operator, old_proxied};
use crate::support::{SOON, acquire, reentrant_write, says, soon};
use ground::Kind;
use zklock::{Error, ErrorKind, LockSpec};

/// The error names what was asked for, the version, and what to do.
#[track_caller]
pub(super) fn is_refused(error: &Error, what: &str, instead: &str) {
    says(error, ErrorKind::Refused, &[what, "needs ZooKeeper 3.5 or later", "of version 3.4", instead]);
}

/// Some are refused within a hold, which goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_creates_nodes_in_a_transaction_is_refused_before_anything_is_sent() {
    let (client, proxy, accepted) = old_proxied().await;
    let locks = ["/old/set/a", "/old/set/b"].map(|path| client.mutex(path).unwrap());
    let error = soon(client.all(&locks).unwrap().acquire()).await.unwrap_err();
    is_refused(&error, "a set of locks", "one by one");

    let path = "/old/double";
    let error = soon(client.double_barrier(path, 2).unwrap().enter()).await.unwrap_err();
    is_refused(&error, "a double barrier", path);
    assert!(old_operator().stat(path).is_none());

    let path = "/old/downgrade";
    let write = soon(reentrant_write(&client, path).acquire()).await.unwrap();
    let error = soon(client.read_lock(path).unwrap().acquire()).await.unwrap_err();
    is_refused(&error, "the read side within the write side", "release the write side first");
    assert!(!write.valid_for().is_zero());
    soon(write.release()).await.unwrap();

    old_operator().create_all("/old/creation", "");
    let hold = soon(client.mutex("/old/creator").unwrap().acquire()).await.unwrap();
    let writes = || hold.guarded().set_data("/old/creation", b"1", None);
    let error = soon(writes().create("/old/creation/a", b"").commit()).await.unwrap_err();
    is_refused(&error, "a guarded write that creates a node", "create it before");
    assert_eq!(old_operator().data("/old/creation"), b"");
    assert_eq!(soon(writes().commit()).await.unwrap().versions(), [Some(1)]);
    soon(hold.release()).await.unwrap();

    // Permits are refused though others wait for them: it does not wait for its turn, which would only bring this error.
    let path = "/old/permits";
    let taken = soon(client.semaphore(path, 1).unwrap().acquire()).await.unwrap();
    let waiter = acquire(&old_client().await.semaphore(path, 1).unwrap());
    // The head of the queue has its node there already, and waits until it counts.
    old_operator().wait_for_children(&format!("{path}/leases"), 2, SOON);
    let two = client.lock(&LockSpec::semaphore(path, 2).unwrap().permits(2)).unwrap();
    is_refused(&soon(two.acquire()).await.unwrap_err(), "several permits at once", "one by one");
    let left = ["locks", "leases"].map(|queue| old_operator().children(&format!("{path}/{queue}")).len());
    assert_eq!(left, [1, 2]);
    soon(taken.release()).await.unwrap();
    soon(soon(waiter).await.unwrap().unwrap().release()).await.unwrap();

    for message in proxy.requests() {
        assert!(!message.operations.contains(&Kind::Create), "{message:?}");
        assert!(message.kind != Kind::Multi || !message.operations.is_empty(), "{message:?}");
    }
    assert_eq!((client.stats().sessions, proxy.accepted()), (1, accepted), "the client goes on as before");
}
