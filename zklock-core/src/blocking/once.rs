//! Jobs that run once in each period, for threads.

use super::hold::Hold;
use super::home::Home;
use super::lazy::Lazy;
use super::run::Run;
use crate::base::error::Error;
use crate::base::owner::Owner;
use crate::base::wait::Wait;
use crate::client::once_spec::OnceSpec;
use crate::client::record::Record;
use crate::client::run::Begun;
use crate::threads::call::{self, Call};
use crate::threads::fork_safe::ForkSafe;
use crate::threads::interrupt::Interrupt;
use std::sync::Arc;
use std::time::Duration;

/// A job, [`Once`](crate::Once), whose calls block the calling thread.
///
/// # Examples
///
/// ```no_run
/// use std::time::Duration;
/// use zklock_core::{Begun, OnceSpec};
///
/// # fn example(client: zklock_core::blocking::Client) -> Result<(), zklock_core::Error> {
/// let job = client.once(&OnceSpec::new("/jobs/report", Duration::from_secs(86_400))?)?;
/// if let Begun::Run(run) = job.begin()? {
///     // ... write the report ...
///     run.done()?;
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Once {
    core: Lazy<crate::Once>,
    spec: Arc<OnceSpec>,
}

impl Once {
    pub(super) fn new(home: &Home, spec: &OnceSpec) -> Result<Self, Error> {
        let spec = Arc::new(spec.clone());
        let of = spec.clone();
        let core = Lazy::new(home, move |client| client.get()?.once(&of))?;
        Ok(Self { core, spec })
    }

    /// Returns the core's job.
    #[doc(hidden)]
    pub fn core(&self) -> &Lazy<crate::Once> {
        &self.core
    }

    /// Returns the description that the job was made from.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(job: &zklock_core::blocking::Once) {
    /// println!("the job {}", job.spec().path());
    /// # }
    /// ```
    pub fn spec(&self) -> &OnceSpec {
        &self.spec
    }

    /// Begins a run, unless nothing is left to do in this period. It blocks while another host runs the job. See
    /// [`Once::begin`](crate::Once::begin).
    ///
    /// # Errors
    ///
    /// Fails like [`Once::begin`](crate::Once::begin) does, and as [the module](super#errors) says. A client that has not
    /// connected yet also fails like [`Client::connect`](super::Client::connect) does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(job: zklock_core::blocking::Once) -> Result<(), zklock_core::Error> {
    /// use zklock_core::Begun;
    ///
    /// match job.begin()? {
    ///     Begun::Run(run) => run.done()?,
    ///     Begun::Done(record) => println!("{} has run it", record.identity),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn begin(&self) -> Result<Begun<Run>, Error> {
        self.begin_within(Wait::Forever, None)
    }

    /// Like [`begin`](Self::begin), but blocks no longer than `timeout` for another host. Zero does not wait. See
    /// [`Once::begin_timeout`](crate::Once::begin_timeout).
    ///
    /// # Errors
    ///
    /// Fails like [`begin`](Self::begin) does. When the time is up it fails with
    /// [`ErrorKind::Timeout`](crate::ErrorKind::Timeout) if another host still runs the job, and with
    /// [`ErrorKind::Unreachable`](crate::ErrorKind::Unreachable) if the ensemble does not answer.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::time::Duration;
    ///
    /// # fn example(job: zklock_core::blocking::Once) -> Result<(), zklock_core::Error> {
    /// println!("{:?}", job.begin_timeout(Duration::from_secs(60))?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn begin_timeout(&self, timeout: Duration) -> Result<Begun<Run>, Error> {
        self.begin_within(timeout, None)
    }

    /// Like [`begin_timeout`](Self::begin_timeout), but also ends when the interrupt is triggered. Without a time it waits for
    /// ever.
    ///
    /// # Errors
    ///
    /// Fails like [`begin_timeout`](Self::begin_timeout) does; and with
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) if the interrupt is triggered first.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock_core::Wait;
    ///
    /// # use zklock_core::blocking::{Interrupt, Once};
    /// # fn example(job: &Once, interrupt: &Interrupt) -> Result<(), zklock_core::Error> {
    /// // Until there is an answer, or another thread triggers the interrupt.
    /// let begun = job.begin_within(Wait::Forever, Some(interrupt))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn begin_within(
        &self,
        wait: impl Into<Wait>,
        interrupt: Option<&Interrupt>,
    ) -> Result<Begun<Run>, Error> {
        self.begin_call(Owner::current(), wait).wait(interrupt)
    }

    /// Makes the call of [`begin_within`](Self::begin_within), for this owner.
    #[doc(hidden)]
    pub fn begin_call(&self, owner: Owner, wait: impl Into<Wait>) -> Call<Begun<Run>> {
        let wait = wait.into();
        let begin = move |once: &ForkSafe<crate::Once>| {
            let (here, value) = (once.clone(), once.value());
            call::Begun::goes_on(once.io(), async move {
                Ok(match value.begin_as(owner, wait).await? {
                    Begun::Run(run) => {
                        let (hold, entry) = run.into_parts();
                        Begun::Run(Run::new(Hold::new(here.adopt(hold)), entry))
                    }
                    Begun::Done(record) => Begun::Done(record),
                })
            })
        };
        self.core.begin(wait, begin)
    }

    /// Reads the record of the last run; `None` if the job has never run. See [`Once::last`](crate::Once::last).
    ///
    /// # Errors
    ///
    /// Fails like [`Once::last`](crate::Once::last) does, and as [the module](super#errors) says. A client that has not
    /// connected yet also fails like [`Client::connect`](super::Client::connect) does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(job: zklock_core::blocking::Once) -> Result<(), zklock_core::Error> {
    /// println!("{:?}", job.last()?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn last(&self) -> Result<Option<Record>, Error> {
        self.last_call().wait(None)
    }

    /// Makes the call of [`last`](Self::last).
    #[doc(hidden)]
    pub fn last_call(&self) -> Call<Option<Record>> {
        self.core.call(Wait::Forever, |once| async move { once.last().await })
    }
}
