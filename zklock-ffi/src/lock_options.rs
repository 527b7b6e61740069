//! How a lock behaves.

use crate::c_enum::c_enum;
use crate::call;
use crate::convert::time;
use crate::failure::Failure;
use crate::handle::{Object, handle};
use crate::raw::{out, text};
use crate::status::zklock_status;
use std::ffi::c_char;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use zklock_core::{Dialect, Foreign, LockSpec, Watching, check_local_turns, check_lock_path, check_permits};

/// How a lock behaves. The defaults suit most programs.
#[allow(non_camel_case_types, reason = "the name in C")]
#[derive(Debug)]
pub struct zklock_lock_options {
    _opaque: [u8; 0],
}

c_enum! {
    /// Boolean properties of a lock: see zklock_lock_options_set_flags.
    pub enum zklock_flag {
        /// A thread that holds the lock may acquire it again; each hold is released by that thread.
        /// Without it any thread may release a hold, and so a thread that acquires again waits
        /// until one does. Of a read/write lock, a thread that holds the write side by such a lock
        /// may acquire the read side as well. Leave it out if a thread may turn to other work while
        /// the first holds the lock, as a thread that runs coroutines does: both count as one
        /// owner, and would be inside together. Not for semaphores, whose permits belong to nobody.
        ZKLOCK_REENTRANT = 1,
        /// Wait for a contender that cannot see ours as for any other, instead of failing with
        /// ZKLOCK_FOREIGN_CONTENDER. Both may come to hold the lock, so set this only if you know
        /// that it sees ours after all.
        ZKLOCK_ALLOW_FOREIGN = 2,
        /// A waiter watches all the others, and not only the one that matters: the simple way, for
        /// comparison.
        ZKLOCK_WATCH_CHILDREN = 4,
    }
}

c_enum! {
    /// How the nodes of a lock are named, and so with which libraries it shares a queue.
    pub enum zklock_dialect {
        /// Like those of Curator and go-zookeeper, and of kazoo with extra_lock_patterns. This is
        /// the default.
        ZKLOCK_DIALECT_CURATOR = 1,
        /// Like those of kazoo: for mutexes, read and write sides.
        ZKLOCK_DIALECT_KAZOO = 2,
        /// Like those of WriteLock in ZooKeeper's own recipes: for mutexes.
        ZKLOCK_DIALECT_WRITELOCK = 3,
    }
}

pub(crate) struct LockOptions(Mutex<Chosen>);

/// What was set, by the names of C.
#[derive(Clone)]
struct Chosen {
    flags: u32,
    dialect: Dialect,
    permits: u32,
    limit_at: Option<String>,
    linger: Duration,
    local_turns: u32,
}

handle!(
    LockOptions: zklock_lock_options, 6,
    fn inherited(&self) -> Option<Self> {
        Some(Self(Mutex::new(self.0.try_lock().ok()?.clone())))
    }
);

impl LockOptions {
    /// The lock with these options; those that are NULL are the defaults.
    pub(crate) fn apply(options: *const zklock_lock_options, spec: LockSpec) -> Result<LockSpec, Failure> {
        use zklock_flag::{ZKLOCK_ALLOW_FOREIGN, ZKLOCK_REENTRANT, ZKLOCK_WATCH_CHILDREN};
        if options.is_null() {
            return Ok(spec);
        }
        let options = Self::table().find(options)?;
        let chosen = options.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_set = |flag: zklock_flag| chosen.flags & flag as u32 != 0;
        let foreign = if is_set(ZKLOCK_ALLOW_FOREIGN) { Foreign::GoAhead } else { Foreign::Refuse };
        let watching = if is_set(ZKLOCK_WATCH_CHILDREN) { Watching::Children } else { Watching::Nearest };
        let spec = spec.reentrant(is_set(ZKLOCK_REENTRANT)).foreign(foreign).watching(watching);
        let spec = spec.dialect(chosen.dialect).permits(chosen.permits);
        let spec = spec.linger(chosen.linger).local_turns(chosen.local_turns);
        Ok(match &chosen.limit_at {
            Some(path) => spec.limit_at(path),
            None => spec,
        })
    }

    fn change(options: *const zklock_lock_options, change: impl FnOnce(&mut Chosen)) -> Result<(), Failure> {
        let options = Self::table().find(options)?;
        change(&mut options.0.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(())
    }
}

/// Makes options with the defaults. Free them with zklock_lock_options_free, which may be done as
/// soon as the lock is made.
///
/// @param[out] options the options.
/// @return ZKLOCK_OK.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_lock_options_new(options: *mut *mut zklock_lock_options) -> zklock_status {
    call::status("zklock_lock_options_new", || {
        let options = out("options", options)?;
        let defaults = Chosen {
            flags: 0,
            dialect: Dialect::default(),
            permits: 1,
            limit_at: None,
            linger: Duration::ZERO,
            local_turns: 1,
        };
        options.set(LockOptions::table().put(LockOptions(Mutex::new(defaults))));
        Ok(())
    })
}

/// Frees options. Locks made with them are not touched.
///
/// @param options may be NULL; a handle that was freed before is ignored.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_lock_options_free(options: *mut zklock_lock_options) {
    call::free("zklock_lock_options_free", || drop(LockOptions::table().take(options)));
}

/// Sets the boolean properties of the lock. This replaces the flags that were set before.
///
/// @param options the options.
/// @param flags 0, or a sum of zklock_flag.
/// @return ZKLOCK_OK.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_lock_options_set_flags(
    options: *mut zklock_lock_options,
    flags: u32,
) -> zklock_status {
    call::status("zklock_lock_options_set_flags", || {
        let unknown = zklock_flag::ALL.iter().fold(flags, |flags, (flag, _)| flags & !(*flag as u32));
        if unknown != 0 {
            return Err(Failure::argument(format!("there is no such flag: {unknown:#x}")));
        }
        LockOptions::change(options, |chosen| chosen.flags = flags)
    })
}

/// How its nodes are named. Contenders of every dialect are recognised, whichever the lock has.
///
/// @param options the options.
/// @param dialect one of zklock_dialect. It says which kinds of lock can have it.
/// @return ZKLOCK_OK.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_lock_options_set_dialect(
    options: *mut zklock_lock_options,
    dialect: i32,
) -> zklock_status {
    use zklock_dialect::{ZKLOCK_DIALECT_CURATOR, ZKLOCK_DIALECT_KAZOO, ZKLOCK_DIALECT_WRITELOCK};
    call::status("zklock_lock_options_set_dialect", || {
        let unknown = || Failure::argument(format!("there is no dialect with the number {dialect}"));
        let wanted = match zklock_dialect::find(dialect).ok_or_else(unknown)? {
            ZKLOCK_DIALECT_CURATOR => Dialect::Curator,
            ZKLOCK_DIALECT_KAZOO => Dialect::Kazoo,
            ZKLOCK_DIALECT_WRITELOCK => Dialect::WriteLock,
        };
        LockOptions::change(options, |chosen| chosen.dialect = wanted)
    })
}

/// How many permits of a semaphore to acquire at once. Default: 1.
///
/// @param options the options.
/// @param permits 1 to 256.
/// @return ZKLOCK_OK.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_lock_options_set_permits(
    options: *mut zklock_lock_options,
    permits: u32,
) -> zklock_status {
    call::status("zklock_lock_options_set_permits", || {
        check_permits(permits)?;
        LockOptions::change(options, |chosen| chosen.permits = permits)
    })
}

/// The node that says how many permits a semaphore has, in the format of Curator's SharedCount. As
/// long as it does not exist, the limit is that of zklock_semaphore_new. Waiters notice when
/// zklock_set_limit changes it.
///
/// @param options the options.
/// @param path such as "/limits/licences".
/// @return ZKLOCK_OK.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_lock_options_set_limit_at(
    options: *mut zklock_lock_options,
    path: *const c_char,
) -> zklock_status {
    call::status("zklock_lock_options_set_limit_at", || {
        let path = text("path", path)?;
        check_lock_path(path)?;
        LockOptions::change(options, |chosen| chosen.limit_at = Some(path.to_owned()))
    })
}

/// For how long the lock's node stays after a release, as long as nobody else wants the lock.
/// Default: 0, not at all. For mutexes, read and write sides.
///
/// Meanwhile nobody holds the lock, and the client's next acquire takes the node over without a
/// request, or after one check if its lease does not run. When anybody else queues, by whatever
/// library, the node is deleted: at once, or with the release if it is held. So a lock that one
/// process takes again and again costs nothing, and one that others want costs them no more than a
/// deletion. Readers of a client have one node together, until a writer queues.
///
/// Grants on one node have the same token: what the lock guards must accept one that is not smaller
/// than it has seen. A try of another client that comes while the node lingers finds the lock busy,
/// and makes it free. If the process is killed, others wait for its session timeout, as for any
/// holder's.
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
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_lock_options_set_linger(
    options: *mut zklock_lock_options,
    milliseconds: i64,
) -> zklock_status {
    call::status("zklock_lock_options_set_linger", || {
        let linger = time("time to linger", milliseconds)?;
        LockOptions::change(options, |chosen| chosen.linger = linger)
    })
}

/// How many holders of this client follow one another on one node while others wait. Default: 1, so
/// that clients take turns, whatever the number of their threads. For mutexes, read and write
/// sides.
///
/// With more than one, or with zklock_lock_options_set_linger, threads pass the lock on without a
/// request: for as long as nobody else waits, and so often otherwise. Grants on one node have the
/// same token.
///
/// @param options the options.
/// @param turns 1 to 4294967295.
/// @return ZKLOCK_OK.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_lock_options_set_local_turns(
    options: *mut zklock_lock_options,
    turns: u32,
) -> zklock_status {
    call::status("zklock_lock_options_set_local_turns", || {
        check_local_turns(turns)?;
        LockOptions::change(options, |chosen| chosen.local_turns = turns)
    })
}
