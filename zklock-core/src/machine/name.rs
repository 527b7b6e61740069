//! What contenders' nodes are called: the dialects, and the order of the sequence numbers.
//!
//! A lock shares its directory with contenders of other libraries, so every dialect is recognised.
//! The order is that of the numbers the server appended, never that of the strings: prefixes differ,
//! and the number is a signed 32-bit counter that wraps.

use std::fmt;

/// A sequence number: 32 bits, signed, wrapping.
///
/// ```
/// use zklock_core::machine::name::Sequence;
///
/// assert!(Sequence::new(7).is_before(Sequence::new(8)));
/// // The counter wraps: the number after the largest is the smallest.
/// assert!(Sequence::new(i32::MAX).is_before(Sequence::new(i32::MIN)));
/// assert_eq!(Sequence::new(-5).to_string(), "-000000005");
/// assert_eq!(Sequence::parse("0000000042"), Some(Sequence::new(42)));
/// assert_eq!(Sequence::parse("42"), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Sequence(i32);

impl Sequence {
    /// The sequence number with this value.
    pub const fn new(value: i32) -> Self {
        Self(value)
    }

    /// Reads a number exactly as the server writes it (`%010d`) and in no other form.
    pub fn parse(text: &str) -> Option<Self> {
        let value = Self(text.parse().ok()?);
        // Also turns away a leading `+`, missing zeros and superfluous ones.
        (value.to_string() == text).then_some(value)
    }

    /// Whether the server gave out this number before `other`.
    ///
    /// Right as long as the two are less than 2³¹ creations apart.
    pub const fn is_before(self, other: Self) -> bool {
        other.0.wrapping_sub(self.0) > 0
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:010}", self.0)
    }
}

/// The mark by which an attempt finds its own node again when the reply to its creation was lost.
///
/// ```
/// use zklock_core::machine::name::Uuid;
///
/// let uuid = Uuid::from_random(u128::MAX);
/// assert_eq!(uuid.to_string(), "ffffffff-ffff-4fff-bfff-ffffffffffff");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid(u128);

impl Uuid {
    /// Makes 128 random bits a version 4 UUID.
    pub const fn from_random(bits: u128) -> Self {
        let version = bits & !(0xF << 76) | (0x4 << 76);
        Self(version & !(0x3 << 62) | (0x2 << 62))
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = format!("{:032x}", self.0);
        write!(f, "{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A naming scheme that libraries share.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Dialect {
    /// `_c_<uuid>-lock-<sequence>`: Apache Curator, go-zookeeper and zklock itself.
    Curator,
    /// `<hex>__lock__<sequence>`: kazoo, which by default sees no other dialect.
    Kazoo,
    /// `x-<session>-<sequence>`: ZooKeeper's own `WriteLock`, which sees every child.
    WriteLock,
}

impl Dialect {
    /// Whether a contender of this dialect takes a node of zklock's for a contender.
    ///
    /// Where it does not, exclusion cannot be mutual.
    pub const fn sees_ours(self) -> bool {
        !matches!(self, Self::Kazoo)
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Curator => "curator",
            Self::Kazoo => "kazoo",
            Self::WriteLock => "writelock",
        })
    }
}

/// What a contender wants.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Role {
    /// The whole lock: a mutex.
    Exclusive,
    /// The read side of a read/write lock.
    Read,
    /// The write side of a read/write lock.
    Write,
}

/// The dialect table: what stands between a contender's own mark and its sequence number.
/// An infix matches if the mark before it is of the form that its dialect writes.
const INFIXES: [(&str, Dialect, Role); 6] = [
    ("-__READ__", Dialect::Curator, Role::Read),
    ("-__WRIT__", Dialect::Curator, Role::Write),
    ("__rlock__", Dialect::Kazoo, Role::Read),
    ("__lock__", Dialect::Kazoo, Role::Exclusive),
    ("-lock-", Dialect::Curator, Role::Exclusive),
    ("-", Dialect::WriteLock, Role::Exclusive),
];

/// A child of a lock's node that is a contender.
///
/// ```
/// use zklock_core::machine::name::{Dialect, Name, Role, Sequence};
///
/// let name = Name::parse("0123456789abcdef0123456789abcdef__rlock__0000000003").unwrap();
/// assert_eq!((name.dialect, name.role), (Dialect::Kazoo, Role::Read));
/// assert_eq!(name.sequence, Sequence::new(3));
/// assert!(Name::parse("settings").is_none());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Name<'a> {
    /// The whole name, as the server lists it.
    pub text: &'a str,
    /// The scheme in which it is written.
    pub dialect: Dialect,
    /// What the contender wants.
    pub role: Role,
    /// Its place in the queue.
    pub sequence: Sequence,
}

impl<'a> Name<'a> {
    /// Recognises a contender of any dialect; `None` for any other child.
    pub fn parse(text: &'a str) -> Option<Self> {
        // `%010d` makes 10 characters of all numbers but those of -1,000,000,000 and below.
        [10, 11].into_iter().find_map(|width| {
            let (front, digits) = text.split_at_checked(text.len().checked_sub(width)?)?;
            let sequence = Sequence::parse(digits)?;
            INFIXES.iter().find_map(|&(infix, dialect, role)| {
                let mark = front.strip_suffix(infix)?;
                is_mark(mark, dialect).then_some(Self { text, dialect, role, sequence })
            })
        })
    }

    /// The part of a name that the contender chooses: the server appends the sequence number.
    pub fn prefix(uuid: Uuid) -> String {
        format!("_c_{uuid}-lock-")
    }
}

/// Whether `mark` is what a contender of this dialect puts in front of its infix.
fn is_mark(mark: &str, dialect: Dialect) -> bool {
    match dialect {
        Dialect::Curator => mark.strip_prefix("_c_").is_some_and(|id| !id.is_empty()),
        Dialect::Kazoo => mark.len() == 32 && mark.bytes().all(|byte| byte.is_ascii_hexdigit()),
        Dialect::WriteLock => mark.len() > 2 && mark.starts_with("x-") && !mark.ends_with('-'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "01234567-89ab-4cde-8f01-23456789abcd";

    fn parsed(text: &str) -> Option<(Dialect, Role, i32)> {
        Name::parse(text).map(|name| (name.dialect, name.role, name.sequence.0))
    }

    #[test]
    fn the_names_that_other_libraries_write_are_recognised() {
        let hex = "0123456789abcdef0123456789abcdef";
        let table = [
            (format!("_c_{UUID}-lock-0000000007"), Dialect::Curator, Role::Exclusive, 7),
            (format!("_c_{hex}-lock-0000000007"), Dialect::Curator, Role::Exclusive, 7),
            (format!("_c_{UUID}-__READ__0000000007"), Dialect::Curator, Role::Read, 7),
            (format!("_c_{UUID}-__WRIT__0000000007"), Dialect::Curator, Role::Write, 7),
            (format!("{hex}__lock__0000000007"), Dialect::Kazoo, Role::Exclusive, 7),
            (format!("{hex}__rlock__0000000007"), Dialect::Kazoo, Role::Read, 7),
            ("x-72057594037927936-0000000007".into(), Dialect::WriteLock, Role::Exclusive, 7),
            ("x--72057594037927936-0000000007".into(), Dialect::WriteLock, Role::Exclusive, 7),
            (format!("x-1-{UUID}-0000000007"), Dialect::WriteLock, Role::Exclusive, 7),
        ];
        for (text, dialect, role, sequence) in table {
            assert_eq!(parsed(&text), Some((dialect, role, sequence)), "{text}");
        }
    }

    #[test]
    fn negative_and_wide_numbers_are_read_as_the_server_writes_them() {
        for value in [0, -1, -999_999_999, -1_000_000_000, i32::MIN, i32::MAX, 1_500_000_000, -1_500_000_000]
        {
            let sequence = Sequence::new(value);
            for front in [format!("_c_{UUID}-lock-"), "x-5-".into(), format!("{}__lock__", "a".repeat(32))] {
                let text = format!("{front}{sequence}");
                assert_eq!(parsed(&text).map(|(.., number)| number), Some(value), "{text}");
            }
        }
    }

    #[test]
    fn other_children_are_no_contenders() {
        for text in [
            "",
            "lock",
            "0000000001",
            "-lock-0000000001",
            "_c_-lock-0000000001",
            "_c_id-lock-1",
            "_c_id-lock-00000000001",
            "_c_id-lock-+000000001",
            "_c_id-lock-2147483648",
            "_c_id-lock-000000000x",
            "_c_id-lease-0000000001",
            "short__lock__0000000001",
            "x-0000000001",
            "x--0000000001",
            "-000000001",
            "naïve",
            "ééééé",
        ] {
            assert_eq!(parsed(text), None, "{text}");
        }
    }

    #[test]
    fn the_order_wraps() {
        let order = [i32::MAX - 1, i32::MAX, i32::MIN, i32::MIN + 1].map(Sequence::new);
        for (i, left) in order.iter().enumerate() {
            for (j, right) in order.iter().enumerate() {
                assert_eq!(left.is_before(*right), i < j, "{left} before {right}");
            }
        }
    }

    #[test]
    fn our_own_names_are_recognised() {
        let uuid = Uuid::from_random(0x0123_4567_89AB_CDEF_0123_4567_89AB_CDEF);
        let text = format!("{}0000000000", Name::prefix(uuid));
        assert_eq!(parsed(&text), Some((Dialect::Curator, Role::Exclusive, 0)));
    }
}
