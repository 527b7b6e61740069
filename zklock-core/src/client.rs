//! One logical connection to an ensemble.

use crate::diagnose;
use crate::error::{Error, ErrorKind};
use crate::line::{Line, Shared};
use crate::locks::locked;
use crate::options::ClientOptions;
use crate::path::check_lock_path;
use crate::pool::{Pool, Slot, Stage};
use crate::stats::Stats;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;
use tokio::runtime::Handle;

/// One logical connection to an ensemble. It is cheap to clone, and outlives sessions: when one
/// expires it opens the next.
///
/// Its work is done by tasks of the runtime in which it was connected. When the last client, lock and
/// hold is dropped, the sessions are closed in the background.
///
/// ```no_run
/// use zklock_core::{Client, ClientOptions};
///
/// # async fn example() -> Result<(), zklock_core::Error> {
/// let client = Client::connect(ClientOptions::new("zk1:2181,zk2:2181,zk3:2181")?).await?;
/// let hold = client.mutex("/locks/report")?.acquire().await?;
/// hold.release().await?;
/// client.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    /// All locks of one path share a line.
    lines: Arc<Mutex<HashMap<String, Weak<Line>>>>,
}

impl Client {
    /// Opens a session.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Unreachable`] if no server answers within the connect timeout, or none of the
    ///   hosts is known;
    /// * [`ErrorKind::Refused`] if the chroot does not exist;
    /// * [`ErrorKind::InvalidInput`] if it is called outside of a tokio runtime, or with TLS and a host
    ///   that no certificate can name.
    pub async fn connect(options: ClientOptions) -> Result<Self, Error> {
        let Ok(runtime) = Handle::try_current() else {
            let message =
                "a client is connected within a tokio runtime; without one, use zklock_core::blocking";
            return Err(Error::new(ErrorKind::InvalidInput, message));
        };
        #[cfg(feature = "tls")]
        if let Some(tls) = &options.tls {
            tls.check_names(&options.hosts)?;
        }
        let shared = Arc::new(Shared { pool: Pool::new(options, runtime), counters: Arc::default() });
        let slot = shared.pool.first();
        let options = shared.pool.options();
        tokio::select! {
            biased;
            opened = slot.session() => match opened {
                Ok(_) => Ok(Self { shared, lines: Arc::default() }),
                Err(error) => Err(explained(&slot, &options.hosts.chroot, error)),
            },
            error = diagnose::hosts(options) => Err(error),
        }
    }

    /// What this client has done, and what it still owes.
    pub fn stats(&self) -> Stats {
        self.shared.counters.read(self.shared.pool.opened())
    }

    /// The timeout of the session, as the servers granted it, if there is one now.
    pub fn session_timeout(&self) -> Option<Duration> {
        self.shared.pool.first().current().map(|session| session.timeout())
    }

    /// The number of the session, if there is one now.
    ///
    /// ```no_run
    /// # fn example(client: &zklock_core::Client) {
    /// println!("session {:#x}", client.session_id().unwrap_or_default());
    /// # }
    /// ```
    pub fn session_id(&self) -> Option<i64> {
        self.shared.pool.first().current().map(|session| session.id())
    }

    /// Closes the sessions, which frees every lock that this client and its clones hold, and waits
    /// until the ensemble has confirmed it, or a second has passed.
    ///
    /// Holds are lost then, waits end with [`ErrorKind::Closed`]. Closing twice is no mistake.
    pub async fn close(&self) {
        self.begin_close();
        self.shared.pool.closed().await;
    }

    pub(crate) fn begin_close(&self) {
        self.shared.pool.close();
    }

    pub(crate) fn line(&self, path: &str) -> Result<Arc<Line>, Error> {
        check_lock_path(path)?;
        let mut lines = locked(&self.lines);
        if let Some(line) = lines.get(path).and_then(Weak::upgrade) {
            return Ok(line);
        }
        if lines.len() == lines.capacity() {
            lines.retain(|_, line| line.strong_count() > 0);
        }
        let line = Arc::new(Line::new(path, self.shared.clone()));
        lines.insert(path.to_owned(), Arc::downgrade(&line));
        Ok(line)
    }
}

fn explained(slot: &Slot, chroot: &str, error: Error) -> Error {
    match slot.stage() {
        Stage::NoRoot => {
            let message =
                format!("the chroot {chroot} does not exist: create it, or leave it out of the hosts");
            Error::new(ErrorKind::Refused, message)
        }
        _ => error,
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("hosts", &self.shared.pool.options().hosts.connect_string())
            .field("session", &self.session_id().map(|id| format!("{id:#x}")))
            .field("stats", &self.stats())
            .finish()
    }
}
