//! The marks of one session's attempts. They show which nodes none of the attempts knows.
//!
//! A node of ours may exist although its deletion was confirmed: an ensemble that loses its newest transactions when
//! the leader changes brings back what they had deleted. Nobody would delete the node again, and it would block its
//! queue as long as the session lives. So all marks of a session have something in common, and if a session lists a
//! node with such a mark that belongs to no attempt, it deletes the node.

use super::name::{Name, Uuid, mark_of_companion};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The marks of one session's attempts.
///
/// # Examples
///
/// ```
/// use zklock_machine::marks::Marks;
/// use zklock_machine::name::Scheme;
///
/// let mut marks = Marks::new(7);
/// let (one, other) = (marks.begin(), marks.begin());
/// let node = |mark| format!("{}0000000000", Scheme::Mutex.prefix(mark, 1));
/// let children = [node(one), node(other), "_c_a-lock-0000000002".to_owned()];
///
/// let early = marks.begin_listing();
/// marks.end(one);
/// assert_eq!(marks.orphans(early, &children).count(), 0);
/// let late = marks.begin_listing();
/// assert_eq!(marks.orphans(late, &children).collect::<Vec<_>>(), [&children[0]]);
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Marks {
    /// The part that they have in common.
    session: u64,
    begun: u64,
    /// The marks of the attempts that may have nodes.
    live: BTreeMap<u64, Uuid>,
    /// The marks that nobody looks after any more, although they may have nodes.
    abandoned: BTreeSet<Uuid>,
    listings: u64,
    under_way: BTreeSet<Listing>,
    /// The marks that ended while listings were under way, each with the number of listings that had begun by then.
    ended: VecDeque<(u64, Uuid)>,
}

/// One listing, from before it is sent. The nodes it shows may be gone by the time it arrives.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Listing(u64);

/// The session's knowledge about a node in a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Neighbour {
    /// It belongs to an attempt of the session, with this mark.
    Here(Uuid),
    /// It belonged to an attempt of the session, and is gone.
    Gone,
    /// It belongs to another session, or nobody looks after it.
    Elsewhere,
}

impl Marks {
    /// Makes the marks of a session with this number, which must be random.
    pub fn new(random: u64) -> Self {
        let session = Uuid::of_attempt(random, 0).session();
        Self {
            session,
            begun: 0,
            live: BTreeMap::new(),
            abandoned: BTreeSet::new(),
            listings: 0,
            under_way: BTreeSet::new(),
            ended: VecDeque::new(),
        }
    }

    /// Returns the first mark of a new attempt.
    pub fn begin(&mut self) -> Uuid {
        let mark = Uuid::of_attempt(self.session, self.begun);
        self.begun += 1;
        self.live.insert(mark.attempt(), mark);
        mark
    }

    /// The attempt has a new mark, and its nodes with an earlier one are gone.
    pub fn renew(&mut self, mark: Uuid) {
        let earlier = self.live.insert(mark.attempt(), mark);
        self.note_end(earlier);
    }

    /// The attempt is over, and its nodes are gone.
    pub fn end(&mut self, mark: Uuid) {
        let earlier = self.live.remove(&mark.attempt());
        self.note_end(earlier);
    }

    /// Nobody looks after the attempt any more, but it may have nodes.
    pub fn abandon(&mut self, mark: Uuid) {
        self.end(mark);
        self.abandoned.insert(mark);
    }

    /// These nodes exist although they belong to no attempt.
    pub fn disown(&mut self, orphans: &[String]) {
        let marks: Vec<_> = orphans.iter().filter_map(|orphan| self.of_session(orphan)).collect();
        self.abandoned.extend(marks);
    }

    /// Returns what the session knows about a node in a queue.
    pub fn neighbour(&self, child: &str) -> Neighbour {
        match self.of_session(child) {
            Some(mark) if self.is_live(mark) => Neighbour::Here(mark),
            Some(mark) if !self.abandoned.contains(&mark) => Neighbour::Gone,
            _ => Neighbour::Elsewhere,
        }
    }

    /// Returns the mark of a node of this session.
    fn of_session(&self, child: &str) -> Option<Uuid> {
        let of_contender = || Name::parse(child).or_else(|| Name::parse_lease(child))?.uuid();
        // The names of home-made locks have their marks anywhere. One without a mark shows nothing: such a node is looked after
        // by its attempt alone.
        let of_pattern = || Uuid::of_session_in(self.session, child);
        let of_member = || Uuid::parse(child);
        let mark = mark_of_companion(child).or_else(of_contender).or_else(of_pattern).or_else(of_member);
        mark.filter(|mark| mark.session() == self.session)
    }

    fn is_live(&self, mark: Uuid) -> bool {
        self.live.get(&mark.attempt()) == Some(&mark)
    }

    fn note_end(&mut self, mark: Option<Uuid>) {
        if !self.under_way.is_empty() {
            self.ended.extend(mark.map(|mark| (self.listings, mark)));
        }
    }

    /// A listing is about to be sent.
    pub fn begin_listing(&mut self) -> Listing {
        let listing = Listing(self.listings);
        self.listings += 1;
        self.under_way.insert(listing);
        listing
    }

    /// The listing has arrived, or never will.
    pub fn end_listing(&mut self, listing: Listing) {
        self.under_way.remove(&listing);
        let oldest = self.under_way.first().map_or(u64::MAX, |listing| listing.0);
        // Those that had ended before the oldest began are in no listing that is still to come.
        while self.ended.front().is_some_and(|(listings, _)| *listings <= oldest) {
            self.ended.pop_front();
        }
    }

    /// Returns the children that have marks of this session, but of no attempt that had nodes when the listing
    /// began.
    pub fn orphans<'a>(&self, listing: Listing, children: &'a [String]) -> impl Iterator<Item = &'a String> {
        let was_there = move |mark: Uuid| {
            self.is_live(mark)
                || self.ended.iter().any(|(listings, ended)| *listings > listing.0 && *ended == mark)
        };
        let is_orphan = move |child: &&String| self.of_session(child).is_some_and(|mark| !was_there(mark));
        children.iter().filter(is_orphan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use crate::name::{Naming, Role, SINGLE_NAME, Scheme, companion, prefix_in};

    const SCHEMES: [Scheme; 7] = [
        Scheme::Mutex,
        Scheme::Read,
        Scheme::Write,
        Scheme::Latch,
        Scheme::Lease,
        Scheme::KazooLock,
        Scheme::WriteLock,
    ];

    fn node(scheme: Scheme, mark: Uuid) -> String {
        format!("{}0000000003", scheme.prefix(mark, -5))
    }

    #[test]
    fn in_every_naming_a_node_of_no_attempt_is_recognised() {
        let mut marks = Marks::new(u64::MAX);
        let (gone, live) = (marks.begin(), marks.begin());
        marks.end(gone);
        let mut check = |name: &dyn Fn(Uuid) -> String| {
            let others = [SINGLE_NAME, "ready"].map(str::to_owned);
            let children = [&[gone, live, Uuid::from_random(7)].map(name)[..], &others].concat();
            let listing = marks.begin_listing();
            assert_eq!(marks.orphans(listing, &children).collect::<Vec<_>>(), [&children[0]]);
            assert_eq!(marks.neighbour(&children[1]), Neighbour::Here(live), "{children:?}");
        };
        for scheme in SCHEMES {
            check(&|mark| node(scheme, mark));
        }
        check(&companion);
        // The name of a member of a double barrier is its mark.
        check(&|mark| mark.to_string());
        // In the names of home-made locks, a mark may be anywhere.
        for text in [
            "{any}-lock-{sequence}",
            "{any}-{R|W}-{sequence}",
            "lock-{any}{sequence}",
            "a.{any}.{name}{sequence}",
        ] {
            let Ok(Naming::Pattern(pattern)) = Naming::pattern(text) else { panic!("{text}") };
            let layout = Layout::new(&pattern, "report").unwrap();
            let role = if pattern.has_sides() { Role::Write } else { Role::Exclusive };
            let prefix = |mark| prefix_in(&layout.forms, Scheme::Pattern(role), mark, 0);
            check(&|mark| format!("{}0000000003", prefix(mark)));
        }
        for other in ["report_lock_0000000003", "0123456789abcdef0123456789abcdef-lock-0000000003"] {
            assert_eq!(marks.neighbour(other), Neighbour::Elsewhere);
        }
    }

    #[test]
    fn an_earlier_mark_of_an_attempt_is_nobodys() {
        let mut marks = Marks::new(9);
        let first = marks.begin();
        let second = first.next();
        assert_eq!((second.session(), second.attempt()), (first.session(), first.attempt()));
        marks.renew(second);
        let children = [node(Scheme::Mutex, first), node(Scheme::Mutex, second)];
        let listing = marks.begin_listing();
        assert_eq!(marks.orphans(listing, &children).collect::<Vec<_>>(), [&children[0]]);
    }

    #[test]
    fn what_is_of_another_session_or_library_is_left_alone() {
        let (mut marks, mut others) = (Marks::new(1), Marks::new(2));
        let strangers = [
            node(Scheme::Mutex, others.begin()),
            node(Scheme::Mutex, Uuid::from_random(u128::MAX)),
            "_c_0123456789abcdef0123456789abcdef-lock-0000000001".to_owned(),
            "_c_a-lock-0000000001".to_owned(),
            "x-1-0000000001".to_owned(),
            "settings".to_owned(),
        ];
        marks.end(marks.clone().begin());
        let listing = marks.begin_listing();
        assert_eq!(marks.orphans(listing, &strangers).count(), 0);
    }

    #[test]
    fn what_went_while_a_listing_was_under_way_is_nobodys_only_in_the_next() {
        let mut marks = Marks::new(3);
        let (early, other) = (marks.begin_listing(), marks.begin_listing());
        let mark = marks.begin();
        marks.renew(mark.next());
        marks.end(mark);
        let children = [node(Scheme::Mutex, mark), node(Scheme::Mutex, mark.next())];
        marks.end_listing(other);
        assert_eq!(marks.orphans(early, &children).count(), 0);
        marks.end_listing(early);
        assert!(marks.ended.is_empty() && marks.under_way.is_empty());
        let late = marks.begin_listing();
        assert_eq!(marks.orphans(late, &children).count(), 2);
    }

    #[test]
    fn a_node_is_known_to_be_gone_unless_nobody_has_seen_to_that() {
        let mut marks = Marks::new(5);
        let (mark, other) = (marks.begin(), marks.begin());
        let of = |marks: &Marks, mark| marks.neighbour(&node(Scheme::KazooLock, mark));
        assert_eq!(of(&marks, mark), Neighbour::Here(mark));
        marks.renew(mark.next());
        assert_eq!(of(&marks, mark), Neighbour::Gone);
        assert_eq!(of(&marks, mark.next()), Neighbour::Here(mark.next()));
        marks.abandon(mark.next());
        assert_eq!(of(&marks, mark.next()), Neighbour::Elsewhere);
        marks.end(other);
        assert_eq!(of(&marks, other), Neighbour::Gone);
        marks.disown(&[node(Scheme::Mutex, other)]);
        assert_eq!(of(&marks, other), Neighbour::Elsewhere, "it has come back");
        assert_eq!(of(&marks, Marks::new(6).begin()), Neighbour::Elsewhere);
        assert_eq!(marks.neighbour("settings"), Neighbour::Elsewhere);
    }

    #[test]
    fn marks_of_many_attempts_differ() {
        let mut marks = Marks::new(0x0123_4567_89AB_CDEF);
        let begun: std::collections::HashSet<_> = (0..10_000).map(|_| marks.begin()).collect();
        assert_eq!(begun.len(), 10_000);
        assert!(begun.iter().all(|mark| marks.session == mark.session()));
    }
}
