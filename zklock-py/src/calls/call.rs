//! Calls of the core, as this crate makes them: a thread waits for one, or it goes on in the background.

use crate::calls::waker::Waker;
use std::sync::Arc;
use std::time::Instant;
use zklock::Error;

/// A call that has not begun.
pub(crate) trait Call: Send + Sized + 'static {
    type Answer: Send + 'static;
    type Started: Started<Answer = Self::Answer> + 'static;

    /// Begins the call, and returns its result if there is nothing to wait for.
    fn at_once(&mut self) -> Option<Result<Self::Answer, Error>> {
        None
    }

    /// Waits with the whole thread.
    fn wait(self) -> Result<Self::Answer, Error>;

    /// Lets it go on in the background. The waker is used when there is a result.
    fn detach(self, waker: &Arc<Waker>) -> Result<Self::Started, Error>;
}

/// A call that goes on in the background. Dropping it ends the wait.
pub(crate) trait Started: Send {
    type Answer;

    /// Returns the result, if it is there. If not, the waker will be used.
    fn fetch(&mut self) -> Option<Result<Self::Answer, Error>>;

    /// When to fetch it, even if the waker was not used. See [`zklock::further::Started::due`].
    fn due(&self) -> Option<Instant>;
}

impl<T: Send + 'static> Call for zklock::Call<T> {
    type Answer = T;
    type Started = zklock::further::Started<T>;

    fn at_once(&mut self) -> Option<Result<T, Error>> {
        Self::at_once(self)
    }

    fn wait(self) -> Result<T, Error> {
        Self::wait(self)
    }

    fn detach(self, waker: &Arc<Waker>) -> Result<zklock::further::Started<T>, Error> {
        Self::detach(self, waker.on_ready())
    }
}

impl<T: Send> Started for zklock::further::Started<T> {
    type Answer = T;

    fn fetch(&mut self) -> Option<Result<T, Error>> {
        Self::fetch(self)
    }

    fn due(&self) -> Option<Instant> {
        Self::due(self)
    }
}
