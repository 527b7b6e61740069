//! The imitation of a server that is not ZooKeeper: the requests that it does not know, and locks that work there. That of
//! ZooKeeper 3.4 is compared with a real one, in `tests/conformance`.

use crate::support::embedded::{Raw, SOON, client, creation, operation, queue_of, settled, soon};
use crate::support::{SESSION, acquire, says};
use std::time::Duration;
use zklock::{Client, ErrorKind, HoldState, Lock, LossReason};
use zklock_testkit::{Fault, Kind, Server};

const CREATE_2: i32 = 15;
const REMOVE_WATCHES: i32 = 18;
/// Operations that it does not know, alone or in a multi.
const NEWER: [i32; 3] = [CREATE_2, REMOVE_WATCHES, operation::CREATE_CONTAINER];

fn like(name: &str) -> Server {
    Server::builder().like(name).unwrap().start().unwrap()
}

/// The same, where sessions end only when a test says so: on a busy machine they could end by themselves before.
fn patient(name: &str) -> Server {
    Server::builder().like(name).unwrap().manual_clock().start().unwrap()
}

/// Two contenders acquire one after the other: the waiter gets the lock.
async fn hand_over(server: &Server, lock: fn(&Client) -> Lock, queue: &str, queued: usize) {
    let (one, two) = (client(server).await, client(server).await);
    let hold = soon(lock(&one).acquire()).await.unwrap();
    assert!(hold.state() == HoldState::Held);
    assert!(soon(lock(&two).try_acquire()).await.unwrap().is_none());
    let waiter = acquire(&lock(&two));
    queue_of(server, queue, queued);
    soon(hold.release()).await.unwrap();
    let next = soon(waiter).await.unwrap().unwrap();
    soon(next.release()).await.unwrap();
    settled(&one).await;
    settled(&two).await;
    queue_of(server, queue, 0);
    assert_eq!((one.stats().sessions, two.stats().sessions), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn locks_of_all_kinds_work_on_keeper() {
    let server = like("keeper-25");
    hand_over(&server, |client| client.mutex("/a").unwrap(), "/a", 2).await;
    hand_over(&server, |client| client.write_lock("/b").unwrap(), "/b", 2).await;
    hand_over(&server, |client| client.semaphore("/c", 1).unwrap(), "/c/locks", 1).await;
    let (one, two) = (client(&server).await, client(&server).await);
    let _a = soon(one.read_lock("/b").unwrap().acquire()).await.unwrap();
    let _b = soon(two.read_lock("/b").unwrap().acquire()).await.unwrap();
    assert!(soon(one.write_lock("/b").unwrap().try_acquire()).await.unwrap().is_none());
    // What it cannot do is refused.
    let set = one.all(&["/d", "/e"].map(|path| one.mutex(path).unwrap())).unwrap();
    let error = soon(set.acquire()).await.unwrap_err();
    says(&error, ErrorKind::Refused, &["a set of locks", "needs ZooKeeper 3.5"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_not_taken_back_has_lost_the_hold() {
    let server = patient("keeper-25");
    let client = client(&server).await;
    let lock = client.mutex("/a").unwrap();
    let hold = soon(lock.acquire()).await.unwrap();
    let former = server.owner(hold.node()).unwrap();
    server.cut();
    // The client gets another session, which does not own the node.
    assert_eq!(soon(hold.lost()).await, Ok(Some(LossReason::SessionExpired)));
    assert_eq!(hold.valid_for(), Duration::ZERO);
    let next = acquire(&lock);
    queue_of(&server, "/a", 2);
    assert!(server.expire(former), "nobody has closed it");
    let next = soon(next).await.unwrap().unwrap();
    assert_ne!(server.owner(next.node()), Some(former));
    soon(next.release()).await.unwrap();
    drop((client, lock));
    assert!(ground::until(SOON, || server.sessions().is_empty()), "{:?}", server.sessions());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_in_a_session_that_is_not_taken_back_is_only_confirmed_if_the_next_has_deleted_the_node() {
    let server = patient("keeper-25");
    // It is chance whether the next session does so before the release has its answer. Seldom it does.
    for _ in 0..100 {
        let client = client(&server).await;
        let hold = soon(client.mutex("/a").unwrap().acquire()).await.unwrap();
        server.inject(Fault::lose_request(Kind::Delete));
        let Err(error) = soon(hold.release()).await else {
            assert_eq!(server.owner(hold.node()), None);
            continue;
        };
        let says_when =
            ["the release of /a cannot be confirmed", "another session in its place", "free when"];
        says(&error, ErrorKind::Unreachable, &says_when);
        return;
    }
    panic!("each release was confirmed");
}

#[test]
fn keeper_closes_without_a_word_and_takes_nobody_back() {
    let server = like("keeper-25");
    for newer in NEWER {
        let mut raw = Raw::open_for(&server, SESSION);
        raw.send(1, newer, &creation("/newer", 0));
        assert!(raw.is_closed(SOON));
        let again = raw.again(&server).unwrap();
        assert_ne!(again.session, raw.session);
    }
    assert_eq!(server.children("/newer"), None);
}
