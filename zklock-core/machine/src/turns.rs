//! Decides which caller of a process may next take a node that is passed on within it, and when the node is given up.
//!
//! A lock that was released is most likely wanted again by the same process. So its node may stay, and the next caller of
//! the process takes it over without a request. Meanwhile nobody holds it, and nobody else waits. As soon as somebody else
//! does, the node has only the turns that are left to it, or none if nobody uses it.

use crate::Moment;
use std::time::Duration;

/// The shortest interval at which a held node is checked for having become idle.
const SHORTEST_SLEEP: Duration = Duration::from_millis(50);

/// How a node is passed on within its process.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use zklock_machine::turns::Passing;
///
/// assert!(!Passing::default().is_on());
/// assert!(Passing { linger: Duration::from_secs(5), ..Passing::default() }.is_on());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Passing {
    /// How long a node stays that nobody uses.
    pub linger: Duration,
    /// How many callers of the process use a node in a row while others wait, at least one.
    pub turns: u32,
}

impl Default for Passing {
    fn default() -> Self {
        Self { linger: Duration::ZERO, turns: 1 }
    }
}

impl Passing {
    /// Whether a node is ever passed on.
    pub fn is_on(&self) -> bool {
        !self.linger.is_zero() || self.turns > 1
    }
}

/// The holders of a node that is passed on, one after the other or together.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use zklock_machine::Moment;
/// use zklock_machine::turns::{Passing, Turns};
///
/// let at = |secs| Moment::at(Duration::from_secs(secs));
/// let mut turns = Turns::new(Passing { linger: Duration::from_secs(5), turns: 1 }, false);
/// assert!(!turns.take(), "one has it");
/// assert!(!turns.give_back(false, at(1)), "it stays");
/// assert!(turns.take());
/// assert!(!turns.handle_wanted(), "its holder works on");
/// assert!(turns.give_back(false, at(2)), "it is given up: another waits");
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Turns {
    passing: Passing,
    /// Whether several can use it at the same time.
    is_shared: bool,
    holders: usize,
    /// How many more may take it, once others wait.
    left: Option<u32>,
    /// Since when nobody has used it.
    idle: Option<Moment>,
    is_over: bool,
}

impl Turns {
    /// Makes the turns of a node that has just been granted to its first holder.
    pub fn new(passing: Passing, is_shared: bool) -> Self {
        Self { passing, is_shared, holders: 1, left: None, idle: None, is_over: false }
    }

    /// Whether callers of the process have to queue for another node.
    pub fn is_spent(&self) -> bool {
        self.is_over || self.left == Some(0)
    }

    /// Whether others wait.
    pub fn is_wanted(&self) -> bool {
        self.left.is_some()
    }

    /// Whether nobody uses it.
    pub fn is_idle(&self) -> bool {
        !self.is_over && self.holders == 0
    }

    /// Whether anybody uses it.
    pub fn has_holders(&self) -> bool {
        self.holders > 0
    }

    /// Whether another may take it now.
    pub fn may_take(&self) -> bool {
        !self.is_spent() && (self.is_shared || self.holders == 0)
    }

    /// Another caller of the process takes it, if it may.
    pub fn take(&mut self) -> bool {
        let may_take = self.may_take();
        if may_take {
            debug_assert!(self.is_shared || self.holders == 0, "one has it at a time");
            self.holders += 1;
            self.left = self.left.map(|left| left - 1);
            self.idle = None;
        }
        may_take
    }

    /// A holder releases it. Returns whether the node must be given up. If not, and a caller of the process `awaits` it,
    /// that one takes it next.
    pub fn give_back(&mut self, awaits: bool, now: Moment) -> bool {
        debug_assert!(self.holders > 0, "somebody has it");
        self.holders = self.holders.saturating_sub(1);
        if self.holders == 0 && !self.is_over {
            let stays = !self.is_spent() && (awaits || self.may_linger());
            self.idle = stays.then_some(now);
            self.is_over = !stays;
        }
        self.is_over
    }

    /// The caller that it stayed for does not take it, and no other caller of the process awaits it. Returns whether the
    /// node must be given up.
    pub fn handle_untaken(&mut self) -> bool {
        self.end_if(self.holders == 0 && !self.may_linger())
    }

    /// Whether it may stay for nobody in particular.
    fn may_linger(&self) -> bool {
        !self.is_wanted() && !self.passing.linger.is_zero()
    }

    /// Others wait. Returns whether the node must be given up at once.
    pub fn handle_wanted(&mut self) -> bool {
        // The current holder keeps its turn.
        self.left = self.left.or(Some(self.passing.turns.saturating_sub(1)));
        self.end_if(self.holders == 0)
    }

    /// The node is gone, or its holder is about to give it up.
    pub fn handle_end(&mut self) {
        self.is_over = true;
    }

    /// Returns when to call [`handle_timeout`](Self::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Moment> {
        self.idle.filter(|_| !self.is_over).map(|idle| idle + self.passing.linger)
    }

    /// Whether it stays when nobody uses it.
    pub fn lingers(&self) -> bool {
        !self.passing.linger.is_zero()
    }

    /// Returns when to check next whether it has lingered too long. Whenever it becomes idle, this is on time or a moment
    /// late.
    pub fn next_wake(&self, now: Moment) -> Moment {
        self.poll_timeout().unwrap_or_else(|| now + self.passing.linger.max(SHORTEST_SLEEP))
    }

    /// Returns whether the node must be given up because nobody has used it for too long.
    pub fn handle_timeout(&mut self, now: Moment) -> bool {
        let is_due = self.poll_timeout().is_some_and(|due| now >= due);
        self.end_if(is_due)
    }

    /// Ends it if `ends`, and returns whether that is new.
    fn end_if(&mut self, ends: bool) -> bool {
        let changes = ends && !self.is_over;
        self.is_over |= ends;
        changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINGERS: Passing = Passing { linger: Duration::from_secs(5), turns: 1 };

    fn at(secs: u64) -> Moment {
        Moment::at(Duration::from_secs(secs))
    }

    #[test]
    fn it_says_what_becomes_of_it() {
        let mut node = Turns::new(Passing { turns: 2, ..LINGERS }, false);
        let told = |node: &Turns| {
            [node.is_wanted(), node.is_spent(), node.has_holders(), node.is_idle(), node.may_take()]
        };
        assert_eq!(told(&node), [false, false, true, false, false]);
        assert!(!node.give_back(false, at(1)));
        assert_eq!(told(&node), [false, false, false, true, true]);
        assert!(node.take() && !node.handle_wanted());
        assert_eq!(told(&node), [true, false, true, false, false]);
        assert!(!node.give_back(true, at(2)));
        assert_eq!(told(&node), [true, false, false, true, true]);
        assert!(node.take());
        assert_eq!(told(&node), [true, true, true, false, false]);
        assert!(node.give_back(true, at(3)));
        assert_eq!(told(&node), [true, true, false, false, false]);
        assert_eq!(node.poll_timeout(), None);
    }

    #[test]
    fn what_lingers_is_looked_at_when_it_may_be_due() {
        let mut node = Turns::new(LINGERS, false);
        assert!(node.lingers());
        assert_eq!(node.next_wake(at(7)), at(12));
        assert!(!node.give_back(false, at(8)));
        assert_eq!(node.next_wake(at(9)), at(13));
        let brief = Passing { linger: Duration::from_millis(1), turns: 1 };
        assert_eq!(Turns::new(brief, false).next_wake(at(7)), at(7) + SHORTEST_SLEEP);
        assert!(!Turns::new(Passing::default(), false).lingers());
    }

    #[test]
    fn a_node_is_passed_on_if_it_lingers_or_has_turns() {
        assert!(!Passing { turns: 1, ..Passing::default() }.is_on());
        assert!(Passing { turns: 2, ..Passing::default() }.is_on());
    }
}
