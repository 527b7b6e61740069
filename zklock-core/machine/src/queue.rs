//! Decides from the children of the lock's node which contenders hold, and which node to watch. It is a pure function.
//!
//! Every decision about ownership goes through [`standing`]. It is called again with a new listing after every wait,
//! except if only the watched node could have been in the way.

use super::claim::{Claim, Foreign};
use super::name::{Name, Role};

/// Where a contender stands among the children.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing<'a> {
    /// Its node does not exist, so it can neither hold nor wait.
    Absent,
    /// Nobody is in its way.
    Holds,
    /// It waits.
    Waits {
        /// The nearest contender in the way, which goes last.
        nearest: &'a str,
        /// The one before the nearest. When it is gone, the nearest holds, unless somebody has given up.
        second: Option<&'a str>,
        /// Whether nobody else is in the way once the nearest is gone.
        alone: bool,
    },
    /// There is a contender that cannot see this one. Both could believe that they hold.
    Foreign {
        /// The name of its node.
        name: &'a str,
    },
}

/// Returns where the contender with the node `own` stands among `children`.
///
/// Readers wait for the last writer before them, so that a writer that leaves wakes only contenders that can go on. They
/// have no second, or every writer would wake them all. All others wait for the nearest contender before them.
///
/// # Examples
///
/// ```
/// use zklock_machine::claim::Claim;
/// use zklock_machine::name::Scheme;
/// use zklock_machine::queue::{standing, Standing};
///
/// let claim = Claim::new("/locks/report", Scheme::Mutex);
/// let children = ["_c_b-lock-0000000002", "_c_a-lock-0000000001"].map(String::from);
/// assert_eq!(standing(&children, &children[1], &claim), Standing::Holds);
/// assert_eq!(
///     standing(&children, &children[0], &claim),
///     Standing::Waits { nearest: "_c_a-lock-0000000001", second: None, alone: true }
/// );
/// assert_eq!(standing(&children, "_c_c-lock-0000000003", &claim), Standing::Absent);
/// ```
pub fn standing<'a>(children: &'a [String], own: &str, claim: &Claim) -> Standing<'a> {
    let role = claim.scheme.role();
    // Parsed once, because there may be thousands.
    let names = names_in(children, claim);
    let contenders = || names.iter().copied();
    let Some(me) = contenders().find(|name| name.text == own) else {
        return Standing::Absent;
    };
    let rivals = || rivals(&names, own, claim);
    let ahead = || ahead(&names, &me, claim);
    // Wherever they stand: who does not see us may hold with any number.
    if claim.foreign == Foreign::Refuse {
        if let Some(stranger) = rivals().find(|name| !name.scheme.sees(claim.scheme)) {
            return Standing::Foreign { name: stranger.text };
        }
        if let Some(name) = stranger_without_a_queue(children) {
            return Standing::Foreign { name };
        }
    }
    let Some(nearest) = ahead().max_by(Name::compare) else { return Standing::Holds };
    let leaves_one = nearest.scheme.may_leave_a_reader() && role.excludes(Role::Read);
    let others = || ahead().filter(|other| other.text != nearest.text);
    let second = others().max_by(Name::compare).filter(|_| role != Role::Read).map(|other| other.text);
    Standing::Waits { nearest: nearest.text, second, alone: others().next().is_none() && !leaves_one }
}

fn names_in<'a>(children: &'a [String], claim: &Claim) -> Vec<Name<'a>> {
    children.iter().filter_map(|child| claim.parse(child)).collect()
}

/// Returns the contenders that exclude the one with the node `own`. A writer lets its own reader in.
fn rivals<'a>(names: &[Name<'a>], own: &str, claim: &Claim) -> impl Iterator<Item = Name<'a>> {
    names.iter().copied().filter(move |other| {
        other.text != own
            && claim.scheme.role().excludes(other.scheme.role())
            && claim.within.as_deref() != Some(other.text)
    })
}

/// Returns the rivals that are ahead of `me`. A rival that shares our number was there before us: only a reader that
/// reuses the number of its own writer (after a downgrade) can share one.
fn ahead<'a>(names: &[Name<'a>], me: &Name<'_>, claim: &Claim) -> impl Iterator<Item = Name<'a>> {
    rivals(names, me.text, claim).filter(|other| !me.sequence.is_before(other.sequence))
}

/// Returns the contender that has been in the way of the node `own` for longest. While it exists, every newcomer is behind
/// it. The nearest one would show as much, but it may only be somebody's short try.
///
/// # Examples
///
/// ```
/// use zklock_machine::claim::Claim;
/// use zklock_machine::name::Scheme;
/// use zklock_machine::queue::oldest_ahead;
///
/// let claim = Claim::new("/locks/report", Scheme::Mutex);
/// let children = ["_c_c-lock-0000000003", "_c_a-lock-0000000001", "_c_b-lock-0000000002"].map(String::from);
/// assert_eq!(oldest_ahead(&children, &children[0], &claim), Some("_c_a-lock-0000000001"));
/// assert_eq!(oldest_ahead(&children, &children[1], &claim), None);
/// ```
pub fn oldest_ahead<'a>(children: &'a [String], own: &str, claim: &Claim) -> Option<&'a str> {
    let me = claim.parse(own)?;
    ahead(&names_in(children, claim), &me, claim).min_by(Name::compare).map(|oldest| oldest.text)
}

/// Lists the contenders that the one with the node `own` waits for, in their order. Without a node, lists all that it
/// would wait for.
///
/// # Examples
///
/// ```
/// use zklock_machine::claim::Claim;
/// use zklock_machine::name::Scheme;
/// use zklock_machine::queue::in_the_way;
///
/// let claim = Claim::new("/locks/report", Scheme::Mutex);
/// let children = ["_c_c-lock-0000000003", "_c_a-lock-0000000001", "_c_b-lock-0000000002"].map(String::from);
/// assert_eq!(in_the_way(&children, Some(&children[2]), &claim), [&children[1]]);
/// assert_eq!(in_the_way(&children, None, &claim), [&children[1], &children[2], &children[0]]);
/// ```
pub fn in_the_way<'a>(children: &'a [String], own: Option<&str>, claim: &Claim) -> Vec<&'a str> {
    let names = names_in(children, claim);
    let me = own.and_then(|own| names.iter().copied().find(|name| name.text == own));
    let mut rivals: Vec<_> = match &me {
        Some(me) => ahead(&names, me, claim).collect(),
        None => rivals(&names, "", claim).collect(),
    };
    rivals.sort_by(Name::compare);
    rivals.into_iter().map(|name| name.text).collect()
}

/// Counts the contenders in the way of the node `own`; `None` if it does not exist.
///
/// # Examples
///
/// ```
/// use zklock_machine::claim::Claim;
/// use zklock_machine::name::Scheme;
/// use zklock_machine::queue::count_ahead;
///
/// let claim = Claim::new("/locks/report", Scheme::Mutex);
/// let children = ["_c_c-lock-0000000003", "_c_a-lock-0000000001", "_c_b-lock-0000000002"].map(String::from);
/// assert_eq!(count_ahead(&children, &children[0], &claim), Some(2));
/// assert_eq!(count_ahead(&children, &children[1], &claim), Some(0));
/// assert_eq!(count_ahead(&children[1..], &children[0], &claim), None);
/// ```
pub fn count_ahead(children: &[String], own: &str, claim: &Claim) -> Option<usize> {
    // A free lock, which should cost nothing.
    if let [only] = children {
        return (only == own).then_some(0);
    }
    let names = names_in(children, claim);
    let me = *names.iter().find(|name| name.text == own)?;
    Some(ahead(&names, &me, claim).count())
}

/// Whether a contender among `children` waits for the one with the node `own`, which holds. If that one has left the queue
/// with its permits, whether a contender waits for a permit.
///
/// # Examples
///
/// ```
/// use zklock_machine::claim::Claim;
/// use zklock_machine::name::Scheme;
/// use zklock_machine::queue::is_wanted;
///
/// let claim = Claim::new("/locks/report", Scheme::Mutex);
/// let children = ["_c_b-lock-0000000002", "_c_a-lock-0000000001"].map(String::from);
/// assert!(is_wanted(&children, &children[1], &claim));
/// assert!(!is_wanted(&children[1..], &children[1], &claim));
/// ```
pub fn is_wanted(children: &[String], own: &str, claim: &Claim) -> bool {
    let me = claim.parse(own);
    let waits = |other: Name<'_>| match &me {
        // A contender with our number is the reader that its writer let in.
        Some(me) => {
            claim.scheme.role().excludes(other.scheme.role()) && me.sequence.is_before(other.sequence)
        }
        None => true,
    };
    children.iter().filter_map(|child| claim.parse(child)).any(waits)
}

/// Whether a contender that queued now would wait, provided that it sees everybody in its way. If it does not, it learns
/// that when it does queue.
///
/// # Examples
///
/// ```
/// use zklock_machine::claim::Claim;
/// use zklock_machine::name::Scheme;
/// use zklock_machine::queue::is_taken;
///
/// let children = ["_c_a-__READ__0000000001".to_owned()];
/// assert!(is_taken(&children, &Claim::new("/locks/report", Scheme::Write)));
/// assert!(!is_taken(&children, &Claim::new("/locks/report", Scheme::Read)));
/// ```
pub fn is_taken(children: &[String], claim: &Claim) -> bool {
    let role = claim.scheme.role();
    let contenders = children.iter().filter_map(|child| claim.parse(child));
    let mut rivals = contenders.filter(|other| role.excludes(other.scheme.role())).peekable();
    let is_any = rivals.peek().is_some();
    let is_seen = claim.foreign == Foreign::IgnoreUnknown
        || rivals.all(|name| name.scheme.sees(claim.scheme))
            && stranger_without_a_queue(children).is_none()
            && !children.iter().any(|child| Name::is_unknown(child));
    is_any && is_seen
}

/// Returns a child of a lock's path that holds something at that path, but is not part of any of our queues: a holder of
/// kazoo's semaphore.
pub(crate) fn stranger_without_a_queue(children: &[String]) -> Option<&str> {
    children.iter().map(String::as_str).find(|child| Name::is_holder_of_kazoos_semaphore(child))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::Scheme;

    fn node(mark: &str, sequence: i32) -> String {
        format!("_c_{mark}-lock-{sequence:010}")
    }

    #[test]
    fn one_that_would_not_see_a_rival_does_not_take_the_lock_for_busy() {
        let kazoo = format!("{}__lock__0000000001", "0".repeat(32));
        let mut claim = Claim::new("/a", Scheme::Mutex);
        assert!(is_taken(&[node("a", 2)], &claim));
        assert!(!is_taken(&[node("a", 2), kazoo.clone()], &claim));
        assert!(!is_taken(&["config".into()], &claim));
        assert!(!is_taken(&[node("a", 2), "lock-0000000001".into()], &claim), "it may be a contender");
        claim.foreign = Foreign::IgnoreUnknown;
        assert!(is_taken(&[kazoo], &claim));
    }

    #[test]
    fn a_contender_that_cannot_see_us_is_named_unless_it_is_ignored() {
        let kazoo = format!("{}__lock__0000000001", "0".repeat(32));
        let children = [node("a", 2), kazoo.clone()];
        let mut claim = Claim::new("/a", Scheme::Mutex);
        assert_eq!(standing(&children, &children[0], &claim), Standing::Foreign { name: &kazoo });
        claim.foreign = Foreign::IgnoreUnknown;
        let waits = Standing::Waits { nearest: &kazoo, second: None, alone: false };
        assert_eq!(standing(&children, &children[0], &claim), waits);
    }
}
