//! Clients that lack a right: they learn which right, on which node, and leave nothing behind.

use crate::support::users::{ANN, BOB};
use crate::support::{acquire, client, granted, held, operator, says, settled, soon};
use zklock::further::Access;
use zklock::{ErrorKind, HoldState};

/// If a holder may not delete its own node, its session ends, and so do its holds. This is somebody else's node. (What every kind
/// says of a right that is missing: `rights`.)
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stranger_is_refused_and_leaves_nothing_and_its_own_holds_go_on() {
    for access in [Access::CreatorAll, Access::ReadOpen] {
        let (owner, seer) = (ANN.client(access.clone()).await, ANN.operator().await);
        let path = format!("/access-strangers-{access}");
        let hold = held(&owner.mutex(&path).unwrap()).await;
        for (stranger, own) in [(client().await, "anybody"), (BOB.client(Access::CreatorAll).await, "bob")] {
            let own = held(&stranger.mutex(&format!("/access-strangers-of-{own}-{access}")).unwrap()).await;
            let other = stranger.mutex(&format!("{path}-other")).unwrap();
            // The set's other queue is open, so only this one refuses.
            operator().create_all(other.path(), "");
            let lock = stranger.mutex(&path).unwrap();
            let set = stranger.all(&[lock.clone(), other]).unwrap();
            for lock in [lock.clone(), set, stranger.mutex(&format!("{path}/a/b/c")).unwrap()] {
                let lack = format!("the right CREATE in the access list of {path}");
                says(&soon(lock.acquire()).await.unwrap_err(), ErrorKind::Refused, &[&lack]);
                says(&soon(lock.try_acquire()).await.unwrap_err(), ErrorKind::Refused, &[&lack]);
            }
            settled(&stranger).await;
            let evicted = soon(lock.evict(hold.node())).await.unwrap_err();
            says(&evicted, ErrorKind::Refused, &["the right DELETE in the access list of", &path]);
            assert_eq!(seer.children(&path).await, [hold.node()]);
            assert_eq!(operator().children(&format!("{path}-other")), [""; 0]);
            assert_eq!(own.state(), HoldState::Held);
            soon(own.release()).await.unwrap();
        }
        soon(hold.release()).await.unwrap();
    }
}

/// A client that does not see all queues of a set takes the set for a holder, and asks it to release. Others see that it waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_that_is_asked_while_it_waits_is_not_seen_as_holding() {
    let path = |name: &str| format!("/access-set-asked/{name}");
    let (owner, open) = (ANN.client(Access::CreatorAll).await, ANN.client(Access::Open).await);
    for name in ["a", "b"] {
        operator().create_all(&path(name), "");
    }
    let hold = held(&owner.mutex(&path("c")).unwrap()).await;
    let waiter = acquire(&open.all(&["a", "b", "c"].map(|name| open.mutex(&path(name)).unwrap())).unwrap());
    ANN.operator().await.wait_for_children(&path("c"), 2).await;

    let stranger = client().await;
    assert_eq!(soon(stranger.mutex(&path("a")).unwrap().request_release()).await.unwrap().len(), 1);
    for name in ["a", "b", "c"] {
        let seen = soon(owner.mutex(&path(name)).unwrap().contenders()).await.unwrap();
        let holding: Vec<_> = seen.iter().filter(|it| it.holds).map(|it| &*it.node).collect();
        let expected = if name == "c" { vec![hold.node()] } else { vec![] };
        assert_eq!((seen.len(), holding), (1 + expected.len(), expected), "{name}");
    }
    soon(hold.release()).await.unwrap();
    let set = granted(waiter).await;
    assert!(soon(set.wanted()).await.unwrap(), "it was asked before it held");
    soon(set.release()).await.unwrap();
}

/// The first reader's node may not be written to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_other_holders_are_asked_if_one_may_not_be() {
    let path = "/access-asked-others";
    operator().create_all(path, "");
    let (closed, open, asker) = (ANN.client(Access::ReadOpen).await, client().await, client().await);
    let first = held(&closed.read_lock(path).unwrap()).await;
    let second = held(&open.read_lock(path).unwrap()).await;
    let error = soon(asker.read_lock(path).unwrap().request_release()).await.unwrap_err();
    says(&error, ErrorKind::Refused, &["WRITE", first.node()]);
    assert!(soon(second.wanted()).await.unwrap());
    for hold in [first, second] {
        soon(hold.release()).await.unwrap();
    }
}
