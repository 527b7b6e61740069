//! Connects the client when it is first needed.

use super::watch::Watch;
use crate::base::error::{Error, ErrorKind};
use crate::base::stats::Stats;
use crate::base::sync::{Mutex, MutexGuard, lock_ignoring_poison};
use crate::base::wait::Wait;
use crate::connect::options::ClientOptions;
use crate::session::connection::{Connection, ConnectionState};
use crate::threads::call::{Begun, Call};
use crate::threads::descriptors::{Listener, OnClosed, Opened};
use crate::threads::fork_safe::ForkSafe;
use crate::threads::io::{Io, check_descriptors, check_resources};
use once_cell::race::OnceBox;
use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{Notify, oneshot};
use tokio::task::AbortHandle;

/// A connected client of the core.
pub(super) type Connected = ForkSafe<crate::Client>;

/// Connects when the client is first needed. If many threads need it at the same time, it connects once.
#[derive(Clone)]
pub(super) struct Connector(Arc<Shared>);

struct Shared {
    options: ClientOptions,
    state: Mutex<ConnectorState>,
    /// When it was first needed. No other process reads the state.
    opened: OnceBox<Opened>,
    /// Notified when it is connected or closed, and when its last owner drops it.
    settled: Arc<Notify>,
    listener: Option<StateListener>,
}

type ConnectResult = Result<Connected, Error>;

/// A callback that receives the state of the connection.
pub(super) type StateListener = Arc<dyn Fn(ConnectionState) + Send + Sync>;

enum ConnectorState {
    Unconnected,
    Connecting {
        /// In the order of arrival, which is the order in which they go on.
        waiting: Vec<oneshot::Sender<ConnectResult>>,
        _task: AbortOnDrop,
    },
    Connected(Connected),
    /// With the client that was connected, if any.
    Closed(Option<Connected>),
}

impl Connector {
    /// Makes a connector that does nothing yet.
    pub(super) fn new(options: ClientOptions, listener: Option<StateListener>) -> Self {
        let state = Mutex::new(ConnectorState::Unconnected);
        Self(Arc::new(Shared { options, state, opened: OnceBox::new(), settled: Arc::default(), listener }))
    }

    /// Makes the same connector with a listener. Call it before anybody has used the connector.
    pub(super) fn with_listener(self, listener: StateListener) -> Self {
        Self::new(self.0.options.clone(), Some(listener))
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(super) fn refuse_forked(&self) -> Result<(), Error> {
        self.0.opened.get().map_or(Ok(()), |opened| opened.check())
    }

    /// Returns how the client is connected; `None` if it has not connected yet, or belongs to another process.
    pub(super) fn connection_state(&self) -> Option<ConnectionState> {
        match &*self.state()? {
            _ if self.refuse_forked().is_err() => Some(ConnectionState::Closed),
            ConnectorState::Connected(client) => Some(client.fixed().connection_state()),
            ConnectorState::Closed(_) => Some(ConnectionState::Closed),
            ConnectorState::Unconnected | ConnectorState::Connecting { .. } => None,
        }
    }

    /// Whether it was used by a process from which this one was forked. It is useless here then.
    pub(super) fn is_forked(&self) -> bool {
        self.0.opened.get().is_some_and(|opened| opened.process().is_forked())
    }

    /// Returns the client, if it is connected.
    pub(super) fn connected(&self) -> Option<Connected> {
        match &*self.state()? {
            ConnectorState::Connected(client) if !client.io().is_lost() => Some(client.clone()),
            _ => None,
        }
    }

    /// Returns the client's counters, even after it was closed.
    pub(super) fn stats(&self) -> Stats {
        match self.state().as_deref() {
            Some(ConnectorState::Connected(client) | ConnectorState::Closed(Some(client))) => {
                client.fixed().stats()
            }
            _ => Stats::default(),
        }
    }

    /// Asks the client for something, if it is connected.
    pub(super) fn look<R>(&self, look: impl FnOnce(&crate::Client) -> Option<R>) -> Option<R> {
        look(self.connected()?.fixed())
    }

    /// Makes a call of the client that ends with `wait`. It connects first if necessary, and never for longer than the [connect
    /// timeout](ClientOptions::connect_timeout).
    pub(super) fn call<R, F>(
        &self,
        wait: Wait,
        call: impl FnOnce(Arc<crate::Client>) -> F + Send + 'static,
    ) -> Call<R>
    where
        R: Send + 'static,
        F: Future<Output = Result<R, Error>> + Send + 'static,
    {
        let connector = self.clone();
        let begin = move || {
            connector.refuse_forked()?;
            if let Some(client) = connector.connected() {
                client.get()?;
                return Ok(Begun::goes_on(client.io(), call(client.value())));
            }
            let (io, connecting) = connector.begin(wait)?;
            // The connector is kept, because nothing would connect if the caller dropped the client meanwhile.
            let begun = async move {
                let client = connecting.await;
                drop(connector);
                call(client?.value()).await
            };
            Ok(Begun::goes_on(&io, begun))
        };
        Call::new(begin).until(wait)
    }

    /// Begins to connect, unless that is already under way.
    pub(super) fn begin(
        &self,
        wait: Wait,
    ) -> Result<(Io, impl Future<Output = ConnectResult> + Send + use<>), Error> {
        let io = Io::start()?;
        let (outcome, hosts, late) = (self.outcome(&io), self.0.options.hosts.connect_string(), io.clone());
        let patience = self.0.options.connect_timeout;
        let (by_itself, named) = (Wait::at_most(patience.checked_add(GRACE)), Wait::at_most(Some(patience)));
        let connecting = async move {
            tokio::select! {
                biased;
                outcome = outcome? => outcome,
                _ = wait.over() => Err(late.unconnected(&hosts, wait)),
                _ = by_itself.over() => Err(late.unconnected(&hosts, named)),
            }
        };
        Ok((io, connecting))
    }

    /// Calls `listener` with each state of the connection, from the first connect on. From now on the client belongs to
    /// this process.
    pub(super) fn follow(
        &self,
        listener: impl FnMut(ConnectionState) + Send + 'static,
    ) -> Result<Watch, Error> {
        let io = Io::start()?;
        self.settle()?;
        let listener = Listener::new(ConnectionState::Closed, listener);
        let (shared, settled) = (Arc::downgrade(&self.0), self.0.settled.clone());
        Ok(Watch::start(&io, listener, |listener| async move {
            let listener = |state| Listener::call(&listener, state);
            loop {
                let mut change = pin!(settled.notified());
                // Registered before the state is read, so that no later change is missed.
                change.as_mut().enable();
                match shared.upgrade().map(|shared| settled_as(&lock_ignoring_poison(&shared.state))) {
                    Some(Some(Some(connection))) => return follow(connection, listener).await,
                    Some(Some(None)) => return listener(ConnectionState::Closed),
                    Some(None) => change.await,
                    // The client has been dropped, so it never connects.
                    None => return,
                }
            }
        }))
    }

    /// Makes the call that closes the client, if there is one, for good.
    pub(super) fn close(&self) -> Call<()> {
        let connector = self.clone();
        Call::new(move || {
            Ok(match connector.shut()? {
                Some(client) => Begun::goes_on(client.io(), client.get()?.begin_close()),
                None => Begun::Over(Ok(())),
            })
        })
    }

    /// Forgets the client for good, and returns what was connected, for the caller to close.
    fn shut(&self) -> Result<Option<Connected>, Error> {
        check_descriptors();
        self.settle()?;
        let mut state = lock_ignoring_poison(&self.0.state);
        let before = std::mem::replace(&mut *state, ConnectorState::Closed(None));
        // If a client was connected, `follow` reports the end.
        let is_to_be_reported = settled_as(&before).is_none();
        let (client, waiting) = match before {
            ConnectorState::Connected(client) => (Some(client), Vec::new()),
            ConnectorState::Closed(client) => (client, Vec::new()),
            // Nothing connects from now on.
            ConnectorState::Connecting { waiting, .. } => (None, waiting),
            ConnectorState::Unconnected => (None, Vec::new()),
        };
        *state = ConnectorState::Closed(client.clone());
        drop(state);
        self.0.settled.notify_waiters();
        if let (true, Some(listener)) = (is_to_be_reported, &self.0.listener) {
            listener(ConnectionState::Closed);
        }
        answer(waiting, &Err(Error::closed()));
        Ok(client)
    }

    /// Waits for the outcome of connecting, which is started unless it is already under way.
    fn outcome(&self, io: &Io) -> Result<impl Future<Output = ConnectResult> + Send + use<>, Error> {
        self.settle()?;
        let (sender, receiver) = oneshot::channel();
        let mut connecting = lock_ignoring_poison(&self.0.state);
        match &mut *connecting {
            ConnectorState::Closed(_) => return Err(Error::closed()),
            ConnectorState::Connected(client) => answer(vec![sender], &Ok(client.clone())),
            ConnectorState::Connecting { waiting, .. } => waiting.push(sender),
            ConnectorState::Unconnected => {
                check_resources()?;
                let opening = Opening { shared: Arc::downgrade(&self.0), has_ended: false };
                let _task = AbortOnDrop(io.spawn(opening.run(io.clone(), self.0.options.clone())));
                *connecting = ConnectorState::Connecting { waiting: vec![sender], _task };
            }
        }
        Ok(async move { receiver.await.unwrap_or_else(|_| Err(wanting())) })
    }

    /// `None` in a process that has not used it.
    fn state(&self) -> Option<MutexGuard<'_, ConnectorState>> {
        let is_here = self.0.opened.get().is_some_and(|opened| !opened.process().is_forked());
        is_here.then(|| lock_ignoring_poison(&self.0.state))
    }

    /// Notes that it is needed here. Fails if that was before a fork, or before the program closed our descriptors.
    fn settle(&self) -> Result<(), Error> {
        self.0.opened.get_or_init(|| Box::new(Opened::now())).check()
    }
}

impl Drop for Connector {
    fn drop(&mut self) {
        if Arc::strong_count(&self.0) == 1 {
            check_descriptors();
        }
        if self.refuse_forked().is_err() {
            // The parent owns it, and another of its threads may have been changing it. Or it would wake the I/O thread.
            std::mem::forget(self.0.clone());
        }
    }
}

impl OnClosed for Shared {
    fn end(&self) {
        let was_closed = matches!(*lock_ignoring_poison(&self.state), ConnectorState::Closed(_));
        if let (false, Some(listener)) = (was_closed, &self.listener) {
            listener(ConnectionState::Closed);
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.settled.notify_waiters();
    }
}

/// Aborts a task when it is dropped.
struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// `None` as long as it may still connect. Then its connection, or `Some(None)` if it was closed before it had one.
fn settled_as(state: &ConnectorState) -> Option<Option<Connection>> {
    match state {
        ConnectorState::Connected(client) => Some(Some(client.fixed().connection())),
        ConnectorState::Closed(client) => Some(client.as_ref().map(|client| client.fixed().connection())),
        ConnectorState::Unconnected | ConnectorState::Connecting { .. } => None,
    }
}

/// Reports the state of the connection until the client is closed.
async fn follow(mut connection: Connection, mut listener: impl FnMut(ConnectionState)) {
    while let Some(state) = connection.next().await {
        listener(state);
    }
}

/// How much longer a thread waits than the I/O thread does, so that it can report what the I/O thread found wrong. The I/O
/// thread itself may be starved.
const GRACE: Duration = Duration::from_millis(250);

async fn open(io: Io, options: ClientOptions) -> ConnectResult {
    match crate::Client::connect(options).await {
        Ok(client) => Ok(ForkSafe::new(client, io)),
        // A new client cannot be closed already: one of its tasks has panicked, for lack of some resource.
        Err(error) if error.kind() == ErrorKind::Closed => Err(wanting()),
        Err(error) => Err(error),
    }
}

fn wanting() -> Error {
    Error::new(ErrorKind::Refused, "the system has no more threads or descriptors: raise the limits")
}

fn answer(waiting: Vec<oneshot::Sender<ConnectResult>>, outcome: &ConnectResult) {
    for sender in waiting {
        // A waiter that has gone needs no answer.
        let _ = sender.send(outcome.clone());
    }
}

/// Connects, and answers the waiters.
struct Opening {
    /// Gone when nobody waits for the client, or has it, any more.
    shared: Weak<Shared>,
    has_ended: bool,
}

impl Opening {
    async fn run(mut self, io: Io, options: ClientOptions) {
        let outcome = open(io.clone(), options).await;
        let listener = self.shared.upgrade().and_then(|shared| shared.listener.clone());
        if !self.end(&outcome) {
            return;
        }
        if let (Ok(client), Some(listener)) = (&outcome, listener) {
            if let Some(shared) = self.shared.upgrade() {
                io.tell(Arc::downgrade(&shared) as Weak<dyn OnClosed>);
            }
            // It ends when the client is closed, which also happens when the client is dropped everywhere.
            io.spawn(follow(client.fixed().connection(), move |state| listener(state)));
        }
    }

    /// Hands over the outcome; `false` if the connector does not want it any more. If the connector was closed meanwhile,
    /// the waiters already have their answer, and the client is dropped.
    fn end(&mut self, outcome: &ConnectResult) -> bool {
        // The next attempt may have begun already.
        if std::mem::replace(&mut self.has_ended, true) {
            return false;
        }
        let Some(shared) = self.shared.upgrade() else { return false };
        let mut state = lock_ignoring_poison(&shared.state);
        if let ConnectorState::Connecting { waiting, .. } = &mut *state {
            let waiting = std::mem::take(waiting);
            *state = outcome
                .as_ref()
                .map_or(ConnectorState::Unconnected, |client| ConnectorState::Connected(client.clone()));
            drop(state);
            shared.settled.notify_waiters();
            answer(waiting, outcome);
            return true;
        }
        false
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        // If this changes anything, the task has panicked, for lack of some resource.
        self.end(&Err(wanting()));
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector")
            .field("hosts", &self.0.options.hosts.connect_string())
            .field("connected", &self.connected())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::io::call_later;
    use std::sync::mpsc::channel;

    #[test]
    fn a_callback_may_begin_to_connect_and_must_not_wait_for_it() {
        let connector = || Connector::new(ClientOptions::new("127.0.0.1:1").unwrap(), None);
        let (sender, receiver) = channel();
        call_later(move || {
            let waited = connector().call(Wait::Forever, |_| async { Ok(()) }).wait(None);
            sender.send((waited, connector().begin(Wait::Forever).map(drop))).unwrap();
        })
        .unwrap();
        let (waited, began) = receiver.recv_timeout(Duration::from_secs(10)).unwrap();
        assert_eq!(waited.unwrap_err().kind(), ErrorKind::Deadlock);
        began.unwrap();
    }
}
