//! The library's task that serves one connection, in our hands.
//!
//! The library reconnects in this task. It hides a timeout that was negotiated anew, waits longer and
//! longer between its tries, and sends late what nobody waits for any more. So the task is polled here, and
//! dropped in the very poll in which the connection breaks: a new one cannot be made within a poll.
//! Nothing is sent then that was not sent yet, and what waits for a reply hears at once that there is none.
//!
//! A watch of the library panics if it is polled after its task is gone. So both are polled under one lock.

use super::answers::is_over;
use crate::ensemble::Pending;
use crate::machine::protocol::WatchEvent;
use crate::sync::lock_ignoring_poison;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use tokio::sync::watch;
use zookeeper_client::{Client, EventType, OneshotWatcher, SessionState, StateWatcher};

/// How a connection ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// The session may live on.
    Lost,
    /// The server has said that the session is over.
    SessionOver,
    /// The session was closed.
    Closed,
}

/// A connection, as long as the library serves it.
pub(super) struct Serving {
    served: Mutex<Served>,
    end: watch::Sender<Option<End>>,
}

struct Served {
    /// The library's task, until the connection has ended.
    library: Option<Pending<()>>,
    /// The library closes the session if it is served without a client: so this one is kept until that is wanted.
    client: Option<Arc<Client>>,
    states: StateWatcher,
    /// Wakes the task that polls.
    waker: Option<Waker>,
}

impl Serving {
    /// Serves the connection on the present runtime.
    pub(super) fn start(client: &Arc<Client>, library: Pending<()>) -> Arc<Self> {
        let served = Served {
            library: Some(library),
            client: Some(client.clone()),
            states: client.state_watcher(),
            waker: None,
        };
        let serving = Arc::new(Self { served: Mutex::new(served), end: watch::Sender::new(None) });
        let runs = Runs(serving.clone());
        tokio::spawn(async move { poll_fn(|context| runs.0.poll(context)).await });
        serving
    }

    fn poll(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut served = lock_ignoring_poison(&self.served);
        let Some(library) = &mut served.library else { return Poll::Ready(()) };
        let is_done = library.as_mut().poll(context).is_ready();
        let end = match served.states.peek_state() {
            SessionState::SyncConnected if !is_done => {
                served.waker = Some(context.waker().clone());
                return Poll::Pending;
            }
            SessionState::Closed => End::Closed,
            state if is_over(state) => End::SessionOver,
            _ => End::Lost,
        };
        self.finish(served, end);
        Poll::Ready(())
    }

    /// Ends the connection, if it has not ended. Nothing more is sent; the session lives on.
    pub(super) fn give_up(&self) {
        self.finish(lock_ignoring_poison(&self.served), End::Lost);
    }

    fn finish(&self, mut served: MutexGuard<'_, Served>, end: End) {
        // Before its client: it would close the session.
        if served.library.take().is_some() {
            served.client = None;
            if let Some(waker) = served.waker.take() {
                waker.wake();
            }
            drop(served);
            self.end.send_replace(Some(end));
        }
    }

    pub(super) fn is_open(&self) -> bool {
        lock_ignoring_poison(&self.served).library.is_some()
    }

    /// Closes the session as soon as no request is under way.
    pub(super) fn close(&self) {
        lock_ignoring_poison(&self.served).client = None;
    }

    /// How it ended, when it has.
    pub(super) async fn ended(&self) -> End {
        let mut end = self.end.subscribe();
        // It cannot fail: the sender is ours.
        end.wait_for(Option::is_some).await.ok().and_then(|end| *end).unwrap_or(End::Lost)
    }

    /// What a watch tells. When the connection is gone: that something may have changed.
    pub(super) fn watch(self: &Arc<Self>, watcher: OneshotWatcher) -> Pending<WatchEvent> {
        let serving = self.clone();
        Box::pin(async move {
            let mut changed = pin!(watcher.changed());
            poll_fn(|context| {
                let served = lock_ignoring_poison(&serving.served);
                if served.library.is_none() {
                    return Poll::Ready(WatchEvent::Changed);
                }
                changed.as_mut().poll(context).map(|event| match event.event_type {
                    EventType::NodeDeleted => WatchEvent::Deleted,
                    _ => WatchEvent::Changed,
                })
            })
            .await
        })
    }
}

/// The task that polls. Where its runtime is gone, the connection is as well.
struct Runs(Arc<Serving>);

impl Drop for Runs {
    fn drop(&mut self) {
        self.0.give_up();
    }
}
