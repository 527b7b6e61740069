//! Connecting when it is first needed.

use super::{Client, follow};
use crate::connection::ConnectionState;
use crate::error::{Error, ErrorKind};
use crate::options::ClientOptions;
use crate::stats::Stats;
use crate::sync::lock_ignoring_poison;
use crate::threads::call::Call;
use crate::threads::fork::Home;
use crate::threads::fork_safe::ForkSafe;
use crate::threads::io::{Io, check_resources, refuse_to_block};
use crate::threads::wait::wait;
use crate::wait::Wait;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::oneshot;

/// A client that connects when it is first needed.
///
/// Until then it does nothing, so a program may make one, fork, and use it in its children. Where many
/// threads need it at the same time, it connects once; a failure is told to all who waited for it, and
/// the next call tries again.
///
/// ```no_run
/// use zklock_core::{ClientOptions, Wait, face::Connector};
///
/// # fn main() -> Result<(), zklock_core::Error> {
/// let connector = Connector::new(ClientOptions::new("zk1:2181,zk2:2181")?);
/// let client = connector.connect(Wait::Forever)?;
/// let hold = client.mutex("/locks/report")?.acquire()?;
/// # hold.release()
/// # }
/// ```
#[derive(Clone)]
pub struct Connector {
    options: ClientOptions,
    state: Arc<Mutex<ConnectorState>>,
    /// Where it was first needed. The state is looked at nowhere else.
    home: Arc<Home>,
    told: Option<Told>,
}

type Outcome = Result<Client, Error>;

/// What is called with the state of the connection.
type Told = Arc<dyn Fn(ConnectionState) + Send + Sync>;

enum ConnectorState {
    Unconnected,
    /// With those who wait, in the order of their arrival: so they go on in that order.
    Connecting(Vec<oneshot::Sender<Outcome>>),
    Connected(Client),
    /// With what was connected.
    Closed(Option<Client>),
}

impl Connector {
    /// Does nothing yet.
    pub fn new(options: ClientOptions) -> Self {
        let state = Arc::new(Mutex::new(ConnectorState::Unconnected));
        Self { options, state, home: Arc::default(), told: None }
    }

    /// Has `told` called when the client is connected, and then with each change, as
    /// [`Client::on_connection`] does: on the I/O thread, so it must not block. Before the first connect, and where that
    /// fails, there is nothing to tell. Where it is closed before it is connected, the closing thread tells that, and
    /// nothing else is told.
    ///
    /// ```
    /// use zklock_core::{ClientOptions, face::Connector};
    ///
    /// # fn main() -> Result<(), zklock_core::Error> {
    /// let connector = Connector::new(ClientOptions::new("zk1:2181,zk2:2181")?)
    ///     .on_connection(|state| eprintln!("the client is {state}"));
    /// assert_eq!(connector.connection_state(), None);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn on_connection(self, told: impl Fn(ConnectionState) + Send + Sync + 'static) -> Self {
        Self { told: Some(Arc::new(told)), ..self }
    }

    /// How the client is connected; `None` if it has not connected yet, or belongs to another process.
    pub fn connection_state(&self) -> Option<ConnectionState> {
        if self.is_closed() {
            return Some(ConnectionState::Closed);
        }
        self.connected().map(|client| client.connection_state())
    }

    /// Whether it was used in a process from which this one was forked, and so is of no use here.
    pub fn is_forked(&self) -> bool {
        self.home.is_forked()
    }

    /// The client, if it is connected.
    pub fn connected(&self) -> Option<Client> {
        if !self.home.is_here() {
            return None;
        }
        match &*lock_ignoring_poison(&self.state) {
            ConnectorState::Connected(client) => Some(client.clone()),
            _ => None,
        }
    }

    /// What was done and is owed, also after it was closed.
    pub fn stats(&self) -> Stats {
        if !self.home.is_here() {
            return Stats::default();
        }
        match &*lock_ignoring_poison(&self.state) {
            ConnectorState::Connected(client) | ConnectorState::Closed(Some(client)) => client.stats(),
            _ => Stats::default(),
        }
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.home.is_here() && matches!(*lock_ignoring_poison(&self.state), ConnectorState::Closed(_))
    }

    /// The client. Connects, if that has not been done yet, for as long as `wait` says, and in any case for no longer than
    /// the [connect timeout](ClientOptions::connect_timeout): so the first try of a program may take that long, and
    /// the [try timeout](ClientOptions::try_timeout) after it.
    ///
    /// # Errors
    ///
    /// As [`Client::connect`], also if the wait is over before the connect timeout; [`ErrorKind::Closed`] after
    /// [`close`](Self::close).
    pub fn connect(&self, wait_for: impl Into<Wait>) -> Result<Client, Error> {
        let wait_for = wait_for.into();
        if let Some(client) = self.connected() {
            return Ok(client);
        }
        // Where it must not wait, nothing is to begin.
        refuse_to_block()?;
        let io = Io::start()?;
        let by_itself = Wait::at_most(self.options.connect_timeout.checked_add(GRACE));
        let deadline = [wait_for, by_itself].into_iter().filter_map(Wait::deadline).min();
        match wait(&io, self.outcome(&io)?, deadline, None) {
            Err(error) if error.kind() == ErrorKind::Timeout => {
                let is_own = wait_for.deadline() == deadline;
                let wait = if is_own { wait_for } else { Wait::at_most(Some(self.options.connect_timeout)) };
                Err(io.unconnected(&self.options.hosts.connect_string(), wait))
            }
            outcome => outcome?,
        }
    }

    /// As [`connect`](Self::connect), and returns at once. `ready` is called when there is a result: on
    /// the I/O thread, so it must not block.
    ///
    /// # Errors
    ///
    /// As there, but it may be called in a callback; those of the network come with the result.
    pub fn start(
        &self,
        wait: impl Into<Wait>,
        ready: impl FnOnce() + Send + 'static,
    ) -> Result<Call<Client>, Error> {
        let wait = wait.into();
        let io = Io::start()?;
        let (outcome, hosts, late) = (self.outcome(&io)?, self.options.hosts.connect_string(), io.clone());
        let call = async move {
            tokio::select! {
                biased;
                outcome = outcome => outcome,
                _ = wait.over() => Err(late.unconnected(&hosts, wait)),
            }
        };
        Call::start(&io, call, ready)
    }

    /// Closes the client, if there is one, as [`Client::close`] does. From now on there is none.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn close(&self) -> Result<(), Error> {
        // Where it must not wait, nothing is to change.
        refuse_to_block()?;
        self.shut()?.map_or(Ok(()), |client| client.close())
    }

    /// As [`close`](Self::close), and returns at once; `None` if there is no client. `ready` is called when it is done: on the
    /// I/O thread, so it must not block.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forked`].
    pub fn start_close(&self, ready: impl FnOnce() + Send + 'static) -> Result<Option<Call<()>>, Error> {
        let close = |client: Client| client.core.start(ready, |client| client.begin_close());
        self.shut()?.map(close).transpose()
    }

    /// From now on there is no client. It gives what was connected, which is to be closed.
    fn shut(&self) -> Result<Option<Client>, Error> {
        self.home.settle()?;
        let mut state = lock_ignoring_poison(&self.state);
        let before = std::mem::replace(&mut *state, ConnectorState::Closed(None));
        // Of a client that was connected, `follow` tells it.
        let is_to_be_told = matches!(before, ConnectorState::Unconnected | ConnectorState::Connecting(_));
        let (client, waiting) = match before {
            ConnectorState::Connected(client) => (Some(client), Vec::new()),
            ConnectorState::Closed(client) => (client, Vec::new()),
            ConnectorState::Connecting(waiting) => (None, waiting),
            ConnectorState::Unconnected => (None, Vec::new()),
        };
        *state = ConnectorState::Closed(client.clone());
        drop(state);
        if let (true, Some(told)) = (is_to_be_told, &self.told) {
            told(ConnectionState::Closed);
        }
        tell(waiting, &Err(Error::closed()));
        Ok(client)
    }

    /// What comes of connecting, which is begun if it has not been.
    fn outcome(
        &self,
        io: &Io,
    ) -> Result<impl Future<Output = Result<Client, Error>> + Send + 'static, Error> {
        self.home.settle()?;
        let (sender, receiver) = oneshot::channel();
        let mut connecting = lock_ignoring_poison(&self.state);
        match &mut *connecting {
            ConnectorState::Closed(_) => return Err(Error::closed()),
            ConnectorState::Connected(client) => tell(vec![sender], &Ok(client.clone())),
            ConnectorState::Connecting(waiting) => waiting.push(sender),
            ConnectorState::Unconnected => {
                check_resources()?;
                *connecting = ConnectorState::Connecting(vec![sender]);
                let (state, told) = (self.state.clone(), self.told.clone());
                let opening = Opening { state, told, has_ended: false };
                io.spawn(opening.run(io.clone(), self.options.clone()));
            }
        }
        Ok(async move { receiver.await.unwrap_or_else(|_| Err(wanting())) })
    }
}

/// How much longer a thread waits for what the I/O thread bounds, which may be kept from all: so it is told what was wrong.
const GRACE: Duration = Duration::from_millis(250);

async fn open(io: Io, options: ClientOptions) -> Outcome {
    match crate::Client::connect(options).await {
        Ok(client) => Ok(Client { core: ForkSafe::new(client, io) }),
        // One that is new is not closed: a task of it has panicked, for want of something.
        Err(error) if error.kind() == ErrorKind::Closed => Err(wanting()),
        Err(error) => Err(error),
    }
}

fn wanting() -> Error {
    Error::new(ErrorKind::Refused, "the system gives no threads or descriptors: raise the limits")
}

fn tell(waiting: Vec<oneshot::Sender<Outcome>>, outcome: &Outcome) {
    for sender in waiting {
        // Who does not wait any more need not be told.
        let _ = sender.send(outcome.clone());
    }
}

/// Connects, and tells those who wait.
struct Opening {
    state: Arc<Mutex<ConnectorState>>,
    told: Option<Told>,
    has_ended: bool,
}

impl Opening {
    async fn run(mut self, io: Io, options: ClientOptions) {
        let outcome = open(io.clone(), options).await;
        if !self.end(&outcome) {
            return;
        }
        if let (Ok(client), Some(told)) = (&outcome, self.told.take()) {
            // It ends when the client is closed, which happens by itself when nobody has it any more.
            io.spawn(follow(client.core.fixed().connection(), move |state| told(state)));
        }
    }

    /// Whether the outcome is that of the connector. If it was closed meanwhile, those who wait have been told, and the
    /// client goes.
    fn end(&mut self, outcome: &Outcome) -> bool {
        // The next may have begun already.
        if std::mem::replace(&mut self.has_ended, true) {
            return false;
        }
        let mut state = lock_ignoring_poison(&self.state);
        if let ConnectorState::Connecting(waiting) = &mut *state {
            let waiting = std::mem::take(waiting);
            *state = outcome
                .as_ref()
                .map_or(ConnectorState::Unconnected, |client| ConnectorState::Connected(client.clone()));
            drop(state);
            tell(waiting, outcome);
            return true;
        }
        false
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        // Where this changes anything it has panicked, for want of something.
        self.end(&Err(wanting()));
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector")
            .field("hosts", &self.options.hosts.connect_string())
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
        let connector = || Connector::new(ClientOptions::new("127.0.0.1:1").unwrap());
        let (sender, receiver) = channel();
        call_later(move || {
            let waited = connector().connect(Wait::Forever).map(drop);
            sender.send((waited, connector().start(Wait::Forever, || ()).map(drop))).unwrap();
        })
        .unwrap();
        let (waited, began) = receiver.recv_timeout(Duration::from_secs(10)).unwrap();
        assert_eq!(waited.unwrap_err().kind(), ErrorKind::Deadlock);
        began.unwrap();
    }
}
