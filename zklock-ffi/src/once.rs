//! Jobs that run once in each period, on one of many hosts.

use crate::c_enum::c_enum;
use crate::client::{Client, zklock_client};
use crate::convert::{patience, time};
use crate::events::Events;
use crate::export::export;
use crate::failure::Failure;
use crate::handle::{Object, handle};
use crate::raw::{Context, out, text};
use crate::record::{shown, zklock_record};
use crate::run::{Run, zklock_run};
use crate::started::{Answer, Started, zklock_call};
use crate::status::zklock_status::{self, ZKLOCK_DONE};
use std::ffi::c_char;
use std::sync::Arc;
use zklock_core::Call;
use zklock_core::{AfterFailure, Begun, OnceSpec, Owner, Record};

/// A job at a path, which runs once in each period, on one of many hosts. It is a mutex, and the record
/// of the last run.
#[allow(non_camel_case_types, reason = "the name in C")]
#[derive(Debug)]
pub struct zklock_once {
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

pub(crate) struct Once(zklock_core::Once, Arc<Events>);

handle!(
    Once: zklock_once,
    12,
    fn inherited(&self) -> Option<Self> {
        (!self.0.is_forked()).then(|| Self(self.0.clone(), self.1.clone()))
    }
);

impl Once {
    fn beginning(&self, owner: Owner, timeout: i64) -> Result<Call<Begun<zklock_core::Run>>, Failure> {
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
    /// @param[out] once the job. Free it with zklock_once_free.
    /// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the path is invalid, or a number is out of range.
    pub fn zklock_once_new(
        client: *mut zklock_client,
        path: *const c_char,
        every: i64,
        offset: i64,
        after_failure: i32,
        once: *mut *mut zklock_once,
    ) -> zklock_status {
        let once = out("once", once)?;
        let spec = OnceSpec::new(text("path", path)?, time("period", every)?)?;
        let spec = spec.offset(time("offset", offset)?)?.after_failure(chosen(after_failure)?);
        let client = Client::table().find(client)?;
        let made = Once(client.inner().once(&spec)?, client.events().clone());
        once.set(Once::table().put(made));
    }

    /// Frees the handle of a job. Its runs are not affected, and waits for it go on.
    ///
    /// @param once may be NULL. A handle that was already freed is ignored.
    pub fn zklock_once_free(once: *mut zklock_once) {
        drop(Once::table().take(once));
    }

    /// Begins a run of a job, unless nothing is left to do in this period.
    ///
    /// While another process runs the job, this waits. If that process does the work, the status is
    /// ZKLOCK_DONE. If it fails, dies or loses the lock, the job runs here, or in the next period: see
    /// zklock_after_failure. The period is the one that it is for the servers once the lock is held.
    ///
    /// After ZKLOCK_DONE, the message of zklock_last_error names the process that has run the job.
    ///
    /// @param once the job.
    /// @param timeout in milliseconds. 0 does not wait for another process, and takes the try timeout if
    ///         no server answers. ZKLOCK_FOREVER waits as long as it takes.
    /// @param[out] run the run. End it with zklock_run_done or zklock_run_failed, and free it with
    ///         zklock_run_free.
    /// @return ZKLOCK_OK if the job runs here: do its work now; ZKLOCK_DONE if nothing is left to do;
    ///         ZKLOCK_TIMEOUT if another process ran it for all that time; ZKLOCK_LOST if the lock is
    ///         lost before the run is recorded; ZKLOCK_CONFLICT if somebody else writes or deletes the
    ///         record at that moment; ZKLOCK_REFUSED also if the record cannot be read, or is from
    ///         the future by more than a period;
    ///         ZKLOCK_UNREACHABLE; ZKLOCK_FOREIGN_CONTENDER; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a
    ///         callback.
    pub fn zklock_once_begin(
        once: *mut zklock_once,
        timeout: i64,
        run: *mut *mut zklock_run,
    ) -> zklock_status {
        let run = out("run", run)?;
        let once = Once::table().find(once)?;
        match once.beginning(Owner::current(), timeout)?.wait()? {
            Begun::Run(begun) => run.set(Run::keep(begun, &once.1, Context::NONE)?),
            Begun::Done(record) => return Err(over(once.0.spec().path(), &record)),
        }
    }

    /// Starts to begin a run as zklock_once_begin does, and returns at once. When the call has its
    /// result, take the run from it with zklock_call_run.
    ///
    /// @param once the job. You may free it before the call.
    /// @param timeout in milliseconds, as for zklock_once_begin.
    /// @param[out] call the call. Free it with zklock_call_free.
    /// @return ZKLOCK_OK. Other statuses come with the result.
    pub fn zklock_once_begin_start(
        once: *mut zklock_once,
        timeout: i64,
        call: *mut *mut zklock_call,
    ) -> zklock_status {
        let call = out("call", call)?;
        let once = Once::table().find(once)?;
        let path = once.0.spec().path().to_owned();
        let answer = move |begun| match begun {
            Begun::Run(begun) => Answer::Run(Box::new(begun)),
            Begun::Done(record) => Answer::Status(over(&path, &record)),
        };
        call.set(Started::keep(once.beginning(Owner::once(), timeout)?, Some(&once.1), answer)?);
    }

    /// Reads what is recorded of the last run of a job. It neither waits for a run nor disturbs it.
    ///
    /// @param once the job.
    /// @param[out] record its outcome is ZKLOCK_RUN_NEVER if the job has never run.
    /// @return ZKLOCK_OK; ZKLOCK_UNREACHABLE if no server answers within the connect timeout;
    ///         ZKLOCK_REFUSED if the access list does not allow reading the record, or it cannot be read;
    ///         ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback.
    pub fn zklock_once_last(once: *mut zklock_once, record: *mut zklock_record) -> zklock_status {
        let record = out("record", record)?;
        let last = Once::table().find(once)?.0.last().wait()?;
        record.set(shown(last.as_ref()));
    }
}

fn chosen(number: i32) -> Result<AfterFailure, Failure> {
    match zklock_after_failure::find(number) {
        Some(zklock_after_failure::ZKLOCK_AFTER_FAILURE_AGAIN) => Ok(AfterFailure::Again),
        Some(zklock_after_failure::ZKLOCK_AFTER_FAILURE_NEXT) => Ok(AfterFailure::Next),
        None => Err(Failure::argument(format!(
            "{number} says nothing about what follows a failure: pass one of zklock_after_failure"
        ))),
    }
}

/// The status and message if nothing is left to do in this period.
fn over(path: &str, last: &Record) -> Failure {
    let message =
        format!("the job {path} has run in this period, and is {}, by {}", last.outcome, last.identity);
    Failure::new(ZKLOCK_DONE, message)
}
