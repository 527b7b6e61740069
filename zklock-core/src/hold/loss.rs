//! How a holder learns that its hold is lost.

use super::Released;
use crate::session::{Status, Told};
use tokio::sync::watch;
use zklock_machine::status::LossReason;

/// Reports the loss of a hold.
#[derive(Clone, Debug)]
pub struct Loss {
    pub(super) told: watch::Receiver<Told>,
    pub(super) released: watch::Receiver<Released>,
}

impl Loss {
    /// Waits for it; `None` if the hold is released instead.
    pub async fn come(self) -> Option<LossReason> {
        let Self { mut told, mut released } = self;
        if *released.borrow() == Released::Before {
            return None;
        }
        let ended = tokio::select! {
            biased;
            ended = told.wait_for(|told| told.status != Status::Held) => ended.map(|told| told.status).ok()?,
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
        if let Status::Lost(reason) = self.told.borrow().status { Some(reason) } else { None }
    }
}
