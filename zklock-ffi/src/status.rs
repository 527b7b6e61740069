//! What a call returns.

use crate::c_enum::c_enum;
use zklock_core::ErrorKind;

c_enum! {
    /// What a call returns. The numbers are never reused.
    #[from(ErrorKind)]
    pub enum zklock_status {
        /// It worked.
        ZKLOCK_OK = 0,
        /// An argument is wrong (NULL, not UTF-8, a bad path, out of range): correct the call.
        #[from(InvalidInput)]
        ZKLOCK_INVALID_ARGUMENT = 1,
        /// Not a handle of this kind, or it was freed before: correct the program.
        ZKLOCK_INVALID_HANDLE = 2,
        /// No server could be reached: check the hosts and the network, or try again later.
        #[from(Unreachable)]
        ZKLOCK_UNREACHABLE = 3,
        /// The time ran out: try again, or do without.
        #[from(Timeout)]
        ZKLOCK_TIMEOUT = 4,
        /// The wait could never end, since this thread itself holds the lock, or is one of ours (in
        /// a callback): correct the program.
        #[from(Deadlock)]
        ZKLOCK_DEADLOCK = 5,
        /// The hold is of a reentrant lock, and belongs to another thread: release it there.
        #[from(NotOwner)]
        ZKLOCK_NOT_OWNER = 6,
        /// The hold has been released before, the ticket's result fetched, what a call gave taken
        /// from it, or the member has left: correct the program.
        #[from(NotHeld)]
        ZKLOCK_NOT_HELD = 7,
        /// The hold is lost: stop what it guarded; others may hold the lock.
        #[from(Lost(_))]
        ZKLOCK_LOST = 8,
        /// A contender of another library is in the queue and cannot see ours: let both sides use
        /// one naming scheme.
        #[from(ForeignContender)]
        ZKLOCK_FOREIGN_CONTENDER = 9,
        /// The servers' access list, their rules or this system's limits forbid it.
        #[from(Refused)]
        ZKLOCK_REFUSED = 10,
        /// The client is closed: make a new one.
        #[from(Closed)]
        ZKLOCK_CLOSED = 11,
        /// The wait was cancelled.
        #[from(Interrupted)]
        ZKLOCK_INTERRUPTED = 12,
        /// A guarded write whose reply was lost: it may have been done. zklock_hold_read shows
        /// whether it was.
        #[from(Uncertain)]
        ZKLOCK_UNCERTAIN = 13,
        /// A guarded write was refused, because a node was not in the required state. Nothing was
        /// written.
        #[from(Conflict)]
        ZKLOCK_CONFLICT = 14,
        /// The handle was made before this process was forked, and belongs to the parent: see
        /// "Fork" above.
        #[from(Forked)]
        ZKLOCK_FORKED = 15,
        /// The ticket or the call has no result yet, or the client no event: wait for the
        /// descriptor.
        ZKLOCK_PENDING = 16,
        /// A bug in zklock, caught before it could do harm: please report it.
        ZKLOCK_INTERNAL = 17,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_its_own_name() {
        for (number, (status, name)) in zklock_status::ALL.iter().enumerate() {
            assert_eq!(*status as usize, number);
            assert_eq!(format!("{status:?}"), name.to_str().unwrap());
        }
    }
}
