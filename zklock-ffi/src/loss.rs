//! Telling the host that a hold is lost.

use crate::c_enum::c_enum;
use crate::callback::CallbackGate;
use crate::handle::SentHandle;
use crate::raw::{Context, HandleCallback, call_with_handle};
use std::sync::Arc;
use zklock_core::LossReason;
use zklock_core::face::call_later;

c_enum! {
    /// Why a hold was lost.
    #[from(LossReason)]
    pub enum zklock_reason {
        /// It is not lost.
        ZKLOCK_REASON_NONE = 0,
        /// The servers ended the session.
        #[from(SessionExpired)]
        ZKLOCK_REASON_SESSION_EXPIRED = 1,
        /// Somebody deleted the hold's node.
        #[from(NodeDeleted)]
        ZKLOCK_REASON_NODE_DELETED = 2,
        /// The servers could not be heard from in time, so others may hold the lock by now.
        #[from(LeaseLapsed)]
        ZKLOCK_REASON_LEASE_LAPSED = 3,
        /// The client was closed.
        #[from(ClientClosed)]
        ZKLOCK_REASON_CLIENT_CLOSED = 4,
        /// Another reason, for which there is no number: the message of ZKLOCK_LOST says which.
        #[from(Forked)]
        ZKLOCK_REASON_OTHER = 5,
        /// A contender came that cannot see the hold, such as kazoo's Lock: both may hold the lock.
        #[from(ForeignContender)]
        ZKLOCK_REASON_FOREIGN_CONTENDER = 6,
        /// The client closed the session, to be rid of a node that it may not delete: zklock_last_error() of ZKLOCK_LOST
        /// names the right that it lacks.
        #[from(SessionClosed)]
        ZKLOCK_REASON_SESSION_CLOSED = 7,
    }
}

/// One callback for the loss of one handle.
pub(crate) struct Told<H> {
    handle: SentHandle<H>,
    callback: HandleCallback<H, zklock_reason>,
    context: Context,
    gate: CallbackGate,
}

impl<H: 'static> Told<H> {
    pub(crate) fn new(
        handle: *mut H,
        callback: HandleCallback<H, zklock_reason>,
        context: Context,
    ) -> Arc<Self> {
        Arc::new(Self { handle: SentHandle::new(handle), callback, context, gate: CallbackGate::new() })
    }

    /// What is to be called on the I/O thread, which has no time for callbacks.
    pub(crate) fn teller(self: Arc<Self>) -> impl FnOnce(LossReason) + Send {
        move |why| {
            let tell = move || {
                let call = || {
                    call_with_handle(self.callback, self.handle.get(), zklock_reason::of(why), self.context);
                };
                self.gate.run(call);
            };
            // Without a thread for it there is still the descriptor and the state.
            let _ = call_later(tell);
        }
    }

    /// It is not called from now on.
    pub(crate) fn end(&self) {
        self.gate.end();
    }
}
