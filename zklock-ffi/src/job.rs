//! Jobs that run once in each period, on one of many hosts.

use crate::client::{Client, zklock_client};
use crate::convert::{patience, time};
use crate::events::Events;
use crate::export::{export, noun};
use crate::failure::Failure;
use crate::handle::Object;
use crate::hold::{Held, zklock_hold};
use crate::options::{Options, zklock_options};
use crate::raw::{Context, optional_text, out, text};
use crate::record::{shown, zklock_record};
use crate::started::{Answer, Started, starts};
use crate::status::zklock_status::{self, ZKLOCK_DONE};
use std::ffi::c_char;
use std::sync::Arc;
use zklock::Call;
use zklock::further::{Owner, RunOutcome};
use zklock::{Begun, JobSpec};

noun! {
    /// A job at a path, which runs once in each period, on one of many hosts. It is a mutex, and the record
    /// of the last run.
    pub struct zklock_job: Job, 12;

    /// Frees the handle of a job. Its runs are not affected, and waits for it go on.
    ///
    /// @param job may be NULL. A handle that was already freed is ignored.
    pub fn zklock_job_free(job: *mut zklock_job);

    fn inherited(&self) -> Option<Self> {
        (!self.0.is_forked()).then(|| self.clone())
    }
}

#[derive(Clone)]
pub(crate) struct Job(zklock::Job, Arc<Events>);

export! {
    /// Creates the handle of the job at a path. This sends no request. All processes that run the job
    /// should describe it alike.
    ///
    /// @param client the client. You may free it before the job.
    /// @param path such as "/jobs/report". Give the job a path of its own, and let zklock alone use it.
    /// @param every the length of a period in milliseconds, 1000 to 31536000000000 (1,000 years). Periods
    ///         are counted from 1970-01-01T00:00:00Z on the servers' clock.
    /// @param options NULL for the defaults. They are copied.
    /// @param[out] job the job. Free it with zklock_job_free.
    /// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the path is invalid, or the period or an
    ///         option is out of range.
    pub fn zklock_job_new(
        client: *mut zklock_client,
        path: *const c_char,
        every: i64,
        options: *const zklock_options,
        job: *mut *mut zklock_job,
    ) -> zklock_status {
        let job = out("job", job)?;
        let spec = JobSpec::new(text("path", path)?, time("period", every)?)?;
        let spec = Options::of_job(options, spec)?;
        let client = Client::table().find(client)?;
        let made = Job(client.inner().job(&spec)?, client.events().clone());
        job.set(Job::table().put(made));
    }

    /// Begins a run of a job, unless nothing is left to do in this period.
    ///
    /// While another process runs the job, this waits. If that process does the work, the status is
    /// ZKLOCK_DONE. If it fails, dies or loses the lock, the job runs here, or in the next period: see
    /// the option after-failure. The period is the one that it is for the servers once the lock is held.
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
        match job.0.begin_as(Owner::current(), patience(timeout)?).wait()? {
            Begun::Run(run) => {
                let (granted, entry) = run.into_parts();
                hold.set(Held::keep(granted.refuse_dead()?, Some(Box::new(entry)), &job.1, Context::NONE));
            }
            Begun::Done(_) => return Err(over()),
        }
    }

    /// Records how a run ended, and releases the job's lock. The record is only written if the lock is
    /// still held. Whatever this returns, except for ZKLOCK_INVALID_ARGUMENT, ZKLOCK_DEADLOCK and
    /// ZKLOCK_FORKED, the run has ended: its lock is released, or is being released in the background.
    ///
    /// @param hold the hold that zklock_job_begin gave. You must still free it.
    /// @param failure NULL if the job is done in this period; otherwise why it failed, for
    ///         zklock_job_last. It is kept in one line of at most 500 characters. When the job runs again
    ///         then depends on its option after-failure.
    /// @return ZKLOCK_OK; ZKLOCK_LOST if the hold is lost, in which case the run counts as failed, and
    ///         another process may have begun to run the job again; ZKLOCK_NOT_HELD if the run was already
    ///         ended; ZKLOCK_CONFLICT if somebody else has written or deleted the record; ZKLOCK_UNREACHABLE
    ///         if the servers do not answer, so that it is not known whether it is recorded;
    ///         ZKLOCK_INVALID_ARGUMENT if the hold is of no run; ZKLOCK_REFUSED and ZKLOCK_TIMEOUT as for
    ///         zklock_release; ZKLOCK_DEADLOCK in a callback.
    pub fn zklock_job_end(hold: *mut zklock_hold, failure: *const c_char) -> zklock_status {
        ending(&*Held::table().find(hold)?, failure)?.wait()?;
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

starts! {
    /// Starts to begin a run as zklock_job_begin does, and returns at once. When the call has its
    /// result, take the hold from it with zklock_call_hold.
    ///
    /// @param job the job. You may free it before the call.
    /// @param timeout in milliseconds, as for zklock_job_begin.
    pub fn zklock_job_begin_start(job: *mut zklock_job, timeout: i64) {
        let job = Job::table().find(job)?;
        Started::keep(job.0.begin_as(Owner::once(), patience(timeout)?), &job.1, |begun| match begun {
            Begun::Run(run) => {
                let (granted, entry) = run.into_parts();
                Answer::Hold(granted, Some(Box::new(entry)))
            }
            Begun::Done(_) => Answer::Status(over()),
        })
    }

    /// Starts to end a run as zklock_job_end does, and returns at once.
    ///
    /// @param hold the hold. You must still free it. Keep it until the call has its result: if you free
    ///         the hold or the call earlier, or cancel the call, the run may count as failed.
    /// @param failure as for zklock_job_end.
    pub fn zklock_job_end_start(hold: *mut zklock_hold, failure: *const c_char) {
        let held = Held::table().find(hold)?;
        Started::keep(ending(&held, failure)?, held.events(), Answer::nothing)
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
