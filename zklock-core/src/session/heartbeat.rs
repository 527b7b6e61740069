//! The heartbeat. It keeps a session's lease running while there are holds, and ends holds whose lease was not renewed,
//! as the session's [`Keeper`](crate::machine::keeper::Keeper) says.

use crate::base::clock;
use crate::machine::Moment;
use crate::machine::keeper::HoldId;
use crate::machine::protocol::WatchEvent;
use crate::session::session::{Looked, Session};
use crate::zookeeper::ensemble::Pending;
use futures_util::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::convert::Infallible;
use std::sync::Arc;
use tokio::task::{unconstrained, yield_now};

/// The watches on the nodes of holds. A watch stays until it fires, even if its hold has ended: it reports the
/// deletion.
type Watches = FuturesUnordered<Pending<(HoldId, WatchEvent)>>;

/// How many events are taken without a turn for others.
const EVENTS_AT_ONCE: usize = 64;

/// Runs as long as it is polled.
pub(crate) async fn run(session: Arc<Session>) -> Infallible {
    let (mut watches, mut beats, mut asking) = (Watches::new(), FuturesUnordered::new(), None);
    // Subscribed to before the first look, so that no change after it is missed.
    let mut link = session.link();
    loop {
        // Looked at again after each event, because any of them may have brought something forward.
        let due = session.due();
        if let Some(proof) = due.beat {
            // It joins those under way, because leases could lapse if a beat waited for the late answer to the last one.
            let begun = clock::now();
            beats.push(session.clone().check(proof).map(move |(proof, check)| (begun, proof, check)));
        }
        if !due.watches.is_empty() {
            asking = Some(Box::pin(session.clone().watch(due.watches)));
        }
        tokio::select! {
            Some((begun, proof, check)) = beats.next() => {
                session.count_beat(begun, &check);
                // The check names few nodes. It proves the others by the silence of their watches, so first look at those.
                take_events(&session, &mut watches, usize::MAX);
                session.take_proof(&proof, &check);
            }
            looked = poll(&mut asking) => {
                asking = None;
                // First the events of earlier watches, because what an ended connection reports is not about these.
                take_events(&session, &mut watches, usize::MAX);
                take_watches(&session, &mut watches, looked);
            }
            Some((hold, event)) = watches.next() => {
                session.take_event(hold, event);
                // All fire at one moment when the connection ends. Another is looked for between them, in the same task.
                take_events(&session, &mut watches, EVENTS_AT_ONCE);
                yield_now().await;
            }
            () = sleep_until(due.wake) => {}
            () = session.registered() => {}
            _ = link.changed() => {}
        }
    }
}

fn take_watches(session: &Session, watches: &mut Watches, looked: Vec<Looked>) {
    session.take_watches(&looked);
    for Looked { hold, watches: of_hold, .. } in looked {
        watches.extend(of_hold.into_iter().map(|watch| watch.map(move |event| (hold, event)).boxed()));
    }
}

/// Takes the events that have arrived. Whatever the connection delivered before the answer to a check has reached the
/// watch by now.
fn take_events(session: &Session, watches: &mut Watches, at_most: usize) {
    for _ in 0..at_most {
        // Unconstrained, because otherwise tokio would make it pause after a while.
        let Some(Some((hold, event))) = unconstrained(watches.next()).now_or_never() else { return };
        session.take_event(hold, event);
    }
}

async fn poll<T>(request: &mut Option<impl Future<Output = T> + Unpin>) -> T {
    match request {
        Some(request) => request.await,
        None => std::future::pending().await,
    }
}

async fn sleep_until(moment: Option<Moment>) {
    match moment {
        Some(moment) => clock::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::{self, virtual_clock};
    use crate::base::owner::Owner;
    use crate::session::fake::FakeEnsemble;
    use std::time::Duration;

    /// How many milliseconds after `start` each check came.
    fn checks(ensemble: &FakeEnsemble, start: Moment) -> Vec<u128> {
        ensemble.checks().iter().map(|check| check.since(start).as_millis()).collect()
    }

    #[test]
    fn nothing_is_asked_while_nothing_is_held() {
        virtual_clock::run(async {
            let (ensemble, start) = (FakeEnsemble::new(), clock::now());
            let session = ensemble.session();
            tokio::spawn(run(session.clone()));
            clock::sleep(Duration::from_secs(60)).await;
            assert_eq!(ensemble.checks(), []);
            // After so long, the lease is over, so a hold would be checked at once. That proves little, so once more.
            let hold = ensemble.hold(&session, "/a", Owner::unique());
            clock::sleep(Duration::from_millis(10)).await;
            assert_eq!(checks(&ensemble, start)[0], 60_000);
            assert!(!hold.valid_for().is_zero());
        });
    }

    #[test]
    fn what_a_watch_has_told_is_known_before_the_answer_that_came_after_it() {
        virtual_clock::run(async {
            let ensemble = FakeEnsemble::new();
            let session = ensemble.session();
            let hold = |number| ensemble.hold(&session, &format!("/{number}"), Owner::unique());
            // More than tokio lets a task do in one go.
            let holds: Vec<_> = (0..300).map(hold).collect();
            clock::sleep(Duration::from_secs(1)).await;
            let due = session.due();
            let (beat, mut watches) = (due.beat.expect("it is due"), Watches::new());
            take_watches(&session, &mut watches, session.clone().watch(due.watches).await);
            assert_eq!(watches.len(), 292);
            let (proof, check) = session.clone().check(beat).await;
            ensemble.nodes().iter().for_each(|node| assert!(ensemble.delete_node(node)));
            take_events(&session, &mut watches, usize::MAX);
            assert_eq!(
                holds.iter().filter(|hold| matches!(hold.state(), crate::HoldState::Lost(_))).count(),
                292
            );
            session.take_proof(&proof, &check);
        });
    }

    #[test]
    fn the_events_of_many_watches_leave_turns_to_the_search_for_a_connection() {
        virtual_clock::run(async {
            let ensemble = FakeEnsemble::new();
            let session = ensemble.session();
            let hold = |number| ensemble.hold(&session, &format!("/{number}"), Owner::unique());
            let holds: Vec<_> = (0..300).map(hold).collect();
            let mut heart = std::pin::pin!(run(session.clone()));
            assert!(clock::timeout(Duration::from_secs(3), &mut heart).await.is_err(), "292 are watched");
            ensemble.nodes().iter().for_each(|node| assert!(ensemble.delete_node(node)));
            let lost = || holds.iter().filter(|hold| hold.state() != crate::HoldState::Held).count();
            assert!((&mut heart).now_or_never().is_none());
            assert!((1..292).contains(&lost()), "{}", lost());
            assert!(clock::timeout(Duration::from_millis(1), &mut heart).await.is_err());
            assert!(lost() >= 292, "{}", lost());
        });
    }
}
