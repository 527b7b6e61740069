//! Connecting when it is first needed.

use super::threads::{Io, check_room};
use super::wait::wait;
use super::{Call, Client, fork};
use crate::error::{Error, ErrorKind};
use crate::lock::deadline_in;
use crate::locks::locked;
use crate::options::ClientOptions;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::watch;

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
}

type Outcome = Option<Result<Client, Error>>;

enum Stage {
    Apart,
    Connecting(watch::Receiver<Outcome>),
    Connected(Client),
    Closed,
}

impl Connector {
    /// Does nothing yet.
    pub fn new(options: ClientOptions) -> Self {
        Self { options, stage: Arc::new(Mutex::new(Stage::Apart)) }
    }

    /// The client, if it is connected.
    pub fn connected(&self) -> Option<Client> {
        if fork::is_forked() {
            return None;
        }
        match &*locked(&self.stage) {
            Stage::Connected(client) => Some(client.clone()),
            _ => None,
        }
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        // Who has forked need not ask, and must not wait for the mutex.
        !fork::is_forked() && matches!(*locked(&self.stage), Stage::Closed)
    }

    /// The client. Connects, if that has not been done yet, for `timeout` at most.
    ///
    /// # Errors
    ///
    /// As [`Client::connect`]; [`ErrorKind::Timeout`] if the time is over before that could tell;
    /// [`ErrorKind::Closed`] after [`close`](Self::close).
    pub fn connect(&self, timeout: Option<Duration>) -> Result<Client, Error> {
        if let Some(client) = self.connected() {
            return Ok(client);
        }
        let io = Io::start()?;
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        let outcome = wait(&io, self.outcome(&io)?, deadline, None);
        match outcome {
            Err(error) if error.kind() == ErrorKind::Timeout => Err(self.late(timeout.unwrap_or_default())),
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
        let late = self.late(timeout.unwrap_or_default());
        let call = async move {
            tokio::select! {
                biased;
                outcome = outcome => outcome,
                () = deadline => Err(late),
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
        fork::refuse_forked()?;
        match std::mem::replace(&mut *locked(&self.stage), Stage::Closed) {
            Stage::Connected(client) => Ok(Some(client)),
            // Who connects will find it closed.
            _ => Ok(None),
        }
    }

    /// What comes of connecting, which is begun if it has not been.
    fn outcome(
        &self,
        io: &Io,
    ) -> Result<impl Future<Output = Result<Client, Error>> + Send + 'static, Error> {
        let mut stage = locked(&self.stage);
        let receiver = match &*stage {
            Stage::Closed => return Err(Error::closed()),
            Stage::Connected(client) => watch::Sender::new(Some(Ok(client.clone()))).subscribe(),
            Stage::Connecting(receiver) => receiver.clone(),
            Stage::Apart => {
                check_room()?;
                let (sender, receiver) = watch::channel(None);
                *stage = Stage::Connecting(receiver.clone());
                let opening = Opening { stage: self.stage.clone(), sender };
                io.spawn(opening.run(io.clone(), self.options.clone()));
                receiver
            }
        };
        Ok(told(receiver))
    }

    fn late(&self, timeout: Duration) -> Error {
        let hosts = self.options.hosts.connect_string();
        let message =
            format!("no session with {hosts} was opened within {timeout:?}: check hosts and network");
        Error::new(ErrorKind::Timeout, message)
    }
}

async fn told(mut receiver: watch::Receiver<Outcome>) -> Result<Client, Error> {
    let outcome = receiver.wait_for(Option::is_some).await;
    outcome.ok().and_then(|outcome| outcome.clone()).unwrap_or_else(|| Err(Client::wanting()))
}

/// Connects, and tells those who wait.
struct Opening {
    stage: Arc<Mutex<Stage>>,
    sender: watch::Sender<Outcome>,
}

impl Opening {
    async fn run(self, io: Io, options: ClientOptions) {
        let mut outcome = Client::open(io, options).await;
        let mut stage = locked(&self.stage);
        if let Stage::Closed = *stage {
            outcome = Err(Error::closed());
        }
        if let Ok(client) = &outcome {
            *stage = Stage::Connected(client.clone());
        }
        drop(stage);
        self.sender.send_replace(Some(outcome));
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        let mut stage = locked(&self.stage);
        if let Stage::Connecting(_) = *stage {
            *stage = Stage::Apart;
        }
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
