//! A run of a job, which holds the job's lock.

use crate::events::Events;
use crate::export::export;
use crate::failure::Failure;
use crate::handle::{Object, SentHandle, handle};
use crate::hold::{Held, zklock_hold};
use crate::raw::{Context, out, text};
use crate::started::{Answer, Started, zklock_call};
use crate::status::zklock_status;
use std::ffi::c_char;
use std::sync::Arc;
use zklock_core::Call;
use zklock_core::{RunEntry, RunOutcome};

/// A run of a job, which holds the job's lock until it is ended or freed.
#[allow(non_camel_case_types, reason = "the name in C")]
#[derive(Debug)]
pub struct zklock_run {
    _opaque: [u8; 0],
}

pub(crate) struct Run {
    hold: SentHandle<zklock_hold>,
    /// The object of that handle, which stays even if the handle is freed.
    held: Arc<Held>,
    entry: RunEntry,
}

handle!(Run: zklock_run, 13);

impl Run {
    pub(crate) fn keep(
        inner: zklock_core::Run,
        events: &Arc<Events>,
        context: Context,
    ) -> Result<*mut zklock_run, Failure> {
        let (hold, entry) = inner.into_parts();
        // The call may have had its result for long.
        let hold = Held::keep(hold.refuse_dead()?, events, context);
        let held = Held::table().find(hold)?;
        Ok(Self::table().put(Self { hold: SentHandle::new(hold), held, entry }))
    }

    fn ending(&self, outcome: RunOutcome) -> Call<()> {
        self.entry.end(self.held.inner(), outcome)
    }
}

export! {
    /// Takes the run from a call of zklock_once_begin_start. It returns at once. The events of its hold
    /// start with the pointer of the call: see zklock_call_set_context.
    ///
    /// @param call the call. You must still free it.
    /// @param[out] run as for zklock_once_begin.
    /// @return ZKLOCK_OK; ZKLOCK_NOT_HELD if the run was already taken from the call; ZKLOCK_LOST if the
    ///         run has begun, but its hold was lost before this call; ZKLOCK_INVALID_ARGUMENT if the call
    ///         is of another function; everything that zklock_call_finish returns; and everything that
    ///         zklock_once_begin returns.
    pub fn zklock_call_run(call: *mut zklock_call, run: *mut *mut zklock_run) -> zklock_status {
        let run = out("run", run)?;
        let call = Started::table().find(call)?;
        let begun = call.take("a run", |answer| match answer {
            Answer::Run(begun) => Ok(begun),
            other => Err(other),
        })?;
        run.set(Run::keep(*begun, &call.events(), call.context()).map_err(|lost| call.fail(lost))?);
    }

    /// Gets the hold of a run, for its token (zklock_hold_token), for what tells of its loss, and for
    /// guarded writes. It belongs to the run: do not release it or free it. If you release it, the run
    /// cannot be recorded as done.
    ///
    /// @param run the run.
    /// @param[out] hold valid until the run is freed.
    /// @return ZKLOCK_OK.
    pub fn zklock_run_hold(run: *const zklock_run, hold: *mut *mut zklock_hold) -> zklock_status {
        out("hold", hold)?.set(Run::table().find(run)?.hold.get());
    }

    /// Records that the job is done in this period, and releases its lock. The record is only written if
    /// the lock is still held. Whatever this returns, except for ZKLOCK_DEADLOCK and ZKLOCK_FORKED, the
    /// run has ended: its lock is released, or is being released in the background.
    ///
    /// @param run the run. You must still free it.
    /// @return ZKLOCK_OK; ZKLOCK_LOST if the hold is lost, in which case the run counts as failed, and
    ///         another process may have begun to run the job again; ZKLOCK_NOT_HELD if the run was already
    ///         ended; ZKLOCK_CONFLICT if somebody else has written or deleted the record; ZKLOCK_UNREACHABLE
    ///         if the servers do not answer, so that it is not known whether it is recorded; ZKLOCK_REFUSED
    ///         and ZKLOCK_TIMEOUT as for zklock_release; ZKLOCK_DEADLOCK in a callback.
    pub fn zklock_run_done(run: *mut zklock_run) -> zklock_status {
        Run::table().find(run)?.ending(RunOutcome::Done).wait()?;
    }

    /// Records that the job has failed, and why, and releases its lock, as zklock_run_done does. When the
    /// job runs again depends on the zklock_after_failure of the job.
    ///
    /// @param run the run. You must still free it.
    /// @param why what zklock_once_last shows later. It is kept in one line of at most 500 characters.
    /// @return ZKLOCK_OK; ZKLOCK_DEADLOCK in a callback; and everything that zklock_run_done returns.
    pub fn zklock_run_failed(run: *mut zklock_run, why: *const c_char) -> zklock_status {
        let outcome = failed(why)?;
        Run::table().find(run)?.ending(outcome).wait()?;
    }

    /// Starts to end a run as zklock_run_done does, and returns at once.
    ///
    /// @param run the run. You must still free it. Keep it until the call has its result: if you free the
    ///         run or the call earlier, or cancel the call, the run may count as failed.
    /// @param[out] call the call. Free it with zklock_call_free.
    /// @return ZKLOCK_OK. Other statuses come with the result.
    pub fn zklock_run_done_start(run: *mut zklock_run, call: *mut *mut zklock_call) -> zklock_status {
        start(run, RunOutcome::Done, call)?;
    }

    /// Starts to end a run as zklock_run_failed does, and returns at once. See zklock_run_done_start.
    ///
    /// @param run the run, as for zklock_run_done_start.
    /// @param why as for zklock_run_failed.
    /// @param[out] call the call. Free it with zklock_call_free.
    /// @return ZKLOCK_OK. Other statuses come with the result.
    pub fn zklock_run_failed_start(
        run: *mut zklock_run,
        why: *const c_char,
        call: *mut *mut zklock_call,
    ) -> zklock_status {
        start(run, failed(why)?, call)?;
    }

    /// Frees a run, and its hold as zklock_hold_free does. If it has not been ended, it counts as failed,
    /// and its lock is released in the background.
    ///
    /// @param run may be NULL. A handle that was already freed is ignored.
    pub fn zklock_run_free(run: *mut zklock_run) {
        if let Some(run) = Run::table().take(run) {
            Held::free(run.hold.get());
        }
    }
}

fn failed(why: *const c_char) -> Result<RunOutcome, Failure> {
    Ok(RunOutcome::Failed(text("why", why)?.to_owned()))
}

fn start(run: *mut zklock_run, outcome: RunOutcome, call: *mut *mut zklock_call) -> Result<(), Failure> {
    let call = out("call", call)?;
    let run = Run::table().find(run)?;
    call.set(Started::keep(run.ending(outcome), Some(run.held.events()), Answer::nothing)?);
    Ok(())
}
