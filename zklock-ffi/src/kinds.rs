//! The kinds of lock, with a constructor each. All kinds are acquired in the same way.

use crate::client::{Client, zklock_client};
use crate::export::export;
use crate::failure::Failure;
use crate::handle::Object;
use crate::lock::{Lock, zklock_lock};
use crate::options::{Options, zklock_options};
use crate::raw::{array, out, outs, text};
use crate::status::zklock_status;
use std::ffi::{c_char, c_void};
use zklock::{Error, LockSpec};

export! {
    /// Creates the mutex at a path: one holder at a time, in order of arrival. As with every kind of
    /// lock, this sends no request. The first acquire creates the node.
    ///
    /// A mutex shares a queue with Curator's InterProcessMutex and LeaderSelector, and with those of
    /// other libraries: see the option naming in zklock_options_set.
    ///
    /// @param client the client. You may free it before the lock.
    /// @param path such as "/locks/report".
    /// @param options NULL for the defaults. They are copied.
    /// @param[out] lock the lock. Free it with zklock_lock_free.
    /// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the path is invalid, or an option does not apply
    ///         to this kind.
    pub fn zklock_mutex_new(
        client: *mut zklock_client,
        path: *const c_char,
        options: *const zklock_options,
        lock: *mut *mut zklock_lock,
    ) -> zklock_status {
        at_path(client, path, options, lock, LockSpec::mutex)?;
    }

    /// Creates the read side of the read/write lock at a path. Any number of readers can hold it at
    /// once, while no writer does.
    ///
    /// It shares a queue with Curator's InterProcessReadWriteLock or, in kazoo's naming scheme, with kazoo's
    /// locks.
    ///
    /// To downgrade, a thread that holds the write side may acquire the read side, and then release the
    /// write side. This needs a write side with the option reentrant; the read side may be reentrant
    /// or not. If the write side is not reentrant, the thread waits until the write side is released,
    /// like any other thread: see zklock_write_lock_new.
    ///
    /// @param client the client. You may free it before the lock.
    /// @param path such as "/locks/catalogue".
    /// @param options NULL for the defaults. They are copied.
    /// @param[out] lock the lock. Free it with zklock_lock_free.
    /// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the path is invalid, or an option does not apply
    ///         to this kind.
    pub fn zklock_read_lock_new(
        client: *mut zklock_client,
        path: *const c_char,
        options: *const zklock_options,
        lock: *mut *mut zklock_lock,
    ) -> zklock_status {
        at_path(client, path, options, lock, LockSpec::read_lock)?;
    }

    /// Creates the write side of the read/write lock at a path: one writer at a time, and no reader at
    /// the same time.
    ///
    /// If a thread holds the read side and acquires the write side, it waits until the read side is
    /// released, by any thread. If no other thread can release it, because its lock is reentrant, the
    /// acquire returns ZKLOCK_DEADLOCK.
    ///
    /// If a thread holds the write side of a reentrant lock, it gets the read side at
    /// once, because no other thread can release that write side. A write side that is not reentrant
    /// may have been handed to another thread, which is still writing. So the thread that acquired it
    /// must wait for its release before it can read, or gets ZKLOCK_TIMEOUT. The log has a warning
    /// about such a wait.
    ///
    /// @param client the client. You may free it before the lock.
    /// @param path the same path as for the read side.
    /// @param options NULL for the defaults. They are copied.
    /// @param[out] lock the lock. Free it with zklock_lock_free.
    /// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the path is invalid, or an option does not apply
    ///         to this kind.
    pub fn zklock_write_lock_new(
        client: *mut zklock_client,
        path: *const c_char,
        options: *const zklock_options,
        lock: *mut *mut zklock_lock,
    ) -> zklock_status {
        at_path(client, path, options, lock, LockSpec::write_lock)?;
    }

    /// Creates the election at a path. The client that acquires it leads until it releases it.
    /// zklock_observe reports the leader, even to programs that are not candidates. An election shares
    /// a queue with Curator's LeaderLatch.
    ///
    /// @param client the client. You may free it before the lock.
    /// @param path such as "/election/scheduler".
    /// @param options NULL for the defaults. They are copied.
    /// @param[out] lock the lock. Free it with zklock_lock_free.
    /// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the path is invalid, or an option does not apply
    ///         to this kind.
    pub fn zklock_election_new(
        client: *mut zklock_client,
        path: *const c_char,
        options: *const zklock_options,
        lock: *mut *mut zklock_lock,
    ) -> zklock_status {
        at_path(client, path, options, lock, LockSpec::election)?;
    }

    /// Creates the single-node lock at a path. The client that creates the node "lock" below the path
    /// holds the lock. There is no queue and no order. Use it only to share a lock with programs that
    /// create that node. For a job, see zklock_job_new.
    ///
    /// @param client the client. You may free it before the lock.
    /// @param path such as "/jobs/nightly".
    /// @param options NULL for the defaults. They are copied.
    /// @param[out] lock the lock. Free it with zklock_lock_free.
    /// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the path is invalid, or an option does not apply
    ///         to this kind.
    pub fn zklock_single_node_new(
        client: *mut zklock_client,
        path: *const c_char,
        options: *const zklock_options,
        lock: *mut *mut zklock_lock,
    ) -> zklock_status {
        at_path(client, path, options, lock, LockSpec::single_node)?;
    }

    /// Creates the semaphore at a path. It can have as many holders as it has permits, in order of
    /// arrival. Its nodes have the layout of Curator's InterProcessSemaphoreV2.
    ///
    /// A permit does not belong to a thread: any thread may acquire several and release any.
    ///
    /// @param client the client. You may free it before the lock.
    /// @param path such as "/locks/licences".
    /// @param limit the number of permits, 1 to 4294967295. Every program that uses the semaphore must
    ///         give the same number.
    /// @param options NULL for the defaults. They are copied.
    /// @param[out] lock the lock. Free it with zklock_lock_free.
    /// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the path is invalid, if the options ask for more
    ///         permits at once than the limit, or if an option does not apply to this kind.
    pub fn zklock_semaphore_new(
        client: *mut zklock_client,
        path: *const c_char,
        limit: u32,
        options: *const zklock_options,
        lock: *mut *mut zklock_lock,
    ) -> zklock_status {
        at_path(client, path, options, lock, |path| LockSpec::semaphore(path, limit))?;
    }

    /// Writes a number of permits to the node that semaphores name with the option limit-at. Creates
    /// the node if it does not exist. It waits for the servers' answer.
    ///
    /// Permits that are held stay held, even if the new limit is lower.
    ///
    /// @param client the client.
    /// @param path the path of the node, such as "/limits/licences".
    /// @param limit 0 to 2147483647.
    /// @return ZKLOCK_OK; ZKLOCK_UNREACHABLE if no server answers within the connect timeout;
    ///         ZKLOCK_REFUSED; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback.
    pub fn zklock_client_set_limit(client: *mut zklock_client, path: *const c_char, limit: u32) -> zklock_status {
        let path = text("path", path)?;
        Client::table().find(client)?.inner().set_limit(path, limit).wait()?;
    }

    /// Gets the identity of the ensemble. A fence keeps it together with the token (zklock_hold_token),
    /// because tokens of two ensembles cannot be compared. The identity is the data of the node
    /// "/zklock-ensemble". The first client that asks creates this node below its chroot, with its access
    /// list. A client asks the servers once in each session, and waits for their answer.
    ///
    /// An ensemble that you restore from a backup keeps its identity, although its tokens start
    /// again from earlier ones. In that case, delete the node once the ensemble's clients have
    /// ended.
    ///
    /// @param client the client.
    /// @param buffer receives the identity, without a NUL at its end: printable ASCII. What does not fit
    ///         is cut off. It may be NULL if size is 0.
    /// @param size the size of the buffer in bytes. 64 are enough.
    /// @param[out] length the length of the identity in bytes, even if it does not fit.
    /// @return ZKLOCK_OK; ZKLOCK_UNREACHABLE if no server answers within the connect timeout;
    ///         ZKLOCK_REFUSED if the access list does not allow reading or creating the node, or if the
    ///         node's data is not from zklock; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback.
    pub fn zklock_client_ensemble_id(
        client: *mut zklock_client,
        buffer: *mut c_void,
        size: usize,
        length: *mut usize,
    ) -> zklock_status {
        let length = out("length", length)?;
        let room = outs("buffer", buffer.cast::<u8>(), size)?;
        let id = Client::table().find(client)?.inner().ensemble_id().wait()?;
        room.set(id.as_bytes());
        length.set(id.len());
    }

    /// Creates a set of several locks that are acquired and released together: all of them, or none.
    /// Sets cannot deadlock each other, whatever order they name their locks in.
    ///
    /// @param client the client that made the locks. You may free it before the set.
    /// @param locks mutexes, read and write sides, semaphores and elections. A lock that you name twice
    ///         is in the set once. You may free them before the set.
    /// @param count the number of locks, at least 1.
    /// @param options NULL for the defaults. They are copied. Each lock keeps its own options, except
    ///         that the options of the set decide whether it is reentrant as a whole.
    /// @param[out] lock the set, which is itself a lock. Free it with zklock_lock_free.
    /// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if one of the locks is NULL, is of another client or
    ///         is a single-node lock, if two different locks have the same path, if there are too many
    ///         for one request, or if an option does not apply to a set.
    pub fn zklock_all_new(
        client: *mut zklock_client,
        locks: *const *mut zklock_lock,
        count: usize,
        options: *const zklock_options,
        lock: *mut *mut zklock_lock,
    ) -> zklock_status {
        of_several(client, locks, count, options, lock, zklock::Client::all_of)?;
    }

    /// Creates a choice of several locks. Acquiring it gives a hold of whichever lock is free first,
    /// and leaves the queues of the others. zklock_hold_path says which lock it is. This is for workers
    /// that take any free job out of many.
    ///
    /// An acquire first looks at all the queues, in one round trip that changes nothing. If some locks
    /// are free, it acquires the one that you named first. If none is free, it queues for all of them.
    /// Each lock is acquired as it would be alone, with its own options, so a lock that the caller
    /// already holds counts as busy unless it is reentrant.
    ///
    /// @param client the client that made the locks. You may free it before the choice.
    /// @param locks mutexes, read and write sides, semaphores, elections and sets. You may free them
    ///         before the choice.
    /// @param count the number of locks, at least 1.
    /// @param options NULL for the defaults. A choice takes no options of its own: set them on its
    ///         locks.
    /// @param[out] lock the choice, which is itself a lock. Free it with zklock_lock_free.
    /// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if one of the locks is NULL, is of another client, is
    ///         a single-node lock or is itself a choice, if two locks have the same path, if there are
    ///         too many for one session to watch, or if an option is not the default.
    pub fn zklock_any_new(
        client: *mut zklock_client,
        locks: *const *mut zklock_lock,
        count: usize,
        options: *const zklock_options,
        lock: *mut *mut zklock_lock,
    ) -> zklock_status {
        of_several(client, locks, count, options, lock, zklock::Client::any_of)?;
    }
}
fn of_several(
    client: *mut zklock_client,
    locks: *const *mut zklock_lock,
    count: usize,
    options: *const zklock_options,
    lock: *mut *mut zklock_lock,
    spec: impl FnOnce(&zklock::Client, &[zklock::Lock]) -> Result<LockSpec, Error>,
) -> Result<(), Failure> {
    let lock = out("lock", lock)?;
    let locks = array("locks", locks, count)?;
    let found: Vec<_> = locks
        .iter()
        .map(|lock| Lock::table().find(*lock).map(|lock| lock.inner().clone()))
        .collect::<Result<_, _>>()?;
    let client = Client::table().find(client)?;
    let spec = Options::of_lock(options, spec(client.inner(), &found)?)?;
    lock.set(Lock::keep(client.inner().lock(&spec)?, client.events()));
    Ok(())
}

fn at_path(
    client: *mut zklock_client,
    path: *const c_char,
    options: *const zklock_options,
    lock: *mut *mut zklock_lock,
    spec: impl FnOnce(&str) -> Result<LockSpec, Error>,
) -> Result<(), Failure> {
    let lock = out("lock", lock)?;
    let spec = Options::of_lock(options, spec(text("path", path)?)?)?;
    let client = Client::table().find(client)?;
    lock.set(Lock::keep(client.inner().lock(&spec)?, client.events()));
    Ok(())
}
