//! Jobs that run once in each period, on one of many hosts.
//!
//! A job is a mutex, and a record of its last run below the mutex' path. All writes of the record are guarded by the hold. So a
//! record that says "running" while another holds the mutex is that of a run which has crashed, or has lost the mutex.
//!
//! The time is the date that the leader gives to a write, which is made for this purpose once the mutex is held. A client's
//! clock is not asked.

use crate::base::error::{Error, ErrorKind};
use crate::base::failure::Failure;
use crate::base::owner::Owner;
use crate::base::wait::Wait;
use crate::client::job_spec::JobSpec;
use crate::client::lock::Lock;
use crate::client::record::{self, NAME, Record, RunOutcome};
use crate::client::run::{Begun, Run, RunEntry, release, write};
use crate::hold::hold::Hold;
use crate::session::ask::{ask, silence};
use crate::session::pool::Pool;
use crate::session::session::Session;
use crate::threads::call::{self, Call};
use crate::zookeeper::ensemble::{NodeData, Write};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A job that runs on one host in each period. See [`Client::job`](crate::Client::job).
///
/// # Examples
///
/// ```no_run
/// use std::time::Duration;
/// use zklock::{Begun, JobSpec};
///
/// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
/// let job = client.job(&JobSpec::new("/jobs/report", Duration::from_secs(86_400))?)?;
/// if let Begun::Run(run) = job.begin().await? {
///     match write_the_report(run.hold().token()).await {
///         Ok(()) => run.done().await?,
///         Err(why) => run.failed(why).await?,
///     }
/// }
/// # Ok(())
/// # }
/// # async fn write_the_report(_: zklock::Token) -> Result<(), &'static str> { Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Job {
    lock: Lock,
    spec: Arc<JobSpec>,
    node: Arc<str>,
}

impl Job {
    /// Makes the job whose runs hold this mutex. It is hidden, because only the command gives a job's mutex options.
    #[doc(hidden)]
    pub fn new(lock: Lock, spec: JobSpec) -> Result<Self, Error> {
        lock.open.home().refuse_forked()?;
        let node = format!("{}/{NAME}", spec.path()).into();
        Ok(Self { lock, spec: Arc::new(spec), node })
    }

    /// Returns whether its client was used by a process from which this one was forked. It is useless here then.
    #[doc(hidden)]
    pub fn is_forked(&self) -> bool {
        self.lock.is_forked()
    }

    /// Returns the description that the job was made from.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(job: &zklock::Job) {
    /// println!("the job {}", job.spec().path());
    /// # }
    /// ```
    pub fn spec(&self) -> &JobSpec {
        &self.spec
    }

    /// Returns the mutex that runs of the job hold, for example to see who holds it.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(job: zklock::Job) -> Result<(), zklock::Error> {
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
    /// or loses the mutex, the job runs here, or in the next period: see [`AfterFailure`](crate::further::AfterFailure). So no period is
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
    /// # async fn example(job: zklock::Job) -> Result<(), zklock::Error> {
    /// use zklock::Begun;
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
    /// use zklock::ErrorKind;
    ///
    /// # async fn example(job: zklock::Job) -> Result<(), zklock::Error> {
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
        let once = self.clone();
        self.lock.open.begin(wait, wait != Wait::Once, move |lock| {
            let here = lock.clone();
            call::Beginning::goes_on(
                lock.io(),
                async move { once.begun(here.fixed().pool(), owner, wait).await },
            )
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
    /// # async fn example(job: zklock::Job) -> Result<(), zklock::Error> {
    /// match job.last().await? {
    ///     Some(record) => println!("{} in period {}", record.outcome, record.period()),
    ///     None => println!("it has never run"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn last(&self) -> Call<Option<Record>> {
        let once = self.clone();
        self.lock.open.call(Wait::Forever, |lock| async move {
            let (path, node) = (once.spec.path(), &once.node);
            let problem = || format!("the record of the job {path} could not be read");
            let read = |session: Arc<Session>| async move { session.read(node.clone()).await };
            let node = ask(lock.fixed().pool(), problem, read).await?;
            node.map_or(Ok(None), |node| record::read(path, &node))
        })
    }

    /// Begins a run for this owner, unless nothing is left to do in this period.
    async fn begun(&self, pool: &Pool, owner: Owner, wait: Wait) -> Result<Begun<Run>, Error> {
        let hold = self.lock.acquire_as(owner, wait).await?;
        let wait = if wait == Wait::Once { Wait::at_most(Some(pool.options().try_timeout)) } else { wait };
        let (last, version, now) = tokio::select! {
            biased;
            seen = self.look(pool, &hold) => seen?,
            _ = wait.over() => {
                let message = format!("the record of the job {} was not read {wait}: {}", self.spec.path(), silence(pool.slot()));
                return Err(Error::new(ErrorKind::Unreachable, message));
            }
        };
        if let Some(last) = &last {
            last.check(self.spec.path(), now)?;
        }
        if let Some(last) = last.as_ref().filter(|last| self.spec.is_over(last, now)) {
            release(&hold).await?;
            return Ok(Begun::Done(last.clone()));
        }
        let record = Record {
            // What repeats a run whose clock was faster is in its period.
            began: last.map_or(now, |last| now.max(last.began)),
            ended: None,
            every: self.spec.every(),
            offset: self.spec.offset,
            identity: pool.identity().to_owned(),
            token: hold.token(),
            outcome: RunOutcome::Running,
        };
        // Once this is sent, the time does not end the wait, but the loss of the hold does: who gives up has begun in this period, too.
        match write(&hold, &record.to_text(), version).await {
            Ok(version) => Ok(Begun::Run(Run { hold, entry: RunEntry { record, version } })),
            Err(error) => {
                let place = format!(
                    "the job {} does not run here; if its run is recorded, it counts as failed",
                    self.spec.path()
                );
                Err(error.within(&place))
            }
        }
    }

    /// Looks at the last run, and at the servers' clock. Returns the version of the record, too.
    async fn look(&self, pool: &Pool, hold: &Hold) -> Result<(Option<Record>, i32, SystemTime), Error> {
        let (last, version) = match hold.read(&self.node).await? {
            Some(node) => (record::read(self.spec.path(), &node)?, node.version),
            None => (None, self.create(pool).await?),
        };
        // The same once more: only what is written gets a date.
        let text = last.as_ref().map_or(record::empty().to_owned(), Record::to_text);
        let version = write(hold, &text, version).await?;
        let Some(NodeData { modified: now, .. }) = hold.read(&self.node).await? else {
            let message = format!("the record of the job {} was deleted while it was read", self.spec.path());
            return Err(Error::new(ErrorKind::Conflict, message));
        };
        Ok((last, version, now))
    }

    /// Creates the node of the record, without a record, and returns its version. It is not guarded: servers before 3.5 cannot do
    /// that, and a node that a late one creates says no more than none.
    async fn create(&self, pool: &Pool) -> Result<i32, Error> {
        let create = Write::Create { path: self.node.to_string(), data: record::empty().into() };
        let problem = || format!("the record of the job {} was not created", self.spec.path());
        let create = &create;
        ask(pool, problem, |session| async move {
            match session.commit(Vec::new(), vec![create.clone()]).await {
                // An earlier try has created it, without an answer.
                Ok(_) | Err(Failure::Conflict { .. }) => Ok(0),
                Err(failure) => Err(failure),
            }
        })
        .await
    }
}
