//! The statuses that calls return.

use crate::c_enum::c_enum;
use zklock::ErrorKind;

c_enum! {
    /// The status that a call returns. Numbers are never reused.
    #[from(ErrorKind)]
    pub enum zklock_status {
        /// Success.
        ZKLOCK_OK = 0,
        /// An argument is wrong (NULL, not UTF-8, an invalid path, out of range): correct the call.
        #[from(InvalidInput)]
        ZKLOCK_INVALID_ARGUMENT = 1,
        /// The handle is of another type, or has been freed: correct the program.
        ZKLOCK_INVALID_HANDLE = 2,
        /// No server could be reached: check the hosts and the network, or try again later.
        #[from(Unreachable)]
        ZKLOCK_UNREACHABLE = 3,
        /// The time ran out: try again, or do without the lock.
        #[from(Timeout)]
        ZKLOCK_TIMEOUT = 4,
        /// The wait could never end: this thread holds the lock itself, or the call was made in a
        /// callback. Correct the program.
        #[from(Deadlock)]
        ZKLOCK_DEADLOCK = 5,
        /// The hold is of a reentrant lock that another thread acquired: release it on that thread.
        #[from(NotOwner)]
        ZKLOCK_NOT_OWNER = 6,
        /// The hold was already released, the result was already taken from the call, or the member
        /// has already left: correct the program.
        #[from(NotHeld)]
        ZKLOCK_NOT_HELD = 7,
        /// The hold is lost, and others may hold the lock: stop the work that it guarded.
        #[from(Lost(_))]
        ZKLOCK_LOST = 8,
        /// A contender of another library is in the queue and cannot see ours: make both sides use
        /// the same naming scheme (the option naming).
        #[from(ForeignContender)]
        ZKLOCK_FOREIGN_CONTENDER = 9,
        /// An access list, a rule of the servers or a limit of this system forbids it.
        #[from(Refused)]
        ZKLOCK_REFUSED = 10,
        /// The client is closed: make a new one.
        #[from(Closed)]
        ZKLOCK_CLOSED = 11,
        /// The wait was cancelled.
        #[from(Interrupted)]
        ZKLOCK_INTERRUPTED = 12,
        /// The reply to a guarded write was lost, so the write may or may not be done.
        /// zklock_hold_read says what to do.
        #[from(Uncertain)]
        ZKLOCK_UNCERTAIN = 13,
        /// A guarded write was refused because a node was not in the required state. Nothing was
        /// written.
        #[from(Conflict)]
        ZKLOCK_CONFLICT = 14,
        /// The handle was made before this process was forked, and belongs to the parent: see
        /// "Fork" above.
        #[from(Forked)]
        ZKLOCK_FORKED = 15,
        /// The call has no result yet, or the client has no event: wait for the descriptor.
        ZKLOCK_PENDING = 16,
        /// A bug in zklock, caught before it could do harm: please report it.
        ZKLOCK_INTERNAL = 17,
        /// The lock is held, but not certain to be held for long enough: begin nothing, and ask again.
        #[from(AtRisk)]
        ZKLOCK_AT_RISK = 18,
        /// A fence refused a write, because a later holder has written: stop the work.
        #[from(StaleToken)]
        ZKLOCK_STALE_TOKEN = 19,
        /// A fence refused a write, because it keeps the token of another ensemble: zklock_last_error says
        /// how to go on.
        #[from(OtherEnsemble)]
        ZKLOCK_OTHER_ENSEMBLE = 20,
        /// Nothing is left to do: the job has run in this period. zklock_job_last shows that run.
        ZKLOCK_DONE = 21,
    }
}
