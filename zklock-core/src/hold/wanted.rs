//! How a holder learns that others wait for its lock, or have asked for it.

use crate::hold::released::Released;
use crate::machine::status::Status;
use crate::session::session::{HoldingState, Notice};
use tokio::sync::watch;

/// Reports that others want what a hold has.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(super) state: watch::Receiver<HoldingState>,
    pub(super) released: watch::Receiver<Released>,
}

impl Wanted {
    /// Waits until others want it; `false` if the hold ends first.
    pub(crate) async fn come(self) -> bool {
        let Self { mut state, mut released } = self;
        let says = |state: &HoldingState| state.status != Status::Held || state.notice == Notice::Given;
        tokio::select! {
            biased;
            _ = released.wait_for(|released| *released != Released::No) => false,
            state = state.wait_for(says) => state.is_ok_and(|state| state.status == Status::Held),
        }
    }

    /// Whether others are known to want it now.
    pub(crate) fn now(&self) -> bool {
        let HoldingState { status, notice, .. } = *self.state.borrow();
        *self.released.borrow() == Released::No && status == Status::Held && notice == Notice::Given
    }
}
