//! Any one of several locks: the first to be granted is held, and the other queues are left.

use crate::support::{
    SOON, acquire, client, granted, held, operator, proxied, proxied_client, says, settled, soon,
};
use ground::{Action, Direction, Gate, Kind, Trigger, until};
use std::time::Duration;
use zklock::{Client, ErrorKind, Hold, Lock, LockSpec};

/// A mutex for each name.
fn mutexes(client: &Client, root: &str, names: &[&str]) -> Vec<Lock> {
    names.iter().map(|name| client.mutex(&format!("{root}/{name}")).unwrap()).collect()
}

fn numbered(client: &Client, root: &str, count: usize) -> Vec<Lock> {
    (0..count).map(|number| client.mutex(&format!("{root}/{number:03}")).unwrap()).collect()
}

/// Another client that holds each of these.
async fn all_held(root: &str, names: &[&str]) -> (Client, Vec<Hold>) {
    let other = client().await;
    let mut holds = Vec::new();
    for lock in mutexes(&other, root, names) {
        holds.push(held(&lock).await);
    }
    (other, holds)
}

/// Waits until each of these queues has its number of nodes.
fn are(root: &str, names: &[&str], counts: &[usize]) {
    for (name, count) in names.iter().zip(counts) {
        operator().wait_for_children(&format!("{root}/{name}"), *count, SOON);
    }
}

const ABC: &[&str] = &["a", "b", "c"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_that_comes_is_held_and_the_rest_are_left() {
    let root = "/any/first";
    let (_other, mut holds) = all_held(root, ABC).await;
    let client = client().await;
    let waiter = acquire(&client.any(&mutexes(&client, root, ABC)).unwrap());
    are(root, ABC, &[2, 2, 2]);
    soon(holds.remove(1).release()).await.unwrap();
    let hold = granted(waiter).await;
    assert_eq!(hold.path(), "/any/first/b");
    are(root, ABC, &[1, 1, 1]);
    settled(&client).await;
    assert_eq!(client.stats().grants, 1);
    soon(hold.release()).await.unwrap();
    are(root, ABC, &[1, 0, 1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_try_over_three_hundred_takes_two_round_trips() {
    const COUNT: usize = 300;
    let (root, other, (client, proxy)) = ("/any/300", client().await, proxied_client().await);
    let mut theirs = numbered(&other, root, COUNT);
    let free = theirs.remove(222);
    soon(held(&free).await.release()).await.unwrap();
    let most = held(&other.all(&theirs).unwrap()).await;
    let choice = client.any(&numbered(&client, root, COUNT)).unwrap();
    // All queues are listed before any answer has come.
    let gate = Gate::new();
    let first = Trigger::reply(Kind::GetChildren).path(root).then(Action::Pause(gate.clone()));
    let first = proxy.on(first);
    proxy.record();
    let trying = choice.clone();
    let call = tokio::spawn(async move { trying.try_acquire().await });
    assert!(first.wait(SOON));
    assert!(until(SOON, || proxy.counts().requests(Kind::GetChildren) == COUNT));
    // And the free one is acquired as it would be alone, in one flight.
    let created = Gate::new();
    let enters = proxy.on(Trigger::reply(Kind::Create).path(root).then(Action::Pause(created.clone())));
    gate.open();
    assert!(enters.wait(SOON));
    assert!(until(SOON, || proxy.counts().requests(Kind::GetChildren) == COUNT + 1));
    created.open();
    let hold = soon(call).await.unwrap().unwrap().expect("one is free");
    assert_eq!(hold.path(), "/any/300/222");
    let kinds: Vec<_> = proxy.requests().iter().skip(1 + COUNT).map(|request| request.kind).collect();
    assert_eq!(kinds, [Kind::Create, Kind::GetChildren]);
    soon(hold.release()).await.unwrap();
    // A try that fails creates nothing that others could see.
    let last = held(&free).await;
    proxy.record();
    assert!(soon(choice.try_acquire()).await.unwrap().is_none());
    let counts = proxy.counts();
    assert_eq!((counts.requests(Kind::Any), counts.requests(Kind::GetChildren)), (COUNT + 1, COUNT));
    let error = soon(choice.acquire_timeout(Duration::ZERO)).await.unwrap_err();
    says(&error, ErrorKind::Timeout, &["every one of the 300 locks", "/any/300/000", "…"]);
    soon(last.release()).await.unwrap();
    soon(most.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_that_come_at_once_are_one_hold() {
    let (root, other, client) = ("/any/together", client().await, client().await);
    let set = other.all(&mutexes(&other, root, ABC)).unwrap();
    let choice = client.any(&mutexes(&client, root, ABC)).unwrap();
    for _ in 0..10 {
        let all = held(&set).await;
        let waiter = acquire(&choice);
        are(root, ABC, &[2, 2, 2]);
        soon(all.release()).await.unwrap();
        let hold = granted(waiter).await;
        settled(&client).await;
        let counts = ABC.iter().map(|name| operator().children(&format!("{root}/{name}")).len());
        assert_eq!(counts.sum::<usize>(), 1, "of {}", hold.path());
        soon(hold.release()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_waited_in_vain_leaves_nothing() {
    let root = "/any/in-vain";
    let (_other, holds) = all_held(root, ABC).await;
    let client = client().await;
    let choice = client.any(&mutexes(&client, root, ABC)).unwrap();
    let error = soon(choice.acquire_timeout(Duration::from_millis(300))).await.unwrap_err();
    says(&error, ErrorKind::Timeout, &["none of the 3 locks", "/any/in-vain/c", "300ms", "before us"]);
    settled(&client).await;
    are(root, ABC, &[1, 1, 1]);
    // The same for a call that is dropped, or whose client is closed.
    let waiter = acquire(&choice);
    are(root, ABC, &[2, 2, 2]);
    waiter.abort();
    are(root, ABC, &[1, 1, 1]);
    let waiter = acquire(&choice);
    are(root, ABC, &[2, 2, 2]);
    client.close().await.unwrap();
    let error = soon(waiter).await.unwrap().unwrap_err();
    says(&error, ErrorKind::Closed, &[]);
    are(root, ABC, &[1, 1, 1]);
    drop(holds);
}

/// Each lock behaves as it would alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kinds_may_be_mixed() {
    let (root, other, client) = ("/any/mixed", client().await, client().await);
    let specs = || {
        let at = |name: &str| format!("{root}/{name}");
        let pair = ["x", "y"].map(|name| LockSpec::mutex(&at(name)).unwrap());
        let permits = LockSpec::semaphore(&at("permits"), 2).unwrap().permits(2);
        [
            LockSpec::mutex(&at("mutex")).unwrap(),
            LockSpec::read_lock(&at("table")).unwrap(),
            permits,
            LockSpec::all(pair).unwrap(),
            LockSpec::election(&at("election")).unwrap(),
        ]
    };
    let choice = client.lock(&LockSpec::any(specs()).unwrap()).unwrap();
    let mut names = vec!["mutex", "table", "permits", "x, /any/mixed/y", "election"];
    let mut others = Vec::new();
    while !names.is_empty() {
        let hold = soon(choice.try_acquire()).await.unwrap().expect("one is free");
        assert_eq!(hold.path(), format!("{root}/{}", names.remove(0)));
        soon(hold.release()).await.unwrap();
        // From here on another client holds it.
        others.push(match others.len() {
            1 => held(&other.write_lock("/any/mixed/table").unwrap()).await,
            2 => held(&other.semaphore("/any/mixed/permits", 2).unwrap()).await,
            number => held(&other.lock(&specs()[number]).unwrap()).await,
        });
    }
    assert!(soon(choice.try_acquire()).await.unwrap().is_none());
    let waiter = acquire(&choice);
    are(root, &["mutex", "table", "x", "y", "election"], &[2, 2, 2, 2, 2]);
    // A permit: the waiter has created its own two already.
    soon(others.remove(2).release()).await.unwrap();
    let hold = granted(waiter).await;
    assert_eq!(hold.path(), "/any/mixed/permits");
    assert_eq!(hold.nodes().count(), 2);
    are(root, &["mutex", "table", "x", "y", "election", "permits/locks"], &[1, 1, 1, 1, 1, 0]);
    soon(hold.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_is_not_taken_for_locks_that_others_hold() {
    // So long that the client still trusts its connection when the time is over.
    let (session, trying) = (Duration::from_secs(8), Duration::from_millis(200));
    let (client, proxy) = proxied(|options| options.session_timeout(session).try_timeout(trying)).await;
    let choice = client.any(&mutexes(&client, "/any/outage", &["a", "b"])).unwrap();
    proxy.freeze(Direction::Both);
    let error = soon(choice.acquire_timeout(Duration::from_millis(300))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    proxy.thaw();
    soon(soon(choice.acquire()).await.unwrap().release()).await.unwrap();
}
