//! What is recorded of the last run of a job.

use crate::c_enum::c_enum;
use crate::convert::whole;
use crate::failure::cut;
use std::ffi::c_char;
use std::time::{SystemTime, UNIX_EPOCH};
use zklock::further::{Record, RunOutcome};

c_enum! {
    /// How a run of a job ended.
    pub enum zklock_run_outcome {
        /// The job has never run.
        ZKLOCK_RUN_NEVER = 0,
        /// The end is not recorded: it has not come, or the process died or lost the lock before it
        /// could record the end. Such a run counts as failed.
        ZKLOCK_RUN_RUNNING = 1,
        /// The run did its work.
        ZKLOCK_RUN_DONE = 2,
        /// The run failed.
        ZKLOCK_RUN_FAILED = 3,
    }
}

/// The bytes of a text in a record, with the NUL at its end. The struct has the number, for the header.
const TEXT: usize = 512;

/// What is recorded of the last run of a job. zklock_job_last fills all members. The struct never
/// grows. Times are in milliseconds since 1970 on the servers' clock.
#[allow(non_camel_case_types, reason = "the name in C")]
#[repr(C)]
#[derive(Debug)]
pub struct zklock_record {
    /// When the run began.
    pub began: i64,
    /// When it ended; -1 if it has not, or nobody could record that.
    pub ended: i64,
    /// When the next period begins, and the job is due again.
    pub next: i64,
    /// The number of the period in which it ran. Periods are counted from 1970.
    pub period: i64,
    /// The fencing token of the hold under which it ran.
    pub token: u64,
    /// How it ended. If it is ZKLOCK_RUN_NEVER, all other members are 0 or empty.
    pub outcome: zklock_run_outcome,
    /// Whose run it was: the identity from the client's options, "host/pid" by default. A longer one is
    /// cut off.
    pub identity: [c_char; 512],
    /// Why it failed, if it did. A longer text is cut off.
    pub failure: [c_char; 512],
    /// Always 0. A later version may give them a meaning.
    pub reserved: [u32; 9],
}

/// Returns a record as C has it; `None` if the job has never run.
pub(crate) fn shown(record: Option<&Record>) -> zklock_record {
    let Some(record) = record else {
        return zklock_record {
            began: 0,
            ended: 0,
            next: 0,
            period: 0,
            token: 0,
            outcome: zklock_run_outcome::ZKLOCK_RUN_NEVER,
            identity: [0; TEXT],
            failure: [0; TEXT],
            reserved: [0; 9],
        };
    };
    let (outcome, failure) = match &record.outcome {
        RunOutcome::Done => (zklock_run_outcome::ZKLOCK_RUN_DONE, ""),
        RunOutcome::Failed(why) => (zklock_run_outcome::ZKLOCK_RUN_FAILED, why.as_str()),
        _ => (zklock_run_outcome::ZKLOCK_RUN_RUNNING, ""),
    };
    zklock_record {
        began: since_1970(record.began),
        ended: record.ended.map_or(-1, since_1970),
        next: since_1970(record.next()),
        period: record.period(),
        token: record.token.value(),
        outcome,
        identity: characters(&record.identity),
        failure: characters(failure),
        reserved: [0; 9],
    }
}

fn since_1970(at: SystemTime) -> i64 {
    at.duration_since(UNIX_EPOCH).map_or(0, whole)
}

/// A text in an array. The rest of the array is 0.
fn characters(text: &str) -> [c_char; TEXT] {
    let mut characters = [0; TEXT];
    for (place, byte) in characters.iter_mut().zip(cut(text, TEXT - 1).bytes()) {
        *place = c_char::from_ne_bytes([byte]);
    }
    characters
}
