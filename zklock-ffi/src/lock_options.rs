//! How a lock behaves.

use crate::c_enum::c_enum;
use crate::call;
use crate::failure::Failure;
use crate::handle::{Object, handle};
use crate::raw::{out, text};
use crate::status::zklock_status;
use std::ffi::c_char;
use std::sync::{Mutex, PoisonError};
use zklock_core::{Dialect, Foreign, LockOptions, Watching, check_lock_path};

/// How a lock behaves. The defaults are good for most.
#[allow(non_camel_case_types, reason = "the name in C")]
#[derive(Debug)]
pub struct zklock_lock_options {
    _opaque: [u8; 0],
}

c_enum! {
    /// What is so or not so of a lock: see zklock_lock_options_set_flags.
    pub enum zklock_flag {
        /// A thread that holds the lock may acquire it again; each hold is released by that thread. Without it any thread
        /// may release a hold, and so a thread that acquires again waits until one does. Of a read/write lock, a thread that
        /// holds the write side by such a lock may acquire the read side as well. Leave it out where a
        /// thread turns to another user while the first holds the lock, as it does where it runs coroutines: they are one
        /// owner, and are inside together. Not for semaphores, whose permits belong to nobody.
        ZKLOCK_REENTRANT = 1,
        /// A contender that cannot see ours is waited for as any other, where else there is ZKLOCK_FOREIGN_CONTENDER. Both
        /// may come to hold the lock: set it only where it is certain that it sees ours all the same.
        ZKLOCK_GO_AHEAD = 2,
        /// A waiter watches all the others, and not the one that matters: the simple way, to be compared with.
        ZKLOCK_WATCH_CHILDREN = 4,
    }
}

c_enum! {
    /// How the nodes of a lock are called, and so with whom it stands in one queue.
    pub enum zklock_dialect {
        /// As Curator's and go-zookeeper's, and those of kazoo with extra_lock_patterns. This is the default.
        ZKLOCK_DIALECT_CURATOR = 1,
        /// As kazoo's: for mutexes, read and write sides.
        ZKLOCK_DIALECT_KAZOO = 2,
        /// As the WriteLock's of ZooKeeper's own recipes: for mutexes.
        ZKLOCK_DIALECT_WRITELOCK = 3,
    }
}

/// Of permits that are acquired at once. The core says so as well, when the semaphore is made.
const PERMITS_AT_MOST: u32 = 256;

pub(crate) struct Behaviour(Mutex<LockOptions>);

handle!(
    Behaviour: zklock_lock_options, 6,
    fn inherited(&self) -> Option<Self> {
        Some(Self(Mutex::new(self.0.try_lock().ok()?.clone())))
    }
);

impl Behaviour {
    /// The options of a lock; those that are NULL are the defaults.
    pub(crate) fn of(options: *const zklock_lock_options) -> Result<LockOptions, Failure> {
        if options.is_null() {
            return Ok(LockOptions::new());
        }
        let options = Self::table().find(options)?;
        Ok(options.0.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    fn change(
        options: *const zklock_lock_options,
        change: impl FnOnce(LockOptions) -> LockOptions,
    ) -> Result<(), Failure> {
        let options = Self::table().find(options)?;
        let mut options = options.0.lock().unwrap_or_else(PoisonError::into_inner);
        *options = change(options.clone());
        Ok(())
    }
}

/// Makes options with the defaults. Free them with zklock_lock_options_free, which may be done as soon as the
/// lock is made.
///
/// @param[out] options the options.
/// @return ZKLOCK_OK, ZKLOCK_INVALID_ARGUMENT if it is NULL, ZKLOCK_INTERNAL.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_lock_options_new(options: *mut *mut zklock_lock_options) -> zklock_status {
    call::status("zklock_lock_options_new", || {
        let options = out("options", options)?;
        options.set(Behaviour::table().put(Behaviour(Mutex::new(LockOptions::new()))));
        Ok(())
    })
}

/// Frees options. Locks made with them are not touched.
///
/// @param options may be NULL; a handle that was freed before is ignored.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_lock_options_free(options: *mut zklock_lock_options) {
    call::free("zklock_lock_options_free", || drop(Behaviour::table().take(options)));
}

/// What is so of the lock. It replaces the flags that were set before.
///
/// @param options the options.
/// @param flags 0, or a sum of zklock_flag.
/// @return ZKLOCK_OK, ZKLOCK_INVALID_ARGUMENT, ZKLOCK_INVALID_HANDLE, ZKLOCK_FORKED, ZKLOCK_INTERNAL.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_lock_options_set_flags(
    options: *mut zklock_lock_options,
    flags: u32,
) -> zklock_status {
    use zklock_flag::{ZKLOCK_GO_AHEAD, ZKLOCK_REENTRANT, ZKLOCK_WATCH_CHILDREN};
    call::status("zklock_lock_options_set_flags", || {
        let unknown = zklock_flag::ALL.iter().fold(flags, |flags, (flag, _)| flags & !(*flag as u32));
        if unknown != 0 {
            return Err(Failure::argument(format!("there is no such flag: {unknown:#x}")));
        }
        let is_set = |flag: zklock_flag| flags & flag as u32 != 0;
        let foreign = if is_set(ZKLOCK_GO_AHEAD) { Foreign::GoAhead } else { Foreign::Refuse };
        let watching = if is_set(ZKLOCK_WATCH_CHILDREN) { Watching::Children } else { Watching::Nearest };
        Behaviour::change(options, |options| {
            options.reentrant(is_set(ZKLOCK_REENTRANT)).foreign(foreign).watching(watching)
        })
    })
}

/// How its nodes are called. Contenders of every dialect are recognised, whichever the lock has.
///
/// @param options the options.
/// @param dialect one of zklock_dialect. Which kinds of lock can have it is said there.
/// @return ZKLOCK_OK, ZKLOCK_INVALID_ARGUMENT, ZKLOCK_INVALID_HANDLE, ZKLOCK_FORKED, ZKLOCK_INTERNAL.
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
        Behaviour::change(options, |options| options.dialect(wanted))
    })
}

/// How many permits of a semaphore to acquire at once. Default: 1.
///
/// @param options the options.
/// @param permits 1 to 256.
/// @return ZKLOCK_OK, ZKLOCK_INVALID_ARGUMENT, ZKLOCK_INVALID_HANDLE, ZKLOCK_FORKED, ZKLOCK_INTERNAL.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_lock_options_set_permits(
    options: *mut zklock_lock_options,
    permits: u32,
) -> zklock_status {
    call::status("zklock_lock_options_set_permits", || {
        if !(1..=PERMITS_AT_MOST).contains(&permits) {
            let message = format!("{permits} permits cannot be acquired: ask for 1 to {PERMITS_AT_MOST}");
            return Err(Failure::argument(message));
        }
        Behaviour::change(options, |options| options.permits(permits))
    })
}

/// The node that says how many permits a semaphore has, in the format of Curator's SharedCount. As long as it is
/// not there, the limit is that of zklock_semaphore_new. Whoever waits notices when zklock_set_limit changes it.
///
/// @param options the options.
/// @param path such as "/limits/licences".
/// @return ZKLOCK_OK, ZKLOCK_INVALID_ARGUMENT, ZKLOCK_INVALID_HANDLE, ZKLOCK_FORKED, ZKLOCK_INTERNAL.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_lock_options_set_limit_at(
    options: *mut zklock_lock_options,
    path: *const c_char,
) -> zklock_status {
    call::status("zklock_lock_options_set_limit_at", || {
        let path = text("path", path)?;
        check_lock_path(path)?;
        Behaviour::change(options, |options| options.limit_at(path))
    })
}
