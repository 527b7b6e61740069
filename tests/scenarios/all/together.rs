//! Sets of locks: all, or none.

use crate::support::queue::{A_WHILE, Waiter, acquire, granted, held, nodes};
use crate::support::timing::Noise;
use crate::support::{GRACE, SOON, client, operator, proxied_client, says, settled, soon};
use ground::{Kind, not_later};
use std::time::{Duration, Instant};
use zklock_core::{Client, ErrorKind, HoldState, Lock, LockSpec};

/// A set with a lock of each kind below `root`.
fn one_of_each(client: &Client, root: &str) -> Lock {
    let locks = [
        client.mutex(&format!("{root}/mutex")),
        client.read(&format!("{root}/read")),
        client.write(&format!("{root}/write")),
        client.lock(&LockSpec::semaphore(&format!("{root}/semaphore"), 3).unwrap().permits(2)),
        client.election(&format!("{root}/election")),
    ];
    client.all(&locks.map(Result::unwrap)).unwrap()
}

/// Two mutexes.
fn pair(client: &Client, root: &str) -> Lock {
    client.all(&["a", "b"].map(|name| client.mutex(&format!("{root}/{name}")).unwrap())).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_of_all_kinds_is_one_hold_with_a_node_for_each() {
    let (root, operator, client) = ("/all/kinds", operator(), client().await);
    let set = one_of_each(&client, root);
    let hold = held(&set).await;
    let held_nodes: Vec<_> = hold.nodes().map(str::to_owned).collect();
    assert_eq!(held_nodes.len(), 6, "{held_nodes:?}");
    for place in ["mutex", "read", "write", "semaphore/leases", "election"] {
        let there = nodes(&operator, &format!("{root}/{place}"));
        assert!(there.iter().all(|node| held_nodes.contains(node)), "{place}");
        assert_eq!(there.len(), 1 + usize::from(place == "semaphore/leases"), "{place}");
    }
    operator.wait_for_children(&format!("{root}/semaphore/locks"), 0, SOON);
    // One transaction has created all places in queues.
    let stat = operator.stat(&nodes(&operator, &format!("{root}/mutex"))[0]).unwrap();
    assert_eq!(stat.czxid.unsigned_abs(), hold.token().value());
    for place in ["read", "write", "election"] {
        let stat = operator.stat(&nodes(&operator, &format!("{root}/{place}"))[0]).unwrap();
        assert_eq!(stat.czxid.unsigned_abs(), hold.token().value(), "{place}");
    }
    // Each lock behaves as it would alone.
    let other = crate::support::client().await;
    let free = async |lock: Lock| {
        let hold = soon(lock.try_acquire()).await.unwrap();
        // The try must have cleaned up, so that its nodes are not in the next one's way.
        settled(&other).await;
        hold
    };
    assert!(free(other.mutex("/all/kinds/mutex").unwrap()).await.is_none());
    assert!(free(other.write("/all/kinds/read").unwrap()).await.is_none());
    assert!(free(other.read("/all/kinds/read").unwrap()).await.is_some());
    assert!(free(other.read("/all/kinds/write").unwrap()).await.is_none());
    assert!(free(other.semaphore("/all/kinds/semaphore", 3).unwrap()).await.is_some());
    assert!(free(other.election("/all/kinds/election").unwrap()).await.is_none());
    soon(hold.release()).await.unwrap();
    settled(&other).await;
    for place in ["mutex", "read", "write", "semaphore/leases", "semaphore/locks", "election"] {
        operator.wait_for_children(&format!("{root}/{place}"), 0, SOON);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_order_in_which_a_set_is_named_does_not_matter() {
    let (client, root) = (client().await, "/all/order");
    let [a, b, c] = ["a", "b", "c"].map(|name| client.mutex(&format!("{root}/{name}")).unwrap());
    let one = client.all(&[a.clone(), b.clone(), c.clone()]).unwrap();
    let other = client.all(&[c, a, b]).unwrap();
    let hold = soon(one.acquire()).await.unwrap();
    // It is the same lock.
    says(&soon(other.acquire_timeout(A_WHILE)).await.unwrap_err(), ErrorKind::Timeout, &["itself"]);
    soon(hold.release()).await.unwrap();
    // The server, too, sees them in the same order.
    let (proxied, proxy) = proxied_client().await;
    let locks = ["c", "b", "a"].map(|name| proxied.mutex(&format!("{root}/{name}")).unwrap());
    let set = proxied.all(&locks).unwrap();
    proxy.record();
    let hold = soon(set.acquire()).await.unwrap();
    let record = proxy.messages();
    let multi = record.iter().find(|message| message.kind == Kind::Multi).expect("one transaction");
    let places: Vec<_> = multi.path.split(',').map(|path| path.rsplit_once('/').unwrap().0).collect();
    assert_eq!(places, ["/all/order/a", "/all/order/b", "/all/order/c"]);
    assert_eq!(multi.operations, [Kind::Create; 3]);
    assert!(!record.iter().any(|message| message.kind == Kind::Create));
    soon(hold.release()).await.unwrap();
}

/// Debian's servers, of version 3.8.0, do not tell what a transaction has created (ZOOKEEPER-4026).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn token_and_owner_are_right_where_the_server_does_not_tell_them_with_the_transaction() {
    let ((client, proxy), operator) = (proxied_client().await, operator());
    let set = pair(&client, "/all/untold");
    soon(held(&set).await.release()).await.unwrap();
    proxy.record();
    let hold = held(&set).await;
    let counts = proxy.counts();
    let asked = (counts.requests(Kind::Multi), counts.requests(Kind::Exists));
    println!("transactions and looks at single nodes: {asked:?}");
    // A server that reports what it has created saves the lookups.
    assert!([(1, 0), (1, 2)].contains(&asked), "{asked:?}");
    for node in hold.nodes() {
        let stat = operator.stat(node).unwrap();
        assert_eq!(stat.czxid.unsigned_abs(), hold.token().value());
        assert_eq!(Some(stat.ephemeral_owner), client.session_id());
    }
    soon(hold.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_waits_for_each_of_its_locks_whatever_the_order_in_which_they_come() {
    let (root, operator) = ("/all/each", operator());
    for first in ["a", "b"] {
        let (one, other) = (client().await, client().await);
        let a = held(&one.mutex(&format!("{root}/a")).unwrap()).await;
        let b = held(&one.mutex(&format!("{root}/b")).unwrap()).await;
        let waiter = acquire(&pair(&other, root));
        operator.wait_for_children(&format!("{root}/a"), 2, SOON);
        operator.wait_for_children(&format!("{root}/b"), 2, SOON);
        let (early, late) = if first == "a" { (a, b) } else { (b, a) };
        soon(early.release()).await.unwrap();
        assert!(!ground::until(A_WHILE / 2, || waiter.is_finished()), "a part of it is not free");
        soon(late.release()).await.unwrap();
        soon(granted(waiter).await.release()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_deadline_covers_all_of_a_set_and_its_end_leaves_nothing() {
    let (root, operator) = ("/all/deadline", operator());
    let (one, other) = (client().await, client().await);
    let a = held(&one.mutex(&format!("{root}/a")).unwrap()).await;
    let b = held(&one.mutex(&format!("{root}/b")).unwrap()).await;
    let (timeout, noise) = (Duration::from_millis(900), Noise::measured());
    let set = pair(&other, root);
    let start = Instant::now();
    let call = tokio::spawn(async move { (set.acquire_timeout(timeout).await, start.elapsed()) });
    operator.wait_for_children(&format!("{root}/b"), 2, SOON);
    // If each lock had a deadline of its own, it would begin again here.
    tokio::time::sleep(timeout / 2).await;
    soon(a.release()).await.unwrap();
    let (result, took) = soon(call).await.unwrap();
    says(&result.unwrap_err(), ErrorKind::Timeout, &["/all/deadline/a", "/all/deadline/b"]);
    assert!(took >= timeout, "{took:?}");
    not_later(took, timeout + GRACE + noise.allowance());
    operator.wait_for_children(&format!("{root}/a"), 0, SOON);
    operator.wait_for_children(&format!("{root}/b"), 1, SOON);
    // A try finds the set busy, whichever of its locks is held.
    assert!(soon(pair(&other, root).try_acquire()).await.unwrap().is_none());
    settled(&other).await;
    assert_eq!(nodes(&operator, &format!("{root}/a")).len(), 0);
    soon(b.release()).await.unwrap();
    let hold = soon(pair(&other, root).try_acquire()).await.unwrap().expect("all are free");
    assert_eq!(hold.state(), HoldState::Held);
    soon(hold.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_comes_later_waits_behind_a_set_that_waits() {
    let (root, operator) = ("/all/behind", operator());
    let holder = client().await;
    let b = held(&holder.mutex(&format!("{root}/b")).unwrap()).await;
    let set = client().await;
    let waiting = acquire(&pair(&set, root));
    operator.wait_for_children(&format!("{root}/a"), 1, SOON);
    // Nobody holds `a`, but the set is ahead in its queue.
    let single = Waiter::behind(1, &operator, "/all/behind/a", |it| it.mutex("/all/behind/a").unwrap()).await;
    assert!(!ground::until(A_WHILE / 2, || single.task.is_finished()));
    soon(b.release()).await.unwrap();
    let both = granted(waiting).await;
    assert!(!single.task.is_finished());
    soon(both.release()).await.unwrap();
    let last = granted(single.task).await;
    assert!(last.token() > both.token());
    soon(last.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_hundred_locks_are_one_set() {
    const COUNT: usize = 300;
    let (client, operator) = (client().await, operator());
    let path = |number: usize| format!("/all/300/lock-{number:03}");
    let locks: Vec<_> = (0..COUNT).map(|number| client.mutex(&path(number)).unwrap()).collect();
    let set = client.all(&locks).unwrap();
    let start = Instant::now();
    let hold = held(&set).await;
    println!("{COUNT} locks, with their directories, in {:?}", start.elapsed());
    assert_eq!(hold.nodes().count(), COUNT);
    // The heartbeat proves all of them.
    tokio::time::sleep(A_WHILE).await;
    assert_eq!(hold.state(), HoldState::Held);
    let other = crate::support::client().await;
    assert!(soon(other.mutex(&path(299)).unwrap().try_acquire()).await.unwrap().is_none());
    let start = Instant::now();
    soon(hold.release()).await.unwrap();
    println!("released in {:?}", start.elapsed());
    for number in [0, 150, 299] {
        operator.wait_for_children(&path(number), 0, SOON);
    }
    let start = Instant::now();
    let hold = held(&set).await;
    println!("again in {:?}", start.elapsed());
    soon(hold.release()).await.unwrap();
}
