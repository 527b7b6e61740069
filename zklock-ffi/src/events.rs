//! A queue of everything that happens to a client and what it made, so that an event loop needs
//! only one descriptor.
//!
//! A [`Notice`] stands for something that can happen once to a handle: a call gets its result, a hold
//! is lost or wanted. It shares its readiness with the handle, and is queued when it
//! happens. It leaves the queue when its handle is freed. So the queue is never longer than the
//! number of handles, and every entry can be reported.

use crate::c_enum::c_enum;
use crate::connection::Untold;
use crate::failure::Failure;
use crate::handle::SentHandle;
use crate::raw::Context;
use crate::readiness::Readiness;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::os::fd::RawFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use zklock::face::OfProcess;
use zklock::further::ConnectionState;
use zklock::further::Watch;

c_enum! {
    /// What has happened. Later versions may add kinds: ignore any that you do not know.
    #[from(ConnectionState)]
    pub enum zklock_event_kind {
        /// A call has its result, good or bad: zklock_call_finish gives it, and for an acquire
        /// zklock_call_hold gives the hold.
        ZKLOCK_EVENT_CALL = 1,
        /// A hold is lost: zklock_hold_state says why.
        ZKLOCK_EVENT_LOST = 2,
        /// Others are waiting for what a hold has. This event comes only for holds for which
        /// zklock_hold_is_wanted was called.
        ZKLOCK_EVENT_WANTED = 3,
        /// An observer has a new holder or leader: zklock_observer_next gives it.
        ZKLOCK_EVENT_LEADER = 4,
        /// The client is connected to a server.
        #[from(Connected)]
        ZKLOCK_EVENT_CONNECTED = 5,
        /// The connection broke, and the client is looking for another server. The session and its
        /// holds live on for now: zklock_hold_valid_for says for how long.
        #[from(Disconnected)]
        ZKLOCK_EVENT_DISCONNECTED = 6,
        /// The session is over, and all of its holds are lost. The client is opening a new session.
        #[from(SessionLost)]
        ZKLOCK_EVENT_SESSION_LOST = 7,
        /// The client was closed. This is the last event about its connection.
        #[from(Closed)]
        ZKLOCK_EVENT_CLOSED = 8,
    }
}

/// The events of a client, shared by everything that it made. A child that inherits an unused lazy
/// client has its own events.
pub(crate) struct Events(OfProcess<Here>);

#[derive(Default)]
struct Here {
    queue: Mutex<Queue>,
    ready: Readiness,
}

#[derive(Default)]
struct Queue {
    stage: Stage,
    connection: Untold,
    watch: Option<Watch>,
    /// By number. Numbers follow the order in which things happened.
    notices: BTreeMap<u64, Arc<Notice>>,
    next: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Stage {
    /// Events have not been asked for yet.
    #[default]
    Unwanted,
    Wanted,
    /// The client was freed, so events can no longer be asked for.
    Ended,
}

/// An event to give to C.
pub(crate) struct Event {
    pub(crate) kind: zklock_event_kind,
    /// The call, the hold or the observer.
    pub(crate) handle: Option<SentHandle<c_void>>,
    /// The hold that a call has released, unless it is freed.
    pub(crate) released: Option<SentHandle<c_void>>,
    pub(crate) context: Context,
}

impl Events {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(OfProcess::new()))
    }

    /// Queues what happens from now on, unless it already does.
    pub(crate) fn want(self: &Arc<Self>, client: &zklock::Client) -> Result<(), Failure> {
        let here = self.here();
        {
            let mut queue = here.queue();
            if queue.stage != Stage::Unwanted {
                return Ok(());
            }
            queue.stage = Stage::Wanted;
        }
        let events = Arc::downgrade(self);
        // Not while the queue is locked, because the callback locks it.
        let watch = client.on_connection(move |state| {
            if let Some(events) = events.upgrade() {
                events.note(state);
            }
        });
        let mut queue = here.queue();
        if queue.stage == Stage::Wanted {
            match watch {
                Ok(watch) => queue.watch = Some(watch),
                Err(error) => {
                    queue.stage = Stage::Unwanted;
                    return Err(error.into());
                }
            }
        }
        Ok(())
    }

    pub(crate) fn are_wanted(&self) -> bool {
        self.here().queue().stage == Stage::Wanted
    }

    /// Returns the descriptor. It is readable while there is an event.
    pub(crate) fn descriptor(&self) -> Result<RawFd, Failure> {
        self.here().ready.number()
    }

    /// Returns the next event, if there is one.
    pub(crate) fn next(&self) -> Option<Event> {
        let here = self.here();
        loop {
            let notice = {
                let mut queue = here.queue();
                if let Some(state) = queue.connection.tell() {
                    here.settle(&queue);
                    let kind = zklock_event_kind::of(state);
                    return Some(Event { kind, handle: None, released: None, context: Context::NONE });
                }
                let (_, notice) = queue.notices.pop_first()?;
                here.settle(&queue);
                notice
            };
            // `None` if its handle is being freed at this moment.
            if let Some(event) = notice.tell() {
                return Some(event);
            }
        }
    }

    /// Queues nothing from now on.
    pub(crate) fn end(&self) {
        let here = self.here();
        let ended = Queue { stage: Stage::Ended, ..Queue::default() };
        // Drop it only after the lock is released, because what is dropped may lock the queue.
        let _queue = std::mem::replace(&mut *here.queue(), ended);
        here.ready.close();
    }

    fn note(&self, state: ConnectionState) {
        let here = self.here();
        let mut queue = here.queue();
        if queue.stage == Stage::Wanted {
            queue.connection.note(state);
            // The queue may become empty, because a change and its reversal are not reported.
            here.settle(&queue);
        }
    }

    /// Queues a notice, if events are wanted, and returns its number.
    fn push(&self, notice: &Arc<Notice>) -> Option<u64> {
        let here = self.here();
        let mut queue = here.queue();
        if queue.stage != Stage::Wanted {
            return None;
        }
        let number = queue.next;
        queue.next += 1;
        queue.notices.insert(number, notice.clone());
        here.settle(&queue);
        Some(number)
    }

    fn withdraw(&self, number: u64) {
        let here = self.here();
        let mut queue = here.queue();
        let _notice = queue.notices.remove(&number);
        here.settle(&queue);
    }

    fn here(&self) -> &Here {
        self.0.here(|_| Here::default())
    }
}

impl Here {
    /// Locks the queue. The I/O thread may wait for this lock, so it is never held for long.
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Call it while the queue is locked, so that nothing happens in between.
    fn settle(&self, queue: &Queue) {
        if queue.is_empty() {
            self.ready.lower();
        } else {
            self.ready.raise();
        }
    }
}

impl Queue {
    fn is_empty(&self) -> bool {
        self.notices.is_empty() && self.connection.is_empty()
    }
}

/// Something that can happen once to a handle.
pub(crate) struct Notice {
    kind: zklock_event_kind,
    /// The queue it goes to, if any.
    events: Option<Arc<Events>>,
    /// For a call that releases a hold, the notice of that hold.
    releases: Option<Weak<Notice>>,
    ready: Readiness,
    state: Mutex<State>,
}

struct State {
    /// Set as long as the handle is in its table.
    handle: Option<SentHandle<c_void>>,
    context: Context,
    progress: Progress,
}

/// The progress of a notice. It is queued at most once.
#[derive(Clone, Copy)]
enum Progress {
    Waits,
    /// It happened before the handle was known.
    Happened,
    /// In the queue under this number.
    Queued(u64),
    Over,
}

impl Notice {
    /// Makes a notice that is not queued if there are no events.
    pub(crate) fn new(kind: zklock_event_kind, events: Option<Arc<Events>>, context: Context) -> Arc<Self> {
        Self::made(kind, events, context, None)
    }

    /// Returns the notice of a call that releases the hold of another notice.
    pub(crate) fn of_release(events: Arc<Events>, hold: &Arc<Self>) -> Arc<Self> {
        let kind = zklock_event_kind::ZKLOCK_EVENT_CALL;
        Self::made(kind, Some(events), hold.context(), Some(Arc::downgrade(hold)))
    }

    fn made(
        kind: zklock_event_kind,
        events: Option<Arc<Events>>,
        context: Context,
        releases: Option<Weak<Self>>,
    ) -> Arc<Self> {
        let state = Mutex::new(State { handle: None, context, progress: Progress::Waits });
        Arc::new(Self { kind, events, releases, ready: Readiness::default(), state })
    }

    /// Whether it is queued when it happens.
    pub(crate) fn is_event(&self) -> bool {
        self.events.is_some()
    }

    pub(crate) fn events(&self) -> Option<&Arc<Events>> {
        self.events.as_ref()
    }

    /// Sets its handle, which is in its table by now.
    pub(crate) fn known<T>(self: &Arc<Self>, handle: *mut T) {
        let mut state = self.state();
        state.handle = Some(SentHandle::new(handle.cast()));
        if let Progress::Happened = state.progress {
            state.progress = self.queued();
        }
    }

    /// Records that it has happened.
    pub(crate) fn happen(self: &Arc<Self>) {
        self.ready.raise();
        let mut state = self.state();
        if let Progress::Waits = state.progress {
            state.progress = if state.handle.is_some() { self.queued() } else { Progress::Happened };
        }
    }

    /// Returns a function that does the same as [`happen`](Self::happen) on any thread, unless the
    /// handle is freed first.
    pub(crate) fn teller(self: &Arc<Self>) -> impl FnOnce() + Send + use<> {
        let notice = Arc::downgrade(self);
        move || {
            if let Some(notice) = notice.upgrade() {
                notice.happen();
            }
        }
    }

    /// Its handle is freed, so it is never reported from now on.
    pub(crate) fn end(&self) {
        let mut state = self.state();
        state.handle = None;
        if let (Progress::Queued(number), Some(events)) = (state.progress, &self.events) {
            events.withdraw(number);
        }
        state.progress = Progress::Over;
    }

    /// Returns the descriptor of the handle, which is readable once this has happened.
    pub(crate) fn descriptor(&self) -> Result<RawFd, Failure> {
        self.ready.number()
    }

    pub(crate) fn context(&self) -> Context {
        self.state().context
    }

    pub(crate) fn set_context(&self, context: Context) {
        self.state().context = context;
    }

    fn queued(self: &Arc<Self>) -> Progress {
        let number = self.events.as_ref().and_then(|events| events.push(self));
        number.map_or(Progress::Over, Progress::Queued)
    }

    /// Returns the event to report, after the notice has left the queue.
    fn tell(&self) -> Option<Event> {
        let hold = self.releases.as_ref().and_then(Weak::upgrade);
        let released = hold.and_then(|hold| hold.handle());
        self.state().progress = Progress::Over;
        let (handle, context) = (Some(self.handle()?), self.context());
        Some(Event { kind: self.kind, handle, released, context })
    }

    fn handle(&self) -> Option<SentHandle<c_void>> {
        self.state().handle.as_ref().map(|handle| SentHandle::new(handle.get()))
    }

    /// Lock this before the queue, never after it.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted() -> Arc<Events> {
        let events = Events::new();
        events.here().queue().stage = Stage::Wanted;
        events
    }

    fn notice(events: &Arc<Events>) -> Arc<Notice> {
        let kind = zklock_event_kind::ZKLOCK_EVENT_CALL;
        Notice::new(kind, Some(events.clone()), Context::NONE)
    }

    fn handle(number: usize) -> *mut c_void {
        std::ptr::without_provenance_mut(number)
    }

    /// The handles of all events.
    fn told(events: &Events) -> Vec<usize> {
        let number = |event: Event| event.handle.map_or(0, |handle| handle.get().addr());
        let told = std::iter::from_fn(|| events.next()).map(number).collect();
        assert!(events.here().queue().is_empty());
        told
    }

    #[test]
    fn what_is_freed_after_it_left_the_queue_is_not_told() {
        let events = wanted();
        let last = notice(&events);
        last.known(handle(4));
        last.happen();
        let (_, taken) = events.here().queue().notices.pop_first().unwrap();
        last.end();
        assert!(taken.tell().is_none());
        last.happen();
        assert_eq!(told(&events), []);
    }
}
