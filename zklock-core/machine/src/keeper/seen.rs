//! What listings show of the nodes of holds.
//!
//! If a listing does not show a holder's node, the node is deleted, whatever the listing was for. So all listings of a
//! session are passed on, and a hold need not wait for the next check to be lost.

use super::{HoldId, Keeper};
use crate::status::LossReason;
use std::collections::BTreeMap;
use std::ops::Bound;

impl Keeper {
    /// Returns the identity that the next hold will have. Ask for it before a request is sent, and pass it on with the answer as
    /// `before`: the node of that hold, and of any later one, may have been created after the answer.
    pub fn next_hold(&self) -> HoldId {
        self.next
    }

    /// A directory has these children, and no others. A directory that does not exist has none.
    pub fn handle_children(&mut self, before: HoldId, directory: &str, children: &[String]) {
        // The character after the slash ends the range.
        let (from, to) = (format!("{directory}/"), format!("{directory}0"));
        let range = (Bound::Included(&*from), Bound::Excluded(&*to));
        let held = self.nodes.range::<str, _>(range).map(|(path, hold)| (&path[from.len()..], *hold));
        let mut missing: BTreeMap<_, _> =
            held.filter(|(name, hold)| *hold < before && !name.contains('/')).collect();
        if missing.is_empty() {
            return;
        }
        for child in children {
            missing.remove(&**child);
        }
        let lost: Vec<_> = missing.into_values().collect();
        lost.into_iter().for_each(|hold| self.lose(hold, LossReason::NodeDeleted));
    }

    /// A node does not exist.
    pub fn handle_missing(&mut self, before: HoldId, path: &str) {
        if let Some(hold) = self.nodes.get(path).copied().filter(|hold| *hold < before) {
            self.lose(hold, LossReason::NodeDeleted);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Moment;
    use crate::keeper::HeldNode;
    use std::time::Duration;

    const NOW: Moment = Moment::at(Duration::ZERO);

    #[test]
    fn a_hold_whose_node_is_not_among_the_children_is_lost_unless_it_came_after_the_question() {
        let mut keeper = Keeper::new(Duration::from_secs(24), NOW, NOW);
        let mut grant = |paths: &[&str]| {
            let nodes = paths.iter().map(|path| HeldNode { path: (*path).into(), origin: None });
            keeper.handle_grant(nodes.collect(), NOW)
        };
        let (one, two, set) = (grant(&["/a/1"]), grant(&["/a/2"]), grant(&["/a/b/1", "/c/1"]));
        let before = keeper.next_hold();
        let late = keeper.handle_grant(vec![HeldNode { path: "/a/3".into(), origin: None }], NOW);
        let children = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        let lost = |keeper: &mut Keeper| -> Vec<_> { std::iter::from_fn(|| keeper.poll_lost(NOW)).collect() };

        keeper.handle_children(before, "/a", &children(&["0", "2", "1x"]));
        assert_eq!(lost(&mut keeper), [(one, LossReason::NodeDeleted)]);
        keeper.handle_children(before, "/c", &children(&["1"]));
        keeper.handle_children(before, "/", &[]);
        assert_eq!(lost(&mut keeper), []);
        keeper.handle_children(before, "/c", &[]);
        assert_eq!(lost(&mut keeper), [(set, LossReason::NodeDeleted)]);
        keeper.handle_missing(before, "/a/3");
        keeper.handle_missing(before, "/a/4");
        assert_eq!(lost(&mut keeper), [], "it came later");
        keeper.handle_missing(keeper.next_hold(), "/a/3");
        assert_eq!(lost(&mut keeper), [(late, LossReason::NodeDeleted)]);
        keeper.handle_release(two);
        keeper.handle_children(keeper.next_hold(), "/a", &[]);
        assert_eq!(lost(&mut keeper), [], "it was released before");
    }

    #[test]
    fn a_later_hold_may_have_a_node_of_the_same_name() {
        let mut keeper = Keeper::new(Duration::from_secs(24), NOW, NOW);
        let mut grant = |origin| {
            keeper.handle_grant(vec![HeldNode { path: "/a/lock".into(), origin: Some(origin) }], NOW)
        };
        let (first, second) = (grant(1), grant(2));
        keeper.handle_release(first);
        keeper.handle_missing(keeper.next_hold(), "/a/lock");
        assert_eq!(keeper.poll_lost(NOW), Some((second, LossReason::NodeDeleted)));
    }
}
