//! The description of a lock: its kind, its path and its options, as a value that needs no client.
//!
//! Every face describes a lock before it can make it; in Python, even before the client has connected. So all locks are
//! described and checked here.

use crate::base::error::{Error, ErrorKind};
use crate::client::semaphore::check_permits;
use crate::client::{all, any, semaphore};
use crate::connect::named::{self, Named, Value, count, duration, invalid, named, yes_or_no};
use crate::connect::options::ClientOptions;
use crate::connect::path::{check_lock_path, check_path};
use crate::machine::claim::{Claim, Foreign};
use crate::machine::name::{Naming, Role, Scheme, Sequence, Uuid};
use crate::machine::turns::Passing;
use crate::zookeeper::node_data;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// The most bytes of a metrics name.
const NAME_AT_MOST: usize = 128;

/// The description of a [`Lock`](crate::Lock): its kind, its path and its options. [`Client::lock`](crate::Client::lock)
/// makes the lock.
///
/// # Examples
///
/// ```no_run
/// use zklock::LockSpec;
/// use zklock::further::Naming;
///
/// # fn example(client: zklock::Client) -> Result<(), zklock::Error> {
/// let spec = LockSpec::read_lock("/locks/table")?.reentrant(true).naming(Naming::Kazoo);
/// let lock = client.lock(&spec)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use]
pub struct LockSpec {
    path: String,
    kind: Kind,
    reentrant: bool,
    naming: Naming,
    foreign: Foreign,
    /// How a node is passed on within the process: `linger` and `max_local_handoffs`.
    pub(crate) passing: Passing,
    permits: u32,
    limit_at: Option<String>,
    metrics_name: Option<Arc<str>>,
}

/// The options of a lock, by name.
#[rustfmt::skip]
const NAMED: &[Named<LockSpec>] = &[
    named("reentrant", Value::YesNo, "no",
        "Whether a thread that holds the lock may acquire it again. Only that thread may then release its holds. Not for semaphores",
        |spec, text| Ok(spec.reentrant(yes_or_no(text)?))),
    named("naming", Value::Text("NAMING"), "curator",
        "The library that the lock shares its queue with: curator (also go-zookeeper), kazoo for mutexes and read/write locks, writelock \
         for mutexes; or the pattern of a custom lock, such as {name}_lock_{sequence}",
        |spec, text| Ok(spec.naming(text.parse()?))),
    named("foreign", Value::Text("refuse|ignore-unknown"), "refuse",
        "Whether an acquire fails if a contender cannot see ours. ignore-unknown is dangerous: an acquire waits for contenders of known \
         libraries, which must see ours, and ignores all others, which must have nothing to do with the lock. Otherwise two may hold it",
        |spec, text| match text {
            "refuse" => Ok(spec.foreign(Foreign::Refuse)),
            "ignore-unknown" => Ok(spec.foreign(Foreign::IgnoreUnknown)),
            _ => Err(invalid(&format!("{text:?} is neither refuse nor ignore-unknown"))),
        }),
    named("permits", Value::Count, "1", "How many permits of a semaphore to acquire at once, up to 256",
        |spec, text| count(text).and_then(|permits| check_permits(permits).map(|()| spec.permits(permits)))),
    named("limit-at", Value::Text("PATH"), "", "The node that stores a semaphore's number of permits, in the format of Curator's SharedCount",
        |spec, text| check_lock_path(text).map(|()| spec.limit_at(text))),
    named("linger", Value::Duration, "0s",
        "How long the lock's node stays after a release while no other client wants the lock, so that this client acquires it again \
         without a request. For mutexes and read/write locks",
        |spec, text| Ok(spec.linger(duration(text)?))),
    named("max-local-handoffs", Value::Count, "0",
        "How often holders of this client may pass the lock on among themselves while other clients wait. For mutexes and read/write locks",
        |spec, text| Ok(spec.max_local_handoffs(count(text)?))),
    named("metrics-name", Value::Text("NAME"), "", "A name under which the client counts the lock separately, up to 128 bytes",
        |spec, text| check_metrics_name(text).map(|()| spec.metrics_name(text))),
];

/// The kinds of lock, and the recipes of other libraries with which each shares its queue.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Kind {
    /// One holder at a time, in the order of arrival: Curator's `InterProcessMutex` and `LeaderSelector`.
    Mutex,
    /// Many readers or one writer, in the order of arrival: Curator's `InterProcessReadWriteLock`, and in kazoo's naming scheme
    /// kazoo's `ReadLock` and `WriteLock`. A reader waits only for the last writer before it, so a writer that leaves wakes
    /// only contenders that can go on. A contender that comes after a waiting writer waits behind it, so that no writer
    /// starves.
    Read,
    Write,
    /// One contender leads, and the others are ready to take over: Curator's `LeaderLatch`.
    Election,
    /// A single node, which exists or not, to share a lock with programs that create that node. There is no queue. When the
    /// node is deleted, all waiters are woken, and the first to create it again has the lock.
    ///
    /// The nodes of all holders have the same path. So each holder has a second node beside it, its companion
    /// `holder-<uuid>-of-lock`. Both are created in one transaction, and deleted in one. So a holder deletes its own node and
    /// no other, even if replies are lost, and its hold can guard writes. If an operator deletes the node by hand, the companion
    /// stays. A holder that is just releasing the lock may then delete the node of the next one, which learns of that within a
    /// heartbeat. ([Breaking](crate::Lock::break_lock) the lock deletes both.)
    ///
    /// On servers of version 3.4 there is no companion, because the client library sends them no transaction that creates
    /// nodes. So a hold cannot guard writes there. And the next holder's node can be deleted by mistake: if the reply to a
    /// release is lost, and then either a server loses that deletion, or a follower that was cut off from its leader passes it
    /// on late.
    SingleNode,
    /// See [`semaphore`].
    Semaphore {
        limit: u32,
    },
    /// See [`all`].
    All(Vec<LockSpec>),
    /// See [`any`].
    Any(Vec<LockSpec>),
}

impl LockSpec {
    fn at(path: &str, kind: Kind) -> Result<Self, Error> {
        check_lock_path(path)?;
        Ok(Self::new(path.to_owned(), kind))
    }

    fn new(path: String, kind: Kind) -> Self {
        Self {
            path,
            kind,
            reentrant: false,
            naming: Naming::default(),
            foreign: Foreign::default(),
            passing: Passing::default(),
            permits: 1,
            limit_at: None,
            metrics_name: None,
        }
    }

    /// Describes a [mutex](crate::Client::mutex).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](crate::ErrorKind::InvalidInput) if `path` cannot be the path of
    /// a lock.
    ///
    /// # Examples
    ///
    /// ```
    /// use zklock::LockSpec;
    ///
    /// // A path from a configuration file, checked before there is a client.
    /// assert!(LockSpec::mutex("/locks/report").is_ok());
    /// assert!(LockSpec::mutex("locks/report").is_err());
    /// ```
    pub fn mutex(path: &str) -> Result<Self, Error> {
        Self::at(path, Kind::Mutex)
    }

    /// Describes the [read side](crate::Client::read_lock) of a read/write lock.
    ///
    /// # Errors
    ///
    /// Fails like [`mutex`](Self::mutex) does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock::LockSpec;
    /// use zklock::further::Naming;
    ///
    /// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
    /// // In one queue with kazoo's `ReadLock` and `WriteLock`.
    /// let readers = client.lock(&LockSpec::read_lock("/locks/table")?.naming(Naming::Kazoo))?;
    /// let hold = readers.acquire().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn read_lock(path: &str) -> Result<Self, Error> {
        Self::at(path, Kind::Read)
    }

    /// Describes the [write side](crate::Client::write_lock) of a read/write lock.
    ///
    /// # Errors
    ///
    /// Fails like [`mutex`](Self::mutex) does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock::LockSpec;
    ///
    /// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
    /// // Reentrant, so that its holder may go on as a reader.
    /// let write = client.lock(&LockSpec::write_lock("/locks/table")?.reentrant(true))?.acquire().await?;
    /// let read = client.read_lock("/locks/table")?.acquire().await?;
    /// write.release().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn write_lock(path: &str) -> Result<Self, Error> {
        Self::at(path, Kind::Write)
    }

    /// Describes a [semaphore](crate::Client::semaphore) with `limit` permits.
    ///
    /// # Errors
    ///
    /// Fails like [`mutex`](Self::mutex) does.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock::LockSpec;
    ///
    /// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
    /// let three = client.lock(&LockSpec::semaphore("/locks/licences", 5)?.permits(3))?.acquire().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn semaphore(path: &str, limit: u32) -> Result<Self, Error> {
        Self::at(path, Kind::Semaphore { limit })
    }

    /// Sets how many permits of a semaphore to acquire at once. Default: 1.
    ///
    /// # Examples
    ///
    /// ```
    /// use zklock::LockSpec;
    ///
    /// // For a job that needs two of the five licences.
    /// let spec = LockSpec::semaphore("/locks/licences", 5)?.permits(2);
    /// assert_eq!(spec.kind(), "2 of semaphore of 5");
    /// # Ok::<(), zklock::Error>(())
    /// ```
    pub fn permits(mut self, permits: u32) -> Self {
        self.permits = permits;
        self
    }

    /// Sets the node that stores the number of permits, in the format of Curator's `SharedCount`. While it does not
    /// exist, the limit given to [`semaphore`](Self::semaphore) applies. Default: no such node.
    ///
    /// Every waiter notices when the number changes. [`Client::set_limit`](crate::Client::set_limit) writes it.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock::LockSpec;
    ///
    /// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
    /// let spec = LockSpec::semaphore("/locks/licences", 5)?.limit_at("/limits/licences");
    /// let permit = client.lock(&spec)?.acquire().await?;
    /// // From now on there are seven, for everybody who names that node.
    /// client.set_limit("/limits/licences", 7).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn limit_at(mut self, path: &str) -> Self {
        self.limit_at = Some(path.to_owned());
        self
    }

    /// Describes the leadership of an [election](crate::Client::election).
    ///
    /// # Errors
    ///
    /// Fails like [`mutex`](Self::mutex) does.
    ///
    /// # Examples
    ///
    /// ```
    /// use zklock::LockSpec;
    ///
    /// // For a process that leads either of two elections.
    /// let either = [LockSpec::election("/election/scheduler")?, LockSpec::election("/election/janitor")?];
    /// assert_eq!(LockSpec::any(either)?.path(), "/election/scheduler, /election/janitor");
    /// # Ok::<(), zklock::Error>(())
    /// ```
    pub fn election(path: &str) -> Result<Self, Error> {
        Self::at(path, Kind::Election)
    }

    /// Describes an [single-node lock](crate::Client::single_node).
    ///
    /// # Errors
    ///
    /// Fails like [`mutex`](Self::mutex) does.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use zklock::LockSpec;
    ///
    /// let spec = LockSpec::single_node("/jobs/nightly")?;
    /// assert!(spec.check().is_ok());
    /// // It has no queue, so it has no such option.
    /// assert!(spec.linger(Duration::from_secs(10)).check().is_err());
    /// # Ok::<(), zklock::Error>(())
    /// ```
    pub fn single_node(path: &str) -> Result<Self, Error> {
        Self::at(path, Kind::SingleNode)
    }

    /// Describes the [set](crate::Client::all) of these locks. They keep their own options, except that only the set as a
    /// whole is reentrant or not. A lock that is named twice, with the same options, is in the set once.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if there are no locks, one has no queue, two different ones have the same path, or there
    /// are too many for one request. A semaphore that is named twice is such an error too, because that may mean two
    /// [`permits`](Self::permits).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock::LockSpec;
    ///
    /// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
    /// let both = LockSpec::all([LockSpec::mutex("/accounts/1")?, LockSpec::mutex("/accounts/2")?])?;
    /// let hold = client.lock(&both)?.acquire().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn all(specs: impl IntoIterator<Item = Self>) -> Result<Self, Error> {
        let members = Self::folded(specs);
        let set = Self::new(all::joined(&Self::paths(&members)), Kind::All(members));
        set.check().map(|()| set)
    }

    fn paths(specs: &[Self]) -> Vec<&str> {
        specs.iter().map(Self::path).collect()
    }

    /// Leaves out what is equal to an earlier one, but for semaphores.
    fn folded(specs: impl IntoIterator<Item = Self>) -> Vec<Self> {
        let mut members: Vec<Self> = Vec::new();
        let mut places = HashMap::new();
        for spec in specs {
            let place = *places.entry(spec.path.clone()).or_insert(members.len());
            let is_semaphore = matches!(spec.kind, Kind::Semaphore { .. });
            if is_semaphore || members.get(place) != Some(&spec) {
                members.push(spec);
            }
        }
        members
    }

    /// Describes a [choice](crate::Client::any) of these locks. They keep their own options; the choice has none.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if there are no locks, one has no queue or is itself a choice, two have the same path, or
    /// there are too many for one session to watch.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock::LockSpec;
    ///
    /// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
    /// let either = LockSpec::any([LockSpec::mutex("/jobs/1")?, LockSpec::mutex("/jobs/2")?])?;
    /// let hold = client.lock(&either)?.acquire().await?;
    /// println!("{}", hold.path());
    /// # Ok(())
    /// # }
    /// ```
    pub fn any(specs: impl IntoIterator<Item = Self>) -> Result<Self, Error> {
        let members: Vec<_> = specs.into_iter().collect();
        let choice = Self::new(Self::paths(&members).join(", "), Kind::Any(members));
        any::check(&choice.path, &choice.claims()?, 0).map(|()| choice)
    }

    /// All options that have names, for [`set`](Self::set).
    #[doc(hidden)]
    pub const NAMED: &'static [Named<Self>] = NAMED;

    /// Sets an option by its name, as C and C++ name it. A duration is written as `10s`, a choice as `yes` or `no`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if there is no such option, or it cannot have this value. The message names the nearest
    /// option, or the values that are possible. Whether this kind of lock has the option, [`check`](Self::check) says.
    ///
    /// # Examples
    ///
    /// ```
    /// use zklock::LockSpec;
    ///
    /// let spec = LockSpec::mutex("/locks/report")?.set("linger", "10s")?.set("naming", "kazoo")?;
    /// let error = spec.set("lingers", "10s").unwrap_err();
    /// assert!(error.to_string().ends_with("did you mean linger?"));
    /// # Ok::<(), zklock::Error>(())
    /// ```
    pub fn set(self, name: &str, value: &str) -> Result<Self, Error> {
        named::set(NAMED, self, name, value)
    }

    /// Returns the same lock with the options of another. It is hidden, because only in C they are set before there is a lock.
    #[doc(hidden)]
    pub fn with_options_of(self, other: &Self) -> Self {
        Self { path: self.path, kind: self.kind, ..other.clone() }
    }

    /// Sets whether an owner that holds the lock may acquire it again. Default: no.
    ///
    /// The owner is the tokio task, or the thread if there is no task. Only its owner may release a hold of a reentrant
    /// lock. A hold of any other lock may be released by any task or thread. So if its owner acquires the lock again before
    /// that, it waits like any other caller. For the same reason, an owner that holds the write side can acquire the [read
    /// side](crate::Client::write_lock) at once only if its lock of the write side is reentrant.
    ///
    /// Reentrancy is for nested sections in one task or thread. Do not use it if the task or thread may switch to other
    /// work while it holds the lock: that work has the same owner, so both would hold the lock together. Examples are a
    /// thread that runs green threads, a thread of a pool between two calls, and a task that runs two futures with `join!`.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock::LockSpec;
    ///
    /// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
    /// let lock = client.lock(&LockSpec::mutex("/locks/report")?.reentrant(true))?;
    /// let outer = lock.acquire().await?;
    /// let inner = lock.acquire().await?;
    /// assert_eq!(outer.token(), inner.token());
    /// # Ok(())
    /// # }
    /// ```
    pub fn reentrant(mut self, reentrant: bool) -> Self {
        self.reentrant = reentrant;
        self
    }

    /// Sets the naming scheme of the lock's nodes, for sharing a queue with another library. Default: Curator's.
    ///
    /// A mutex can use any naming scheme, a read/write lock Curator's or kazoo's, and all other kinds only Curator's. A lock
    /// recognises the contenders of every naming scheme, whatever its own is.
    ///
    /// With a [pattern](Naming::pattern), a mutex or a read/write lock is a member of the queue of a custom lock. It then
    /// ignores all children whose names do not match. It cannot be a part of a set or a choice of locks, and its read side
    /// cannot be acquired by the owner of its write side.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock::LockSpec;
    /// use zklock::further::Naming;
    ///
    /// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
    /// // Programs in Python use kazoo's `Lock` at the same path.
    /// let lock = client.lock(&LockSpec::mutex("/locks/report")?.naming(Naming::Kazoo))?;
    /// let hold = lock.acquire().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn naming(mut self, naming: Naming) -> Self {
        self.naming = naming;
        self
    }

    /// Sets what to do about a contender that cannot see ours. Default: fail with
    /// [`ForeignContender`](ErrorKind::ForeignContender). `IgnoreUnknown` is dangerous: it ignores every contender that is not
    /// of a known library, even one that holds the lock. It has no effect on a single-node lock, which has no queue.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock::LockSpec;
    /// use zklock::further::Foreign;
    ///
    /// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
    /// // Programs with kazoo use this lock too, and their `extra_lock_patterns` let them see our nodes.
    /// let lock = client.lock(&LockSpec::mutex("/locks/report")?.foreign(Foreign::IgnoreUnknown))?;
    /// let hold = lock.acquire().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn foreign(mut self, foreign: Foreign) -> Self {
        self.foreign = foreign;
        self
    }

    /// Sets how long the lock's node stays after a release while no other contender wants the lock. Default: it is
    /// deleted at once.
    ///
    /// While the node stays, nobody holds the lock. The client's next acquire takes the node over without a request, or after
    /// one check if its lease has lapsed or the client is disconnected. When another contender queues, of any library, the node
    /// is deleted: at once, or with the release if the lock is held. So a lock that only one process acquires again and again
    /// costs no request, and other processes wait for no more than one deletion. The readers of a client share one node until a
    /// writer queues.
    ///
    /// Grants on one node have the same [token](crate::Hold::token), so the resource that the lock guards must accept a
    /// token equal to the last one. If another client tries the lock once while the node lingers, it finds the lock busy.
    /// That try causes the node to be deleted, so the lock is free afterwards. If the process is killed, others wait for
    /// its session timeout, as they would for any holder.
    ///
    /// Only mutexes and both sides of read/write locks can linger. Locks of one client with different times wait for each
    /// other like locks of two clients.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use zklock::LockSpec;
    ///
    /// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
    /// let lock = client.lock(&LockSpec::mutex("/locks/report")?.linger(Duration::from_secs(10)))?;
    /// for _ in 0..1_000 {
    ///     // Only the first asks the servers.
    ///     lock.acquire().await?.release().await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn linger(mut self, linger: Duration) -> Self {
        self.passing.linger = linger;
        self
    }

    /// Sets how often the threads and tasks of this client may pass the lock on among themselves, without a request, while
    /// others wait. Default: 0, so that clients take turns, however many threads or tasks they have.
    ///
    /// With 1 or more, or with [`linger`](Self::linger), they pass it on without limit while no other client waits. Grants on
    /// one node have the same [token](crate::Hold::token).
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock::LockSpec;
    ///
    /// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
    /// let lock = client.lock(&LockSpec::mutex("/locks/report")?.max_local_handoffs(64))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn max_local_handoffs(mut self, handoffs: u32) -> Self {
        self.passing.turns = handoffs.saturating_add(1);
        self
    }

    /// Gives the lock a name under which [`Client::stats`](crate::Client::stats) counts it separately: how many hold it and
    /// wait for it, since when, for how long, how acquires ended, and why holds were lost. Default: no name, so it is only
    /// counted together with all others.
    ///
    /// Choose a few names, such as `report`, and not one for each of thousands of paths: locks that share a name are counted
    /// together. A client has 100 names at most, in the order in which locks are made. Locks with later names are counted as
    /// `other`, and the log has a warning. A client keeps its names to its end.
    ///
    /// A set or a choice of locks is counted as a whole, under its own name. Names of the locks in it have no effect there.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use zklock::LockSpec;
    ///
    /// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
    /// let lock = client.lock(&LockSpec::mutex("/tenants/17/report")?.metrics_name("report"))?;
    /// let hold = lock.acquire().await?;
    /// assert_eq!(client.stats().lock("report").map(|lock| lock.held), Some(1));
    /// # Ok(())
    /// # }
    /// ```
    pub fn metrics_name(mut self, name: &str) -> Self {
        self.metrics_name = Some(name.into());
        self
    }

    /// Returns the name under which it is counted.
    pub(crate) fn own_metrics_name(&self) -> Option<&str> {
        self.metrics_name.as_deref()
    }

    /// Returns the path of the lock. For a set, the paths of its locks in alphabetical order, separated by commas; for a
    /// choice, the same in the order in which its locks were named.
    ///
    /// # Examples
    ///
    /// ```
    /// use zklock::LockSpec;
    ///
    /// let accounts = [LockSpec::mutex("/accounts/2")?, LockSpec::mutex("/accounts/1")?];
    /// assert_eq!(LockSpec::all(accounts)?.path(), "/accounts/1, /accounts/2");
    /// # Ok::<(), zklock::Error>(())
    /// ```
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns whether an owner that holds the lock may acquire it again.
    ///
    /// # Examples
    ///
    /// ```
    /// use zklock::LockSpec;
    ///
    /// let spec = LockSpec::mutex("/locks/report")?;
    /// assert!(!spec.is_reentrant());
    /// assert!(spec.reentrant(true).is_reentrant());
    /// # Ok::<(), zklock::Error>(())
    /// ```
    pub fn is_reentrant(&self) -> bool {
        self.reentrant
    }

    /// Returns whether holds of this client may follow one another on one node. It is hidden, because only the Python layer
    /// and the simulation ask.
    #[doc(hidden)]
    pub fn is_passed_on(&self) -> bool {
        self.passing.is_on()
    }

    /// Returns the locks of a choice; `None` for every other kind.
    pub(crate) fn alternatives(&self) -> Option<&[Self]> {
        if let Kind::Any(members) = &self.kind { Some(members) } else { None }
    }

    /// Returns the kind of the lock, in words.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(zklock::LockSpec::semaphore("/locks/licences", 5)?.kind(), "semaphore of 5");
    /// # Ok::<(), zklock::Error>(())
    /// ```
    pub fn kind(&self) -> String {
        match self.kind {
            Kind::Mutex => "mutex".to_owned(),
            Kind::Read => "read".to_owned(),
            Kind::Write => "write".to_owned(),
            Kind::Election => "election".to_owned(),
            Kind::SingleNode => "single-node".to_owned(),
            Kind::Semaphore { limit } if self.permits == 1 => format!("semaphore of {limit}"),
            Kind::Semaphore { limit } => format!("{} of semaphore of {limit}", self.permits),
            Kind::All(_) => "all".to_owned(),
            Kind::Any(_) => "any".to_owned(),
        }
    }

    /// Returns a text that is equal for locks whose holds are interchangeable, so that one may be released in place of
    /// another. Options make no difference, but the number of permits does. It is hidden, because only the Python layer keeps
    /// holds by it, and the text may change.
    #[doc(hidden)]
    pub fn key(&self) -> String {
        let path = &self.path;
        match &self.kind {
            Kind::Semaphore { .. } => format!("semaphore({}) {path}", self.permits),
            Kind::All(members) | Kind::Any(members) => {
                let mut keys: Vec<_> = members.iter().map(Self::key).collect();
                keys.sort_unstable();
                format!("{}({})", self.kind(), keys.join(","))
            }
            _ => format!("{} {path}", self.kind()),
        }
    }

    /// Checks whether a lock of this kind supports these options.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] if it does not. The message says what is wrong.
    ///
    /// # Examples
    ///
    /// ```
    /// use zklock::LockSpec;
    /// use zklock::further::Naming;
    ///
    /// assert!(LockSpec::mutex("/locks/report")?.naming(Naming::Kazoo).check().is_ok());
    /// assert!(LockSpec::election("/locks/report")?.naming(Naming::Kazoo).check().is_err());
    /// # Ok::<(), zklock::Error>(())
    /// ```
    pub fn check(&self) -> Result<(), Error> {
        self.claims().map(drop)
    }

    /// Checks whether the lock has a single holder, which can be [observed](crate::Lock::observe).
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] for a set or a choice of locks, and for a semaphore.
    pub(crate) fn check_observable(&self) -> Result<(), Error> {
        match self.kind {
            Kind::Semaphore { .. } | Kind::All(_) | Kind::Any(_) => {
                let message = format!(
                    "the lock {} has no single holder: observe the locks of a set or a choice one by one, and list the \
                     contenders of a semaphore",
                    self.path
                );
                Err(Error::new(ErrorKind::InvalidInput, message))
            }
            _ => Ok(()),
        }
    }

    /// Returns the claims of this lock for a client with these options, which others see under this name.
    pub(crate) fn claims_of(&self, client: &ClientOptions, identity: &str) -> Result<Vec<Claim>, Error> {
        let mut claims = self.claims()?;
        if let Kind::Any(_) = &self.kind {
            return any::check(&self.path, &claims, client.hosts.chroot.len()).map(|()| claims);
        }
        // Done here, because a set may contain sets, and its nodes name the queues of all.
        node_data::write(&mut claims, identity);
        let mut permits = claims.iter().filter_map(|claim| claim.permits.as_ref());
        permits.try_for_each(|permits| semaphore::check_fits(permits, client))?;
        all::check_fits(&self.path, &claims, client)?;
        Ok(claims)
    }

    /// Returns the lock's claims, before its client is known. This is the only place that refuses options that this kind of
    /// lock does not support.
    pub(crate) fn claims(&self) -> Result<Vec<Claim>, Error> {
        let is_semaphore = matches!(self.kind, Kind::Semaphore { .. });
        if !is_semaphore && (self.permits != 1 || self.limit_at.is_some()) {
            return Err(self.invalid("only a semaphore has permits and a limit"));
        }
        self.own_metrics_name().map_or(Ok(()), check_metrics_name)?;
        if self.passing.is_on() && !matches!(self.kind, Kind::Mutex | Kind::Read | Kind::Write) {
            return Err(
                self.invalid("only mutexes and read/write locks can linger, or be handed on within a client")
            );
        }
        let scheme = self.scheme()?;
        match &self.kind {
            Kind::Mutex | Kind::Read | Kind::Write | Kind::Election => {
                Ok(vec![self.claim(&self.path, scheme)?])
            }
            // All options are dropped, so that all locks of this path share one local queue, with one attempt at a time.
            // Two attempts could not tell the other's node from their own, and one that recovers from a lost reply would
            // take it.
            Kind::SingleNode => Ok(vec![Claim::new(&self.path, scheme)]),
            Kind::Semaphore { .. } if self.reentrant => Err(semaphore::not_reentrant(&self.path)),
            Kind::Semaphore { limit } => {
                let permits = semaphore::permits(&self.path, self.permits, *limit, self.limit_at.as_deref())?;
                let queue = self.claim(&semaphore::queue(&self.path), scheme)?;
                Ok(vec![Claim { permits: Some(permits), ..queue }])
            }
            Kind::All(members) => {
                let problem = "one of them is a choice of several locks: acquire that one alone";
                all::join(
                    &self.path,
                    Self::claims_of_members(members, |it| all::invalid(&self.path, it), problem)?,
                )
            }
            Kind::Any(_) if self.reentrant => {
                Err(self.invalid("a choice of locks is not reentrant: make its locks reentrant instead"))
            }
            Kind::Any(_) if self.foreign != Foreign::default() => {
                Err(self.invalid("a choice of locks has no such option: set it on its locks instead"))
            }
            Kind::Any(members) => {
                let problem = "one of them is such a choice itself: name its locks instead";
                Self::claims_of_members(members, |it| any::invalid(&self.path, it), problem)
            }
        }
    }

    /// Returns the claims of the locks of a set or a choice. `of_choice` is the problem of a choice among them.
    fn claims_of_members(
        members: &[Self],
        invalid: impl Fn(&str) -> Error,
        of_choice: &str,
    ) -> Result<Vec<Claim>, Error> {
        if members.iter().any(|member| member.alternatives().is_some()) {
            return Err(invalid(of_choice));
        }
        if let Some(Self { path, naming, .. }) =
            members.iter().find(|member| matches!(member.naming, Naming::Pattern(_)))
        {
            return Err(invalid(&format!("{path} has the pattern {naming}: acquire that lock by itself")));
        }
        Ok(members.iter().map(Self::claims).collect::<Result<Vec<_>, _>>()?.concat())
    }

    /// Returns a claim with the options that all kinds have.
    fn claim(&self, path: &str, scheme: Scheme) -> Result<Claim, Error> {
        let invalid = |problem| self.invalid(&format!("the pattern {} {problem}", self.naming));
        let claim = Claim::at(path, scheme, &self.naming).map_err(invalid)?;
        if claim.layout.is_none() {
            return Ok(Claim { foreign: self.foreign, ..claim });
        }
        // The pattern may have characters that ZooKeeper forbids.
        check_path(&format!(
            "{}/{}{}",
            claim.directory,
            claim.prefix(Uuid::from_random(0), 0),
            Sequence::new(0)
        ))?;
        Ok(claim)
    }

    fn scheme(&self) -> Result<Scheme, Error> {
        let naming = &self.naming;
        let of_role = |role| {
            let none = match (naming, role) {
                (Naming::Pattern(_), Role::Exclusive) => format!(
                    "the pattern {naming} is for readers and writers, so it is for no mutex: use a read/write lock, or a \
                     pattern without their letters"
                ),
                (Naming::Pattern(_), _) => format!(
                    "the pattern {naming} does not tell readers from writers: give it their letters, such as {{R|W}}"
                ),
                _ => format!("the naming scheme {naming} has no read and write sides; use curator or kazoo"),
            };
            Claim::scheme(role, naming).ok_or_else(|| self.invalid(&none))
        };
        let of_curator = |scheme, kind: &str| match naming {
            Naming::Curator => Ok(scheme),
            _ => Err(self.invalid(&format!("{kind} has no naming scheme {naming}; leave that option out"))),
        };
        match self.kind {
            Kind::Mutex => of_role(Role::Exclusive),
            Kind::Read => of_role(Role::Read),
            Kind::Write => of_role(Role::Write),
            Kind::Election => of_curator(Scheme::Latch, "an election"),
            Kind::SingleNode => of_curator(Scheme::Single, "a single-node lock"),
            Kind::Semaphore { .. } => of_curator(Scheme::Mutex, "a semaphore"),
            // Its members have schemes of their own.
            Kind::All(_) => of_curator(Scheme::Mutex, "a set of locks"),
            Kind::Any(_) => of_curator(Scheme::Mutex, "a choice of locks"),
        }
    }

    fn invalid(&self, problem: &str) -> Error {
        Error::new(ErrorKind::InvalidInput, format!("the lock {}: {problem}", self.path))
    }
}

/// Checks a name for [`LockSpec::metrics_name`]. It is hidden, because only the C layer asks by such a name.
///
/// # Errors
///
/// [`ErrorKind::InvalidInput`] if it is empty, too long, or has control characters.
#[doc(hidden)]
pub fn check_metrics_name(name: &str) -> Result<(), Error> {
    let problem = if name.is_empty() {
        "is empty: give a name, such as report".to_owned()
    } else if name.len() > NAME_AT_MOST {
        format!("is longer than {NAME_AT_MOST} bytes: shorten it")
    } else if name.chars().any(char::is_control) {
        "has a control character: leave it out".to_owned()
    } else {
        return Ok(());
    };
    let shown: String = name.chars().take(NAME_AT_MOST).collect();
    Err(Error::new(ErrorKind::InvalidInput, format!("the metrics name {shown:?} {problem}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Build = fn(&str) -> Result<LockSpec, Error>;

    const KINDS: [Build; 8] = [
        LockSpec::mutex,
        LockSpec::read_lock,
        LockSpec::write_lock,
        LockSpec::election,
        LockSpec::single_node,
        |path| LockSpec::semaphore(path, 5),
        |path| LockSpec::all([LockSpec::mutex(path)?, LockSpec::write_lock("/other")?]),
        |path| LockSpec::any([LockSpec::mutex(path)?, LockSpec::write_lock("/other")?]),
    ];

    fn refusals(change: impl Fn(LockSpec) -> LockSpec) -> Vec<String> {
        let specs = KINDS.iter().map(|build| change(build("/a").unwrap()));
        let refused = specs.filter_map(|spec| Some((spec.kind(), spec.check().err()?)));
        refused.map(|(kind, error)| format!("{kind}: {error}")).collect()
    }

    #[test]
    fn a_set_counts_what_its_client_adds_to_each_node() {
        let paths = (0..100).map(|number| LockSpec::mutex(&format!("/{number}")).unwrap());
        let set = LockSpec::all(paths).unwrap();
        let client = |entries: u8| {
            let list: Vec<_> = (0..entries).map(|number| format!("ip:10.0.0.{number}:r")).collect();
            ClientOptions::new("zk").access(list.join(",").parse().unwrap())
        };
        assert!(set.claims_of(&client(1), "db7").is_ok());
        let error = set.claims_of(&client(120), "db7").unwrap_err();
        assert!(error.to_string().contains("the access list"), "{error}");
    }

    #[test]
    fn a_set_has_a_lock_once_that_is_named_twice() {
        let mutex = || LockSpec::mutex("/a").unwrap();
        let (other, semaphore) = (LockSpec::mutex("/b").unwrap(), LockSpec::semaphore("/c", 5).unwrap());
        let set = LockSpec::all([mutex(), other.clone(), mutex(), other]).unwrap();
        assert_eq!((set.path(), set.claims().unwrap().len()), ("/a, /b", 2));
        let error = LockSpec::all([mutex(), mutex().naming(Naming::Kazoo)]).unwrap_err();
        assert!(error.to_string().contains("one path, but not the same lock: leave one out"), "{error}");
        let error = LockSpec::all([semaphore.clone(), semaphore]).unwrap_err();
        assert!(error.to_string().contains("all the permits that you need"), "{error}");
    }

    #[test]
    fn every_kind_refuses_the_options_that_it_does_not_have() {
        assert_eq!(refusals(|spec| spec), [""; 0]);
        let foreign = refusals(|spec| spec.foreign(Foreign::IgnoreUnknown));
        assert!(foreign.len() == 1 && foreign[0].starts_with("any: "), "{foreign:?}");
        let reentrant = refusals(|spec| spec.reentrant(true));
        assert_eq!(
            reentrant,
            [
                "semaphore of 5: the semaphore /a: a permit does not belong to a thread or task, so a \
                 semaphore is not reentrant",
                "any: the lock /a, /other: a choice of locks is not reentrant: make its locks reentrant instead"
            ]
        );
        let permits = refusals(|spec| spec.permits(2));
        assert_eq!(permits.len(), 7, "{permits:?}");
        assert!(permits.iter().all(|refusal| refusal.ends_with("only a semaphore has permits and a limit")));
        assert_eq!(refusals(|spec| spec.limit_at("/limit")).len(), 7);
        let kazoo = refusals(|spec| spec.naming(Naming::Kazoo));
        let without: Vec<_> = kazoo.iter().filter_map(|refusal| refusal.split(": ").next()).collect();
        assert_eq!(without, ["election", "single-node", "semaphore of 5", "all", "any"]);
        assert_eq!(refusals(|spec| spec.naming(Naming::WriteLock)).len(), 7);
        let lingering = refusals(|spec| spec.linger(Duration::from_secs(1)));
        let without: Vec<_> = lingering.iter().filter_map(|refusal| refusal.split(": ").next()).collect();
        assert_eq!(without, ["election", "single-node", "semaphore of 5", "all", "any"]);
        assert_eq!(refusals(|spec| spec.max_local_handoffs(1)).len(), 5);
        assert_eq!(refusals(|spec| spec.max_local_handoffs(0)), [""; 0]);
        assert_eq!(refusals(|spec| spec.metrics_name("report")), [""; 0]);
    }

    #[test]
    fn a_metrics_name_is_short_and_has_no_control_characters() {
        for good in ["report", "/locks/report", "a \"b\" \\ ü", &"x".repeat(128)] {
            assert_eq!(refusals(|spec| spec.metrics_name(good)), [""; 0], "{good:?}");
        }
        for (bad, why) in [("", "empty"), ("a\nb", "control"), (&"x".repeat(129), "longer than 128 bytes")] {
            let refused = refusals(|spec| spec.metrics_name(bad));
            assert_eq!(refused.iter().filter(|refusal| refusal.contains(why)).count(), 8, "{refused:?}");
        }
    }

    #[test]
    fn every_name_sets_its_option_and_a_wrong_value_is_told_what_is_right() {
        let mutex = || LockSpec::mutex("/a").unwrap();
        for (name, good, wrong, right) in [
            ("reentrant", "yes", "often", "neither yes nor no"),
            ("naming", "kazoo", "curators", "use curator, kazoo, writelock, or a pattern"),
            ("naming", "{name}_lock_{sequence}", "{name}_lock_", "has no {sequence}"),
            ("foreign", "ignore-unknown", "ignore", "neither refuse nor ignore-unknown"),
            ("permits", "2", "257", "ask for 1 to 256"),
            ("permits", "3", "-1", "is not a count"),
            ("limit-at", "/limits/a", "limits/a", "a path begins with /"),
            ("linger", "10s", "ten", "is not a duration"),
            ("max-local-handoffs", "64", "-1", "is not a count"),
            ("metrics-name", "report", "", "is empty"),
        ] {
            assert_ne!(mutex().set(name, good).unwrap(), mutex(), "{name}");
            let refused = mutex().set(name, wrong).unwrap_err().to_string();
            assert!(refused.starts_with(&format!("{name}: ")) && refused.contains(right), "{refused}");
        }
        assert!(mutex().set("limit", "/a").unwrap_err().to_string().contains("there are reentrant, naming"));
    }

    #[test]
    fn a_bad_path_is_refused_at_once() {
        for build in KINDS {
            assert_eq!(build("a").unwrap_err().kind(), ErrorKind::InvalidInput);
        }
    }

    #[test]
    fn the_claims_of_a_single_node_lock_are_alike_whatever_its_options() {
        let spec = LockSpec::single_node("/a").unwrap();
        let careless = spec.clone().foreign(Foreign::IgnoreUnknown).reentrant(true);
        assert_eq!(spec.claims().unwrap(), careless.claims().unwrap());
        let mutex = LockSpec::mutex("/a").unwrap();
        assert_ne!(mutex.claims().unwrap(), mutex.foreign(Foreign::IgnoreUnknown).claims().unwrap());
    }

    #[test]
    fn the_order_of_its_members_makes_no_set_another() {
        let two = || [LockSpec::mutex("/b").unwrap(), LockSpec::semaphore("/a", 2).unwrap()];
        let [b, a] = two();
        let (one, other) = (LockSpec::all(two()).unwrap(), LockSpec::all([a, b]).unwrap());
        assert_eq!(one.claims().unwrap(), other.claims().unwrap());
        assert_eq!(one.key(), other.key());
        assert_eq!((one.path(), other.path()), ("/a, /b", "/a, /b"));
    }

    #[test]
    fn a_set_within_a_set_is_named_with_all_its_queues() {
        let mutex = |path| LockSpec::mutex(path).unwrap();
        let inner = LockSpec::all([mutex("/a"), mutex("/b")]).unwrap();
        let client = ClientOptions::new("nowhere:1");
        let claims = LockSpec::all([inner, mutex("/c")]).unwrap().claims_of(&client, "db7").unwrap();
        let (identity, queues) = node_data::read(&claims[0].data);
        assert_eq!((&*identity, queues.len()), ("db7", 3));
    }

    #[test]
    fn only_the_number_of_permits_makes_holds_unlike() {
        let semaphore = |limit, permits| LockSpec::semaphore("/a", limit).unwrap().permits(permits).key();
        assert_eq!(semaphore(5, 2), semaphore(6, 2));
        assert_ne!(semaphore(5, 2), semaphore(5, 1));
        let mutex = LockSpec::mutex("/a").unwrap();
        assert_eq!(mutex.key(), mutex.clone().reentrant(true).naming(Naming::Kazoo).key());
        assert_ne!(mutex.key(), LockSpec::election("/a").unwrap().key());
    }
}
