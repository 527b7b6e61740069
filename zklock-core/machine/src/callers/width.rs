//! How many callers of a process may have nodes at the servers at the same time.

use crate::claim::Claim;
use crate::name::Role;
use crate::turns::Passing;

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Width {
    /// One, because a second could not tell its node from the first one's.
    One,
    /// The holder and the next.
    Two,
    /// The next, and all holders.
    Next,
    All,
}

impl Width {
    pub(super) fn of(claims: &[Claim], passing: Passing) -> Self {
        let excludes = |claim: &Claim| claim.permits.is_none() && claim.scheme.role() != Role::Read;
        if claims.iter().any(|claim| !claim.has_queue()) {
            Self::One
        } else if claims.iter().any(excludes) {
            Self::Two
        } else if claims.iter().any(|claim| claim.permits.is_some()) {
            Self::Next
        } else if passing.is_on() {
            // They share one node until others wait.
            Self::Two
        } else {
            Self::All
        }
    }

    /// Returns the largest number of attempts that count.
    pub(super) const fn attempts(self) -> usize {
        match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Next | Self::All => usize::MAX,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::Permits;
    use crate::name::Scheme;
    use std::time::Duration;

    #[test]
    fn those_that_can_hold_together_have_a_node_each_unless_they_share_one() {
        let lingers = Passing { linger: Duration::from_secs(5), turns: 1 };
        let permits =
            Permits { directory: "/s/leases".into(), count: 1, limit: 2, limit_at: None, data: [].into() };
        let permit = Claim { permits: Some(permits), ..Claim::new("/s/locks", Scheme::Mutex) };
        let read = Claim::new("/a", Scheme::Read);
        let of = |claims: &[&Claim], passing| {
            Width::of(&claims.iter().map(|claim| (*claim).clone()).collect::<Vec<_>>(), passing)
        };
        let never = Passing::default();
        assert_eq!(of(&[&Claim::new("/a", Scheme::Single), &read], never), Width::One);
        assert_eq!(of(&[&Claim::new("/a", Scheme::Mutex), &permit], never), Width::Two);
        assert_eq!(of(&[&permit, &read], never), Width::Next);
        assert_eq!(of(&[&read], never), Width::All);
        assert_eq!(of(&[&read], lingers), Width::Two);
    }
}
