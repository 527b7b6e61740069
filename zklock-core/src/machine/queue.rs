//! Who holds, and whom to watch: a pure function of the children of the lock's node.
//!
//! Every decision about ownership goes through [`standing`]. It is asked again with a new listing
//! after every wait, except where nothing but the one watched node could stand in the way.

use super::name::{Name, Role};

/// A kind of lock: it says who stands in whose way.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// One holder at a time, in the order of arrival.
    Mutex,
}

impl Kind {
    /// Whether an earlier contender that wants `role` keeps one of this kind waiting.
    const fn waits_for(self, role: Role) -> bool {
        match (self, role) {
            (Self::Mutex, Role::Exclusive | Role::Read | Role::Write) => true,
        }
    }
}

/// Where a contender stands among the children.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing<'a> {
    /// Its node is not there: it can neither hold nor wait.
    Absent,
    /// Nobody is in its way.
    Holds,
    /// It waits until `watch` is gone.
    Waits {
        /// The nearest contender in the way: the only one whose end can change anything.
        watch: &'a str,
        /// Whether nobody else is in the way, nor can be when this one is gone.
        alone: bool,
    },
    /// A contender is there that cannot see this one: the two could both believe that they hold.
    Foreign {
        /// The name of its node.
        name: &'a str,
    },
}

/// Where the contender with the node `own` stands among `children`.
///
/// ```
/// use zklock_core::machine::queue::{standing, Kind, Standing};
///
/// let children = ["_c_b-lock-0000000002", "_c_a-lock-0000000001"].map(String::from);
/// assert_eq!(standing(&children, &children[1], Kind::Mutex), Standing::Holds);
/// assert_eq!(
///     standing(&children, &children[0], Kind::Mutex),
///     Standing::Waits { watch: "_c_a-lock-0000000001", alone: true }
/// );
/// assert_eq!(standing(&children, "_c_c-lock-0000000003", Kind::Mutex), Standing::Absent);
/// ```
pub fn standing<'a>(children: &'a [String], own: &str, kind: Kind) -> Standing<'a> {
    let contenders = || children.iter().filter_map(|child| Name::parse(child));
    let Some(me) = contenders().find(|name| name.text == own) else {
        return Standing::Absent;
    };
    if let Some(stranger) = contenders().find(|name| !name.dialect.sees_ours()) {
        return Standing::Foreign { name: stranger.text };
    }
    let mut ahead = 0;
    let mut nearest: Option<Name<'a>> = None;
    for other in contenders().filter(|other| other.text != own && kind.waits_for(other.role)) {
        // A node that shares our number was there before us: only a node that reuses the number of
        // its own writer can (a Curator reader after a downgrade).
        if me.sequence.is_before(other.sequence) {
            continue;
        }
        ahead += 1;
        if nearest.is_none_or(|best| best.sequence.is_before(other.sequence)) {
            nearest = Some(other);
        }
    }
    let Some(nearest) = nearest else { return Standing::Holds };
    // A writer of Curator's may leave a reader in its place.
    let alone = ahead == 1 && nearest.role != Role::Write;
    Standing::Waits { watch: nearest.text, alone }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(mark: &str, sequence: i32) -> String {
        format!("_c_{mark}-lock-{sequence:010}")
    }

    #[test]
    fn the_nearest_before_is_watched_whatever_the_order_of_the_listing() {
        let children = [node("z", 1), node("m", 9), node("a", 4), node("k", 7), "config".into()];
        let expected = Standing::Waits { watch: &children[2], alone: false };
        assert_eq!(standing(&children, &children[3], Kind::Mutex), expected);
        assert_eq!(standing(&children, &children[0], Kind::Mutex), Standing::Holds);
    }

    #[test]
    fn the_order_is_that_of_the_numbers_also_where_they_wrap() {
        let children = [node("a", i32::MIN), node("b", i32::MAX)];
        assert_eq!(standing(&children, &children[1], Kind::Mutex), Standing::Holds);
        let expected = Standing::Waits { watch: &children[1], alone: true };
        assert_eq!(standing(&children, &children[0], Kind::Mutex), expected);
    }

    #[test]
    fn readers_and_writers_of_curator_stand_in_the_way_of_a_mutex() {
        let reader = "_c_r-__READ__0000000001".to_owned();
        let children = [reader.clone(), node("a", 2)];
        let expected = Standing::Waits { watch: &reader, alone: true };
        assert_eq!(standing(&children, &children[1], Kind::Mutex), expected);
    }

    #[test]
    fn a_writer_that_could_leave_a_reader_in_its_place_is_never_alone() {
        let writer = "_c_w-__WRIT__0000000001".to_owned();
        let children = [writer.clone(), node("a", 2)];
        let expected = Standing::Waits { watch: &writer, alone: false };
        assert_eq!(standing(&children, &children[1], Kind::Mutex), expected);
    }

    #[test]
    fn a_node_that_shares_our_number_is_waited_for() {
        let twin = "_c_r-__READ__0000000002".to_owned();
        let children = [twin.clone(), node("a", 2)];
        let expected = Standing::Waits { watch: &twin, alone: true };
        assert_eq!(standing(&children, &children[1], Kind::Mutex), expected);
    }

    #[test]
    fn a_contender_that_cannot_see_us_is_named_wherever_it_stands() {
        let kazoo = format!("{}__lock__0000000009", "0".repeat(32));
        let children = [node("a", 2), kazoo.clone()];
        assert_eq!(standing(&children, &children[0], Kind::Mutex), Standing::Foreign { name: &kazoo });
    }

    #[test]
    fn zookeepers_own_write_lock_takes_its_turn() {
        let other = "x-72057594037927936-0000000001".to_owned();
        let children = [other.clone(), node("a", 2)];
        let expected = Standing::Waits { watch: &other, alone: true };
        assert_eq!(standing(&children, &children[1], Kind::Mutex), expected);
    }
}
