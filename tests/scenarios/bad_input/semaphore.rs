//! Invalid arguments for a semaphore are reported at once.

use crate::support::{client, confirmed, says, soon};
use zklock::{ErrorKind, LockSpec};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_semaphore_that_cannot_be_is_refused_when_it_is_made() {
    let (client, path) = (client().await, "/semaphore/input");
    let of = |limit| LockSpec::semaphore(path, limit).unwrap();
    for (spec, parts) in [
        (of(2).permits(3), ["3 permits of 2", "raise the limit"]),
        (of(0), ["1 permits of 0", "raise the limit"]),
        (of(2).permits(0), ["0 permits", "1 to 256"]),
        (of(500).permits(257), ["257 permits", "1 to 256"]),
    ] {
        let error = client.lock(&spec).unwrap_err();
        says(&error, ErrorKind::InvalidInput, &[path, parts[0], parts[1]]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn as_many_as_can_be_asked_for_are_got() {
    let (client, path) = (client().await, "/semaphore/most");
    let all = client.lock(&LockSpec::semaphore(path, 256).unwrap().permits(256)).unwrap();
    let hold = soon(all.acquire()).await.unwrap();
    assert_eq!(hold.nodes().count(), 256);
    assert!(soon(client.semaphore(path, 256).unwrap().try_acquire()).await.unwrap().is_none());
    confirmed(&hold).await;
    soon(hold.release()).await.unwrap();
    let one = soon(client.semaphore(path, 256).unwrap().acquire()).await.unwrap();
    soon(one.release()).await.unwrap();
}
