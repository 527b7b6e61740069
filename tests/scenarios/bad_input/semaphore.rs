//! What can be no semaphore is said at once.

use crate::support::{client, says, soon};
use zklock_core::{Dialect, ErrorKind, LockOptions};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_semaphore_that_cannot_be_is_refused_when_it_is_made() {
    let (client, path) = (client().await, "/semaphore/input");
    let more_than_there_are = LockOptions::new().permits(3);
    for (limit, options, parts) in [
        (2, more_than_there_are, ["3 permits of 2", "raise the limit"]),
        (0, LockOptions::new(), ["1 permits of 0", "raise the limit"]),
        (2, LockOptions::new().permits(0), ["0 permits", "1 to 256"]),
        (500, LockOptions::new().permits(257), ["257 permits", "1 to 256"]),
        (2, LockOptions::new().reentrant(true), ["belongs to nobody", "not reentrant"]),
        (2, LockOptions::new().dialect(Dialect::Kazoo), ["dialect kazoo", "a semaphore"]),
        (2, LockOptions::new().dialect(Dialect::WriteLock), ["dialect writelock", "a semaphore"]),
    ] {
        let error = client.semaphore_with(path, limit, options).unwrap_err();
        says(&error, ErrorKind::InvalidInput, &[path, parts[0], parts[1]]);
    }
    for bad in ["semaphore", "/semaphore/", "/", "/a/../b"] {
        let error = client.semaphore(bad, 2).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{bad}: {error}");
        let error = client.semaphore_with(path, 2, LockOptions::new().limit_at(bad)).map(drop);
        assert!(error.is_err() || bad == "/", "{bad}");
    }
    for no_semaphore in [LockOptions::new().permits(2), LockOptions::new().limit_at("/limits/input")] {
        let error = client.mutex_with(path, no_semaphore.clone()).unwrap_err();
        says(&error, ErrorKind::InvalidInput, &[path, "only a semaphore"]);
        assert!(client.read_with(path, no_semaphore.clone()).is_err());
        assert!(client.write_with(path, no_semaphore).is_err());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn as_many_as_can_be_asked_for_are_got() {
    let (client, path) = (client().await, "/semaphore/most");
    let all = client.semaphore_with(path, 256, LockOptions::new().permits(256)).unwrap();
    let hold = soon(all.acquire()).await.unwrap();
    assert_eq!(hold.nodes().count(), 256);
    assert!(soon(client.semaphore(path, 256).unwrap().try_acquire()).await.unwrap().is_none());
    assert!(soon(hold.confirm()).await.is_ok());
    soon(hold.release()).await.unwrap();
    let one = soon(client.semaphore(path, 256).unwrap().acquire()).await.unwrap();
    soon(one.release()).await.unwrap();
}
