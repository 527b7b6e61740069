//! Sets of locks: all, or none.

use crate::support::timing::Noise;
use crate::support::{A_WHILE, GRACE, SOON, client, held, nodes, operator, says, settled, soon};
use ground::not_later;
use std::time::{Duration, Instant};
use zklock::{Client, ErrorKind, HoldState, Lock, LockSpec};

/// Two mutexes.
fn pair(client: &Client, root: &str) -> Lock {
    client.all(&["a", "b"].map(|name| client.mutex(&format!("{root}/{name}")).unwrap())).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_of_all_kinds_is_one_hold_with_a_node_for_each() {
    let (root, operator, client) = ("/all/kinds", operator(), client().await);
    let locks = [
        client.mutex("/all/kinds/mutex"),
        client.read_lock("/all/kinds/read"),
        client.write_lock("/all/kinds/write"),
        client.lock(&LockSpec::semaphore("/all/kinds/semaphore", 3).unwrap().permits(2)),
        client.election("/all/kinds/election"),
    ];
    let hold = held(&client.all(&locks.map(Result::unwrap)).unwrap()).await;
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
    assert!(free(other.write_lock("/all/kinds/read").unwrap()).await.is_none());
    assert!(free(other.read_lock("/all/kinds/read").unwrap()).await.is_some());
    assert!(free(other.read_lock("/all/kinds/write").unwrap()).await.is_none());
    assert!(free(other.semaphore("/all/kinds/semaphore", 3).unwrap()).await.is_some());
    assert!(free(other.election("/all/kinds/election").unwrap()).await.is_none());
    soon(hold.release()).await.unwrap();
    settled(&other).await;
    for place in ["mutex", "read", "write", "semaphore/leases", "semaphore/locks", "election"] {
        operator.wait_for_children(&format!("{root}/{place}"), 0, SOON);
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
    soon(b.release()).await.unwrap();
    soon(held(&pair(&other, root)).await.release()).await.unwrap();
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
