//! Jobs that run once in each period, on one of many hosts.

use crate::c_enum::c_enum;
use crate::client::{Client, zklock_client};
use crate::convert::{Given, patience, time};
use crate::events::Events;
use crate::export::export;
use crate::failure::Failure;
use crate::handle::{Object, handle};
use crate::hold::{Held, zklock_hold};
use crate::raw::{Context, optional_text, out, text};
use crate::record::{shown, zklock_record};
use crate::started::{Answer, Started, zklock_call};
use crate::status::zklock_status::{self, ZKLOCK_DONE};
use std::ffi::c_char;
use std::sync::Arc;
use zklock::Call;
use zklock::{AfterFailure, Begun, JobSpec, Owner, RunOutcome};

/// A job at a path, which runs once in each period, on one of many hosts. It is a mutex, and the record
/// of the last run.
#[allow(non_camel_case_types, reason = "the name in C")]
#[derive(Debug)]
pub struct zklock_job {
    _opaque: [u8; 0],
}

c_enum! {
    /// What becomes of a period in which a run has failed. A process that dies, or loses the lock, has
    /// failed.
    pub enum zklock_after_failure {
        /// The job runs again in the same period, as soon as a process begins.
        ZKLOCK_AFTER_FAILURE_AGAIN = 1,
        /// The job runs in the next period. This is for jobs that must not do half of their work twice.
        ZKLOCK_AFTER_FAILURE_NEXT = 2,
    }
}

pub(crate) struct Job(zklock::Job, Arc<Events>);

handle!(
    Job: zklock_job,
    12,
    fn inherited(&self) -> Option<Self> {
        (!self.0.is_forked()).then(|| Self(self.0.clone(), self.1.clone()))
    }
);

impl Job {
    fn beginning(&self, owner: Owner, timeout: i64) -> Result<Call<Begun<zklock::Run>>, Failure> {
        Ok(self.0.begin_as(owner, patience(timeout)?))
    }
}

export! {
    /// Creates the handle of the job at a path. This sends no request. All processes that run the job
    /// should describe it alike.
    ///
    /// @param client the client. You may free it before the job.
    /// @param path such as "/jobs/report". Give the job a path of its own, and let zklock alone use it.
    /// @param every the length of a period in milliseconds, 1000 to 31536000000000 (1,000 years). Periods
    ///         are counted from 1970-01-01T00:00:00Z on the servers' clock.
    /// @param offset by how many milliseconds each period begins later, 0 to less than the period. No
    ///         period must begin when you start the job: the clocks of hosts and servers differ, so it
    ///         would be skipped in one period, and run twice in another.
    /// @param after_failure one of zklock_after_failure.
    /// @param[out] job the job. Free it with zklock_job_free.
    /// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the path is invalid, or a number is out of range.
    pub fn zklock_job_new(
        client: *mut zklock_client,
        path: *const c_char,
        every: i64,
        offset: i64,
        after_failure: Given<zklock_after_failure>,
        job: *mut *mut zklock_job,
    ) -> zklock_status {
        let job = out("job", job)?;
        let spec = JobSpec::new(text("path", path)?, time("period", every)?)?;
        let spec = spec.offset(time("offset", offset)?)?.after_failure(match after_failure.find()? {
            zklock_after_failure::ZKLOCK_AFTER_FAILURE_AGAIN => AfterFailure::Again,
            zklock_after_failure::ZKLOCK_AFTER_FAILURE_NEXT => AfterFailure::Next,
        });
        let client = Client::table().find(client)?;
        let made = Job(client.inner().job(&spec)?, client.events().clone());
        job.set(Job::table().put(made));
    }

    /// Frees the handle of a job. Its runs are not affected, and waits for it go on.
    ///
    /// @param job may be NULL. A handle that was already freed is ignored.
    pub fn zklock_job_free(job: *mut zklock_job) {
        drop(Job::table().take(job));
    }

    /// Begins a run of a job, unless nothing is left to do in this period.
    ///
    /// While another process runs the job, this waits. If that process does the work, the status is
    /// ZKLOCK_DONE. If it fails, dies or loses the lock, the job runs here, or in the next period: see
    /// zklock_after_failure. The period is the one that it is for the servers once the lock is held.
    ///
    /// @param job the job.
    /// @param timeout in milliseconds. 0 does not wait for another process, and takes the try timeout if
    ///         no server answers. ZKLOCK_FOREVER waits as long as it takes.
    /// @param[out] hold the hold of the job's lock, which stands for the run. End the run with
    ///         zklock_job_end. If you release or free the hold instead, the run counts as failed.
    /// @return ZKLOCK_OK if the job runs here: do its work now; ZKLOCK_DONE if nothing is left to do, and
    ///         zklock_job_last shows who has run it; ZKLOCK_TIMEOUT if another process ran it for all that
    ///         time; ZKLOCK_LOST if the lock is lost before the run is recorded; ZKLOCK_CONFLICT if
    ///         somebody else writes or deletes the record at that moment; ZKLOCK_REFUSED also if the record
    ///         cannot be read, or is from the future by more than a period; ZKLOCK_UNREACHABLE;
    ///         ZKLOCK_FOREIGN_CONTENDER; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback.
    pub fn zklock_job_begin(
        job: *mut zklock_job,
        timeout: i64,
        hold: *mut *mut zklock_hold,
    ) -> zklock_status {
        let hold = out("hold", hold)?;
        let job = Job::table().find(job)?;
        match job.beginning(Owner::current(), timeout)?.wait()? {
            Begun::Run(run) => {
                let (granted, entry) = run.into_parts();
                hold.set(Held::keep(granted.refuse_dead()?, Some(Box::new(entry)), &job.1, Context::NONE));
            }
            Begun::Done(_) => return Err(over()),
        }
    }

    /// Starts to begin a run as zklock_job_begin does, and returns at job. When the call has its
    /// result, take the hold from it with zklock_call_hold.
    ///
    /// @param job the job. You may free it before the call.
    /// @param timeout in milliseconds, as for zklock_job_begin.
    /// @param[out] call the call. Free it with zklock_call_free.
    /// @return ZKLOCK_OK. Other statuses come with the result.
    pub fn zklock_job_begin_start(
        job: *mut zklock_job,
        timeout: i64,
        call: *mut *mut zklock_call,
    ) -> zklock_status {
        let call = out("call", call)?;
        let job = Job::table().find(job)?;
        let answer = |begun| match begun {
            Begun::Run(run) => {
                let (granted, entry) = zklock::Run::into_parts(run);
                Answer::Hold(granted, Some(Box::new(entry)))
            }
            Begun::Done(_) => Answer::Status(over()),
        };
        call.set(Started::keep(job.beginning(Owner::once(), timeout)?, Some(&job.1), answer)?);
    }

    /// Records how a run ended, and releases the job's lock. The record is only written if the lock is
    /// still held. Whatever this returns, except for ZKLOCK_INVALID_ARGUMENT, ZKLOCK_DEADLOCK and
    /// ZKLOCK_FORKED, the run has ended: its lock is released, or is being released in the background.
    ///
    /// @param hold the hold that zklock_job_begin gave. You must still free it.
    /// @param failure NULL if the job is done in this period; otherwise why it failed, for
    ///         zklock_job_last. It is kept in one line of at most 500 characters. When the job runs again
    ///         then depends on its zklock_after_failure.
    /// @return ZKLOCK_OK; ZKLOCK_LOST if the hold is lost, in which case the run counts as failed, and
    ///         another process may have begun to run the job again; ZKLOCK_NOT_HELD if the run was already
    ///         ended; ZKLOCK_CONFLICT if somebody else has written or deleted the record; ZKLOCK_UNREACHABLE
    ///         if the servers do not answer, so that it is not known whether it is recorded;
    ///         ZKLOCK_INVALID_ARGUMENT if the hold is of no run; ZKLOCK_REFUSED and ZKLOCK_TIMEOUT as for
    ///         zklock_release; ZKLOCK_DEADLOCK in a callback.
    pub fn zklock_job_end(hold: *mut zklock_hold, failure: *const c_char) -> zklock_status {
        ending(&*Held::table().find(hold)?, failure)?.wait()?;
    }

    /// Starts to end a run as zklock_job_end does, and returns at job.
    ///
    /// @param hold the hold. You must still free it. Keep it until the call has its result: if you free
    ///         the hold or the call earlier, or cancel the call, the run may count as failed.
    /// @param failure as for zklock_job_end.
    /// @param[out] call the call. Free it with zklock_call_free.
    /// @return ZKLOCK_OK. Other statuses come with the result.
    pub fn zklock_job_end_start(
        hold: *mut zklock_hold,
        failure: *const c_char,
        call: *mut *mut zklock_call,
    ) -> zklock_status {
        let call = out("call", call)?;
        let held = Held::table().find(hold)?;
        call.set(Started::keep(ending(&held, failure)?, Some(held.events()), Answer::nothing)?);
    }

    /// Reads what is recorded of the last run of a job. It neither waits for a run nor disturbs it.
    ///
    /// @param job the job.
    /// @param[out] record its outcome is ZKLOCK_RUN_NEVER if the job has never run.
    /// @return ZKLOCK_OK; ZKLOCK_UNREACHABLE if no server answers within the connect timeout;
    ///         ZKLOCK_REFUSED if the access list does not allow reading the record, or it cannot be read;
    ///         ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback.
    pub fn zklock_job_last(job: *mut zklock_job, record: *mut zklock_record) -> zklock_status {
        let record = out("record", record)?;
        let last = Job::table().find(job)?.0.last().wait()?;
        record.set(shown(last.as_ref()));
    }
}

fn ending(held: &Held, failure: *const c_char) -> Result<Call<()>, Failure> {
    let why = optional_text("failure", failure)?;
    let outcome = why.map_or(RunOutcome::Done, |why| RunOutcome::Failed(why.to_owned()));
    Ok(held.run()?.end(held.inner(), outcome))
}

/// The status if nothing is left to do in this period.
fn over() -> Failure {
    Failure::new(ZKLOCK_DONE, "")
}
