//! The names of contenders' nodes: the naming schemes, and the order of the sequence numbers.
//!
//! A lock shares its directory with contenders of other libraries, so every naming scheme is recognised. The order is that
//! of the numbers that the server appended, never that of the strings: prefixes differ, and a number may be negative.

use crate::pattern::Pattern;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// The name of the one node of a single-node lock.
pub const SINGLE_NAME: &str = "lock";
/// The names of companions. They end with a letter, because other libraries take a child that ends with a hyphen and a number
/// for a contender.
static COMPANION: Form = Form::new(Scheme::Single, "holder-", Chosen::Uuid, "-of-lock");

/// Returns the name of the companion of a single-node lock's node: a second node, which is created and deleted with it,
/// and whose name no other attempt has.
///
/// ```
/// use zklock_machine::name::{Uuid, companion, mark_of_companion};
///
/// let mark = Uuid::from_random(7);
/// let name = companion(mark);
/// assert_eq!(name, "holder-00000000-0000-8000-8000-000000000007-of-lock");
/// assert_eq!(mark_of_companion(&name), Some(mark));
/// assert_eq!(mark_of_companion("lock"), None);
/// ```
pub fn companion(mark: Uuid) -> String {
    COMPANION.prefix(mark, 0)
}

/// Returns the mark in the name of a companion; `None` for any other child.
pub fn mark_of_companion(name: &str) -> Option<Uuid> {
    Uuid::parse(COMPANION.chosen_in(name)?)
}

/// Stands between the data of a node and a mark. See [`marked`].
const MARKED: &[u8] = b"\nmarked ";

/// Returns the data of a node whose name has no room for a mark, so that the mark is below its data.
///
/// ```
/// use zklock_machine::name::{Uuid, mark_in_data, marked};
///
/// let mark = Uuid::from_random(7);
/// let data = marked(b"db7/4711", mark);
/// assert_eq!(mark_in_data(&data), Some((&b"db7/4711"[..], mark)));
/// assert_eq!(mark_in_data(b"db7/4711"), None);
/// ```
pub fn marked(data: &[u8], mark: Uuid) -> Arc<[u8]> {
    [data, MARKED, mark.without_dashes().as_bytes()].concat().into()
}

/// Whether these data of a node have a mark, and both have the same.
pub fn have_one_mark(data: &[u8], other: &[u8]) -> bool {
    let mark = |data| mark_in_data(data).map(|(_, mark)| mark);
    mark(data).is_some() && mark(data) == mark(other)
}

/// Returns the mark that is below the data of a node, and the data above it; `None` if there is none.
pub fn mark_in_data(data: &[u8]) -> Option<(&[u8], Uuid)> {
    let (above, mark) = data.split_at_checked(data.len().checked_sub(32)?)?;
    Some((above.strip_suffix(MARKED)?, Uuid::parse(std::str::from_utf8(mark).ok()?)?))
}

/// A sequence number: 32 bits, signed.
///
/// After the largest number, servers before 3.6 continue with the smallest. Later ones stay at the largest, so names
/// repeat, and creations that are in flight together get numbers from the smallest on. The only order is then that of
/// the transactions, which the names do not show. So a number near the end is [used up](Self::is_used_up).
///
/// # Examples
///
/// ```
/// use zklock_machine::name::Sequence;
///
/// assert!(Sequence::new(7).is_before(Sequence::new(8)));
/// assert!(Sequence::new(i32::MAX).is_before(Sequence::new(i32::MIN)));
/// assert!(Sequence::new(i32::MAX).is_used_up() && !Sequence::new(7).is_used_up());
/// assert_eq!(Sequence::new(-5).to_string(), "-000000005");
/// assert_eq!(Sequence::parse("0000000042"), Some(Sequence::new(42)));
/// assert_eq!(Sequence::parse("42"), None);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Sequence(i32);

impl Sequence {
    /// Makes the sequence number with this value.
    pub const fn new(value: i32) -> Self {
        Self(value)
    }

    /// Reads a number exactly as the server writes it (`%010d`) and in no other form.
    pub fn parse(text: &str) -> Option<Self> {
        let value: i32 = text.parse().ok()?;
        let width = if value <= -1_000_000_000 { 11 } else { 10 };
        // The parser also accepts `+`, and `-` before zeros alone.
        let is_signed = text.starts_with(['+', '-']);
        (text.len() == width && is_signed == (value < 0)).then_some(Self(value))
    }

    /// Whether a contender may not hold or wait with this number, because it is so near the end that others could get
    /// the same number, or one that seems to be before it. The distance is the number of creations that may be in
    /// flight together.
    pub const fn is_used_up(self) -> bool {
        self.0 < 0 || self.0 > i32::MAX - (1 << 20)
    }

    /// Whether it was given out long before the numbers are used up.
    pub(crate) const fn is_young(self) -> bool {
        self.0 >= 0 && self.0 < i32::MAX / 2
    }

    /// Whether the server gave out this number before `other`.
    ///
    /// This is right as long as the two are less than 2³¹ creations apart, and one of them is not used up.
    pub const fn is_before(self, other: Self) -> bool {
        other.0.wrapping_sub(self.0) > 0
    }

    /// Returns the order in which the server gave out the two.
    pub fn compare(self, other: Self) -> Ordering {
        // They wrap, so `Greater` is found by comparing in the other direction.
        other.is_before(self).cmp(&self.is_before(other))
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:010}", self.0)
    }
}

/// The mark by which an attempt finds its own node again after the reply to its creation was lost.
///
/// # Examples
///
/// ```
/// use zklock_machine::name::Uuid;
///
/// let uuid = Uuid::from_random(u128::MAX);
/// assert_eq!(uuid.to_string(), "ffffffff-ffff-8fff-bfff-ffffffffffff");
/// assert!(uuid.is_ours());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid(uuid::Uuid);

impl Uuid {
    /// Turns 128 random bits into a UUID of version 8, which is for forms of one's own. The libraries that share our names
    /// take version 4.
    pub const fn from_random(bits: u128) -> Self {
        Self(uuid::Builder::from_custom_bytes(bits.to_be_bytes()).into_uuid())
    }

    /// Whether zklock has made it. What depends on it must do no harm if somebody else has.
    pub const fn is_ours(self) -> bool {
        matches!(self.0.get_version(), Some(uuid::Version::Custom))
    }

    /// Returns the first mark of the attempt with this number, counted from 0, in the session with this random number.
    pub(crate) const fn of_attempt(session: u64, attempt: u64) -> Self {
        Self::from_random((session as u128) << 64 | (attempt << BITS_OF_MARKS) as u128)
    }

    /// Returns the next mark of the same attempt.
    pub const fn next(self) -> Self {
        Self::from_random(self.0.as_u128().wrapping_add(1))
    }

    /// Returns the mark as a contender writes it into a name of a [pattern](Naming::Pattern): without dashes, at which others
    /// may split the name.
    pub(crate) fn without_dashes(self) -> String {
        self.0.simple().to_string()
    }

    /// Finds a mark of this session anywhere in a name, without dashes.
    pub(crate) fn of_session_in(session: u64, text: &str) -> Option<Self> {
        let at = text.find(&format!("{session:016x}"))?;
        Self::parse(text.get(at..at + 32)?)
    }

    /// Returns the part that the marks of one session share, and no other session's have.
    pub const fn session(self) -> u64 {
        self.0.as_u64_pair().0
    }

    /// Returns the part that the marks of one attempt share within the session.
    pub(crate) const fn attempt(self) -> u64 {
        (self.0.as_u64_pair().1 & (u64::MAX >> 2)) >> BITS_OF_MARKS
    }

    /// Reads a mark in a name, with or without dashes.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        // Longer forms have braces or are URNs; no library names a node like that.
        (text.len() <= 36).then(|| uuid::Uuid::try_parse(text).ok().map(Self)).flatten()
    }
}

/// The bits that count the marks of one attempt, which takes a new mark whenever it enters again.
const BITS_OF_MARKS: u32 = 20;

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

impl fmt::Debug for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A naming scheme that libraries share.
///
/// # Examples
///
/// ```
/// # use zklock_machine::name::Naming;
/// assert_eq!(Naming::default().to_string(), "curator");
/// assert_eq!(Naming::pattern("lock-{sequence}")?.to_string(), "lock-{sequence}");
/// # Ok::<(), zklock_machine::layout::InvalidPattern>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Naming {
    /// `_c_<uuid>-lock-<sequence>`: Apache Curator, go-zookeeper and zklock itself.
    #[default]
    Curator,
    /// `<hex>__lock__<sequence>`: kazoo, which by default sees no other naming scheme.
    Kazoo,
    /// `x-<session>-<sequence>`: ZooKeeper's own `WriteLock`, which sees every child that ends with `-` and a number.
    WriteLock,
    /// The layout of a custom lock. [`Naming::pattern`] makes it of a text.
    Pattern(Pattern),
}

impl Naming {
    /// Every one that is not of a pattern.
    #[doc(hidden)]
    pub const ALL: &'static [Self] = &[Self::Curator, Self::Kazoo, Self::WriteLock];
}

impl fmt::Display for Naming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Curator => "curator",
            Self::Kazoo => "kazoo",
            Self::WriteLock => "writelock",
            Self::Pattern(pattern) => pattern.text(),
        })
    }
}

crate::listed! {
    /// How a contender wants to hold the lock.
    ///
    /// # Examples
    ///
    /// ```
    /// # use zklock_machine::name::Role;
    /// assert_eq!(Role::Exclusive.to_string(), "exclusive");
    /// ```
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
    #[non_exhaustive]
    pub enum Role {
        /// The whole lock: a mutex, or the leadership of an election.
        Exclusive,
        /// The read side of a read/write lock.
        Read,
        /// The write side of a read/write lock.
        Write,
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Exclusive => "exclusive",
            Self::Read => "read",
            Self::Write => "write",
        })
    }
}

impl Role {
    /// Whether two contenders with these roles cannot hold at the same time. It is hidden, because only the machine and its
    /// tests ask.
    #[doc(hidden)]
    pub const fn excludes(self, other: Self) -> bool {
        !matches!((self, other), (Self::Read, Self::Read))
    }
}

/// How a node is named: the naming scheme, and the part that tells the roles apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Scheme {
    /// A Curator mutex. Also the queue of its semaphore.
    Mutex,
    /// A Curator reader.
    Read,
    /// A Curator writer.
    Write,
    /// A participant of a Curator election.
    Latch,
    /// A permit of a Curator semaphore.
    Lease,
    /// A kazoo lock or writer.
    KazooLock,
    /// A kazoo reader.
    KazooRead,
    /// ZooKeeper's own `WriteLock`.
    WriteLock,
    /// A contender of a custom lock, with this role. Its names are those of a [layout](crate::layout::Layout).
    Pattern(Role),
    /// The one node of a lock without a queue.
    Single,
}

impl Scheme {
    /// Returns the library whose scheme it is; `None` if that is a pattern.
    pub const fn naming(self) -> Option<Naming> {
        match self {
            Self::Mutex | Self::Read | Self::Write | Self::Latch | Self::Lease | Self::Single => {
                Some(Naming::Curator)
            }
            Self::KazooLock | Self::KazooRead => Some(Naming::Kazoo),
            Self::WriteLock => Some(Naming::WriteLock),
            Self::Pattern(_) => None,
        }
    }

    /// Returns how a contender with such a node wants to hold the lock.
    pub const fn role(self) -> Role {
        match self {
            Self::Read | Self::KazooRead => Role::Read,
            Self::Write => Role::Write,
            Self::Pattern(role) => role,
            Self::Mutex | Self::Latch | Self::Lease | Self::KazooLock | Self::WriteLock | Self::Single => {
                Role::Exclusive
            }
        }
    }

    /// Whether a contender of this scheme recognises a node of the other scheme as a contender.
    ///
    /// If it does not, exclusion cannot be mutual. This is about the libraries with these schemes: zklock recognises
    /// all of them, but cannot tell its own nodes from theirs.
    pub fn sees(self, other: Self) -> bool {
        match self {
            Self::Read | Self::Write => matches!(other, Self::Read | Self::Write),
            // kazoo's locks and writers have the same name; the writer sees readers.
            Self::KazooLock | Self::KazooRead => matches!(other, Self::KazooLock | Self::KazooRead),
            Self::WriteLock => matches!(other, Self::WriteLock | Self::Mutex | Self::Latch),
            Self::Pattern(_) => matches!(other, Self::Pattern(_)),
            Self::Mutex | Self::Latch | Self::Lease | Self::Single => self == other,
        }
    }

    /// Whether a contender with this node may leave a reader in its place when it goes.
    ///
    /// A Curator writer does so if it takes the read side before it releases the write side, and so does ours.
    pub const fn may_leave_a_reader(self) -> bool {
        matches!(self, Self::Write | Self::KazooLock)
    }

    /// Returns the part of a name before the number; empty for [`Single`](Self::Single), and for a [pattern](Self::Pattern),
    /// which has no names without the name of a lock.
    pub fn prefix(self, mark: Uuid, session: i64) -> String {
        prefix_in(&KNOWN, self, mark, session)
    }
}

/// The names of each scheme that libraries share, in the order in which a name is tried. The last are no contenders.
static KNOWN: [Form; 8] = [
    Form::new(Scheme::Read, "_c_", Chosen::Uuid, "-__READ__"),
    Form::new(Scheme::Write, "_c_", Chosen::Uuid, "-__WRIT__"),
    Form::new(Scheme::KazooRead, "", Chosen::Hex, "__rlock__"),
    Form::new(Scheme::KazooLock, "", Chosen::Hex, "__lock__"),
    Form::new(Scheme::Mutex, "_c_", Chosen::Uuid, "-lock-"),
    Form::new(Scheme::Latch, "_c_", Chosen::Uuid, "-latch-"),
    Form::new(Scheme::WriteLock, "x-", Chosen::Session, "-"),
    Form::new(Scheme::Lease, "_c_", Chosen::Uuid, "-lease-"),
];

/// How contenders of one scheme are named: a text, what each chooses, another text, and the number.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Form {
    pub(crate) scheme: Scheme,
    pub(crate) head: Cow<'static, str>,
    pub(crate) chosen: Chosen,
    pub(crate) tail: Cow<'static, str>,
}

/// What a contender chooses for its name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Chosen {
    Nothing,
    /// Any text. Ours is a mark without dashes, at which others may split the name.
    Any,
    /// Curator takes a UUID, and so do we, but it reads any text.
    Uuid,
    /// kazoo takes a UUID without dashes. Its text has no end of its own, so nothing else is read.
    Hex,
    /// ZooKeeper's recipe takes the session, which may be negative. Ours is followed by a mark.
    Session,
}

impl Form {
    pub(crate) const OF_CONTENDERS: &[Self] = KNOWN.split_at(7).0;

    pub(crate) const fn new(scheme: Scheme, head: &'static str, chosen: Chosen, tail: &'static str) -> Self {
        Self { scheme, head: Cow::Borrowed(head), chosen, tail: Cow::Borrowed(tail) }
    }

    /// Returns the text that the contender has chosen; `None` if what is before the number is not of this form.
    fn chosen_in<'a>(&self, front: &'a str) -> Option<&'a str> {
        // The tail first: most forms differ there.
        let chosen = front.strip_suffix(&*self.tail)?.strip_prefix(&*self.head)?;
        self.chosen.can_be(chosen).then_some(chosen)
    }

    pub(crate) fn prefix(&self, mark: Uuid, session: i64) -> String {
        let chosen = match self.chosen {
            Chosen::Nothing => String::new(),
            Chosen::Any | Chosen::Hex => mark.without_dashes(),
            Chosen::Uuid => mark.to_string(),
            Chosen::Session => format!("{session}-{mark}"),
        };
        [&*self.head, &chosen, &*self.tail].concat()
    }
}

impl Chosen {
    fn can_be(self, text: &str) -> bool {
        match self {
            Self::Nothing => text.is_empty(),
            Self::Any | Self::Uuid => !text.is_empty(),
            Self::Hex => text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit()),
            Self::Session => !text.is_empty() && !text.ends_with('-'),
        }
    }
}

/// Recognises a contender that has a name of one of these forms.
pub(crate) fn parse_in<'a>(forms: &[Form], text: &'a str) -> Option<Name<'a>> {
    with_number(text).find_map(|(front, sequence)| {
        let mut names = forms.iter().filter_map(|form| Some((form.scheme, form.chosen_in(front)?)));
        names.next().map(|(scheme, chosen)| Name { text, scheme, sequence, chosen })
    })
}

/// Returns the part of a name before the number, for a contender with this scheme and this mark.
pub(crate) fn prefix_in(forms: &[Form], scheme: Scheme, mark: Uuid, session: i64) -> String {
    let form = forms.iter().find(|form| form.scheme == scheme);
    form.map_or_else(String::new, |form| form.prefix(mark, session))
}

/// A child of a lock's node that is a contender.
///
/// # Examples
///
/// ```
/// use zklock_machine::name::{Name, Role, Scheme, Sequence};
///
/// let name = Name::parse("0123456789abcdef0123456789abcdef__rlock__0000000003").unwrap();
/// assert_eq!((name.scheme, name.scheme.role()), (Scheme::KazooRead, Role::Read));
/// assert_eq!(name.sequence, Sequence::new(3));
/// assert!(Name::parse("settings").is_none());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Name<'a> {
    /// The whole name, as the server lists it.
    pub text: &'a str,
    /// Its naming scheme, which also says what the contender wants.
    pub scheme: Scheme,
    /// Its place in the queue.
    pub sequence: Sequence,
    /// The part that the contender has chosen.
    pub(crate) chosen: &'a str,
}

impl<'a> Name<'a> {
    /// Recognises a contender of any naming scheme; `None` for any other child.
    pub fn parse(text: &'a str) -> Option<Self> {
        parse_in(Form::OF_CONTENDERS, text)
    }

    /// Whether this child is a holder of kazoo's `Semaphore`. It has no number, and does not see locks at its path.
    pub fn is_holder_of_kazoos_semaphore(text: &str) -> bool {
        Chosen::Hex.can_be(text)
    }

    /// Whether this child is a contender for one of several locks under one node, `<name>_lock_<sequence>`. Only
    /// contenders with the same name are its rivals, so it sees no others, and we cannot tell what lock it wants.
    ///
    /// # Examples
    ///
    /// ```
    /// use zklock_machine::name::Name;
    ///
    /// assert!(Name::is_of_several_locks("report_lock_0000000001"));
    /// assert!(!Name::is_of_several_locks("0123456789abcdef0123456789abcdef__lock__0000000001"));
    /// ```
    pub fn is_of_several_locks(text: &str) -> bool {
        with_number(text).any(|(front, _)| front.strip_suffix("_lock_").is_some_and(|name| !name.is_empty()))
    }

    /// Whether this child ends with a sequence number, and its name is not of any library that we know. It may be a
    /// contender of a program with a lock of its own making. What such a contender sees and wants, nobody can tell.
    ///
    /// # Examples
    ///
    /// ```
    /// use zklock_machine::name::Name;
    ///
    /// assert!(Name::is_unknown("lock-0000000001"));
    /// assert!(!Name::is_unknown("_c_a-lock-0000000001") && !Name::is_unknown("lock-1"));
    /// ```
    pub fn is_unknown(text: &str) -> bool {
        with_number(text).next().is_some() && Name::parse(text).is_none()
    }

    /// Recognises a permit of a semaphore.
    pub fn parse_lease(text: &'a str) -> Option<Self> {
        parse_in(&KNOWN[7..], text)
    }

    /// Returns the mark in it, if it has one in our form.
    pub fn uuid(&self) -> Option<Uuid> {
        // There, the session comes before it.
        let is_after_another = self.scheme == Scheme::WriteLock;
        let start = if is_after_another { self.chosen.len().checked_sub(36)? } else { 0 };
        Uuid::parse(self.chosen.get(start..)?)
    }

    /// Returns the order of the queue.
    pub fn compare(&self, other: &Self) -> Ordering {
        self.sequence.compare(other.sequence)
    }
}

/// Returns the text before the sequence number, and the number, for each way in which the text can be read.
pub(crate) fn with_number(text: &str) -> impl Iterator<Item = (&str, Sequence)> {
    // `%010d` makes 10 characters of all numbers except -1,000,000,000 and below.
    [10, 11].into_iter().filter_map(|width| {
        let (front, digits) = text.split_at_checked(text.len().checked_sub(width)?)?;
        Some((front, Sequence::parse(digits)?))
    })
}

#[cfg(test)]
mod tests;
