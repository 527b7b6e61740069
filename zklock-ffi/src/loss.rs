//! Why a hold was lost.

use crate::c_enum::c_enum;
use crate::call::Safe;
use zklock::LossReason;

c_enum! {
    /// Why a hold was lost.
    #[from(LossReason)]
    pub enum zklock_reason {
        /// The hold is not lost.
        ZKLOCK_REASON_NONE = 0,
        /// The servers ended the session.
        #[from(SessionExpired)]
        ZKLOCK_REASON_SESSION_EXPIRED = 1,
        /// The hold's node was deleted.
        #[from(NodeDeleted)]
        ZKLOCK_REASON_NODE_DELETED = 2,
        /// The client did not hear from the servers in time, so others may hold the lock by now.
        #[from(LeaseLapsed)]
        ZKLOCK_REASON_LEASE_LAPSED = 3,
        /// The client was closed, or the program closed descriptors of the library.
        #[from(ClientClosed)]
        ZKLOCK_REASON_CLIENT_CLOSED = 4,
        /// A reason that has no number: the message of ZKLOCK_LOST names it. Or the handle is wrong:
        /// zklock_last_error says how.
        #[from(Forked)]
        ZKLOCK_REASON_OTHER = 5,
        /// A contender came that cannot see the hold, such as kazoo's Lock. Both may hold the lock.
        #[from(ForeignContender)]
        ZKLOCK_REASON_FOREIGN_CONTENDER = 6,
        /// The client closed its session to remove a node that it is not allowed to delete. The
        /// message of ZKLOCK_LOST names the missing right.
        #[from(SessionClosed)]
        ZKLOCK_REASON_SESSION_CLOSED = 7,
    }
}

impl Safe for zklock_reason {
    const SAFE: Self = Self::ZKLOCK_REASON_OTHER;
}
