//! After a release a node stays as long as nobody else wants the lock, and is deleted when somebody does.

use crate::patterns::{LAYOUTS, role_in};
use crate::support::strangers::{SPOKEN, in_naming, spec_in};
use crate::support::{SOON, acquire, client, granted, held, operator, proxied_client, soon};
use ground::Direction;
use std::collections::BTreeSet;
use std::time::Duration;
use zklock::LockSpec;
use zklock::further::{Naming, Role};

/// Longer than any test.
const LONG: Duration = Duration::from_secs(3600);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_is_taken_while_no_server_answers_for_as_long_as_its_lease_runs() {
    let (client, proxy) = proxied_client().await;
    let lock = client.lock(&LockSpec::mutex("/linger/again").unwrap().linger(LONG)).unwrap();
    soon(held(&lock).await.release()).await.unwrap();
    let first = held(&lock).await;
    let token = first.token();
    soon(first.release()).await.unwrap();
    // No server can answer from here on.
    proxy.freeze(Direction::Both);
    for _ in 0..1_000 {
        let hold = soon(lock.acquire()).await.unwrap();
        assert_eq!(hold.token(), token);
        assert!(soon(lock.try_acquire()).await.unwrap().is_none(), "it is held");
        soon(hold.release()).await.unwrap();
    }
    assert_eq!(client.stats().grants, 1_002);
    proxy.thaw();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_queues_gets_it_at_once_whatever_the_library() {
    let (ours, theirs) = (client().await, client().await);
    let patterns = LAYOUTS.map(|(pattern, _)| (Naming::pattern(pattern).unwrap(), role_in(pattern)));
    for (number, (naming, role)) in SPOKEN.into_iter().chain(patterns).enumerate() {
        let path = format!("/linger/namings/{number}/lock");
        // In the holder's own naming scheme, so that the others see it.
        let own = if role == Role::Read { Role::Write } else { role };
        let lock = ours.lock(&spec_in(&path, &naming, own).linger(LONG)).unwrap();
        let mut nodes = BTreeSet::new();
        for _ in 0..2 {
            let hold = held(&lock).await;
            nodes.insert(hold.node().to_owned());
            soon(hold.release()).await.unwrap();
        }
        assert_eq!(nodes.len(), 1, "{naming}, {role:?}: it was kept");
        let rival = held(&in_naming(&theirs, &path, &naming, role)).await;
        let (directory, _) = rival.node().rsplit_once('/').unwrap();
        assert_eq!(operator().children(directory).len(), 1, "{naming}, {role:?}");
        let next = acquire(&lock);
        operator().wait_for_children(directory, 2, SOON);
        soon(rival.release()).await.unwrap();
        let next = granted(next).await;
        assert!(next.token() > rival.token());
        soon(next.release()).await.unwrap();
    }
}
