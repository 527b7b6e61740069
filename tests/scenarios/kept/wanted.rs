//! A holder learns that others wait.

use crate::support::kinds::{ELECTION, LockKind, MUTEX, PERMIT, READER, SET, SINGLE_NODE, WRITER};
use crate::support::strangers::put;
use crate::support::{SOON, acquire, client, granted, held, operator, soon};
use std::time::Duration;
use zklock::{Hold, HoldState, LockSpec};

/// How long to wait to see that nothing happens.
const A_MOMENT: Duration = Duration::from_millis(50);

async fn is_told(hold: &Hold) -> bool {
    tokio::time::timeout(A_MOMENT, hold.wanted()).await == Ok(Ok(true))
}

/// A single-node lock, the last, has no queue, so its holder cannot see who waits.
const KINDS: [LockKind; 7] = [MUTEX, READER, WRITER, ELECTION, PERMIT, SET, SINGLE_NODE];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_every_kind() {
    let (ours, theirs) = (client().await, client().await);
    for LockKind { name: kind, lock, rival, .. } in &KINDS[..6] {
        let path = format!("/wanted/{kind}");
        let hold = held(&lock(&ours, &path)).await;
        assert!(!hold.is_wanted() && !is_told(&hold).await, "{kind}: nobody waits");
        let rival = acquire(&rival(&theirs, &path));
        assert!(soon(hold.wanted()).await.unwrap() && hold.is_wanted(), "{kind}");
        soon(hold.release()).await.unwrap();
        assert!(!hold.is_wanted() && !soon(hold.wanted()).await.unwrap(), "{kind}: it is over");
        soon(granted(rival).await.release()).await.unwrap();
    }
}

/// Each is asked by `request_release`, and once more in the way of Curator's `Revoker`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_every_kind_by_those_who_ask_in_its_node() {
    let (ours, theirs, curator) = (client().await, client().await, operator());
    for LockKind { name: kind, lock: make, .. } in KINDS {
        let path = format!("/wanted/asked/{kind}");
        let lock = make(&ours, &path);
        let asked = soon(make(&theirs, &path).request_release()).await.unwrap();
        assert_eq!(asked, [], "{kind}: nobody holds it");
        let hold = held(&lock).await;
        assert!(!hold.is_wanted() && !is_told(&hold).await, "{kind}: nobody asks");
        let asked = soon(make(&theirs, &path).request_release()).await.unwrap();
        assert_eq!(asked[0].node, hold.node(), "{kind}");
        let shown = soon(make(&theirs, &path).contenders()).await.unwrap();
        assert_eq!(shown[0].identity, asked[0].identity, "{kind}: it keeps its name");
        assert!(soon(hold.wanted()).await.unwrap() && hold.is_wanted(), "{kind}");
        assert_eq!(hold.state(), HoldState::Held, "{kind}: it is only asked");
        soon(hold.release()).await.unwrap();

        // It was asked before it asks.
        let hold = held(&lock).await;
        curator.set(hold.node(), "__REVOKE__");
        assert!(soon(hold.wanted()).await.unwrap(), "{kind}");
        soon(hold.release()).await.unwrap();

        // Other data written to the node asks for nothing.
        let hold = held(&lock).await;
        assert!(!is_told(&hold).await);
        curator.set(hold.node(), "__REVOKE__ not");
        assert!(!is_told(&hold).await, "{kind}");
        curator.set(hold.node(), "__REVOKE__");
        assert!(soon(hold.wanted()).await.unwrap(), "{kind}");
        soon(hold.release()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_who_hold_are_asked_and_nobody_who_waits() {
    let (ours, theirs, path) = (client().await, client().await, "/wanted/holders");
    let readers = [held(&ours.read_lock(path).unwrap()).await, held(&theirs.read_lock(path).unwrap()).await];
    let writer = acquire(&theirs.write_lock(path).unwrap());
    operator().wait_for_children(path, 3, SOON);
    let asked = soon(ours.write_lock(path).unwrap().request_release()).await.unwrap();
    assert_eq!(asked.iter().map(|it| it.token).collect::<Vec<_>>(), readers.each_ref().map(Hold::token));
    for reader in readers {
        assert!(soon(reader.wanted()).await.unwrap());
        soon(reader.release()).await.unwrap();
    }
    let writer = granted(writer).await;
    assert!(!is_told(&writer).await);
    soon(writer.release()).await.unwrap();
}

/// It compares the whole data of its node with the word.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_of_curator_is_asked_by_the_word_alone() {
    let (client, operator, path) = (client().await, operator(), "/wanted/curator");
    let node = put(&operator, path, "_c_8ad38a9e-3c92-4c6d-9a4f-0a3f4b1f7f10-lock-");
    assert_eq!(soon(client.mutex(path).unwrap().request_release()).await.unwrap()[0].identity, "stranger");
    assert_eq!(operator.data(&node), b"__REVOKE__");
    operator.delete(&node);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_nobody_has_goes_when_somebody_asks_for_it() {
    let (ours, theirs, path) = (client().await, client().await, "/wanted/idle");
    let spec = LockSpec::mutex(path).unwrap().linger(Duration::from_secs(3600));
    soon(held(&ours.lock(&spec).unwrap()).await.release()).await.unwrap();
    assert_eq!(soon(theirs.mutex(path).unwrap().request_release()).await.unwrap().len(), 1);
    operator().wait_for_children(path, 0, SOON);
}
