//! How a holder learns that its hold is lost.

use super::Released;
use crate::session::Status;
use tokio::sync::watch;
use zklock_machine::status::LossReason;

/// Reports the loss of a hold.
#[derive(Clone, Debug)]
pub struct Loss {
    pub(super) status: watch::Receiver<Status>,
    pub(super) released: watch::Receiver<Released>,
}

impl Loss {
    /// Waits for it; `None` if the hold is released instead.
    pub async fn come(self) -> Option<LossReason> {
        let Self { mut status, mut released } = self;
        if *released.borrow() == Released::Before {
            return None;
        }
        let ended = tokio::select! {
            biased;
            ended = status.wait_for(|status| *status != Status::Held) => ended.map(|status| *status).ok()?,
            _ = released.wait_for(|released| *released != Released::No) => return None,
        };
        // It may have been passed on before that.
        if *released.borrow() == Released::Before {
            return None;
        }
        if let Status::Lost(reason) = ended { Some(reason) } else { None }
    }

    /// Why the hold was lost, if it is.
    pub(crate) fn now(&self) -> Option<LossReason> {
        if *self.released.borrow() == Released::Before {
            return None;
        }
        if let Status::Lost(reason) = *self.status.borrow() { Some(reason) } else { None }
    }
}
