//! Jobs that run once in each period.

use super::lazy::Lazy;
use super::lock::Lock;
use crate::base::error::Error;
#[cfg(doc)]
use crate::base::error::ErrorKind;
use crate::base::owner::Owner;
use crate::base::wait::Wait;
use crate::client::once::Once as CoreOnce;
use crate::client::once_spec::OnceSpec;
use crate::client::record::Record;
use crate::client::run::{Begun, Run};
use crate::threads::call::{self, Call};
use std::sync::Arc;
use std::time::Duration;

/// A job that runs on one host in each period. See [`Client::once`](crate::Client::once).
///
/// # Examples
///
/// ```no_run
/// use std::time::Duration;
/// use zklock_core::{Begun, OnceSpec};
///
/// # async fn example(client: zklock_core::Client) -> Result<(), zklock_core::Error> {
/// let job = client.once(&OnceSpec::new("/jobs/report", Duration::from_secs(86_400))?)?;
/// if let Begun::Run(run) = job.begin().await? {
///     match write_the_report(run.hold().token()).await {
///         Ok(()) => run.done().await?,
///         Err(why) => run.failed(why).await?,
///     }
/// }
/// # Ok(())
/// # }
/// # async fn write_the_report(_: zklock_core::Token) -> Result<(), &'static str> { Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Once {
    core: Lazy<CoreOnce>,
    lock: Lock,
    spec: Arc<OnceSpec>,
}

impl Once {
    /// Makes the job whose runs hold this mutex. It is hidden, because only the command gives a job's mutex options.
    #[doc(hidden)]
    pub fn new(lock: Lock, spec: OnceSpec) -> Result<Self, Error> {
        let spec = Arc::new(spec);
        let (mutex, of) = (lock.core.clone(), spec.clone());
        let make = move |client: &_| Ok(CoreOnce::new(mutex.of(client)?.get()?.clone(), of.clone()));
        let core = Lazy::new(lock.core.home(), make)?;
        Ok(Self { core, lock, spec })
    }

    /// Returns whether its client was used by a process from which this one was forked. It is useless here then.
    #[doc(hidden)]
    pub fn is_forked(&self) -> bool {
        self.core.is_forked()
    }

    /// Returns the description that the job was made from.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(job: &zklock_core::Once) {
    /// println!("the job {}", job.spec().path());
    /// # }
    /// ```
    pub fn spec(&self) -> &OnceSpec {
        &self.spec
    }

    /// Returns the mutex that runs of the job hold, for example to see who holds it.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(job: zklock_core::Once) -> Result<(), zklock_core::Error> {
    /// println!("{} hosts run it, or wait", job.lock().contenders().await?.len());
    /// # Ok(())
    /// # }
    /// ```
    pub fn lock(&self) -> &Lock {
        &self.lock
    }

    /// Begins a run, unless nothing is left to do in this period.
    ///
    /// While another host runs the job, this waits. If that host does its work, the answer is [`Begun::Done`]. If it fails, dies
    /// or loses the mutex, the job runs here, or in the next period: see [`AfterFailure`](crate::AfterFailure). So no period is
    /// skipped while a host waits, or comes again in the same period.
    ///
    /// The period is the one that it is for the servers once the mutex is held. If the recorded run lies later, because the clock of
    /// another leader is slower, that run counts: nothing is left to do if it is done, and if it has failed, it is repeated. If it
    /// lies later by more than a period, a clock is wrong, and that is an error.
    ///
    /// # Errors
    ///
    /// Fails like [`Lock::acquire`] does; and with:
    ///
    /// * [`ErrorKind::Refused`] if the record cannot be read, or is from the future by more than a period. The message names its
    ///   node, and says what to do;
    /// * [`ErrorKind::Lost`] if the mutex is lost before the run is recorded, or [`ErrorKind::Uncertain`] if another host has
    ///   recorded a run since;
    /// * [`ErrorKind::Unreachable`] if the ensemble does not answer any more once the mutex is held;
    /// * [`ErrorKind::Conflict`] if somebody else writes or deletes the record at the same moment.
    ///
    /// # Cancel safety
    ///
    /// Dropping the call leaves the queue, or releases the mutex in the background. If that happens while the run is being
    /// recorded, it may be recorded, and then counts as failed.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(job: zklock_core::Once) -> Result<(), zklock_core::Error> {
    /// use zklock_core::Begun;
    ///
    /// match job.begin().await? {
    ///     Begun::Run(run) => run.done().await?,
    ///     Begun::Done(record) => println!("{} has run it", record.identity),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn begin(&self) -> Call<Begun<Run>> {
        self.begin_as(Owner::current(), Wait::Forever)
    }

    /// Like [`begin`](Self::begin), but waits no longer than `timeout` for another host. Zero does not wait. Once the run is sent to
    /// be recorded, the time no longer ends the call.
    ///
    /// # Errors
    ///
    /// Fails like [`begin`](Self::begin) does; and when the time is up with [`ErrorKind::Timeout`] if another host still runs the
    /// job, and with [`ErrorKind::Unreachable`] if the ensemble does not answer.
    ///
    /// # Cancel safety
    ///
    /// As for [`begin`](Self::begin).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use zklock_core::ErrorKind;
    ///
    /// # async fn example(job: zklock_core::Once) -> Result<(), zklock_core::Error> {
    /// match job.begin_timeout(Duration::ZERO).await {
    ///     Err(error) if error.kind() == ErrorKind::Timeout => println!("it is being run: {error}"),
    ///     begun => println!("{:?}", begun?),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn begin_timeout(&self, timeout: Duration) -> Call<Begun<Run>> {
        self.begin_as(Owner::current(), timeout)
    }

    /// Like [`begin`](Self::begin) or [`begin_timeout`](Self::begin_timeout), for the given owner.
    #[doc(hidden)]
    pub fn begin_as(&self, owner: Owner, wait: impl Into<Wait>) -> Call<Begun<Run>> {
        let wait = wait.into();
        self.core.begin(wait, move |once| {
            let value = once.clone();
            call::Begun::goes_on(once.io(), async move { value.fixed().begin_as(owner, wait).await })
        })
    }

    /// Reads the record of the last run; `None` if the job has never run. It neither waits for a run nor disturbs it.
    ///
    /// # Errors
    ///
    /// * [`ErrorKind::Unreachable`] if the ensemble does not answer within the connect timeout;
    /// * [`ErrorKind::Refused`] if the access list does not allow reading it, or the record cannot be read;
    /// * [`ErrorKind::Closed`] if the client is closed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the call changes nothing.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(job: zklock_core::Once) -> Result<(), zklock_core::Error> {
    /// match job.last().await? {
    ///     Some(record) => println!("{} in period {}", record.outcome, record.period()),
    ///     None => println!("it has never run"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn last(&self) -> Call<Option<Record>> {
        self.core.call(Wait::Forever, |once| async move { once.fixed().last().await })
    }
}
