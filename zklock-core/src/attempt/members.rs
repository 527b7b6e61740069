//! The members of double barriers in this process, by the names of their nodes.

use crate::base::debt::Debt;
use crate::base::sync::{Mutex, lock_ignoring_poison};
use crate::machine::protocol::Outcome;
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

    /// Removes from listings the members of this process that nobody wants any more, because a caller may come again before
    /// the node of its last try is gone. A member's `own` node stays, even if its caller has just gone: otherwise the
    /// member would believe that it was deleted, and leave it behind.
    pub(crate) fn hide_departed(&self, own: Option<&str>, outcomes: &mut [Outcome]) {
        let is_there = |name: &str| own == Some(name) || !self.has_departed(name);
        for outcome in outcomes {
            match outcome {
                Outcome::Children(children) => children.retain(|child| is_there(child)),
                Outcome::Surveyed(nodes) => nodes.retain(|node| is_there(&node.name)),
                _ => {}
            }
        }
    }

    /// Whether this is a member of this process that nobody wants any more, but whose node may still exist.
    fn has_departed(&self, member: &str) -> bool {
        let members = lock_ignoring_poison(&self.0);
        members.iter().any(|(name, debt)| **name == *member && !debt.is_in_use())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_sees_its_own_node_though_its_caller_has_gone() {
        let members = Members::default();
        for name in ["own", "other"] {
            let debt = Debt::new(&Arc::default());
            members.note(&name.into(), &debt);
            debt.owe();
        }
        let names = |names: &[&str]| Outcome::Children(names.iter().map(|&name| name.to_owned()).collect());
        let mut listing = [names(&["other", "own", "stranger"])];
        members.hide_departed(Some("own"), &mut listing);
        assert_eq!(listing, [names(&["own", "stranger"])]);
    }
}
