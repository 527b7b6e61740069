//! The session's record of one hold, and of others that want it.

use super::Session;
use crate::base::clock;
use crate::base::error::LossReason;
use crate::machine::Moment;
use crate::machine::keeper::HoldId;
use crate::machine::protocol::Outcome;
use crate::machine::status::Status;
use std::sync::{Arc, OnceLock};
use tokio::sync::watch;

/// What an attempt was granted, in its session: nodes, and whether they still prove a hold. Grants that follow one another on
/// the same nodes share it.
pub(crate) struct Holding {
    pub(super) id: HoldId,
    pub(crate) session: Arc<Session>,
    /// The lock's name in messages.
    pub(crate) path: Arc<str>,
    /// The paths of the nodes that represent it. If one of them is gone, it is lost.
    pub(crate) nodes: Vec<Arc<str>>,
    /// The transaction that created the first of its nodes.
    pub(crate) czxid: i64,
    name_is_reused: bool,
    lost_at: OnceLock<Moment>,
    /// One channel for all of them, because a channel takes half a kilobyte.
    state: watch::Sender<HoldingState>,
}

/// The values that are reported about a hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct HoldingState {
    pub(crate) status: Status,
    pub(crate) notice: Notice,
    /// Whether the caller has let go of it, be it lost or not.
    pub(crate) is_let_go: bool,
}

/// Whether others want a hold, as far as is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Notice {
    /// Nobody wants to know.
    Unasked,
    /// Nobody waits, as far as is known, and somebody wants to know when that changes.
    Asked,
    Given,
}

impl Holding {
    pub(super) fn new(
        id: HoldId,
        session: Arc<Session>,
        path: Arc<str>,
        nodes: Vec<Arc<str>>,
        czxid: i64,
        name_is_reused: bool,
    ) -> Self {
        let state = HoldingState { status: Status::Held, notice: Notice::Unasked, is_let_go: false };
        let state = watch::Sender::new(state);
        Self { id, session, path, nodes, czxid, name_is_reused, lost_at: OnceLock::new(), state }
    }

    pub(crate) fn status(&self) -> Status {
        self.state.borrow().status
    }

    pub(crate) fn watch(&self) -> watch::Receiver<HoldingState> {
        self.state.subscribe()
    }

    /// Notes that somebody wants to know when others wait.
    pub(crate) fn ask_for_notice(&self) {
        self.state.send_if_modified(|state| {
            let changes = state.notice == Notice::Unasked;
            if changes {
                state.notice = Notice::Asked;
            }
            changes
        });
    }

    /// Notes that others wait, or no longer do.
    pub(crate) fn set_wanted(&self, is_wanted: bool) {
        let known = if is_wanted { Notice::Given } else { Notice::Asked };
        self.state.send_if_modified(|state| std::mem::replace(&mut state.notice, known) != known);
    }

    /// Whether a later hold's node may have the same name.
    pub(crate) fn name_is_reused(&self) -> bool {
        self.name_is_reused
    }

    /// Whether a later hold's nodes may have the same names as all of its nodes. Then the nodes cannot guard a
    /// write.
    pub(crate) fn all_names_are_reused(&self) -> bool {
        self.name_is_reused && self.nodes.len() == 1
    }

    /// Returns the path of the first of its nodes.
    pub(crate) fn node(&self) -> &str {
        self.nodes.first().map_or("", |node| node)
    }

    /// Notes that the caller lets go of it; `false` if it was lost before.
    pub(super) fn let_go(&self) -> bool {
        let mut is_released = false;
        self.state.send_modify(|state| {
            state.is_let_go = true;
            is_released = state.status.release();
        });
        is_released
    }

    /// Notes that the ensemble refuses to delete the node.
    pub(crate) fn refuse(&self) {
        self.change(Status::refuse);
    }

    /// Notes that nothing is left at the servers: see [`Status::end`].
    pub(crate) fn end(&self, deletion: Option<&Outcome>, over: Option<LossReason>) {
        self.change(|status| status.end(deletion, over));
    }

    /// Returns when it was found to be lost; `None` if it was not.
    pub(crate) fn lost_at(&self) -> Option<Moment> {
        self.lost_at.get().copied()
    }

    /// Notes that it is lost; `false` if it was lost or released before.
    pub(super) fn lose(&self, reason: LossReason) -> bool {
        self.change(|status| {
            let is_lost = status.lose(reason);
            if is_lost {
                self.lost_at.get_or_init(clock::now);
            }
            is_lost
        })
    }

    pub(super) fn log_loss(&self, reason: LossReason) {
        tracing::warn!(node = self.node(), %reason, "hold lost");
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Status) -> bool) -> bool {
        self.state.send_if_modified(|state| change(&mut state.status))
    }
}
