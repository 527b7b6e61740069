//! Servers that answer late: the beats that this takes, and the sentence that says so.

use super::Session;
use crate::base::clock;
use crate::base::sync::lock_ignoring_poison;
use crate::machine::Moment;
use crate::machine::keeper::reply_within;
use crate::zookeeper::ensemble::Landing;
use std::fmt;
use std::pin::pin;
use std::time::Duration;

/// How late the servers' latest answer was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lateness {
    took: Duration,
    timeout: Duration,
}

/// The latest answer of the servers: when it came, and how long it took.
#[derive(Clone, Copy)]
pub(super) struct Answered {
    at: Moment,
    took: Duration,
}

impl Session {
    /// Waits for the landing of an attempt's flight. If it is late, the session beats meanwhile, because the attempt will need
    /// a lease, and its own writes are one after the other. If not, this sends nothing, and wakes nobody.
    pub(super) async fn with_beats(&self, landing: impl Future<Output = Landing>) -> Landing {
        let sent = clock::now();
        let mut landing = pin!(landing);
        if let Ok(landing) = clock::timeout(late_after(self.timeout()), &mut landing).await {
            return landing;
        }
        let _awaiting = Awaiting::begin(self, sent);
        landing.await
    }

    /// Notes that the servers have answered a request that was sent at `sent`.
    pub(crate) fn note_answer(&self, sent: Moment) {
        let at = clock::now();
        *lock_ignoring_poison(&self.answered) = Some(Answered { at, took: at.since(sent) });
    }

    /// Returns how long the servers' latest answer took.
    pub(super) fn latest_wait(&self) -> Duration {
        lock_ignoring_poison(&self.answered).map_or(Duration::ZERO, |answered| answered.took)
    }

    /// Returns how late the servers answer; `None` if they answer soon, or not at all.
    pub(crate) fn lateness(&self) -> Option<Lateness> {
        let Answered { at, took } = (*lock_ignoring_poison(&self.answered))?;
        let timeout = self.timeout();
        let answers = self.is_connected() && clock::now().since(at) < self.patience();
        (answers && took >= late_after(timeout)).then_some(Lateness { took, timeout })
    }
}

/// Returns how long an answer may take without being late: as long as beats are apart if they are close.
fn late_after(timeout: Duration) -> Duration {
    timeout / 24
}

/// The end of a sentence that says what did not happen in time.
impl fmt::Display for Lateness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { took, timeout } = *self;
        let (shown, within) = (Duration::from_millis(took.as_millis() as u64), reply_within(timeout));
        write!(f, "the servers' replies take {shown:?}")?;
        if took > within {
            write!(
                f,
                "; with a session timeout of {timeout:?} they must come within {within:?}: use a longer session timeout, or \
                 servers that are nearer or less busy"
            )
        } else {
            write!(f, ", and an acquire needs several of them: wait longer")
        }
    }
}

/// An attempt that waits for a late answer. Dropping it ends that.
struct Awaiting<'a>(&'a Session);

impl<'a> Awaiting<'a> {
    fn begin(session: &'a Session, sent: Moment) -> Self {
        lock_ignoring_poison(&session.kept).keeper.handle_awaiting(sent);
        session.registered.notify_one();
        Self(session)
    }
}

impl Drop for Awaiting<'_> {
    fn drop(&mut self) {
        lock_ignoring_poison(&self.0.kept).keeper.handle_awaited();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::virtual_clock;
    use crate::machine::protocol::Operation;
    use crate::session::fake::{FakeEnsemble, TIMEOUT};
    use crate::session::heartbeat;

    fn flight() -> Vec<Operation> {
        vec![Operation::List { directory: "/a".into() }]
    }

    #[test]
    fn beats_go_along_with_a_late_answer_and_with_no_other() {
        virtual_clock::run(async {
            let ensemble = FakeEnsemble::new();
            let session = ensemble.session();
            tokio::spawn(heartbeat::run(session.clone()));
            // So long that the lease has lapsed.
            clock::sleep(TIMEOUT).await;
            ensemble.answer_late(TIMEOUT / 25);
            session.clone().send(flight()).await;
            assert_eq!(ensemble.checks(), []);

            ensemble.answer_late(TIMEOUT / 5);
            let start = clock::now();
            session.clone().send(flight()).await;
            clock::sleep(TIMEOUT).await;
            let sent: Vec<_> = ensemble.checks().iter().map(|check| check.since(start).as_millis()).collect();
            assert_eq!(sent, [500, 1_000, 1_500, 2_000], "none before it is late, none after its answer");
            // It is not worth that to delete something.
            session.clone().send(vec![Operation::Delete { path: "/a/b".into() }]).await;
            assert_eq!(ensemble.checks().len(), 4);
        });
    }

    #[test]
    fn an_attempt_that_is_dropped_waits_for_nothing_any_more() {
        virtual_clock::run(async {
            let ensemble = FakeEnsemble::new();
            let session = ensemble.session();
            tokio::spawn(heartbeat::run(session.clone()));
            clock::sleep(TIMEOUT).await;
            ensemble.fall_silent();
            assert!(clock::timeout(TIMEOUT / 20, session.clone().send(flight())).await.is_err());
            clock::sleep(TIMEOUT / 4).await;
            assert_eq!(ensemble.checks().len(), 1);
        });
    }

    #[test]
    fn the_latest_answer_says_how_late_they_are_as_long_as_there_are_any() {
        virtual_clock::run(async {
            let ensemble = FakeEnsemble::new();
            let session = ensemble.session();
            let mut said = Vec::new();
            for late in [Duration::ZERO, Duration::from_millis(1_200), Duration::from_millis(2_600)] {
                ensemble.answer_late(late);
                session.clone().send(flight()).await;
                said.push(session.lateness().map(|lateness| lateness.to_string()).unwrap_or_default());
            }
            assert_eq!(said[0], "");
            assert_eq!(
                said[1],
                "the servers' replies take 1.2s, and an acquire needs several of them: wait longer"
            );
            assert_eq!(
                said[2],
                "the servers' replies take 2.6s; with a session timeout of 12s they must come within 2.4s: use a longer \
                 session timeout, or servers that are nearer or less busy"
            );
            session.set_connected(false);
            assert_eq!(session.lateness(), None);
            session.set_connected(true);
            assert!(session.lateness().is_some());
            clock::sleep(TIMEOUT / 2).await;
            assert_eq!(session.lateness(), None);
        });
    }
}
