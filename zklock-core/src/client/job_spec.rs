//! The description of a job that runs once in each period.

use crate::base::error::{Error, ErrorKind};
use crate::client::record::{Record, period};
use crate::connect::named::{self, Named, Value, duration, invalid, named};
use crate::connect::path::check_lock_path;
use std::time::{Duration, SystemTime};

/// The shortest period: the servers' clocks differ, and a run costs some writes.
const EVERY_AT_LEAST: Duration = Duration::from_secs(1);
/// The longest period, a thousand years, so that sums of such times do not overflow.
const EVERY_AT_MOST: Duration = Duration::from_secs(1000 * 365 * 86_400);

/// What becomes of a period in which a run has failed.
///
/// # Examples
///
/// ```
/// assert_eq!(zklock::further::AfterFailure::default(), zklock::further::AfterFailure::Again);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum AfterFailure {
    /// The job runs again in the same period, as soon as a host begins.
    #[default]
    Again,
    /// The job runs in the next period.
    Next,
}

/// The description of a job that runs once in each period: the path, the period, and what follows a failure.
/// [`Client::job`](crate::Client::job) makes the job. All hosts should describe it alike.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use zklock::JobSpec;
///
/// # fn main() -> Result<(), zklock::Error> {
/// let hour = Duration::from_secs(3600);
/// // For a job that every host starts at midnight: there the period must not begin.
/// let nightly = JobSpec::new("/jobs/report", 24 * hour)?.offset(12 * hour)?;
/// assert_eq!(nightly.path(), "/jobs/report");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct JobSpec {
    path: String,
    every: Duration,
    pub(crate) offset: Duration,
    after_failure: AfterFailure,
}

/// The options of a job, by name.
#[rustfmt::skip]
const NAMED: &[Named<JobSpec>] = &[
    named("offset", Value::Duration, "0s",
        "How much later each period begins. No period must begin when you start the job: the clocks of hosts and servers differ, so it \
         would be skipped in one period, and run twice in another",
        |spec, text| spec.offset(duration(text)?)),
    named("after-failure", Value::Text("again|next"), "again",
        "Whether a job that has failed runs again in the same period, or in the next one, so that no half of its work is done twice. A \
         process that dies, or loses the lock, has failed",
        |spec, text| match text {
            "again" => Ok(spec.after_failure(AfterFailure::Again)),
            "next" => Ok(spec.after_failure(AfterFailure::Next)),
            _ => Err(invalid("it is again or next")),
        }),
];

impl JobSpec {
    /// The longest period that a job can have.
    #[doc(hidden)]
    pub const EVERY_AT_MOST: Duration = EVERY_AT_MOST;

    /// All options that have names, for [`set`](Self::set).
    #[doc(hidden)]
    pub const NAMED: &'static [Named<Self>] = NAMED;

    /// Sets an option by its name, as C and C++ name it.
    #[doc(hidden)]
    pub fn set(self, name: &str, value: &str) -> Result<Self, Error> {
        named::set(NAMED, self, name, value)
    }

    /// Returns the same job with the options of another: only in C they are set before there is a job.
    #[doc(hidden)]
    pub fn with_options_of(self, other: &Self) -> Result<Self, Error> {
        Ok(self.offset(other.offset)?.after_failure(other.after_failure))
    }

    /// Describes a job with periods of this length, counted from 1970-01-01T00:00:00Z.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if `path` cannot be the path of a lock, or the period is shorter than a second or longer than
    /// 1,000 years.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use zklock::JobSpec;
    ///
    /// assert!(JobSpec::new("/jobs/report", Duration::from_secs(60)).is_ok());
    /// assert!(JobSpec::new("/jobs/report", Duration::ZERO).is_err());
    /// ```
    pub fn new(path: &str, every: Duration) -> Result<Self, Error> {
        check_lock_path(path)?;
        if !(EVERY_AT_LEAST..=EVERY_AT_MOST).contains(&every) {
            let message = format!(
                "the job {path} cannot run every {every:?}: a period lasts from a second to 1,000 years"
            );
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        // To the millisecond, as the servers have it.
        let every = Duration::from_millis(u64::try_from(every.as_millis()).unwrap_or(u64::MAX));
        let (path, offset, after_failure) = (path.to_owned(), Duration::ZERO, AfterFailure::default());
        Ok(Self { path, every, offset, after_failure })
    }

    /// Lets each period begin this much later. The clocks of hosts and servers differ, so a job must not be started where one
    /// period ends and the next one begins: it would be skipped in one, and run twice in the other. A day begins at midnight
    /// UTC; if cron starts the job at that time, 12 hours are a good offset.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if it is not less than the period.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use zklock::JobSpec;
    ///
    /// # fn main() -> Result<(), zklock::Error> {
    /// let hourly = JobSpec::new("/jobs/report", Duration::from_secs(3600))?;
    /// let from_half_past_to_half_past = hourly.offset(Duration::from_secs(1800))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn offset(mut self, offset: Duration) -> Result<Self, Error> {
        let (path, every) = (&self.path, self.every);
        if offset >= every {
            let message = format!(
                "the periods of the job {path} cannot begin {offset:?} later: the offset must be less than the period of {every:?}"
            );
            return Err(Error::new(ErrorKind::InvalidInput, message));
        }
        self.offset = Duration::from_millis(u64::try_from(offset.as_millis()).unwrap_or(u64::MAX));
        Ok(self)
    }

    /// Says whether the job runs again in the period in which it has failed. By default it does. A host that dies, or loses the
    /// lock, has failed.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use zklock::JobSpec;
    /// use zklock::further::AfterFailure;
    ///
    /// # fn main() -> Result<(), zklock::Error> {
    /// // Half a mailing must not be sent twice.
    /// let mailing = JobSpec::new("/jobs/mailing", Duration::from_secs(86_400))?.after_failure(AfterFailure::Next);
    /// # Ok(())
    /// # }
    /// ```
    pub fn after_failure(mut self, after_failure: AfterFailure) -> Self {
        self.after_failure = after_failure;
        self
    }

    /// Returns the path of the job, which is the path of its mutex.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn example(spec: &zklock::JobSpec) {
    /// println!("the lock {}", spec.path());
    /// # }
    /// ```
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the length of a period.
    ///
    /// # Examples
    ///
    /// ```
    /// # fn example(spec: &zklock::JobSpec) {
    /// println!("{} runs every {:?}", spec.path(), spec.every());
    /// # }
    /// ```
    pub fn every(&self) -> Duration {
        self.every
    }

    /// Whether nothing is left to do in the period that it is now, after this run. Periods that are not alike, because the job is
    /// described differently now, are compared by when the run began.
    pub(crate) fn is_over(&self, last: &Record, now: SystemTime) -> bool {
        let number = |at| period(at, self.every, self.offset);
        // If the clock was put back, or a slower one counts now, this period may have had its run already.
        number(last.began) >= number(now) && (last.is_done() || self.after_failure == AfterFailure::Next)
    }
}
