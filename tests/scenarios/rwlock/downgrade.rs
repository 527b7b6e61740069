//! A writer that takes the read side: at once, with a node of its own, ahead of all waiters. Its lock is reentrant, so
//! that nobody else can release its holds.

use crate::support::loss::just_after_a_heartbeat;
use crate::support::{
    SOON, client, confirmed, expire_session, on_a_thread, operator, proxied_client, reentrant_write, says,
    settled, soon,
};
use ground::{Action, Gate, Kind, Trigger};
use tokio::task::JoinHandle;
use zklock::{Client, ErrorKind, Hold, HoldState, LockSpec, LossReason};

async fn writes(client: &Client, path: &str) -> Hold {
    soon(reentrant_write(client, path).acquire()).await.unwrap()
}

/// Acquires the read side, in the task that has the write side.
async fn reads(client: &Client, path: &str) -> Hold {
    soon(client.read_lock(path).unwrap().acquire()).await.unwrap()
}

/// Starts a contender in a separate task, and waits until the queue has this length.
fn queued(client: &Client, path: &str, reads: bool, length: usize) -> JoinHandle<Hold> {
    let lock = if reads { client.read_lock(path) } else { client.write_lock(path) }.unwrap();
    let task = tokio::spawn(async move { lock.acquire().await.unwrap() });
    operator().wait_for_children(path, length, SOON);
    task
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_reads_at_once_and_lets_other_readers_in_but_no_writer() {
    let (client, other, path) = (client().await, client().await, "/rwlock/downgrade");
    let write = writes(&client, path).await;
    let reader = queued(&other, path, true, 2);
    let next = queued(&other, path, false, 3);
    let late = queued(&other, path, true, 4);
    let read = reads(&client, path).await;
    assert_ne!(read.node(), write.node());
    let number = |hold: &Hold| hold.node()[hold.node().len() - 10..].to_owned();
    assert_eq!(number(&read), number(&write), "below all who wait, as Curator's");
    assert!(read.node().starts_with(&format!("{path}/_c_")) && read.node().contains("-__READ__"), "{read:?}");
    assert!(!reader.is_finished() && !next.is_finished());

    soon(write.release()).await.unwrap();
    let reader = soon(reader).await.unwrap();
    assert!(!read.valid_for().is_zero() && !reader.valid_for().is_zero(), "they read together");
    assert_eq!((read.state(), write.state()), (HoldState::Held, HoldState::Released));
    soon(reader.release()).await.unwrap();
    // After this the waiting writer has seen every change so far.
    assert!(soon(client.write_lock(path).unwrap().try_acquire()).await.unwrap().is_none());
    assert!(!next.is_finished(), "a writer beside {read:?}");
    soon(read.release()).await.unwrap();
    let next = soon(next).await.unwrap();
    assert!(!late.is_finished());
    // The next writer queued before the reader, but has its turn after it.
    let tokens = [write.token(), read.token(), next.token()];
    assert!(tokens.is_sorted() && tokens[1] < tokens[2], "{tokens:x?}");
    soon(next.release()).await.unwrap();
    soon(soon(late).await.unwrap().release()).await.unwrap();
    settled(&client).await;
    operator().wait_for_children(path, 0, SOON);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_costs_one_transaction_and_a_listing_also_as_a_try_and_of_a_reentrant_reader() {
    let (client, proxy) = proxied_client().await;
    let path = "/rwlock/downgrade-cost";
    soon(client.write_lock(path).unwrap().acquire()).await.unwrap().release().await.unwrap();
    for reentrant in [false, true] {
        let write = writes(&client, path).await;
        let lock = client.lock(&LockSpec::read_lock(path).unwrap().reentrant(reentrant)).unwrap();
        proxy.record();
        let read = soon(lock.try_acquire()).await.unwrap().expect("it is its own writer");
        // Heartbeats consist of checks only.
        let mut asked = proxy.requests();
        asked.retain(|request| request.operations != [Kind::Check]);
        assert_eq!(asked[0].operations, [Kind::Check, Kind::Create]);
        let asked: Vec<_> = asked.iter().map(|message| message.kind).collect();
        let told = [Kind::Multi, Kind::GetChildren];
        // Servers before 3.8.2 do not report what a transaction has created, so the client reads it.
        let untold = [Kind::Multi, Kind::GetChildren, Kind::Exists, Kind::GetChildren];
        assert!(asked == told || asked == untold, "{asked:?}");
        let again = soon(lock.try_acquire()).await;
        match reentrant {
            true => assert_eq!(again.unwrap().expect("it is reentrant").node(), read.node()),
            // A try never reports a deadlock, and there can be two readers.
            false => drop(again.unwrap()),
        }
        soon(read.release()).await.unwrap();
        // Without it the writer is alone, as before.
        assert_eq!(write.state(), HoldState::Held);
        soon(write.release()).await.unwrap();
        settled(&client).await;
        operator().wait_for_children(path, 0, SOON);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_that_is_lost_meanwhile_does_not_become_a_reader() {
    let ((client, proxy), operator) = (proxied_client().await, operator());
    let path = "/rwlock/downgrade-lost";
    let write = writes(&client, path).await;
    just_after_a_heartbeat(&proxy);
    operator.delete(write.node());
    let read = client.read_lock(path).unwrap();
    let error = soon(read.acquire()).await.unwrap_err();
    says(&error, ErrorKind::Lost(LossReason::NodeDeleted), &[path, "write side"]);
    assert_eq!(soon(write.lost()).await, Ok(Some(LossReason::NodeDeleted)));
    drop(write);
    settled(&client).await;
    operator.wait_for_children(path, 0, SOON);

    // Its session ends while the transaction is under way.
    let write = writes(&client, path).await;
    let gate = Gate::new();
    let held = proxy.on(Trigger::request(Kind::Multi).path("-__READ__").then(Action::Pause(gate.clone())));
    let ends = async {
        assert!(on_a_thread(move || held.wait(SOON)).await);
        expire_session(&proxy);
        gate.open();
    };
    let (error, ()) = soon(async { tokio::join!(read.acquire(), ends) }).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Lost(LossReason::SessionExpired));
    drop(write);
    settled(&client).await;
    operator.wait_for_children(path, 0, SOON);
    soon(client.read_lock(path).unwrap().acquire()).await.unwrap().release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_reader_outlives_a_write_hold_that_is_lost_and_the_other_way_round() {
    let (client, operator, path) = (client().await, operator(), "/rwlock/downgrade-outlives");
    let (write, read) = (writes(&client, path).await, reads(&client, path).await);
    operator.delete(write.node());
    assert_eq!(soon(write.lost()).await, Ok(Some(LossReason::NodeDeleted)));
    confirmed(&read).await;
    soon(read.release()).await.unwrap();
    // As long as its owner has a lost hold, it may be refused another one.
    drop(write);

    let (write, read) = (writes(&client, path).await, reads(&client, path).await);
    operator.delete(read.node());
    assert_eq!(soon(read.lost()).await, Ok(Some(LossReason::NodeDeleted)));
    confirmed(&write).await;
    soon(write.release()).await.unwrap();
}
