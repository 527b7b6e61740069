//! Keeps the lease of a session running while there are holds, and ends holds whose lease has not
//! been renewed: as the session's [`Keeper`](crate::machine::keeper::Keeper) says.

use crate::clock;
use crate::ensemble::Check;
use crate::session::Session;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;

type Beat = Pin<Box<dyn Future<Output = Check> + Send>>;

/// Runs for as long as it is polled.
pub(crate) async fn run(session: Arc<Session>) -> Infallible {
    let mut beat: Option<Beat> = None;
    let mut link = session.link();
    loop {
        let (proof, wake) = session.look_after();
        if let Some(proof) = proof {
            beat = Some(Box::pin(session.clone().check(proof)));
        }
        let Some(wake) = wake else {
            session.registered().await;
            continue;
        };
        tokio::select! {
            _ = poll(&mut beat) => beat = None,
            () = clock::sleep_until(wake) => {}
            () = session.registered() => {}
            _ = link.changed() => {}
        }
    }
}

async fn poll(beat: &mut Option<Beat>) -> Check {
    match beat {
        Some(beat) => beat.await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{self, virtual_clock};
    use crate::error::LossReason;
    use crate::fake::FakeEnsemble;
    use crate::machine::Moment;
    use crate::owner::Owner;
    use std::time::Duration;

    /// How many milliseconds after `start` each check came.
    fn checks(ensemble: &FakeEnsemble, start: Moment) -> Vec<u128> {
        ensemble.checks().iter().map(|check| check.since(start).as_millis()).collect()
    }

    #[test]
    fn the_heart_beats_a_twelfth_of_the_timeout_after_the_last_proof() {
        virtual_clock::run(async {
            let (ensemble, start) = (FakeEnsemble::new(), clock::now());
            let session = ensemble.session();
            let hold = ensemble.hold(&session, "/a", Owner::unique());
            tokio::spawn(run(session));
            clock::sleep(Duration::from_millis(3_500)).await;
            assert_eq!(checks(&ensemble, start), [1_000, 2_000, 3_000]);
            assert!(hold.valid_for() > Duration::from_secs(4));
        });
    }

    #[test]
    fn nothing_is_asked_while_nothing_is_held() {
        virtual_clock::run(async {
            let (ensemble, start) = (FakeEnsemble::new(), clock::now());
            let session = ensemble.session();
            tokio::spawn(run(session.clone()));
            clock::sleep(Duration::from_secs(60)).await;
            assert_eq!(ensemble.checks(), []);
            // After so long the lease is over, so a hold would be checked at once; that proves little, so once more.
            let hold = ensemble.hold(&session, "/a", Owner::unique());
            clock::sleep(Duration::from_millis(10)).await;
            assert_eq!(checks(&ensemble, start)[0], 60_000);
            assert!(!hold.valid_for().is_zero());
        });
    }

    #[test]
    fn a_hold_whose_node_is_deleted_is_lost_with_the_next_beat() {
        virtual_clock::run(async {
            let (ensemble, start) = (FakeEnsemble::new(), clock::now());
            let session = ensemble.session();
            let hold = ensemble.hold(&session, "/a", Owner::unique());
            tokio::spawn(run(session));
            clock::sleep(Duration::from_millis(1_500)).await;
            assert!(ensemble.delete_node(hold.node()));
            assert_eq!(hold.lost().await, Some(LossReason::NodeDeleted));
            assert_eq!(clock::now().since(start), Duration::from_secs(2));
        });
    }
}
