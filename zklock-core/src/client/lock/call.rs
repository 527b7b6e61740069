//! A call that acquires a lock, from its beginning to its answer, for the counters and the log.

use super::OpenLock;
use crate::attempt::local_queue::span_of_call;
use crate::base::clock;
use crate::base::error::{Error, ErrorKind};
use crate::base::outcome::AcquireOutcome;
use crate::hold::hold::Hold;
use crate::machine::Moment;
use std::time::Duration;
use tracing::{Instrument, Span};

/// One call, wherever it waits. If it is dropped before it has its answer, it counts as cancelled.
pub(super) struct AcquireCall<'a> {
    lock: &'a OpenLock,
    span: Span,
    since: Moment,
    is_answered: bool,
}

impl<'a> AcquireCall<'a> {
    pub(super) fn begin(lock: &'a OpenLock) -> Self {
        let span = span_of_call(lock.path());
        span.in_scope(|| tracing::debug!(path = lock.path(), "acquire begins"));
        lock.figures.iter().for_each(|figures| figures.waiting.add());
        Self { lock, span, since: clock::now(), is_answered: false }
    }

    /// Runs `acquires` to its end.
    pub(super) async fn run(
        mut self,
        acquires: impl Future<Output = Result<Option<Hold>, Error>>,
    ) -> Result<Option<Hold>, Error> {
        let result = acquires.instrument(self.span.clone()).await;
        self.is_answered = true;
        let waited = clock::now().since(self.since);
        self.span.in_scope(|| note(self.lock, result.as_ref().map(Option::as_ref), waited));
        result
    }
}

impl Drop for AcquireCall<'_> {
    fn drop(&mut self) {
        self.lock.figures.iter().for_each(|figures| figures.waiting.subtract());
        if !self.is_answered {
            let waited = clock::now().since(self.since);
            count(self.lock, AcquireOutcome::Cancelled, waited);
            tracing::debug!(parent: &self.span, path = self.lock.path(), ?waited, "acquire cancelled");
        }
    }
}

/// Counts and logs the answer to a call: a hold, no hold because the lock was busy, or an error.
pub(super) fn note(lock: &OpenLock, answer: Result<Option<&Hold>, &Error>, waited: Duration) {
    let path = lock.path();
    let outcome = match answer {
        Ok(Some(hold)) => {
            lock.figures.iter().for_each(|figures| hold.count_among(figures));
            let (node, token) = (hold.node(), hold.token().value());
            tracing::debug!(path, node, token, ?waited, "lock granted");
            AcquireOutcome::Granted
        }
        Ok(None) => {
            tracing::debug!(path, ?waited, "lock busy");
            AcquireOutcome::Busy
        }
        Err(error) => {
            tracing::debug!(path, ?waited, %error, "lock not acquired");
            if error.kind() == ErrorKind::Timeout { AcquireOutcome::TimedOut } else { AcquireOutcome::Failed }
        }
    };
    count(lock, outcome, waited);
}

fn count(lock: &OpenLock, outcome: AcquireOutcome, waited: Duration) {
    lock.shared().counters.tally.count_acquire(outcome, waited);
    lock.figures.iter().for_each(|figures| figures.tally.count_acquire(outcome, waited));
}
