//! The contenders in the queue of a lock, and how an operator takes one out of it.

use crate::async_call::{Answer, AsyncCall, zklock_call};
use crate::c_enum::c_enum;
use crate::call;
use crate::convert::{c_string, unsigned, whole};
use crate::failure::Failure;
use crate::handle::Object;
use crate::lock::{Lock, zklock_lock};
use crate::raw::{Context, Visitor, WithStrings, out, show, text};
use crate::status::zklock_status;
use std::ffi::{c_char, c_int, c_void};
use std::time::UNIX_EPOCH;
use zklock_core::{QueuedContender, Role, Wait};

c_enum! {
    /// What a contender wants.
    #[from(Role)]
    pub enum zklock_role {
        /// The whole lock: a mutex, a permit, or the lead.
        #[from(Exclusive)]
        ZKLOCK_ROLE_EXCLUSIVE = 1,
        /// The read side of a read/write lock.
        #[from(Read)]
        ZKLOCK_ROLE_READ = 2,
        /// The write side of a read/write lock.
        #[from(Write)]
        ZKLOCK_ROLE_WRITE = 3,
    }
}

/// One in the queue of a lock. What it points to lives as long as the call of the visitor, or as
/// long as zklock_observer_next says. The library that runs may be an earlier or a later one than
/// this header: see `size`.
#[allow(non_camel_case_types, reason = "the name in C")]
#[repr(C)]
#[derive(Debug)]
pub struct zklock_contender {
    /// How many bytes this struct has in the library that runs. Later versions add members at the
    /// end: a member that ends beyond is not there. So read no such member, and copy no more than
    /// this.
    pub size: usize,
    /// The name of its node, a child of the lock's node.
    pub name: *const c_char,
    /// What it calls itself. zklock writes "host/pid" or what the client's options say.
    pub identity: *const c_char,
    /// The naming scheme of its library: "curator", "kazoo" or "writelock".
    pub dialect: *const c_char,
    /// The session that owns it.
    pub session: u64,
    /// Its fencing token, when it comes to hold the lock. A holder of a semaphore's permit has a
    /// smaller one: this is the number of its permit.
    pub token: u64,
    /// When its node was created: milliseconds since 1970 on the servers' clock.
    pub since: i64,
    /// The path of its node.
    pub node: *const c_char,
    /// What it wants.
    pub role: zklock_role,
    /// 1 if it holds the lock, as far as its place tells; 0 if it waits. A set of locks holds none
    /// of them before it is its turn in all of their queues, even if it is the first.
    pub holds: i32,
}

/// Is shown one contender after the other.
#[allow(non_camel_case_types, reason = "the name in C")]
pub type zklock_contender_visitor =
    Option<unsafe extern "C" fn(contender: *const zklock_contender, context: *mut c_void)>;

/// Shows the contenders in the queue of a lock, of any library, the holders first.
///
/// @param lock the lock.
/// @param visitor called by this thread, before zklock_contenders returns. It may make any call.
/// @param context handed to it.
/// @return ZKLOCK_OK; ZKLOCK_UNREACHABLE if no server answers within the connect timeout;
///         ZKLOCK_REFUSED; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_contenders(
    lock: *const zklock_lock,
    visitor: zklock_contender_visitor,
    context: *mut c_void,
) -> zklock_status {
    call::status("zklock_contenders", || {
        let visitor = visitor.ok_or_else(|| Failure::argument("the visitor is NULL"))?;
        show_all(&Lock::table().find(lock)?.inner().contenders()?, visitor, Context(context));
        Ok(())
    })
}

/// Begins what zklock_contenders does, and returns at once. zklock_call_contenders shows them.
///
/// @param lock the lock. It may be freed before the call.
/// @param[out] call the call. Free it with zklock_call_free.
/// @return ZKLOCK_OK. Other statuses come with the result.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_contenders_start(
    lock: *const zklock_lock,
    call: *mut *mut zklock_call,
) -> zklock_status {
    call::status("zklock_contenders_start", || {
        let call = out("call", call)?;
        let lock = Lock::table().find(lock)?;
        let begin = |ready| {
            lock.inner().core().start(ready, Wait::Forever, |lock| async move { lock.contenders().await })
        };
        call.set(AsyncCall::start(&AsyncCall::notice(Some(lock.events())), begin, Answer::Contenders)?);
        Ok(())
    })
}

/// Shows what a call of zklock_contenders_start has found, the holders first.
///
/// @param call the call. It must be freed all the same.
/// @param visitor called by this thread, before zklock_call_contenders returns. It may make any
///        call.
/// @param context handed to it.
/// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT for another call; and all that zklock_call_finish
///         returns.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_call_contenders(
    call: *mut zklock_call,
    visitor: zklock_contender_visitor,
    context: *mut c_void,
) -> zklock_status {
    call::status("zklock_call_contenders", || {
        let visitor = visitor.ok_or_else(|| Failure::argument("the visitor is NULL"))?;
        // Copied, since a visitor may ask this call for more.
        let contenders = AsyncCall::answer(call, |answer| match answer {
            Answer::Contenders(contenders) => Ok(contenders.clone()),
            _ => Err(answer.unsuited("contenders")),
        })?;
        show_all(&contenders, visitor, Context(context));
        Ok(())
    })
}

/// Takes any contender out of the queue, by deleting its node. A holder learns that its hold is
/// lost, if its library reports that; a waiter queues again.
///
/// All nodes of an exclusive lock have one path. So this evicts the holder of that moment, which
/// may be another than the one that was shown. zklock_break_lock spares another.
///
/// This breaks what the lock guards, unless the contender is known to have stopped: until it learns
/// of it, it believes that it holds the lock, and another already does.
///
/// @param lock the lock.
/// @param node the path of its node, as zklock_contenders shows it.
/// @param[out] evicted 1, or 0 if it was not there any more. It may be NULL.
/// @return ZKLOCK_OK; ZKLOCK_UNREACHABLE if no server answers within the connect timeout;
///         ZKLOCK_REFUSED; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback; ZKLOCK_INVALID_ARGUMENT if
///         it is not a contender of this lock.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_evict(
    lock: *mut zklock_lock,
    node: *const c_char,
    evicted: *mut c_int,
) -> zklock_status {
    call::status("zklock_evict", || {
        let node = text("node", node)?;
        let was_there = Lock::table().find(lock)?.inner().evict(node)?;
        if let Ok(evicted) = out("evicted", evicted) {
            evicted.set(was_there.into());
        }
        Ok(())
    })
}

/// Takes the lock away from all its holders. See zklock_evict, also for what that breaks. Waiters
/// stay, including a set of locks that is the first in the queue and waits for another of its
/// locks.
///
/// The next holder of an exclusive lock is spared, unless the servers are of version 3.4 or another
/// library holds it, and the next comes between the look at its node and its deletion.
///
/// @param lock the lock.
/// @param visitor called by this thread for each of them, before zklock_break_lock returns. It may
///        make any call. It may be NULL.
/// @param context handed to it.
/// @return ZKLOCK_OK; ZKLOCK_UNREACHABLE if no server answers within the connect timeout;
///         ZKLOCK_REFUSED; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_break_lock(
    lock: *mut zklock_lock,
    visitor: zklock_contender_visitor,
    context: *mut c_void,
) -> zklock_status {
    call::status("zklock_break_lock", || {
        let broken = Lock::table().find(lock)?.inner().break_lock()?;
        if let Some(visitor) = visitor {
            show_all(&broken, visitor, Context(context));
        }
        Ok(())
    })
}

/// Asks all holders of the lock to let it go. It takes nothing away: a holder is told if it wants
/// to know, see zklock_hold_is_wanted, and goes on holding until it releases the lock.
///
/// Each holder is asked as Curator's Revoker does it: the data of its node becomes `__REVOKE__`,
/// which is its identity from then on. So it reaches the holders of Curator's InterProcessMutex
/// that are makeRevocable, and those of zklock; other libraries do not look. Holders in this
/// process are asked like others.
///
/// @param lock the lock.
/// @param visitor called by this thread for each of them, before zklock_revoke returns. It may make
///        any call. It may be NULL.
/// @param context handed to it.
/// @return ZKLOCK_OK, also if nobody holds it; ZKLOCK_UNREACHABLE if no server answers within the
///         connect timeout; ZKLOCK_REFUSED, also if the access list does not allow to write to a
///         holder's node (all others are asked, and none is visited); ZKLOCK_CLOSED;
///         ZKLOCK_DEADLOCK in a callback.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_revoke(
    lock: *mut zklock_lock,
    visitor: zklock_contender_visitor,
    context: *mut c_void,
) -> zklock_status {
    call::status("zklock_revoke", || {
        let asked = Lock::table().find(lock)?.inner().revoke()?;
        if let Some(visitor) = visitor {
            show_all(&asked, visitor, Context(context));
        }
        Ok(())
    })
}

fn show_all(contenders: &[QueuedContender], visitor: Visitor<zklock_contender>, context: Context) {
    for contender in contenders {
        show(visitor, shown(contender).value(), context);
    }
}

/// A contender as C has it: its name, identity, dialect and node are the strings.
pub(crate) type Shown = WithStrings<zklock_contender, 4>;

pub(crate) fn shown(contender: &QueuedContender) -> Shown {
    let since = contender.since.duration_since(UNIX_EPOCH).map_or(0, whole);
    let strings = [
        c_string(&contender.name),
        c_string(&contender.identity),
        c_string(&contender.dialect.to_string()),
        c_string(&contender.node),
    ];
    WithStrings::new(strings, |[name, identity, dialect, node]| zklock_contender {
        size: size_of::<zklock_contender>(),
        name,
        identity,
        dialect,
        session: unsigned(contender.session),
        token: contender.token.value(),
        since,
        node,
        role: zklock_role::of(contender.role),
        holds: contender.holds.into(),
    })
}
