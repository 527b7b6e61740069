//! A thing that can be acquired. A kind of lock is a constructor here, and nothing else.

use crate::call;
use crate::client::{Client, zklock_client};
use crate::handle::{Context, Object, Table, call_contender, out, text};
use crate::hold::{Held, zklock_hold};
use crate::status::{Failure, zklock_status};
use std::ffi::{CString, c_char, c_void};
use std::time::{Duration, UNIX_EPOCH};
use zklock_core::blocking;
use zklock_core::{LockOptions, QueuedContender};

/// A lock at a path. It holds nothing itself: zklock_acquire does.
#[allow(non_camel_case_types, reason = "the name in C")]
#[derive(Debug)]
pub struct zklock_lock {
    _opaque: [u8; 0],
}

/// How a lock behaves: flags for its constructor.
#[allow(non_camel_case_types, reason = "the name in C")]
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum zklock_flag {
    /// A thread that holds the lock may acquire it again; each hold is released by that thread. Without
    /// it that is ZKLOCK_DEADLOCK, and a hold may be released by any thread.
    ZKLOCK_REENTRANT = 1,
}

/// One in the queue of a lock. What it points to lives as long as the call of the visitor. New members
/// may be added at the end: do not copy it by its size.
#[allow(non_camel_case_types, reason = "the name in C")]
#[repr(C)]
#[derive(Debug)]
pub struct zklock_contender {
    /// The name of its node, a child of the lock's node.
    pub name: *const c_char,
    /// What it says of itself. zklock writes "host/pid" or what the client's options say.
    pub identity: *const c_char,
    /// The naming scheme of its library: "curator", "kazoo" or "writelock".
    pub dialect: *const c_char,
    /// The session that owns it.
    pub session: u64,
    /// Its fencing token, when it comes to hold the lock.
    pub token: u64,
    /// Since when it is there: milliseconds since 1970 on the servers' clock.
    pub since: i64,
}

/// Is shown one contender after the other.
#[allow(non_camel_case_types, reason = "the name in C")]
pub type zklock_contender_visitor =
    Option<unsafe extern "C" fn(contender: *const zklock_contender, context: *mut c_void)>;

pub(crate) struct Lock {
    inner: blocking::Lock,
    path: CString,
}

impl Object for Lock {
    type Opaque = zklock_lock;
    const NAME: &'static str = "zklock_lock";
    const KIND: u64 = 3;

    fn table() -> &'static Table<Self> {
        static TABLE: Table<Lock> = Table::new();
        &TABLE
    }
}

impl Lock {
    pub(crate) fn inner(&self) -> &blocking::Lock {
        &self.inner
    }

    fn keep(inner: blocking::Lock) -> *mut zklock_lock {
        let path = c_string(inner.path());
        Self::table().put(Self { inner, path })
    }
}

/// Makes the mutex at a path: one holder at a time, in the order of arrival. It costs no request: the
/// node is created by the first acquire.
///
/// @param client the client. It may be freed before the lock.
/// @param path such as "/locks/report".
/// @param flags 0, or a sum of zklock_flag.
/// @param[out] lock the lock. Free it with zklock_lock_free.
/// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the path or a flag is none; ZKLOCK_INVALID_HANDLE;
///         ZKLOCK_FORKED, ZKLOCK_INTERNAL.
#[unsafe(no_mangle)]
pub extern "C" fn zklock_mutex_new(
    client: *mut zklock_client,
    path: *const c_char,
    flags: u32,
    lock: *mut *mut zklock_lock,
) -> zklock_status {
    call::status("zklock_mutex_new", || {
        let lock = out("lock", lock)?;
        let path = text("path", path)?;
        let options = options(flags)?;
        lock.set(Lock::keep(Client::table().find(client)?.inner().mutex_with(path, options)?));
        Ok(())
    })
}

/// Frees the lock. Holds of it are not touched, and waits for it go on.
///
/// @param lock may be NULL; a handle that was freed before is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn zklock_lock_free(lock: *mut zklock_lock) {
    call::free("zklock_lock_free", || drop(Lock::table().take(lock)));
}

/// The path of a lock.
///
/// @param lock the lock.
/// @param[out] path valid until the lock is freed.
/// @return ZKLOCK_OK, ZKLOCK_INVALID_ARGUMENT, ZKLOCK_INVALID_HANDLE, ZKLOCK_FORKED, ZKLOCK_INTERNAL.
#[unsafe(no_mangle)]
pub extern "C" fn zklock_lock_path(lock: *const zklock_lock, path: *mut *const c_char) -> zklock_status {
    call::status("zklock_lock_path", || {
        out("path", path)?.set(Lock::table().find(lock)?.path.as_ptr());
        Ok(())
    })
}

/// Waits until the lock is held.
///
/// @param lock the lock.
/// @param timeout milliseconds: 0 tries once, which may take as long as the connect timeout where no server
///        answers; ZKLOCK_FOREVER (or any negative number) waits as long as it takes. Else it returns by
///        then, whatever the network does.
/// @param[out] hold the proof that the lock is held. Give it back with zklock_release, and free it with
///        zklock_hold_free.
/// @return ZKLOCK_OK; ZKLOCK_TIMEOUT if others held the lock, or no server answered, until then;
///         ZKLOCK_DEADLOCK if it was to wait for a lock that this thread holds already and that is not
///         reentrant, or in a callback; ZKLOCK_UNREACHABLE if it tried once and no server answered; if the lock
///         is reentrant, ZKLOCK_LOST if the outer hold is lost, and ZKLOCK_UNREACHABLE if its lease has run out;
///         ZKLOCK_FOREIGN_CONTENDER; ZKLOCK_REFUSED if the servers' access list does not allow it, or the
///         process ends and gets no thread any more; ZKLOCK_CLOSED; ZKLOCK_INVALID_ARGUMENT, ZKLOCK_INVALID_HANDLE, ZKLOCK_FORKED,
///         ZKLOCK_INTERNAL.
#[unsafe(no_mangle)]
pub extern "C" fn zklock_acquire(
    lock: *mut zklock_lock,
    timeout: i64,
    hold: *mut *mut zklock_hold,
) -> zklock_status {
    call::status("zklock_acquire", || {
        let hold = out("hold", hold)?;
        let lock = Lock::table().find(lock)?;
        let held = match patience(timeout) {
            Some(timeout) => lock.inner.acquire_timeout(timeout)?,
            None => lock.inner.acquire()?,
        };
        hold.set(Held::keep(held));
        Ok(())
    })
}

/// Shows who is in the queue of a lock, the holder first, of whatever library.
///
/// @param lock the lock.
/// @param visitor called by this thread, before zklock_contenders returns. It may make any call.
/// @param context handed to it.
/// @return ZKLOCK_OK; ZKLOCK_UNREACHABLE if no server answers within the connect timeout; ZKLOCK_REFUSED;
///         ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback; ZKLOCK_INVALID_ARGUMENT, ZKLOCK_INVALID_HANDLE,
///         ZKLOCK_FORKED, ZKLOCK_INTERNAL.
#[unsafe(no_mangle)]
pub extern "C" fn zklock_contenders(
    lock: *const zklock_lock,
    visitor: zklock_contender_visitor,
    context: *mut c_void,
) -> zklock_status {
    call::status("zklock_contenders", || {
        let visitor = visitor.ok_or_else(|| Failure::argument("the visitor is NULL"))?;
        for contender in Lock::table().find(lock)?.inner.contenders()? {
            show(&contender, |shown| call_contender(visitor, shown, Context(context)));
        }
        Ok(())
    })
}

fn show(contender: &QueuedContender, to: impl FnOnce(&zklock_contender)) {
    let since = contender.since.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    let (name, identity) = (c_string(&contender.name), c_string(&contender.identity));
    let dialect = c_string(&contender.dialect.to_string());
    to(&zklock_contender {
        name: name.as_ptr(),
        identity: identity.as_ptr(),
        dialect: dialect.as_ptr(),
        session: u64::from_ne_bytes(contender.session.to_ne_bytes()),
        token: contender.token.value(),
        since: i64::try_from(since).unwrap_or(i64::MAX),
    });
}

fn options(flags: u32) -> Result<LockOptions, Failure> {
    let reentrant = zklock_flag::ZKLOCK_REENTRANT as u32;
    if flags & !reentrant != 0 {
        return Err(Failure::argument(format!("there is no such flag: {:#x}", flags & !reentrant)));
    }
    Ok(LockOptions::new().reentrant(flags & reentrant != 0))
}

/// A timeout as C has it.
pub(crate) fn patience(milliseconds: i64) -> Option<Duration> {
    u64::try_from(milliseconds).ok().map(Duration::from_millis)
}

/// For C, where a NUL ends it. In what comes from a path there is none.
pub(crate) fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default()
}
