//! After a release a node stays as long as nobody else wants the lock, and is deleted when somebody does.

use crate::support::queue::{acquire, granted, held};
use crate::support::strangers::{SPOKEN, in_dialect};
use crate::support::{SOON, client, operator, proxied_client, settled, soon};
use ground::Direction;
use std::time::Duration;
use zklock_core::{Client, Lock, LockSpec, Role};

/// Longer than any test.
const LONG: Duration = Duration::from_secs(3600);

fn lingering(client: &Client, path: &str, role: Role) -> Lock {
    let spec = match role {
        Role::Read => LockSpec::read(path),
        Role::Write => LockSpec::write(path),
        _ => LockSpec::mutex(path),
    };
    client.lock(&spec.unwrap().linger(LONG)).unwrap()
}

/// A lock whose node lingers, without a holder.
async fn idle(client: &Client, path: &str) -> Lock {
    let lock = lingering(client, path, Role::Exclusive);
    soon(held(&lock).await.release()).await.unwrap();
    lock
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_is_taken_while_no_server_answers_for_as_long_as_its_lease_runs() {
    let (client, proxy) = proxied_client().await;
    let lock = idle(&client, "/linger/again").await;
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
    for (number, (dialect, role)) in SPOKEN.into_iter().enumerate() {
        let path = format!("/linger/dialects/{number}");
        // In the holder's own dialect, so that the others see it.
        let make = |role| match role {
            Role::Read => LockSpec::read(&path),
            Role::Write => LockSpec::write(&path),
            _ => LockSpec::mutex(&path),
        };
        let own = if role == Role::Read { Role::Write } else { role };
        let lock = ours.lock(&make(own).unwrap().dialect(dialect).linger(LONG)).unwrap();
        soon(held(&lock).await.release()).await.unwrap();
        let rival = held(&in_dialect(&theirs, &path, dialect, role)).await;
        assert_eq!(operator().children(&path).len(), 1, "{dialect:?}, {role:?}");
        let next = acquire(&lock);
        operator().wait_for_children(&path, 2, SOON);
        soon(rival.release()).await.unwrap();
        let next = granted(next).await;
        assert!(next.token() > rival.token());
        soon(next.release()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_try_of_another_finds_it_busy_and_makes_it_free() {
    let (ours, theirs, path) = (client().await, client().await, "/linger/tries");
    let _lock = idle(&ours, path).await;
    let other = theirs.mutex(path).unwrap();
    let free = async {
        loop {
            if let Some(hold) = other.try_acquire().await.unwrap() {
                break hold;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    soon(soon(free).await.release()).await.unwrap();
    settled(&ours).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_close_and_the_last_handle_make_it_free() {
    let (first, second, path) = (client().await, client().await, "/linger/close");
    let _lock = idle(&first, path).await;
    soon(first.close()).await;
    operator().wait_for_children(path, 0, SOON);
    let lock = idle(&second, path).await;
    drop((second, lock));
    operator().wait_for_children(path, 0, SOON);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_try_of_the_same_client_does_not_find_its_own_idle_node() {
    let (client, path) = (client().await, "/linger/own");
    for _ in 0..20 {
        let read = lingering(&client, path, Role::Read);
        soon(held(&read).await.release()).await.unwrap();
        let hold = soon(client.write(path).unwrap().try_acquire()).await.unwrap();
        soon(hold.expect("nobody holds it").release()).await.unwrap();
    }
}
