//! Telling the host that a hold is lost.

use crate::callback::Turn;
use crate::handle::{Context, Hand, LossFunction, call_loss};
use crate::hold::zklock_hold;
use std::ffi::c_void;
use std::sync::Arc;
use zklock_core::LossReason;
use zklock_core::face::call_later;

/// Why a hold was lost.
#[allow(non_camel_case_types, reason = "the name in C")]
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum zklock_reason {
    /// It is not lost.
    ZKLOCK_REASON_NONE = 0,
    /// The servers ended the session.
    ZKLOCK_REASON_SESSION_EXPIRED = 1,
    /// Somebody deleted the hold's node.
    ZKLOCK_REASON_NODE_DELETED = 2,
    /// The servers could not be heard from in time, so others may hold the lock by now.
    ZKLOCK_REASON_LEASE_LAPSED = 3,
    /// The client was closed.
    ZKLOCK_REASON_CLIENT_CLOSED = 4,
    /// Another, for which this header has no number: the sentence to ZKLOCK_LOST tells it.
    ZKLOCK_REASON_OTHER = 5,
    /// A contender came that cannot see the hold, kazoo's Lock for one: both may hold the lock.
    ZKLOCK_REASON_FOREIGN_CONTENDER = 6,
}

/// Is called when a hold is lost.
#[allow(non_camel_case_types, reason = "the name in C")]
pub type zklock_loss_callback =
    Option<unsafe extern "C" fn(hold: *mut zklock_hold, reason: zklock_reason, context: *mut c_void)>;

pub(crate) fn reason(why: LossReason) -> zklock_reason {
    match why {
        LossReason::SessionExpired => zklock_reason::ZKLOCK_REASON_SESSION_EXPIRED,
        LossReason::NodeDeleted => zklock_reason::ZKLOCK_REASON_NODE_DELETED,
        LossReason::LeaseLapsed => zklock_reason::ZKLOCK_REASON_LEASE_LAPSED,
        LossReason::ClientClosed => zklock_reason::ZKLOCK_REASON_CLIENT_CLOSED,
        LossReason::ForeignContender => zklock_reason::ZKLOCK_REASON_FOREIGN_CONTENDER,
        _ => zklock_reason::ZKLOCK_REASON_OTHER,
    }
}

/// One callback for one hold.
pub(crate) struct Told {
    hold: Hand<zklock_hold>,
    callback: LossFunction,
    context: Context,
    turn: Turn,
}

impl Told {
    pub(crate) fn new(hold: *mut zklock_hold, callback: LossFunction, context: Context) -> Arc<Self> {
        Arc::new(Self { hold: Hand(hold), callback, context, turn: Turn::new() })
    }

    /// What is to be called on the I/O thread, which has no time for callbacks.
    pub(crate) fn teller(self: Arc<Self>) -> impl FnOnce(LossReason) + Send {
        move |why| {
            let tell =
                move || self.turn.run(|| call_loss(self.callback, self.hold, reason(why), self.context));
            // Without a thread for it there is still the descriptor and the state.
            let _ = call_later(tell);
        }
    }

    /// It is not called from now on.
    pub(crate) fn end(&self) {
        self.turn.end();
    }
}
