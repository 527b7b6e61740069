//! A client releases a hold and right after that tries to acquire a lock that the hold excluded. It must not find the lock
//! busy only because the release has not deleted its node yet.

use crate::support::{A_WHILE, SOON, client, held, operator, proxied_client, settled, soon};
use ground::{Action, Direction, Kind, Trigger};
use std::time::Duration;
use zklock::further::Foreign;
use zklock::{Client, Lock, LockSpec};

/// Enough to have seen the old bug many times in each case: with the plain mutex, one try in 25 to 60 met it.
const ROUNDS: usize = 150;

/// Cases: the lock that is held, and the lock that is tried as soon as the hold is dropped.
fn pairs(client: &Client) -> Vec<(&'static str, Lock, Lock)> {
    let mutex = |path: &str| client.mutex(path).unwrap();
    let (read, write) = (client.read_lock("/dropped/rw").unwrap(), client.write_lock("/dropped/rw").unwrap());
    let semaphore = client.semaphore("/dropped/semaphore", 1).unwrap();
    let exclusive = client.single_node("/dropped/exclusive").unwrap();
    let careless = LockSpec::mutex("/dropped/mutex").unwrap().foreign(Foreign::IgnoreUnknown);
    let set = |locks: &[&Lock]| client.all(&locks.iter().copied().cloned().collect::<Vec<_>>()).unwrap();
    let member = mutex("/dropped/member");
    let (both, mixed) = (set(&[&member, &mutex("/dropped/other")]), set(&[&semaphore, &write]));
    vec![
        ("a mutex", mutex("/dropped/mutex"), mutex("/dropped/mutex")),
        ("its other options", mutex("/dropped/mutex"), client.lock(&careless).unwrap()),
        ("the write side", write.clone(), write.clone()),
        ("the write side after the read side", read.clone(), write.clone()),
        ("the read side after the write side", write.clone(), read),
        ("a semaphore with one permit", semaphore.clone(), semaphore.clone()),
        ("a single-node lock", exclusive.clone(), exclusive),
        ("a set after one of its locks", member.clone(), both.clone()),
        ("a lock after the set it is in", both, member),
        ("a set after its semaphore", semaphore.clone(), mixed.clone()),
        ("the write side after the set it is in", mixed, write),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_try_right_after_a_drop_finds_the_lock_free() {
    let client = client().await;
    let mut report = Vec::new();
    for (number, (case, held, tried)) in pairs(&client).into_iter().enumerate() {
        let rounds = if number == 0 { 500 } else { ROUNDS };
        let mut busy = 0;
        for round in 0..rounds {
            let hold = soon(held.acquire()).await.unwrap();
            match round % 2 {
                0 => drop(hold),
                // Begun, and not waited for.
                _ => drop(tokio::time::timeout(Duration::ZERO, hold.release()).await),
            }
            match soon(tried.try_acquire()).await.unwrap() {
                Some(hold) => soon(hold.release()).await.unwrap(),
                None => busy += 1,
            }
        }
        if busy > 0 {
            report.push(format!("{case}: {busy} of {rounds} were told that it is busy"));
        }
    }
    assert!(report.is_empty(), "{report:#?}");
    settled(&client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_try_sends_nothing_before_the_release_is_done_and_its_caller_may_leave() {
    let ((client, proxy), path) = (proxied_client().await, "/dropped/slow");
    let lock = client.mutex(path).unwrap();
    let hold = held(&lock).await;
    let held_back =
        proxy.on(Trigger::request(Kind::Delete).path(path).then(Action::Freeze(Direction::ToServer)));
    drop(hold);
    assert!(held_back.wait(SOON));
    proxy.record();
    assert!(tokio::time::timeout(A_WHILE / 4, lock.try_acquire()).await.is_err(), "nothing is answered");
    assert_eq!(proxy.counts().requests(Kind::Create), 0);
    proxy.thaw();
    settled(&client).await;
    let hold = soon(lock.try_acquire()).await.unwrap().expect("it is free");
    soon(hold.release()).await.unwrap();
    assert_eq!(operator().children(path), [""; 0]);
}
