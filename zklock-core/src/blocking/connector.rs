//! Connecting when it is first needed.

use super::fork::Home;
use super::threads::{Io, check_room, refuse_to_block};
use super::wait::{patience, wait};
use super::{Call, Client, follow};
use crate::connection::ConnectionState;
use crate::error::{Error, ErrorKind};
use crate::lock::deadline_in;
use crate::locks::locked;
use crate::options::ClientOptions;
use crate::stats::Stats;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// A client that connects when it is first needed.
///
/// Until then it does nothing, so a program may make one, fork, and use it in its children. Where many
/// threads need it at the same time, it connects once; a failure is told to all who waited for it, and
/// the next call tries again.
///
/// ```no_run
/// use zklock_core::{ClientOptions, blocking::Connector};
///
/// # fn main() -> Result<(), zklock_core::Error> {
/// let connector = Connector::new(ClientOptions::new("zk1:2181,zk2:2181")?);
/// let client = connector.connect(None)?;
/// let hold = client.mutex("/locks/report")?.acquire()?;
/// # hold.release()
/// # }
/// ```
#[derive(Clone)]
pub struct Connector {
    options: ClientOptions,
    stage: Arc<Mutex<Stage>>,
    /// Where it was first needed. The stage is looked at nowhere else.
    home: Arc<Home>,
    told: Option<Told>,
}

type Outcome = Result<Client, Error>;

/// What is called with the state of the connection.
type Told = Arc<dyn Fn(ConnectionState) + Send + Sync>;

enum Stage {
    Apart,
    /// With those who wait, in the order of their arrival: so they go on in that order.
    Connecting(Vec<oneshot::Sender<Outcome>>),
    Connected(Client),
    /// With what was connected.
    Closed(Option<Client>),
}

impl Connector {
    /// Does nothing yet.
    pub fn new(options: ClientOptions) -> Self {
        Self { options, stage: Arc::new(Mutex::new(Stage::Apart)), home: Arc::default(), told: None }
    }

    /// Has `told` called when the client is connected, and then with each change, as
    /// [`Client::on_connection`] does: on the I/O thread, so it must only pass it on. Before the first connect, and where that
    /// fails, there is nothing to tell.
    ///
    /// ```
    /// use zklock_core::{ClientOptions, blocking::Connector};
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
        match &*locked(&self.stage) {
            Stage::Connected(client) => Some(client.clone()),
            _ => None,
        }
    }

    /// What was done and is owed, also after it was closed.
    pub fn stats(&self) -> Stats {
        if !self.home.is_here() {
            return Stats::default();
        }
        match &*locked(&self.stage) {
            Stage::Connected(client) | Stage::Closed(Some(client)) => client.stats(),
            _ => Stats::default(),
        }
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.home.is_here() && matches!(*locked(&self.stage), Stage::Closed(_))
    }

    /// The client. Connects, if that has not been done yet, for `timeout` at most, and in any case for no longer than
    /// the [connect timeout](ClientOptions::connect_timeout): so the first try of a program may take that long, and
    /// the [try timeout](ClientOptions::try_timeout) after it.
    ///
    /// # Errors
    ///
    /// As [`Client::connect`], also if `timeout` is over before the connect timeout; [`ErrorKind::Closed`] after
    /// [`close`](Self::close).
    pub fn connect(&self, timeout: Option<Duration>) -> Result<Client, Error> {
        if let Some(client) = self.connected() {
            return Ok(client);
        }
        let io = Io::start()?;
        let within = self.options.connect_timeout;
        let wanted = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let deadline = [wanted, patience(within)].into_iter().flatten().min();
        match wait(&io, self.outcome(&io)?, deadline, None) {
            Err(error) if error.kind() == ErrorKind::Timeout => {
                let within = timeout.unwrap_or(within).min(within);
                Err(io.unconnected(&self.options.hosts.connect_string(), within))
            }
            outcome => outcome?,
        }
    }

    /// As [`connect`](Self::connect), and returns at once. `ready` is called when there is a result: on
    /// the I/O thread, so it must only pass it on.
    ///
    /// # Errors
    ///
    /// As there; those of the network come with the result.
    pub fn start(
        &self,
        timeout: Option<Duration>,
        ready: impl FnOnce() + Send + 'static,
    ) -> Result<Call<Client>, Error> {
        let io = Io::start()?;
        let (outcome, deadline) = (self.outcome(&io)?, deadline_in(timeout.unwrap_or(Duration::MAX)));
        let hosts = self.options.hosts.connect_string();
        let late = io.clone();
        let call = async move {
            tokio::select! {
                biased;
                outcome = outcome => outcome,
                () = deadline => Err(late.unconnected(&hosts, timeout.unwrap_or_default())),
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

    /// As [`close`](Self::close), and returns at once. `ready` is called when it is done: on the I/O
    /// thread, so it must only pass it on.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Forked`].
    pub fn start_close(&self, ready: impl FnOnce() + Send + 'static) -> Result<Option<Call<()>>, Error> {
        self.shut()?.map(|client| client.start_close(ready)).transpose()
    }

    fn shut(&self) -> Result<Option<Client>, Error> {
        self.home.settle()?;
        let mut stage = locked(&self.stage);
        let (client, waiting) = match std::mem::replace(&mut *stage, Stage::Apart) {
            Stage::Connected(client) => (Some(client), Vec::new()),
            Stage::Closed(client) => (client, Vec::new()),
            Stage::Connecting(waiting) => (None, waiting),
            Stage::Apart => (None, Vec::new()),
        };
        *stage = Stage::Closed(client.clone());
        drop(stage);
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
        let mut stage = locked(&self.stage);
        match &mut *stage {
            Stage::Closed(_) => return Err(Error::closed()),
            Stage::Connected(client) => tell(vec![sender], &Ok(client.clone())),
            Stage::Connecting(waiting) => waiting.push(sender),
            Stage::Apart => {
                check_room()?;
                *stage = Stage::Connecting(vec![sender]);
                let opening =
                    Opening { stage: self.stage.clone(), told: self.told.clone(), has_ended: false };
                io.spawn(opening.run(io.clone(), self.options.clone()));
            }
        }
        Ok(async move { receiver.await.unwrap_or_else(|_| Err(Client::wanting())) })
    }
}

fn tell(waiting: Vec<oneshot::Sender<Outcome>>, outcome: &Outcome) {
    for sender in waiting {
        // Who does not wait any more need not be told.
        let _ = sender.send(outcome.clone());
    }
}

/// Connects, and tells those who wait.
struct Opening {
    stage: Arc<Mutex<Stage>>,
    told: Option<Told>,
    has_ended: bool,
}

impl Opening {
    async fn run(mut self, io: Io, options: ClientOptions) {
        let outcome = Client::open(io, options).await;
        if let (Ok(client), Some(told)) = (&outcome, self.told.take()) {
            // It ends when the client is closed, which happens by itself when nobody has it any more.
            client.io.spawn(follow(client.inner.connection(), move |state| told(state)));
        }
        self.end(&outcome);
    }

    /// If it was closed meanwhile, they have been told, and the client goes.
    fn end(&mut self, outcome: &Outcome) {
        // The next may have begun already.
        if std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        let mut stage = locked(&self.stage);
        if let Stage::Connecting(waiting) = &mut *stage {
            let waiting = std::mem::take(waiting);
            *stage = outcome.as_ref().map_or(Stage::Apart, |client| Stage::Connected(client.clone()));
            drop(stage);
            tell(waiting, outcome);
        }
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        // Where this changes anything it has panicked, for want of something.
        self.end(&Err(Client::wanting()));
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
