//! The members of double barriers in this process, by the names of their nodes.

use crate::base::debt::Debt;
use crate::base::sync::{Mutex, lock_ignoring_poison};
use std::sync::Arc;

/// The members of one barrier.
#[derive(Default)]
pub(crate) struct Members(Mutex<Vec<(Arc<str>, Arc<Debt>)>>);

impl Members {
    /// Notes a member, until it is [forgotten](Self::forget).
    pub(crate) fn note(&self, member: &Arc<str>, debt: &Arc<Debt>) {
        lock_ignoring_poison(&self.0).push((member.clone(), debt.clone()));
    }

    pub(crate) fn forget(&self, member: &str) {
        lock_ignoring_poison(&self.0).retain(|(name, _)| **name != *member);
    }

    /// Whether this is a member of this process that nobody wants any more, but whose node may still exist.
    pub(crate) fn has_departed(&self, member: &str) -> bool {
        let members = lock_ignoring_poison(&self.0);
        members.iter().any(|(name, debt)| **name == *member && !debt.is_in_use())
    }
}
