//! The library's task that serves one connection, under our control.
//!
//! The library reconnects in this task. It hides a timeout that was negotiated again, waits longer and longer between its
//! tries, and sends late what nobody waits for any more. So the task is polled here, and dropped in the same poll in which
//! the connection breaks. No new connection is made within that poll: our stand-in for async-net sees to that. Requests not
//! yet sent are then never sent, and those waiting for a reply learn at once that there is none.
//!
//! A watch of the library panics if it is polled after its task is gone. So both are polled under one lock.
//!
//! The library removes a watch that is dropped, or whose request is dropped, with a request that servers of 3.4 do not
//! know. So on a connection to them, such a request is awaited all the same, and such a watch is kept until it fires or
//! the connection ends. One is kept for each node, because the library removes none while there is another for the node.
//! When the session is about to be closed, no watch is removed on any connection, because each would cost a request.
//! Neither is a holder's watch on its own node, which goes with the hold.

use crate::base::sync::{Mutex, MutexGuard, lock_ignoring_poison};
use crate::connect::level::ServerLevel;
use crate::machine::protocol::WatchEvent;
use crate::zookeeper::ensemble::Pending;
use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tokio::runtime::Handle;
use tokio::sync::watch;
use zookeeper_client::{Client, EventType, OneshotWatcher, SessionState, StateWatcher, WatchedEvent};

/// How a connection ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// The session may live on.
    Lost,
    /// The server has said that the session is over.
    SessionOver,
    /// The server has refused a login, and lets in nobody with it.
    Refused,
    /// The session was closed.
    Closed,
}

/// A connection, while the library serves it.
pub(super) struct Serving {
    level: ServerLevel,
    pub(super) runtime: Handle,
    served: Mutex<Served>,
    end: watch::Sender<Option<End>>,
}

struct Served {
    /// The library's task, until the connection has ended.
    library: Option<Pending<()>>,
    /// The library closes the session if it is served without a client. So this one is kept until the session should be
    /// closed.
    client: Option<Arc<Client>>,
    states: StateWatcher,
    /// Wakes the task that polls.
    waker: Option<Waker>,
    /// Watches that nobody waits for any more.
    dismissed: HashMap<(String, WatchKind), Pending<WatchedEvent>>,
    /// Watches that were dropped since the session is about to be closed; `None` before that.
    last: Option<Vec<Pending<WatchedEvent>>>,
}

/// The kind of a watch.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum WatchKind {
    /// Whether it exists, and its data.
    Data,
    /// The same for our own node.
    Own,
    Children,
}

impl Serving {
    /// Serves the connection on the current runtime.
    pub(super) fn start(client: &Arc<Client>, library: Pending<()>, level: ServerLevel) -> Arc<Self> {
        let served = Served {
            library: Some(library),
            client: Some(client.clone()),
            states: client.state_watcher(),
            waker: None,
            dismissed: HashMap::new(),
            last: None,
        };
        let (runtime, end) = (Handle::current(), watch::Sender::new(None));
        let serving = Arc::new(Self { level, runtime, served: Mutex::new(served), end });
        // Made outside of the task, because a runtime that shuts down drops a task that it has never polled.
        let runs = Runs(serving.clone());
        tokio::spawn(async move { poll_fn(|context| runs.0.poll(context)).await });
        serving
    }

    fn poll(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut served = lock_ignoring_poison(&self.served);
        let Some(library) = &mut served.library else { return Poll::Ready(()) };
        let (polled, breach) = zklock_frames::watched(|| library.as_mut().poll(context));
        if let Some(breach) = breach {
            tracing::info!(breach, "what the server sends is not ZooKeeper's protocol");
        }
        let is_done = polled.is_ready();
        // The state is read after each poll, because the library must not be polled once more when the connection is broken: it
        // would connect again.
        let end = match served.states.peek_state() {
            SessionState::SyncConnected if !is_done => {
                served.waker = Some(context.waker().clone());
                return Poll::Pending;
            }
            SessionState::Closed => End::Closed,
            SessionState::Expired => End::SessionOver,
            SessionState::AuthFailed => End::Refused,
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
        // The library goes first, because it would answer the drop of its client by closing the session, and the drop of a
        // watch by a request to remove it.
        if served.library.take().is_some() {
            served.client = None;
            served.dismissed.clear();
            served.last = None;
            if let Some(waker) = served.waker.take() {
                waker.wake();
            }
            // Last, so that the connection sends nothing more when others learn of its end.
            drop(served);
            self.end.send_replace(Some(end));
        }
    }

    /// Returns its client, unless the session should be closed or the connection has ended.
    pub(super) fn client(&self) -> Option<Arc<Client>> {
        lock_ignoring_poison(&self.served).client.clone()
    }

    pub(super) fn is_open(&self) -> bool {
        lock_ignoring_poison(&self.served).library.is_some()
    }

    /// Keeps watches from being removed, because the session is about to be closed.
    pub(super) fn keep_watches(&self) {
        let mut served = lock_ignoring_poison(&self.served);
        if served.library.is_some() {
            served.last.get_or_insert_default();
        }
    }

    /// Closes the session as soon as no request is under way.
    pub(super) fn close(&self) {
        lock_ignoring_poison(&self.served).client = None;
    }

    /// Waits until it has ended, and says how.
    pub(super) async fn ended(&self) -> End {
        let mut end = self.end.subscribe();
        // It cannot fail: the sender is ours.
        end.wait_for(Option::is_some).await.ok().and_then(|end| *end).unwrap_or(End::Lost)
    }

    /// Waits for what a watch reports. If the connection ends, that is a change.
    pub(super) fn watch(
        self: &Arc<Self>,
        path: &str,
        kind: WatchKind,
        watcher: OneshotWatcher,
    ) -> Pending<WatchEvent> {
        let (serving, node) = (self.clone(), (path.to_owned(), kind));
        let mut watch = Watch { serving, node, watcher: Some(Box::pin(watcher.changed())) };
        Box::pin(poll_fn(move |context| watch.poll(context)))
    }

    /// Returns the same request, seen through if the library must not remove the watch that its reply may bring.
    pub(super) fn see_through<T: Send + 'static>(&self, request: Pending<T>) -> Pending<T> {
        if self.level != ServerLevel::V3_4 {
            return request;
        }
        let mut request = Request { runtime: self.runtime.clone(), sent: None, unsent: Some(request) };
        Box::pin(poll_fn(move |context| request.poll(context)))
    }

    /// Takes a watch that nobody waits for any more. Unless it is kept here, the library removes it.
    fn dismiss(&self, node: (String, WatchKind), watcher: Pending<WatchedEvent>) {
        let mut served = lock_ignoring_poison(&self.served);
        // Asked first, because a session that is about to be closed keeps all watches.
        if let Some(last) = &mut served.last {
            last.push(watcher);
        } else if (self.level == ServerLevel::V3_4 || node.1 == WatchKind::Own) && served.library.is_some() {
            // Those that have fired go first. One for the same node would take the place of this one, which the library would
            // then remove. None can fire meanwhile, because the library is not polled.
            let mut context = Context::from_waker(Waker::noop());
            served.dismissed.retain(|_, watcher| watcher.as_mut().poll(&mut context).is_pending());
            served.dismissed.entry(node).or_insert(watcher);
        }
    }
}

/// A watch that somebody waits for.
struct Watch {
    serving: Arc<Serving>,
    node: (String, WatchKind),
    /// `None` when it has fired.
    watcher: Option<Pending<WatchedEvent>>,
}

impl Watch {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<WatchEvent> {
        let served = lock_ignoring_poison(&self.serving.served);
        let Some(watcher) = self.watcher.as_mut().filter(|_| served.library.is_some()) else {
            return Poll::Ready(WatchEvent::Changed);
        };
        let Poll::Ready(event) = watcher.as_mut().poll(context) else { return Poll::Pending };
        self.watcher = None;
        Poll::Ready(match event.event_type {
            EventType::NodeDeleted => WatchEvent::Deleted,
            _ => WatchEvent::Changed,
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(watcher) = self.watcher.take() {
            self.serving.dismiss((std::mem::take(&mut self.node.0), self.node.1), watcher);
        }
    }
}

/// A request that is seen through once it is sent, which happens when it is first polled.
struct Request<T: Send + 'static> {
    runtime: Handle,
    unsent: Option<Pending<T>>,
    sent: Option<Pending<T>>,
}

impl<T: Send + 'static> Request<T> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<T> {
        self.sent = self.unsent.take().or(self.sent.take());
        let Some(request) = &mut self.sent else { return Poll::Pending };
        let polled = request.as_mut().poll(context);
        if polled.is_ready() {
            self.sent = None;
        }
        polled
    }
}

impl<T: Send + 'static> Drop for Request<T> {
    fn drop(&mut self) {
        if let Some(request) = self.sent.take() {
            self.runtime.spawn(async move { drop(request.await) });
        }
    }
}

/// The task that polls. If its runtime is gone, the connection is too.
struct Runs(Arc<Serving>);

impl Drop for Runs {
    fn drop(&mut self) {
        self.0.give_up();
    }
}
