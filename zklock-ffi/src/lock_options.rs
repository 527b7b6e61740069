//! How a lock behaves.

use crate::c_enum::{CEnum, c_enum};
use crate::convert::time;
use crate::export::export;
use crate::failure::Failure;
use crate::handle::{Object, handle};
use crate::raw::{out, text};
use crate::status::zklock_status;
use std::ffi::c_char;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use zklock_core::{
    Dialect, Foreign, LockSpec, Watching, check_figures, check_local_turns, check_lock_path, check_permits,
};

/// How a lock behaves. The defaults suit most programs.
#[allow(non_camel_case_types, reason = "the name in C")]
#[derive(Debug)]
pub struct zklock_lock_options {
    _opaque: [u8; 0],
}

c_enum! {
    /// Boolean properties of a lock: see zklock_lock_options_set_flags.
    pub enum zklock_flag {
        /// A thread that holds the lock may acquire it again. It must release each hold itself.
        /// Without this flag any thread may release a hold, so a thread that acquires again waits
        /// until one does. With this flag on the write side of a read/write lock, a thread that
        /// holds the write side may also acquire the read side. Do not set it if a thread may
        /// switch to other work while it holds the lock, as a thread that runs coroutines does:
        /// both pieces of work would count as one owner and hold the lock together. Not for
        /// semaphores, whose permits do not belong to a thread.
        ZKLOCK_REENTRANT = 1,
        /// Instead of failing with ZKLOCK_FOREIGN_CONTENDER, ignore a contender of a home-made lock,
        /// and warn of it at each grant; wait for a contender of a known library that cannot see ours.
        /// Both may end up holding the lock, so set this only if the contender has nothing to do with
        /// the lock, or does see ours.
        ZKLOCK_IGNORE_UNKNOWN = 2,
        /// Make a waiter watch all other contenders, instead of only the one that matters. This is
        /// the naive method, for comparisons.
        ZKLOCK_WATCH_CHILDREN = 4,
    }
}

c_enum! {
    /// How the nodes of a lock are named, which decides the libraries that it can share a queue
    /// with.
    pub enum zklock_dialect {
        /// Names like those of Curator and go-zookeeper, and of kazoo with extra_lock_patterns.
        /// This is the default.
        ZKLOCK_DIALECT_CURATOR = 1,
        /// Names like those of kazoo. For mutexes and the sides of a read/write lock.
        ZKLOCK_DIALECT_KAZOO = 2,
        /// Names like those of WriteLock in ZooKeeper's own recipes. For mutexes.
        ZKLOCK_DIALECT_WRITELOCK = 3,
    }
}

pub(crate) struct LockOptions(Mutex<Chosen>);

/// The options that were set, with C's names.
#[derive(Clone)]
struct Chosen {
    flags: u32,
    dialect: Dialect,
    permits: u32,
    limit_at: Option<String>,
    linger: Duration,
    local_turns: u32,
    figures: Option<String>,
}

handle!(
    LockOptions: zklock_lock_options, 6,
    fn inherited(&self) -> Option<Self> {
        Some(Self(Mutex::new(self.0.try_lock().ok()?.clone())))
    }
);

impl LockOptions {
    /// Applies options to a lock. NULL means the defaults.
    pub(crate) fn apply(options: *const zklock_lock_options, spec: LockSpec) -> Result<LockSpec, Failure> {
        use zklock_flag::{ZKLOCK_IGNORE_UNKNOWN, ZKLOCK_REENTRANT, ZKLOCK_WATCH_CHILDREN};
        if options.is_null() {
            return Ok(spec);
        }
        let options = Self::table().find(options)?;
        let chosen = options.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_set = |flag: zklock_flag| chosen.flags & flag as u32 != 0;
        let foreign = if is_set(ZKLOCK_IGNORE_UNKNOWN) { Foreign::IgnoreUnknown } else { Foreign::Refuse };
        let watching = if is_set(ZKLOCK_WATCH_CHILDREN) { Watching::Children } else { Watching::Nearest };
        let spec = spec.reentrant(is_set(ZKLOCK_REENTRANT)).foreign(foreign).watching(watching);
        let spec = spec.dialect(chosen.dialect.clone()).permits(chosen.permits);
        let spec = spec.linger(chosen.linger).local_turns(chosen.local_turns);
        let spec = match &chosen.limit_at {
            Some(path) => spec.limit_at(path),
            None => spec,
        };
        Ok(match &chosen.figures {
            Some(name) => spec.figures(name),
            None => spec,
        })
    }

    fn change(options: *const zklock_lock_options, change: impl FnOnce(&mut Chosen)) -> Result<(), Failure> {
        let options = Self::table().find(options)?;
        change(&mut options.0.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }
}

export! {
    /// Creates lock options with the defaults. Free them with zklock_lock_options_free, at any time
    /// after the lock is made.
    ///
    /// @param[out] options the options.
    /// @return ZKLOCK_OK.
    pub fn zklock_lock_options_new(options: *mut *mut zklock_lock_options) -> zklock_status {
        let options = out("options", options)?;
        let defaults = Chosen {
            flags: 0,
            dialect: Dialect::default(),
            permits: 1,
            limit_at: None,
            linger: Duration::ZERO,
            local_turns: 1,
            figures: None,
        };
        options.set(LockOptions::table().put(LockOptions(Mutex::new(defaults))));
    }

    /// Frees lock options. Locks that were made with them are not affected.
    ///
    /// @param options may be NULL. A handle that was already freed is ignored.
    pub fn zklock_lock_options_free(options: *mut zklock_lock_options) {
        drop(LockOptions::table().take(options));
    }

    /// Sets the boolean properties of the lock. This replaces flags that were set earlier.
    ///
    /// @param options the options.
    /// @param flags 0, or a sum of zklock_flag.
    /// @return ZKLOCK_OK.
    pub fn zklock_lock_options_set_flags(options: *mut zklock_lock_options, flags: u32) -> zklock_status {
        let unknown = zklock_flag::ALL.iter().fold(flags, |flags, (flag, _)| flags & !(*flag as u32));
        if unknown != 0 {
            return Err(Failure::argument(format!("there is no such flag: {unknown:#x}")));
        }
        LockOptions::change(options, |chosen| chosen.flags = flags)?;
    }

    /// Sets how the lock's nodes are named. Contenders of every dialect are recognised, whichever one
    /// the lock itself uses.
    ///
    /// @param options the options.
    /// @param dialect one of zklock_dialect, where each lists the kinds of lock that can use it.
    /// @return ZKLOCK_OK.
    pub fn zklock_lock_options_set_dialect(options: *mut zklock_lock_options, dialect: i32) -> zklock_status {
        use zklock_dialect::{ZKLOCK_DIALECT_CURATOR, ZKLOCK_DIALECT_KAZOO, ZKLOCK_DIALECT_WRITELOCK};
        let unknown = || Failure::argument(format!("there is no dialect with the number {dialect}"));
        let wanted = match zklock_dialect::find(dialect).ok_or_else(unknown)? {
            ZKLOCK_DIALECT_CURATOR => Dialect::Curator,
            ZKLOCK_DIALECT_KAZOO => Dialect::Kazoo,
            ZKLOCK_DIALECT_WRITELOCK => Dialect::WriteLock,
        };
        LockOptions::change(options, |chosen| chosen.dialect = wanted)?;
    }

    /// Makes the lock a member of the queue of a home-made lock, whose nodes are named by a pattern. It
    /// replaces the dialect, and zklock_lock_options_set_dialect replaces the pattern. For mutexes, and
    /// with `{R|W}` for the sides of a read/write lock.
    ///
    /// A pattern is text with these parts: `{sequence}` is the number that the server appends, and
    /// comes last. `{name}` is the last component of the lock's path, for several locks under one node;
    /// contenders are then children of the node above. `{any}` is what each contender chooses; ours is 32
    /// hexadecimal digits. `{R|W}` has the letters of readers and of writers. Children whose names do
    /// not match are ignored.
    ///
    /// @param options the options.
    /// @param pattern such as `{name}_lock_{sequence}`, which makes report_lock_0000000001 of the path
    ///     /locks/report.
    /// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if it is not a pattern, or a name could be read in two
    ///     ways with it.
    pub fn zklock_lock_options_set_dialect_pattern(
        options: *mut zklock_lock_options,
        pattern: *const c_char,
    ) -> zklock_status {
        let dialect = Dialect::pattern(text("pattern", pattern)?).map_err(zklock_core::Error::from)?;
        LockOptions::change(options, |chosen| chosen.dialect = dialect)?;
    }

    /// Sets how many permits of a semaphore to acquire at once. Default: 1.
    ///
    /// @param options the options.
    /// @param permits 1 to 256.
    /// @return ZKLOCK_OK.
    pub fn zklock_lock_options_set_permits(options: *mut zklock_lock_options, permits: u32) -> zklock_status {
        check_permits(permits)?;
        LockOptions::change(options, |chosen| chosen.permits = permits)?;
    }

    /// Sets the node that holds the number of permits of a semaphore, in the format of Curator's
    /// SharedCount. While it does not exist, the limit is the one given to zklock_semaphore_new.
    /// Waiters notice when zklock_set_limit changes it.
    ///
    /// @param options the options.
    /// @param path such as "/limits/licences".
    /// @return ZKLOCK_OK.
    pub fn zklock_lock_options_set_limit_at(
        options: *mut zklock_lock_options,
        path: *const c_char,
    ) -> zklock_status {
        let path = text("path", path)?;
        check_lock_path(path)?;
        LockOptions::change(options, |chosen| chosen.limit_at = Some(path.to_owned()))?;
    }

    /// Sets how long the lock's node stays after a release while no other contender wants the lock.
    /// Default: 0, so it is deleted at once. For mutexes and the sides of a read/write lock.
    ///
    /// While the node lingers, nobody holds the lock. The client's next acquire takes the node over
    /// without a request, or after one check if its lease has run out or the client is disconnected.
    /// When another contender queues, of any library, the node is deleted: at once, or on release if
    /// the lock is held. So a lock that only one process uses again and again costs no request, and
    /// other processes that want it wait for no more than a deletion. All readers of a client share
    /// one node, until a writer queues.
    ///
    /// All grants on one node have the same token, so the resource that the lock guards must accept a
    /// token equal to the largest that it has seen. If another client tries the lock once while the
    /// node lingers, it finds the lock busy. That try causes the node to be deleted, so the lock is
    /// free afterwards. If the process is killed, others wait for its session timeout, as for any
    /// holder.
    ///
    ///     zklock_lock_options *options;
    ///
    ///     if (zklock_lock_options_new(&options) != ZKLOCK_OK) return fail(zklock_last_error());
    ///     if (zklock_lock_options_set_linger(options, 10000) != ZKLOCK_OK ||
    ///         zklock_mutex_new(client, "/locks/report", options, &lock) != ZKLOCK_OK)
    ///         return fail(zklock_last_error());
    ///     zklock_lock_options_free(options);
    ///
    /// @param options the options.
    /// @param milliseconds not negative.
    /// @return ZKLOCK_OK.
    pub fn zklock_lock_options_set_linger(
        options: *mut zklock_lock_options,
        milliseconds: i64,
    ) -> zklock_status {
        let linger = time("time to linger", milliseconds)?;
        LockOptions::change(options, |chosen| chosen.linger = linger)?;
    }

    /// Sets how many holders of this client may follow one another on one node while other clients
    /// wait. Default: 1, so that clients take turns, however many threads each has. For mutexes and the
    /// sides of a read/write lock.
    ///
    /// With more than one turn, or with zklock_lock_options_set_linger, threads of this client pass the
    /// lock on without a request: without limit while no other client waits, and otherwise for this
    /// many turns. All grants on one node have the same token.
    ///
    /// @param options the options.
    /// @param turns 1 to 4294967295.
    /// @return ZKLOCK_OK.
    pub fn zklock_lock_options_set_local_turns(
        options: *mut zklock_lock_options,
        turns: u32,
    ) -> zklock_status {
        check_local_turns(turns)?;
        LockOptions::change(options, |chosen| chosen.local_turns = turns)?;
    }

    /// Gives the lock a name under which the client counts it separately. Default: no name, so it is
    /// only counted together with all others.
    ///
    /// Choose a few names, such as "report", and not one for each of thousands of paths: locks that
    /// share a name are counted together. A client has 100 names at most, in the order in which locks
    /// are made. Locks with later names are counted as "other", and the log has a warning. A set or a
    /// choice of locks is counted as a whole. Names of the locks in it have no effect there.
    ///
    /// @param options the options.
    /// @param name 1 to 128 bytes, without control characters.
    /// @return ZKLOCK_OK.
    pub fn zklock_lock_options_set_figures(
        options: *mut zklock_lock_options,
        name: *const c_char,
    ) -> zklock_status {
        let name = text("name", name)?;
        check_figures(name)?;
        LockOptions::change(options, |chosen| chosen.figures = Some(name.to_owned()))?;
    }
}
