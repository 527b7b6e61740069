//! How a holder learns that its hold is lost.

use crate::hold::released::Released;
use crate::machine::status::Status;
use crate::session::session::HoldingState;
use tokio::sync::watch;
use zklock_machine::status::LossReason;

/// Reports the loss of a hold.
#[derive(Clone, Debug)]
pub(crate) struct Loss {
    pub(super) state: watch::Receiver<HoldingState>,
    pub(super) released: watch::Receiver<Released>,
}

impl Loss {
    /// Waits until the hold is lost; `None` if it is released instead.
    pub(crate) async fn come(self) -> Option<LossReason> {
        let Self { mut state, mut released } = self;
        if *released.borrow() == Released::Before {
            return None;
        }
        let ended = tokio::select! {
            biased;
            ended = state.wait_for(|state| state.status != Status::Held) => ended.map(|state| state.status).ok()?,
            _ = released.wait_for(|released| *released != Released::No) => return None,
        };
        // The node may have been passed on before that.
        if *released.borrow() == Released::Before {
            return None;
        }
        if let Status::Lost(reason) = ended { Some(reason) } else { None }
    }

    /// Returns why the hold was lost; `None` if it is not.
    pub(crate) fn now(&self) -> Option<LossReason> {
        if *self.released.borrow() == Released::Before {
            return None;
        }
        if let Status::Lost(reason) = self.state.borrow().status { Some(reason) } else { None }
    }

    /// Whether the hold was released.
    pub(super) fn is_released(&self) -> bool {
        *self.released.borrow() != Released::No
    }
}
