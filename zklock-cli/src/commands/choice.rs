//! The lock that a command acquires, and how long it waits for it.

use std::pin::pin;
use std::time::Duration;

use clap::{ArgGroup, Args};
use tokio::time::sleep;
use zklock::further::{Naming, Owner, Wait};
use zklock::{Client, Error, ErrorKind, Hold, Lock, LockSpec};

use crate::commands::variables::Variables;
use crate::connect::{Connection, not_connected};
use crate::duration;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::processes::guardian;
use crate::processes::orders::Limits;

#[derive(Args, Debug)]
#[command(group(ArgGroup::new("lock").required(true)))]
pub(crate) struct Choice {
    /// Hold the mutex at this path
    #[arg(long, value_name = "PATH", group = "lock")]
    pub(crate) mutex: Option<String>,

    /// Hold the read side of the read/write lock at this path
    #[arg(hide_short_help = true, long, value_name = "PATH", group = "lock")]
    read: Option<String>,

    /// Hold the write side of the read/write lock at this path
    #[arg(hide_short_help = true, long, value_name = "PATH", group = "lock")]
    write: Option<String>,

    /// Hold one of N permits of the semaphore at this path
    #[arg(long, value_name = "PATH:N", group = "lock")]
    semaphore: Option<String>,

    /// Be the leader of the election at this path
    #[arg(long, value_name = "PATH", group = "lock")]
    election: Option<String>,

    /// Hold the single-node lock at this path: one node and no queue, shared with programs that create that node
    #[arg(hide_short_help = true, long, value_name = "PATH", group = "lock")]
    single_node: Option<String>,

    /// Share the queue of another library, kazoo or writelock, or of a custom lock: for one whose nodes are called
    /// report_lock_0000000001, the pattern is '{name}_lock_{sequence}'. {any} stands for what each contender chooses, and
    /// {R|W} for the letters of readers and writers
    #[arg(hide_short_help = true, long, value_name = "NAMING")]
    pub(crate) naming: Option<Naming>,

    /// Wait for the lock for no longer than this
    #[arg(long, short, value_name = "DURATION", value_parser = duration::parse)]
    timeout: Option<Duration>,

    /// Do not wait: if another has the lock, end at once with code 120
    #[arg(long = "try", conflicts_with = "timeout")]
    tries: bool,

    /// Print nothing if another has the lock.
    ///
    /// The codes 120 and 121 say so. Errors and losses are still printed
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// End with this code if another has the lock, in place of 120 and 121
    #[arg(hide_short_help = true, long, short = 'E', value_name = "CODE")]
    pub(crate) conflict_exit_code: Option<u8>,

    /// Also set ZKLOCK_ENSEMBLE (the ensemble's identity), for `zklock fence publish`
    #[arg(hide_short_help = true, long)]
    fence: bool,
}

/// How long to wait for the lock without a guardian, because starting one means starting a process.
const UNGUARDED: Duration = Duration::from_secs(1);

impl Choice {
    /// Connects for the lock, and for no longer than the lock is waited for. The lock's figures have this name, if any.
    pub(crate) async fn connect(
        &self,
        connection: &Connection,
        metrics_name: Option<&str>,
    ) -> Result<(Client, Lock), Failure> {
        let spec = self.spec()?;
        let spec = metrics_name.into_iter().fold(spec, LockSpec::metrics_name);
        spec.check()?;
        let mut options = connection.options()?;
        if let Some(timeout) = self.timeout.filter(|timeout| !timeout.is_zero()) {
            let patience = connection.time("connect-timeout").unwrap_or(Duration::from_secs(10));
            options = options.connect_timeout(patience.min(timeout));
        }
        let client = Client::connect(options).await.map_err(|error| not_connected(&error))?;
        let lock = client.lock(&spec)?;
        Ok((client, lock))
    }

    /// Begins to wait. That is before the connection is made, so that the wait ends when the user expects that, and its
    /// message names the time that the user has given.
    pub(crate) fn wait(&self) -> Wait {
        Wait::at_most(self.timeout)
    }

    fn spec(&self) -> Result<LockSpec, Failure> {
        let spec = match self {
            Self { mutex: Some(path), .. } => LockSpec::mutex(path),
            Self { read: Some(path), .. } => LockSpec::read_lock(path),
            Self { write: Some(path), .. } => LockSpec::write_lock(path),
            Self { election: Some(path), .. } => LockSpec::election(path),
            Self { single_node: Some(path), .. } => LockSpec::single_node(path),
            Self { semaphore: Some(text), .. } => {
                let parsed =
                    text.rsplit_once(':').and_then(|(path, limit)| Some((path, limit.parse().ok()?)));
                let (path, limit) = parsed.ok_or_else(|| {
                    Failure::usage(format!(
                        "--semaphore {text}: write it as PATH:N, such as /locks/licences:5"
                    ))
                })?;
                LockSpec::semaphore(path, limit)
            }
            _ => return Err(Failure::usage("no lock is named: give one, such as --mutex PATH")),
        };
        let spec = spec?;
        Ok(self.naming.clone().into_iter().fold(spec, LockSpec::naming))
    }

    /// Acquires the lock. If that takes a while, a guardian watches: if we are killed while we wait, the contenders behind
    /// us need not wait for our session.
    pub(crate) async fn acquire(&self, client: &Client, lock: &Lock, wait: Wait) -> Result<Hold, Failure> {
        self.begin(client, wait, |wait| lock.acquire_as(Owner::current(), wait)).await
    }

    /// Like [`acquire`](Self::acquire), for anything that begins with that.
    pub(crate) async fn begin<T>(
        &self,
        client: &Client,
        wait: Wait,
        begin: impl AsyncFnOnce(Wait) -> Result<T, Error>,
    ) -> Result<T, Failure> {
        let mut beginning = pin!(self.begin_unguarded(wait, begin));
        tokio::select! {
            biased;
            begun = &mut beginning => return begun,
            () = sleep(UNGUARDED) => {}
        }
        let guarding = async { client.guard(guardian::command()).await.ok() };
        let (guardian, begun) = tokio::join!(guarding, beginning);
        // Dismissed before anything runs under the lock, which would live on when the guardian ends the session.
        if let Some(guardian) = guardian {
            guardian.dismiss().await;
        }
        begun
    }

    async fn begin_unguarded<T>(
        &self,
        wait: Wait,
        begin: impl AsyncFnOnce(Wait) -> Result<T, Error>,
    ) -> Result<T, Failure> {
        if self.tries || self.timeout.is_some_and(|timeout| timeout.is_zero()) {
            let busy = |error: Error| match error.kind() {
                ErrorKind::Timeout => Failure::new(Exit::Busy, error.to_string()),
                _ => error.into(),
            };
            return begin(Wait::Once).await.map_err(busy);
        }
        Ok(begin(wait).await?)
    }

    /// Says that another has the lock, and returns the code for that; or returns any other failure.
    pub(crate) fn conflict(&self, failure: Failure) -> Result<u8, Failure> {
        if !matches!(failure.exit(), Exit::Busy | Exit::Timeout) {
            return Err(failure);
        }
        if !self.quiet {
            say!("{failure}");
        }
        Ok(self.conflict_exit_code.unwrap_or(failure.exit() as u8))
    }

    /// Returns what tells a command of its hold.
    pub(crate) async fn variables(&self, hold: &Hold) -> Result<Variables, Failure> {
        let ensemble = if self.fence { Some(hold.ensemble_id().await?) } else { None };
        Ok(Variables::of(hold, ensemble.as_deref()))
    }
}

/// Lengthens the lease, so that it is long enough to start something.
pub(crate) async fn lengthen(hold: &Hold, limits: &Limits) -> Result<(), Error> {
    // Each write that a quorum commits may lengthen it.
    for _ in 0..3 {
        if hold.valid_for() > limits.least_lease() * 5 / 4 {
            break;
        }
        hold.confirm().await?;
    }
    Ok(())
}
