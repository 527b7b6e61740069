//! Reports who holds a lock.

use crate::contenders::{show_all, zklock_contender_visitor};
use crate::convert::patience;
use crate::events::{Events, Notice, zklock_event_kind};
use crate::export::{export, noun};
use crate::failure::Failure;
use crate::handle::Object;
use crate::lock::{Lock, zklock_lock};
use crate::raw::{Context, out};
use crate::status::zklock_status::{self, ZKLOCK_TIMEOUT};
use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use zklock::QueuedContender;
use zklock::face::Report;
use zklock::further::Started;

noun! {
    /// Reports who holds a lock, without taking part in it.
    pub struct zklock_observer: Observer, 7;

    /// Frees an observer. Calls that are waiting with this observer go on. A freed observer has no more
    /// events.
    ///
    /// @param observer may be NULL. A handle that was already freed is ignored.
    pub fn zklock_observer_free(observer: *mut zklock_observer);

    fn freed(&self) {
        let _ahead = self.watching().ahead.take();
    }
}

pub(crate) struct Observer {
    inner: zklock::further::Observer,
    events: Arc<Events>,
    watching: Mutex<Watching>,
}

/// What goes on in the background. Nothing does while threads wait: its report would be kept from them.
#[derive(Default)]
struct Watching {
    ahead: Option<Ahead>,
    waiting_threads: usize,
}

/// A call for the next holder, which goes on while nobody waits for it, and the notice of its result.
struct Ahead {
    call: Started<Report>,
    notice: Arc<Notice>,
}

impl Observer {
    fn watching(&self) -> MutexGuard<'_, Watching> {
        self.watching.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks for the next holder in the background, unless it already does.
    fn look_ahead(&self, handle: *mut zklock_observer) -> Result<(), Failure> {
        let mut watching = self.watching();
        if watching.ahead.is_none() && watching.waiting_threads == 0 {
            let kind = zklock_event_kind::ZKLOCK_EVENT_LEADER;
            let notice = Notice::new(kind, Some(self.events.clone()), Context::NONE);
            notice.known(handle);
            let call = self.inner.report().detach(notice.teller())?;
            watching.ahead = Some(Ahead { call, notice });
        }
        Ok(())
    }

    /// Returns the next holder. `None` waits as long as it takes, and zero not at all.
    fn next(
        &self,
        handle: *mut zklock_observer,
        patience: Option<Duration>,
    ) -> Result<Option<QueuedContender>, Failure> {
        let report = if patience == Some(Duration::ZERO) {
            self.look_ahead(handle)?;
            let mut watching = self.watching();
            let report = watching.ahead.as_ref().and_then(|ahead| ahead.call.fetch());
            let report = report.ok_or_else(|| Failure::new(ZKLOCK_TIMEOUT, "nothing has changed yet"))?;
            watching.ahead = None;
            // A failure would come again at once.
            Ok(report?)
        } else {
            let ahead = {
                let mut watching = self.watching();
                watching.waiting_threads += 1;
                watching.ahead.take()
            };
            // What it has found comes at once.
            drop(ahead);
            let report = self.inner.report().within(patience).wait();
            self.watching().waiting_threads -= 1;
            report
        };
        let holder = report.map(Report::take);
        if self.events.are_wanted() {
            self.look_ahead(handle)?;
        }
        Ok(holder?)
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        self.notice.end();
    }
}

export! {
    /// Starts to observe who holds a lock or, for an election, who leads. It returns at once. An
    /// observer watches only the holder, so many can observe one lock without waking each other.
    ///
    /// If the client queues events (see zklock_client_next_event), each report of the observer is one:
    /// ZKLOCK_EVENT_LEADER. zklock_observer_next with a timeout of 0 gives the report. The next event
    /// can only come after that. An observer that was made before the client queued events, or that has
    /// reported an error, only reports after another call of zklock_observer_next.
    ///
    /// @param lock the lock. It must be of a kind that has a single holder, or one side of a read/write
    ///         lock. You may free it before the observer.
    /// @param[out] observer the observer. Free it with zklock_observer_free.
    /// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT for a semaphore or a set of locks.
    pub fn zklock_observe(lock: *mut zklock_lock, observer: *mut *mut zklock_observer) -> zklock_status {
        let observer = out("observer", observer)?;
        let lock = Lock::table().find(lock)?;
        let (inner, events) = (lock.inner().observe()?, lock.events().clone());
        let looks_ahead = events.are_wanted();
        let handle = Observer::table().put(Observer { inner, events, watching: Mutex::default() });
        if looks_ahead {
            Observer::table().find(handle)?.look_ahead(handle)?;
        }
        observer.set(handle);
    }

    /// Reports the holder of the lock on the first call. Each later call waits until the holder has
    /// changed, and reports the new one. Several quick changes may be reported as one. If there are
    /// several holders, it reports the first of them. If no server answers, it keeps waiting.
    ///
    /// The first contender in the queue is reported as the holder, even if it is a set of locks that
    /// still waits for another of its locks. zklock_contenders can tell the two apart.
    ///
    /// @param observer the observer.
    /// @param timeout in milliseconds. 0 gives what was found in the background, and goes on looking
    ///         there. ZKLOCK_FOREVER waits as long as it takes.
    /// @param visitor called on this thread with the holder, before zklock_observer_next returns, and not
    ///         at all if there is none. It may make any call.
    /// @param context passed to the visitor.
    /// @return ZKLOCK_OK; ZKLOCK_TIMEOUT if nothing changed in that time; ZKLOCK_UNREACHABLE if the
    ///         client has never connected, and cannot; ZKLOCK_REFUSED; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK
    ///         if it would have to wait in a callback.
    pub fn zklock_observer_next(
        observer: *mut zklock_observer,
        timeout: i64,
        visitor: zklock_contender_visitor,
        context: *mut c_void,
    ) -> zklock_status {
        let visitor = visitor.ok_or_else(|| Failure::argument("the visitor is NULL"))?;
        let now = Observer::table().find(observer)?.next(observer, patience(timeout)?)?;
        show_all(now.as_slice(), visitor, Context(context));
    }
}
