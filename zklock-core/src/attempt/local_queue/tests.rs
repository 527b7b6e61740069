#[cfg(feature = "loom")]
mod interleavings;
mod kept;
mod patterns;

use super::*;
use crate::attempt::shared::Handle;
use crate::base::clock;
use crate::base::error::{ErrorKind, LossReason};
use crate::machine::Moment;
use crate::machine::name::Scheme;
use crate::session::fake::{FakeEnsemble, with_ensemble};
use crate::session::pool::Pool;
use crate::session::slot::{Slot, SlotState};
use std::time::Duration;

/// A mutex whose client has a session of this ensemble.
fn mutex(ensemble: &FakeEnsemble) -> Arc<LocalQueue> {
    queue(ensemble, Scheme::Mutex, Passing::default())
}

fn with_mutex<T>(test: impl AsyncFnOnce(FakeEnsemble, Arc<LocalQueue>) -> T) -> T {
    with_ensemble(async |ensemble| {
        let queue = mutex(&ensemble);
        test(ensemble, queue).await
    })
}

/// There is always a handle, so somebody may acquire it.
pub(super) fn queue(ensemble: &FakeEnsemble, scheme: Scheme, passing: Passing) -> Arc<LocalQueue> {
    let (queue, handle) = with_handle(ensemble, scheme, passing);
    std::mem::forget(handle);
    queue
}

pub(super) fn with_handle(
    ensemble: &FakeEnsemble,
    scheme: Scheme,
    passing: Passing,
) -> (Arc<LocalQueue>, Handle) {
    let slot = Arc::new(Slot::of(SlotState::Open(ensemble.session())));
    let handle = Handle::new(Pool::of(slot), Arc::default());
    let claims = vec![Claim::new("/a", scheme)];
    let queue = LocalQueue::new("/a".into(), claims, passing, vec![Arc::default()], handle.shared().clone());
    (queue, handle)
}

pub(super) fn join(queue: &Arc<LocalQueue>, patience: Patience) -> Ticket {
    queue.join(Owner::unique(), false, patience, Wait::Forever).unwrap()
}

/// The answer, if there is one after everybody has done what can be done at once.
pub(super) async fn answer_at_once(ticket: &mut Ticket) -> Option<Option<Hold>> {
    clock::timeout(Duration::from_millis(5), ticket.answer()).await.ok().map(Result::unwrap)
}

/// A hold that is lost, because a contender has come that cannot see its node, and the last moment that it named before.
async fn lost(ensemble: &FakeEnsemble) -> (Hold, Moment) {
    let hold = answer_at_once(&mut join(&mutex(ensemble), Patience::Waits)).await.flatten().unwrap();
    let until = clock::now() + hold.valid_for();
    ensemble.create(&format!("/a/{}__lock__0000000009", "0123456789abcdef".repeat(2)));
    assert_eq!(hold.lost().await, Ok(Some(LossReason::ForeignContender)));
    (hold, until)
}

#[test]
fn the_node_of_a_lost_hold_stays_until_the_last_moment_that_was_named() {
    with_ensemble(async |ensemble| {
        let (hold, until) = lost(&ensemble).await;
        assert!(hold.valid_for().is_zero());
        clock::sleep(until.since(clock::now()) - Duration::from_millis(1)).await;
        assert_eq!(ensemble.nodes().len(), 2, "somebody may still rely on that answer");
        clock::sleep(Duration::from_millis(2)).await;
        assert_eq!(ensemble.nodes().len(), 1);
    });
}

#[test]
fn the_node_of_a_lost_hold_goes_when_its_holder_lets_go() {
    with_ensemble(async |ensemble| {
        let (hold, _) = lost(&ensemble).await;
        assert_eq!(hold.release().await.unwrap_err().kind(), ErrorKind::Lost(LossReason::ForeignContender));
        clock::sleep(Duration::from_millis(1)).await;
        assert_eq!(ensemble.nodes().len(), 1);
    });
}

#[test]
fn nothing_more_is_asked_for_a_caller_that_goes_as_one_ahead_leaves() {
    with_ensemble(async |ensemble| {
        let rivals = [(); 2].map(|()| kept::rival(&ensemble, "lock-"));
        let queue = mutex(&ensemble);
        let mut ticket = join(&queue, Patience::Waits);
        assert!(answer_at_once(&mut ticket).await.is_none());
        let before = ensemble.flights();
        drop(ticket);
        assert!(ensemble.delete_node(&rivals[0]));
        clock::sleep(Duration::from_millis(1)).await;
        assert_eq!(ensemble.nodes(), rivals[1..]);
        assert_eq!(ensemble.flights() - before, 1, "the deletion");
    });
}

#[test]
fn a_node_of_this_client_is_a_holder_only_while_one_of_its_callers_holds() {
    with_ensemble(async |ensemble| {
        let leftover = format!("/a/_c_{}-lock-0000000000", crate::base::platform::uuid());
        ensemble.create(&leftover);
        let queue = mutex(&ensemble);
        assert_eq!(queue.holder(Wait::Forever).await, None, "a try whose node is being deleted");

        let queue = mutex(&ensemble);
        assert!(ensemble.delete_node(&leftover));
        let hold = answer_at_once(&mut join(&queue, Patience::TriesOnce)).await.flatten().unwrap();
        let holder = queue.holder(Wait::Forever).await.unwrap();
        assert!(holder.starts_with("another caller of this client holds it (its node _c_"), "{holder}");
        hold.release().await.unwrap();
    });
}

/// Trying again and again without ever waiting would starve the task that can report it.
#[test]
fn a_session_that_an_answer_calls_over_is_not_tried_again() {
    let (done, finished) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let ensemble = FakeEnsemble::new();
            ensemble.end_session();
            let queue = mutex(&ensemble);
            let session = queue.shared.pool.slot().current().unwrap();
            let mut ticket = join(&queue, Patience::Waits);
            let waits = clock::timeout(Duration::from_millis(20), ticket.answer());
            assert!(waits.await.is_err());
            assert!(session.is_over());
        });
        done.send(()).unwrap();
    });
    finished.recv_timeout(Duration::from_secs(10)).unwrap();
}

#[test]
fn who_leaves_waits_for_what_only_it_wanted() {
    with_mutex(async |ensemble, queue| {
        let mut tickets: Vec<_> = (0..3).map(|_| join(&queue, Patience::Waits)).collect();
        let _hold = answer_at_once(&mut tickets.remove(0)).await.flatten().unwrap();
        clock::sleep(Duration::from_secs(1)).await;
        assert!(tickets.remove(0).leave().is_none(), "its place goes on for the next");
        let owed = || queue.shared.counters.read().owed;
        assert_eq!(owed(), 0);
        let debt = tickets.remove(0).leave().expect("nobody else wants that node");
        assert_eq!(owed(), 1);
        std::future::poll_fn(|context| debt.poll_settled(context)).await;
        assert_eq!((owed(), ensemble.nodes().len()), (0, 1));
        let mut ticket = join(&queue, Patience::TriesOnce);
        assert!(answer_at_once(&mut ticket).await.unwrap().is_none());
        assert!(ticket.leave().is_none(), "other callers have the lock, so it had no attempt");
    });
}

/// A hold that has come, but was not looked at.
#[test]
fn who_leaves_too_late_waits_for_the_node_that_it_was_given() {
    with_mutex(async |ensemble, queue| {
        let ticket = join(&queue, Patience::Waits);
        clock::sleep(Duration::from_secs(1)).await;
        let debt = ticket.leave().expect("it was granted");
        std::future::poll_fn(|context| debt.poll_settled(context)).await;
        assert_eq!(ensemble.nodes(), [""; 0]);
    });
}
