//! Decides from the children of a double barrier's node which members may go on, and which others a member that leaves
//! waits for. All are pure functions.
//!
//! A member is an ephemeral child. The child `ready`, which outlives its creator, says that the barrier is open. That
//! it exists means little: the members of a round that crashed leave it behind, and a lone newcomer would be let in.
//! What counts is which is older, `ready` or the members: **a round goes on as long as there is a member that is older
//! than `ready`**. A member that joins a running round renews `ready`, so that this is true for it too: it writes its data.
//!
//! The last member of a round deletes `ready` together with its own node. It asks for the version of `ready` before it
//! looks who is left, and deletes no other version. So it fails if one joins the round meanwhile: after that, no node would
//! show that the other is inside, and two members could wait for each other in two rounds. If `ready` were created anew
//! instead, it would have the same version as before. (Members of Curator's delete any version.)

use std::collections::BTreeSet;

/// The child that says that the barrier is open.
pub const READY: &str = "ready";

/// The most nodes to check in the transaction that opens a barrier, which has to fit into a request.
const GUARDS_AT_MOST: usize = 100;

/// A child, with the transaction that made it what it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BarrierChild<'a> {
    /// Its name.
    pub name: &'a str,
    /// The transaction that created it, or that last wrote `ready`.
    pub czxid: i64,
}

/// The meaning of `ready` for a member that wants to enter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ready<'a> {
    /// It does not exist.
    Missing,
    /// It was created while our node existed: the barrier is open for us.
    Newer,
    /// It existed before us, and so did this member, whose round goes on.
    OfRound(&'a str),
    /// It existed before us, and nobody is left of its round.
    LeftBehind,
}

impl<'a> Ready<'a> {
    /// Returns the meaning of `ready` for the owner of `own`.
    ///
    /// # Examples
    ///
    /// ```
    /// use zklock_machine::barrier::{Ready, BarrierChild};
    ///
    /// let (member, own) = (BarrierChild { name: "m", czxid: 3 }, BarrierChild { name: "o", czxid: 5 });
    /// let ready = |czxid| BarrierChild { name: "ready", czxid };
    /// assert_eq!(Ready::of(&[member, own, ready(6)], "o"), Ready::Newer);
    /// assert_eq!(Ready::of(&[member, own, ready(4)], "o"), Ready::OfRound("m"));
    /// assert_eq!(Ready::of(&[own, ready(4)], "o"), Ready::LeftBehind);
    /// assert_eq!(Ready::of(&[member, own], "o"), Ready::Missing);
    /// ```
    pub fn of(seen: &[BarrierChild<'a>], own: &str) -> Self {
        if opened(seen).is_none() {
            Self::Missing
        } else if insiders(seen).any(|member| member == own) {
            Self::Newer
        } else {
            insiders(seen).next().map_or(Self::LeftBehind, Self::OfRound)
        }
    }
}

/// The next action of a member that wants to enter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Entrance<'a> {
    /// Its node does not exist, so nobody counts it.
    Absent,
    /// Go on.
    Passes,
    /// Create or renew `ready` if these members exist, and go on.
    Opens {
        /// The members, itself among them.
        guards: Vec<&'a str>,
        /// Whether there is a `ready`, which has to be written to.
        renews: bool,
    },
    /// Wait for `ready` to change.
    Waits,
}

/// Decides what the owner of `own` must do, if `members` are enough to open the barrier.
///
/// # Examples
///
/// ```
/// use zklock_machine::barrier::{Entrance, Ready, entrance};
///
/// let children = ["b", "a"].map(String::from);
/// let guards = vec!["b", "a"];
/// assert_eq!(entrance(&children, "b", 3, Ready::Missing), Entrance::Waits);
/// assert_eq!(entrance(&children, "b", 2, Ready::Missing), Entrance::Opens { guards, renews: false });
/// assert_eq!(entrance(&children, "b", 3, Ready::Newer), Entrance::Passes);
/// ```
pub fn entrance<'a>(children: &'a [String], own: &'a str, members: usize, ready: Ready<'a>) -> Entrance<'a> {
    if !children.iter().any(|child| child == own) {
        return Entrance::Absent;
    }
    let others = || others(children, own);
    match ready {
        Ready::Newer => Entrance::Passes,
        Ready::OfRound(member) => Entrance::Opens { guards: vec![own, member], renews: true },
        Ready::Missing | Ready::LeftBehind if others().count() + 1 >= members => {
            let guards = std::iter::once(own).chain(others()).take(members.min(GUARDS_AT_MOST)).collect();
            Entrance::Opens { guards, renews: ready == Ready::LeftBehind }
        }
        Ready::Missing | Ready::LeftBehind => Entrance::Waits,
    }
}

/// Returns the members other than the owner of `own`.
pub fn others<'a>(children: &'a [String], own: &str) -> impl Iterator<Item = &'a str> {
    children.iter().map(String::as_str).filter(move |child| *child != own && *child != READY)
}

/// Returns the members that were inside when the barrier was opened, or joined the round after that.
pub fn insiders<'a>(seen: &[BarrierChild<'a>]) -> impl Iterator<Item = &'a str> {
    let opened = opened(seen).unwrap_or(i64::MIN);
    let members = seen.iter().filter(move |child| child.name != READY && child.czxid < opened);
    members.map(|member| member.name)
}

/// Whether the owner of `own` keeps its node until the others are gone. One member has to, to delete `ready` in the
/// end. As in Curator, it is the member whose name sorts first.
pub fn stays_to_the_end(children: &[String], own: &str) -> bool {
    others(children, own).all(|other| own < other)
}

/// The members that a leaver waits for.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub struct Others {
    /// The members that existed when it went on. They went on too, or will.
    pub entered: BTreeSet<String>,
    /// The members that existed when it began to leave. Later ones belong to the next round, which may be waiting for
    /// this very leaver: waiting for them would be a deadlock.
    pub stayed: BTreeSet<String>,
}

impl Others {
    /// Whether there is a member whose name alone does not say whether it has entered.
    pub fn is_in_doubt(&self, children: &[String]) -> bool {
        children.iter().any(|child| self.stayed.contains(child) && !self.entered.contains(child))
    }

    /// Forgets the members that have not entered. A member whose session ended may have come again before it was
    /// listed, and may be waiting for the next round.
    pub fn correct(&mut self, seen: &[BarrierChild<'_>]) {
        if opened(seen).is_some() {
            let inside: BTreeSet<_> = insiders(seen).collect();
            let outside = |name: &str| seen.iter().any(|child| child.name == name) && !inside.contains(name);
            self.entered.retain(|name| !outside(name));
        }
    }

    /// Lists the members that a leaver still waits for. Without known transactions, lists only those that it waits for
    /// in any case.
    ///
    /// # Examples
    ///
    /// ```
    /// use zklock_machine::barrier::{Others, BarrierChild};
    ///
    /// let names = |names: &[&str]| names.iter().copied().map(String::from).collect();
    /// let others = Others { entered: names(&["a"]), stayed: names(&["a", "b"]) };
    /// let (a, b) = (BarrierChild { name: "a", czxid: 1 }, BarrierChild { name: "b", czxid: 2 });
    /// let next = BarrierChild { name: "c", czxid: 3 };
    /// assert_eq!(others.awaited(&[a, b, next]), ["a"]);
    /// let ready = BarrierChild { name: "ready", czxid: 3 };
    /// assert_eq!(others.awaited(&[a, b, ready]), ["a", "b"]);
    /// ```
    pub fn awaited<'a>(&self, seen: &[BarrierChild<'a>]) -> Vec<&'a str> {
        let inside: BTreeSet<_> = insiders(seen).collect();
        let entered = |name: &&str| self.entered.contains(*name) || inside.contains(name);
        let members = seen.iter().map(|child| child.name).filter(|name| *name != READY);
        members.filter(|name| self.stayed.contains(*name)).filter(entered).collect()
    }
}

/// Chooses which of the awaited members to watch, so that each leaver is woken by few when many leave at once.
///
/// The member that stays to the end waits for the last of them. All others wait for the first, which goes last.
pub fn whom_to_watch<'a>(awaited: &[&'a str], stays: bool) -> Option<&'a str> {
    if stays { awaited.iter().max().copied() } else { awaited.iter().min().copied() }
}

/// Whether the owner of `own` is the only one left of the round, so that `ready` must go with it.
pub fn is_last(seen: &[BarrierChild<'_>], own: &str) -> bool {
    let mut inside = insiders(seen);
    inside.next() == Some(own) && inside.next().is_none()
}

fn opened(seen: &[BarrierChild<'_>]) -> Option<i64> {
    seen.iter().find(|child| child.name == READY).map(|ready| ready.czxid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    /// Children with consecutive transactions.
    fn seen<'a>(names: &[&'a str]) -> Vec<BarrierChild<'a>> {
        (1..).zip(names).map(|(czxid, name)| BarrierChild { name, czxid }).collect()
    }

    #[test]
    fn ready_itself_is_no_member() {
        let children = named(&["a", READY]);
        assert_eq!(entrance(&children, "a", 2, Ready::LeftBehind), Entrance::Waits);
        assert_eq!(others(&children, "a").count(), 0);
        assert!(stays_to_the_end(&named(&["z", READY]), "z"));
    }

    #[test]
    fn what_a_crashed_round_left_behind_lets_nobody_in() {
        assert_eq!(Ready::of(&seen(&[READY, "a", "b"]), "b"), Ready::LeftBehind);
        let children = named(&["a", "b", READY]);
        let opens = Entrance::Opens { guards: vec!["b", "a"], renews: true };
        assert_eq!(entrance(&children, "b", 2, Ready::LeftBehind), opens);
        assert_eq!(entrance(&children, "b", 3, Ready::LeftBehind), Entrance::Waits);
    }

    #[test]
    fn one_who_is_late_joins_a_round_only_while_a_member_of_it_is_there() {
        let ready = Ready::of(&seen(&["m", READY, "late"]), "late");
        assert_eq!(ready, Ready::OfRound("m"));
        let opens = Entrance::Opens { guards: vec!["late", "m"], renews: true };
        assert_eq!(entrance(&named(&["late", "m", READY]), "late", 9, ready), opens);
    }

    #[test]
    fn one_whose_node_is_gone_never_goes_on() {
        for ready in [Ready::Missing, Ready::Newer, Ready::OfRound("b"), Ready::LeftBehind] {
            assert_eq!(entrance(&named(&["b", READY]), "a", 1, ready), Entrance::Absent);
        }
    }

    #[test]
    fn the_guards_fit_into_a_request() {
        let children: Vec<_> = (0..2000).map(|number| number.to_string()).collect();
        let Entrance::Opens { guards, .. } = entrance(&children, "7", 1500, Ready::Missing) else {
            panic!("enough are there")
        };
        assert_eq!((guards.len(), guards[0]), (GUARDS_AT_MOST, "7"));
    }

    #[test]
    fn only_the_first_of_all_stays_to_the_end() {
        let children = named(&["c", "a", READY, "b"]);
        let stay: Vec<_> =
            ["a", "b", "c"].into_iter().filter(|own| stays_to_the_end(&children, own)).collect();
        assert_eq!(stay, ["a"]);
        assert_eq!(whom_to_watch(&["c", "b"], true), Some("c"));
        assert_eq!(whom_to_watch(&["c", "a"], false), Some("a"));
        assert_eq!(whom_to_watch(&[], false), None);
    }

    #[test]
    fn a_leaver_waits_neither_for_the_next_round_nor_for_one_who_missed_this() {
        let others = Others { entered: set(&["a"]), stayed: set(&["a", "missed"]) };
        assert_eq!(others.awaited(&seen(&["a", "missed", "next"])), ["a"]);
        assert_eq!(others.awaited(&seen(&["missed", "next"])), [""; 0]);
        // A `ready` that was left behind makes nobody a member.
        assert_eq!(others.awaited(&seen(&[READY, "missed", "next"])), [""; 0]);
        assert!(others.is_in_doubt(&named(&["missed"])));
        assert!(!others.is_in_doubt(&named(&["a", "next"])));
    }

    #[test]
    fn one_who_came_after_the_barrier_was_opened_has_not_entered() {
        let mut others = Others { entered: set(&["a", "again", "gone"]), stayed: set(&["a", "again"]) };
        others.correct(&seen(&["a", READY, "again"]));
        assert_eq!(others.entered, set(&["a", "gone"]));
        // Nobody can tell without `ready`.
        others.correct(&seen(&["a", "again"]));
        assert_eq!(others.entered, set(&["a", "gone"]));
    }

    #[test]
    fn a_leaver_waits_for_one_who_joined_late() {
        let others = Others { entered: set(&["a"]), stayed: set(&["a", "late"]) };
        assert_eq!(others.awaited(&seen(&["late", READY])), ["late"]);
    }

    #[test]
    fn ready_goes_with_the_last_of_its_round_and_with_nobody_else() {
        assert!(is_last(&seen(&["a", READY]), "a"));
        assert!(is_last(&seen(&["a", READY, "next"]), "a"));
        assert!(!is_last(&seen(&["a", "b", READY]), "a"));
        assert!(!is_last(&seen(&["b", READY, "a"]), "a"));
        assert!(!is_last(&seen(&[READY, "a"]), "a"));
        assert!(!is_last(&seen(&["a"]), "a"));
    }
}
