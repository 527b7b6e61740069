//! The kinds of lock: a constructor each. What is made can be acquired, whatever kind it is.

use crate::call;
use crate::client::{Client, zklock_client};
use crate::failure::Failure;
use crate::handle::Object;
use crate::lock::{Lock, zklock_lock};
use crate::lock_options::{LockOptions, zklock_lock_options};
use crate::raw::{array, out, text};
use crate::status::zklock_status;
use std::ffi::c_char;
use zklock_core::{Error, LockSpec, blocking};

/// Makes the mutex at a path: one holder at a time, in the order of arrival. Like every kind of
/// lock it costs no request: the node is created by the first acquire.
///
/// It shares a queue with Curator's InterProcessMutex and LeaderSelector, and others: see
/// zklock_dialect.
///
/// @param client the client. It may be freed before the lock.
/// @param path such as "/locks/report".
/// @param options NULL for the defaults. They are copied.
/// @param[out] lock the lock. Free it with zklock_lock_free.
/// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the path is invalid, or an option does not apply
///         to this kind.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_mutex_new(
    client: *mut zklock_client,
    path: *const c_char,
    options: *const zklock_lock_options,
    lock: *mut *mut zklock_lock,
) -> zklock_status {
    at_path("zklock_mutex_new", client, path, options, lock, LockSpec::mutex)
}

/// Makes the read side of the read/write lock at a path: it is held by any number at once, while no
/// writer holds.
///
/// A thread that holds the write side by a reentrant lock (ZKLOCK_REENTRANT) may acquire the read
/// side as well, and release the write side first: a downgrade. The lock of the read side may be
/// reentrant or not. Where that of the write side is not, the thread waits for the release of the
/// write side as any other does: see zklock_rwlock_write_new. It shares a queue with Curator's
/// InterProcessReadWriteLock, and in kazoo's dialect with kazoo's.
///
/// @param client the client. It may be freed before the lock.
/// @param path such as "/locks/catalogue".
/// @param options NULL for the defaults. They are copied.
/// @param[out] lock the lock. Free it with zklock_lock_free.
/// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the path is invalid, or an option does not apply
///         to this kind.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_rwlock_read_new(
    client: *mut zklock_client,
    path: *const c_char,
    options: *const zklock_lock_options,
    lock: *mut *mut zklock_lock,
) -> zklock_status {
    at_path("zklock_rwlock_read_new", client, path, options, lock, LockSpec::read)
}

/// Makes the write side of the read/write lock at a path: one holder at a time, and no reader
/// beside it.
///
/// A thread that holds the read side waits until that is released, by whichever thread. If no other
/// can release it, because it is of a reentrant lock, that is ZKLOCK_DEADLOCK. A thread that has
/// acquired the write side gets the read side at once if the lock is made with ZKLOCK_REENTRANT, so
/// that no other thread can release the write side. Any other hold may have been handed to another
/// thread, which writes: so the thread that acquired it waits for its release before it reads, or
/// gets ZKLOCK_TIMEOUT, and the log warns of the wait.
///
/// @param client the client. It may be freed before the lock.
/// @param path that of the read side.
/// @param options NULL for the defaults. They are copied.
/// @param[out] lock the lock. Free it with zklock_lock_free.
/// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the path is invalid, or an option does not apply
///         to this kind.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_rwlock_write_new(
    client: *mut zklock_client,
    path: *const c_char,
    options: *const zklock_lock_options,
    lock: *mut *mut zklock_lock,
) -> zklock_status {
    at_path("zklock_rwlock_write_new", client, path, options, lock, LockSpec::write)
}

/// Makes the election at a path: the client that acquires it leads until it releases. It shares a
/// queue with Curator's LeaderLatch. zklock_observe reports who leads, even to programs that are
/// not candidates.
///
/// @param client the client. It may be freed before the lock.
/// @param path such as "/election/scheduler".
/// @param options NULL for the defaults. They are copied.
/// @param[out] lock the lock. Free it with zklock_lock_free.
/// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the path is invalid, or an option does not apply
///         to this kind.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_election_new(
    client: *mut zklock_client,
    path: *const c_char,
    options: *const zklock_lock_options,
    lock: *mut *mut zklock_lock,
) -> zklock_status {
    at_path("zklock_election_new", client, path, options, lock, LockSpec::election)
}

/// Makes the exclusive lock at a path: the client that creates the node "lock" below it holds the
/// lock. There is no queue and no order, so it is for jobs that are tried once and skipped if
/// another process is doing them.
///
/// @param client the client. It may be freed before the lock.
/// @param path such as "/jobs/nightly".
/// @param options NULL for the defaults. They are copied.
/// @param[out] lock the lock. Free it with zklock_lock_free.
/// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the path is invalid, or an option does not apply
///         to this kind.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_exclusive_new(
    client: *mut zklock_client,
    path: *const c_char,
    options: *const zklock_lock_options,
    lock: *mut *mut zklock_lock,
) -> zklock_status {
    at_path("zklock_exclusive_new", client, path, options, lock, LockSpec::exclusive)
}

/// Makes the semaphore at a path: as many hold it as it has permits, in the order of arrival. It
/// has the layout of Curator's InterProcessSemaphoreV2.
///
/// A permit belongs to nobody: any thread may acquire several and release any.
///
/// @param client the client. It may be freed before the lock.
/// @param path such as "/locks/licences".
/// @param limit how many permits there are, 1 to 4294967295. Every program that uses it must give
///        the same number.
/// @param options NULL for the defaults. They are copied.
/// @param[out] lock the lock. Free it with zklock_lock_free.
/// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the path is invalid, if more permits are wanted
///         than there are, or an option does not apply to this kind.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_semaphore_new(
    client: *mut zklock_client,
    path: *const c_char,
    limit: u32,
    options: *const zklock_lock_options,
    lock: *mut *mut zklock_lock,
) -> zklock_status {
    at_path("zklock_semaphore_new", client, path, options, lock, |path| LockSpec::semaphore(path, limit))
}

/// Writes how many permits there are to the node that semaphores name with
/// zklock_lock_options_set_limit_at, and creates it if it is not there.
///
/// Permits that are held stay held, even if the new limit is lower.
///
/// @param client the client.
/// @param path that of the node, such as "/limits/licences".
/// @param limit 0 to 2147483647.
/// @return ZKLOCK_OK; ZKLOCK_UNREACHABLE if no server answers within the connect timeout;
///         ZKLOCK_REFUSED; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_set_limit(
    client: *mut zklock_client,
    path: *const c_char,
    limit: u32,
) -> zklock_status {
    call::status("zklock_set_limit", || {
        let path = text("path", path)?;
        Ok(Client::table().find(client)?.inner().set_limit(path, limit)?)
    })
}

/// Makes the set of several locks, which are acquired and released together: all of them, or none.
/// No two sets can come to wait for each other, in whatever order they name their locks.
///
/// @param client the client from which the locks come. It may be freed before the set.
/// @param locks mutexes, read and write sides, semaphores and elections. They may be freed before
///        the set.
/// @param count how many there are: one at least.
/// @param options NULL for the defaults. They are copied. The options of the locks stay, except
///        that the set as a whole is reentrant or not.
/// @param[out] lock the set, which is a lock as well. Free it with zklock_lock_free.
/// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if one of the locks is NULL, of another client or an
///         exclusive one, if two are of one path, they are too many for one request, or an option
///         does not apply to a set.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_all_new(
    client: *mut zklock_client,
    locks: *const *mut zklock_lock,
    count: usize,
    options: *const zklock_lock_options,
    lock: *mut *mut zklock_lock,
) -> zklock_status {
    of_several("zklock_all_new", client, locks, count, options, lock, blocking::Client::all_of)
}

/// Makes any one of several locks: an acquire holds the first that comes, and leaves the queues of
/// the rest. zklock_hold_path says which it is. It is for a worker that takes any free job out of
/// many.
///
/// All queues are looked at first, in one round trip that changes nothing, and of the locks that
/// are free the one that is named first is acquired. If none is, an acquire queues for all. Each
/// lock is acquired as it is alone, with its own options: so one that the caller holds already is
/// busy, unless it is reentrant.
///
/// @param client the client from which the locks come. It may be freed before the choice.
/// @param locks mutexes, read and write sides, semaphores, elections and sets. They may be freed
///        before the choice.
/// @param count how many there are: one at least.
/// @param options NULL for the defaults. No option but a default applies to a choice: give them to
///        its locks.
/// @param[out] lock the choice, which is a lock as well. Free it with zklock_lock_free.
/// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if one of the locks is NULL, of another client, an
///         exclusive one or such a choice itself, if two are of one path, they are too many to be
///         watched by one session, or an option does not apply to a choice.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_any_new(
    client: *mut zklock_client,
    locks: *const *mut zklock_lock,
    count: usize,
    options: *const zklock_lock_options,
    lock: *mut *mut zklock_lock,
) -> zklock_status {
    of_several("zklock_any_new", client, locks, count, options, lock, blocking::Client::any_of)
}

fn of_several(
    call: &str,
    client: *mut zklock_client,
    locks: *const *mut zklock_lock,
    count: usize,
    options: *const zklock_lock_options,
    lock: *mut *mut zklock_lock,
    spec: impl FnOnce(&blocking::Client, &[blocking::Lock]) -> Result<LockSpec, Error>,
) -> zklock_status {
    call::status(call, || -> Result<(), Failure> {
        let lock = out("lock", lock)?;
        let locks = array("locks", locks, count)?;
        let found: Vec<_> = locks
            .iter()
            .map(|lock| Lock::table().find(*lock).map(|lock| lock.inner().clone()))
            .collect::<Result<_, _>>()?;
        let client = Client::table().find(client)?;
        let spec = LockOptions::apply(options, spec(client.inner(), &found)?)?;
        lock.set(Lock::keep(client.inner().lock(&spec)?, client.events()));
        Ok(())
    })
}

fn at_path(
    call: &str,
    client: *mut zklock_client,
    path: *const c_char,
    options: *const zklock_lock_options,
    lock: *mut *mut zklock_lock,
    spec: impl FnOnce(&str) -> Result<LockSpec, Error>,
) -> zklock_status {
    call::status(call, || -> Result<(), Failure> {
        let lock = out("lock", lock)?;
        let spec = LockOptions::apply(options, spec(text("path", path)?)?)?;
        let client = Client::table().find(client)?;
        lock.set(Lock::keep(client.inner().lock(&spec)?, client.events()));
        Ok(())
    })
}
