//! How a holder learns that others wait for its lock, or have asked for it.

use crate::hold::released::Released;
use crate::machine::status::Status;
use crate::session::session::{Notice, Told};
use tokio::sync::watch;

/// Reports that others want what a hold has.
#[derive(Clone, Debug)]
pub struct Wanted {
    pub(super) told: watch::Receiver<Told>,
    pub(super) released: watch::Receiver<Released>,
}

impl Wanted {
    /// Waits until others want it; `false` if the hold ends first.
    pub async fn come(self) -> bool {
        let Self { mut told, mut released } = self;
        let says = |told: &Told| told.status != Status::Held || told.notice == Notice::Given;
        tokio::select! {
            biased;
            _ = released.wait_for(|released| *released != Released::No) => false,
            told = told.wait_for(says) => told.is_ok_and(|told| told.status == Status::Held),
        }
    }

    /// Whether others are known to want it now.
    pub(crate) fn now(&self) -> bool {
        let Told { status, notice, .. } = *self.told.borrow();
        *self.released.borrow() == Released::No && status == Status::Held && notice == Notice::Given
    }
}
