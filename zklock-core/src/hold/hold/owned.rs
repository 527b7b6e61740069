//! The owner of a grant, and who may release it.

use super::Grant;
use crate::base::owner::Owner;
use std::sync::atomic::Ordering;

impl Grant {
    pub(crate) fn owner(&self) -> Owner {
        self.owner
    }

    /// Whether only the owner may release it.
    pub(crate) fn is_bound(&self) -> bool {
        self.bound
    }

    /// Whether it belongs to this owner, and is not about to be released.
    pub(crate) fn is_in_use_by(&self, owner: Owner) -> bool {
        self.owner == owner && self.is_held() && self.holds.load(Ordering::Acquire) > 0
    }

    /// Notes a release by somebody other than the owner: it shows that the program hands holds
    /// over.
    pub(super) fn note_release_by(&self, owner: Owner) {
        if owner != self.owner && self.owner.returns() {
            self.progress.set_handed_over();
        }
    }
}
