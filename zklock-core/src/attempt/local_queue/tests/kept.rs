use super::{answer_at_once, join, queue, with_handle};
use crate::attempt::local_queue::LocalQueue;
use crate::base::clock;
use crate::base::owner::Owner;
use crate::hold::hold::Hold;
use crate::machine::name::Scheme;
use crate::machine::protocol::Patience;
use crate::machine::turns::Passing;
use crate::session::fake::{FakeEnsemble, with_ensemble};
use std::sync::Arc;
use std::time::Duration;

pub(super) const LINGERS: Passing = Passing { linger: Duration::from_secs(60), turns: 1 };

/// Another process queues.
pub(super) fn rival(ensemble: &FakeEnsemble, kind: &str) -> String {
    let number = ensemble.next_number();
    let node = format!("/a/_c_00000000-0000-8000-8000-00000000abcd-{kind}{number:010}");
    ensemble.create(&node);
    node
}

/// Long enough for everything that can be done at once.
async fn a_moment() {
    clock::sleep(Duration::from_millis(5)).await;
}

async fn acquired(queue: &Arc<LocalQueue>) -> Hold {
    answer_at_once(&mut join(queue, Patience::Waits)).await.flatten().expect("the lock is free")
}

fn taken(queue: &LocalQueue) -> Option<Hold> {
    queue.take(Owner::unique(), false)
}

/// A mutex whose node lingers.
async fn idle(ensemble: &FakeEnsemble) -> Arc<LocalQueue> {
    let queue = queue(ensemble, Scheme::Mutex, LINGERS);
    acquired(&queue).await.release().await.unwrap();
    a_moment().await;
    queue
}

#[test]
fn a_node_that_another_wants_is_gone_when_it_is_released() {
    with_ensemble(async |ensemble| {
        let queue = idle(&ensemble).await;
        let hold = taken(&queue).unwrap();
        assert!(!hold.is_wanted());
        let rival = rival(&ensemble, "lock-");
        assert!(hold.wanted().await.unwrap());
        let mut next = join(&queue, Patience::Waits);
        assert!(answer_at_once(&mut next).await.is_none());
        assert_eq!(ensemble.nodes().len(), 3, "the next of this process queues behind the other");
        hold.release().await.unwrap();
        a_moment().await;
        assert_eq!(ensemble.nodes().len(), 2);
        assert!(answer_at_once(&mut next).await.is_none());
        ensemble.delete_node(&rival);
        assert!(answer_at_once(&mut next).await.flatten().is_some());
    });
}

#[test]
fn a_node_is_taken_by_nobody_while_no_deletion_could_be_reported() {
    with_ensemble(async |ensemble| {
        let queue = idle(&ensemble).await;
        let session = queue.shared.pool.slot().current().unwrap();
        session.set_connected(false);
        let mut waits = join(&queue, Patience::Waits);
        assert!(taken(&queue).is_none() && answer_at_once(&mut waits).await.is_none());
        session.set_connected(true);
        assert!(answer_at_once(&mut waits).await.flatten().is_some());
        assert!(!ensemble.checks().is_empty(), "the quorum has answered for it");
    });
}

/// Without a heartbeat the lease runs out.
#[test]
fn a_node_whose_lease_does_not_run_is_checked_before_it_is_taken() {
    with_ensemble(async |ensemble| {
        let queue = idle(&ensemble).await;
        clock::sleep(Duration::from_secs(20)).await;
        assert!(taken(&queue).is_none());
        let checks = ensemble.checks().len();
        let hold = acquired(&queue).await;
        assert!(!hold.valid_for().is_zero());
        assert!(ensemble.checks().len() > checks);
        assert_eq!(ensemble.nodes(), [hold.node()]);
    });
}

#[test]
fn a_caller_that_goes_away_as_it_is_granted_passes_it_on() {
    with_ensemble(async |ensemble| {
        let queue = queue(&ensemble, Scheme::Mutex, LINGERS);
        let mut tickets: Vec<_> = (0..4).map(|_| join(&queue, Patience::Waits)).collect();
        let hold = answer_at_once(&mut tickets[0]).await.flatten().unwrap();
        let last = tickets.pop().unwrap();
        // It is granted to the second, which goes away before it knows that, and then to the third.
        hold.release().await.unwrap();
        drop(tickets);
        let mut last = last;
        assert!(answer_at_once(&mut last).await.flatten().is_some());
        assert_eq!(ensemble.nodes().len(), 1);
    });
}

#[test]
fn a_node_does_not_linger_for_a_client_that_nobody_has() {
    with_ensemble(async |ensemble| {
        let (queue, handle) = with_handle(&ensemble, Scheme::Mutex, LINGERS);
        acquired(&queue).await.release().await.unwrap();
        a_moment().await;
        assert_eq!(ensemble.nodes().len(), 1);
        drop(handle);
        a_moment().await;
        assert_eq!(ensemble.nodes(), [""; 0]);
    });
}

#[test]
fn a_node_whose_holder_may_yet_write_is_taken_by_nobody() {
    with_ensemble(async |ensemble| {
        let queue = queue(&ensemble, Scheme::Mutex, LINGERS);
        let hold = acquired(&queue).await;
        // A write that was answered lets the node be passed on.
        hold.guarded().set_data("/b", b"", None).commit().await.unwrap();
        hold.release().await.unwrap();
        let hold = taken(&queue).expect("nothing is under way");
        ensemble.fall_silent();
        let writes = hold.guarded().set_data("/b", b"", None).commit();
        assert!(clock::timeout(Duration::from_millis(5), writes).await.is_err());
        let release = tokio::spawn(async move { hold.release().await });
        a_moment().await;
        assert!(taken(&queue).is_none(), "its write could land under the next one's hold");
        drop(release);
    });
}
