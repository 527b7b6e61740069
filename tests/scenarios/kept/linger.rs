//! After a release a node stays as long as nobody else wants the lock, and is deleted when somebody does.

use crate::support::queue::{acquire, granted, held, join};
use crate::support::strangers::{SPOKEN, in_dialect};
use crate::support::{SOON, client, expire_session, operator, proxied_client, settled, soon};
use ground::Direction;
use std::time::Duration;
use zklock_core::{Client, Lock, LockSpec, LossReason, Role};

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
async fn one_who_queues_while_it_is_held_comes_before_the_next_of_the_process() {
    let (ours, theirs, path) = (client().await, client().await, "/linger/turns");
    let lock = idle(&ours, path).await;
    let hold = held(&lock).await;
    let mut next = join(&lock).await;
    assert_eq!(operator().children(path).len(), 1, "it waits for the node");
    let rival = acquire(&theirs.mutex(path).unwrap());
    // The rival, and behind it the next of this process.
    operator().wait_for_children(path, 3, SOON);
    soon(hold.release()).await.unwrap();
    let rival = granted(rival).await;
    let early = tokio::time::timeout(Duration::from_millis(50), &mut next).await;
    assert!(early.is_err(), "it is the turn of the other");
    soon(rival.release()).await.unwrap();
    let next = soon(next).await.unwrap();
    assert!(rival.token() < next.token());
    soon(next.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_of_a_process_have_one_node_and_a_writer_ends_that() {
    let (ours, theirs, path) = (client().await, client().await, "/linger/readers");
    let lock = lingering(&ours, path, Role::Read);
    let (one, two) = (held(&lock).await, held(&lock).await);
    assert_eq!((one.node(), one.token()), (two.node(), two.token()));
    // A reader elsewhere disturbs nobody.
    let other = held(&theirs.read(path).unwrap()).await;
    let writer = acquire(&theirs.write(path).unwrap());
    operator().wait_for_children(path, 3, SOON);
    assert!(soon(one.wanted()).await);
    let behind = acquire(&lock);
    operator().wait_for_children(path, 4, SOON);
    for hold in [one, two, other] {
        assert!(!writer.is_finished());
        soon(hold.release()).await.unwrap();
    }
    let writer = granted(writer).await;
    assert!(!behind.is_finished());
    soon(writer.release()).await.unwrap();
    soon(granted(behind).await.release()).await.unwrap();
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
async fn what_ends_it_while_nobody_has_it_lets_nobody_take_it() {
    let (client, proxy) = proxied_client().await;
    let lock = idle(&client, "/linger/ends").await;
    let (before, node) = (held(&lock).await, operator().children("/linger/ends").remove(0));
    soon(before.release()).await.unwrap();
    operator().delete(&format!("/linger/ends/{node}"));
    // Within a heartbeat it may still be acquired. That holder is then told of the loss.
    let hold = soon(async {
        loop {
            let hold = lock.acquire().await.unwrap();
            if hold.token() > before.token() {
                break hold;
            }
            let _ = hold.release().await;
        }
    })
    .await;
    let token = hold.token();
    soon(hold.release()).await.unwrap();
    expire_session(&proxy);
    let next = soon(async {
        loop {
            let hold = lock.acquire().await.unwrap();
            if hold.token() > token {
                break hold;
            }
            assert!(matches!(hold.lost().await, Some(LossReason::SessionExpired | LossReason::LeaseLapsed)));
        }
    })
    .await;
    soon(next.release()).await.unwrap();
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
async fn a_rival_that_comes_while_the_connection_is_broken_is_seen_after_it() {
    let (client, proxy) = proxied_client().await;
    let lock = idle(&client, "/linger/broken").await;
    let hold = held(&lock).await;
    proxy.refuse(true);
    proxy.cut();
    let other = crate::support::client().await;
    let rival = acquire(&other.mutex("/linger/broken").unwrap());
    operator().wait_for_children("/linger/broken", 2, SOON);
    soon(hold.release()).await.unwrap();
    proxy.refuse(false);
    soon(granted(rival).await.release()).await.unwrap();
}

/// A caller acquires the read side within its own write hold, then releases that: nobody may write while it goes on reading.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_within_its_own_writer_keeps_the_next_writer_of_the_process_out() {
    for turns in [1, 8] {
        let (client, path) = (client().await, format!("/linger/downgrade/{turns}"));
        let spec = |spec: LockSpec| spec.reentrant(true).linger(LONG).local_turns(turns);
        let write = client.lock(&spec(LockSpec::write(&path).unwrap())).unwrap();
        let read = client.lock(&spec(LockSpec::read(&path).unwrap())).unwrap();
        let outer = soon(write.acquire()).await.unwrap();
        // Not reentrant, so that this task may release it.
        let next = LockSpec::write(&path).unwrap().linger(LONG).local_turns(turns);
        let next = client.lock(&next).unwrap();
        let other = acquire(&next);
        let inner = soon(read.acquire()).await.unwrap();
        soon(outer.release()).await.unwrap();
        // The writer's node is gone, and the next one's is behind the reader.
        operator().wait_for_node(outer.node(), false, SOON);
        operator().wait_for_children(&path, 2, SOON);
        assert!(!other.is_finished() && !inner.valid_for().is_zero());
        assert!(soon(next.try_acquire()).await.unwrap().is_none());
        soon(inner.release()).await.unwrap();
        soon(granted(other).await.release()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_within_its_own_writer_does_not_wait_for_one_who_waits_for_it() {
    let (client, path) = (client().await, "/linger/within");
    let write = client.lock(&LockSpec::write(path).unwrap().reentrant(true)).unwrap();
    let read = client.lock(&LockSpec::read(path).unwrap().linger(LONG)).unwrap();
    let outer = soon(write.acquire()).await.unwrap();
    let other = acquire(&read);
    operator().wait_for_children(path, 2, SOON);
    let inner = soon(read.acquire()).await.unwrap();
    assert!(!other.is_finished(), "it is not let in by that");
    soon(inner.release()).await.unwrap();
    soon(outer.release()).await.unwrap();
    soon(granted(other).await.release()).await.unwrap();
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
