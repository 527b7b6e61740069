//! The contenders in the queue of a lock, and how an operator removes one.

use crate::c_enum::c_enum;
use crate::convert::{c_string, unsigned, whole};
use crate::export::export;
use crate::failure::Failure;
use crate::handle::Object;
use crate::lock::{Lock, zklock_lock};
use crate::raw::{Context, Visitor, out, show, text};
use crate::started::{Answer, Started, starts, zklock_call};
use crate::status::zklock_status;
use std::ffi::{c_char, c_int, c_void};
use std::time::UNIX_EPOCH;
use zklock::QueuedContender;
use zklock::further::Role;

c_enum! {
    /// What a contender wants.
    #[from(Role)]
    pub enum zklock_role {
        /// The lock itself: a mutex, a permit of a semaphore, or the lead of an election.
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

/// A contender in the queue of a lock. Its strings are valid during the call of the visitor.
/// The running library may be earlier or later than this
/// header: see `size`.
#[allow(non_camel_case_types, reason = "the name in C")]
#[repr(C)]
#[derive(Debug)]
pub struct zklock_contender {
    /// The size of this struct in the running library, in bytes. Later versions add members at the
    /// end. A member that lies beyond this size is missing: do not read it, and do not copy more
    /// than this many bytes.
    pub size: usize,
    /// The name of its node, a child of the lock's node.
    pub name: *const c_char,
    /// The name that the contender gives itself. A contender of zklock has "host/pid", or the
    /// identity from its client's options.
    pub identity: *const c_char,
    /// The naming scheme of its library: "curator", "kazoo" or "writelock".
    pub naming: *const c_char,
    /// The session that owns its node.
    pub session: u64,
    /// The fencing token that it has, or will have once it holds the lock. For the holder of a
    /// semaphore's permit, this is the number of its permit, and its token may be smaller.
    pub token: u64,
    /// When its node was created, in milliseconds since 1970 on the servers' clock.
    pub since: i64,
    /// The path of its node.
    pub node: *const c_char,
    /// What it wants.
    pub role: zklock_role,
    /// 1 if it holds the lock, judging by its place in the queue; 0 if it waits. A set of locks
    /// holds none of its locks until its turn has come in all of their queues, even if it is first
    /// in this one.
    pub holds: i32,
}

/// Called once for each contender.
#[allow(non_camel_case_types, reason = "the name in C")]
pub type zklock_contender_visitor =
    Option<unsafe extern "C" fn(contender: *const zklock_contender, context: *mut c_void)>;

export! {
    /// Asks the servers for the queue of a lock, and passes each contender to the visitor, holders
    /// first. Contenders of other libraries are included. It waits for the servers' answer.
    ///
    /// @param lock the lock.
    /// @param visitor called on this thread, before zklock_contenders returns. It may make any call.
    /// @param context passed to the visitor.
    /// @return ZKLOCK_OK; ZKLOCK_UNREACHABLE if no server answers within the connect timeout;
    ///         ZKLOCK_REFUSED; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback.
    pub fn zklock_contenders(
        lock: *mut zklock_lock,
        visitor: zklock_contender_visitor,
        context: *mut c_void,
    ) -> zklock_status {
        let visitor = visitor.ok_or_else(|| Failure::argument("the visitor is NULL"))?;
        show_all(&Lock::table().find(lock)?.inner().contenders().wait()?, visitor, Context(context));
    }

    /// Passes each contender that a call of zklock_contenders_start has found to the visitor, holders
    /// first.
    ///
    /// @param call the call. You must still free it.
    /// @param visitor called on this thread, before zklock_call_contenders returns. It may make any
    ///         call.
    /// @param context passed to the visitor.
    /// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the call is of another function; and everything
    ///         that zklock_call_finish returns.
    pub fn zklock_call_contenders(
        call: *mut zklock_call,
        visitor: zklock_contender_visitor,
        context: *mut c_void,
    ) -> zklock_status {
        let visitor = visitor.ok_or_else(|| Failure::argument("the visitor is NULL"))?;
        // A copy, because a visitor may query this call again.
        let contenders = Started::table().find(call)?.answer(|answer| match answer {
            Answer::Contenders(contenders) => Ok(contenders.clone()),
            _ => Err(answer.unsuited("contenders")),
        })?;
        show_all(&contenders, visitor, Context(context));
    }

    /// Takes one contender, of any library, out of the queue by deleting its node. A holder learns that
    /// its hold is lost, if its library reports that. A waiter queues again.
    ///
    /// Evicting a holder breaks the protection of the lock, unless the holder is known to have stopped:
    /// until it learns of the loss, it believes that it holds the lock, and another already does.
    ///
    /// All nodes of a single-node lock have the same path, so this evicts the current holder, which may
    /// not be the contender that you saw. zklock_break_lock avoids this.
    ///
    /// @param lock the lock.
    /// @param node the path of the contender's node, as zklock_contenders shows it.
    /// @param[out] evicted 1, or 0 if the node no longer existed. It may be NULL.
    /// @return ZKLOCK_OK; ZKLOCK_UNREACHABLE if no server answers within the connect timeout;
    ///         ZKLOCK_REFUSED; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback; ZKLOCK_INVALID_ARGUMENT if
    ///         the node is not that of a contender of this lock.
    pub fn zklock_evict(lock: *mut zklock_lock, node: *const c_char, evicted: *mut c_int) -> zklock_status {
        let node = text("node", node)?;
        let was_there = Lock::table().find(lock)?.inner().evict(node).wait()?;
        if let Ok(evicted) = out("evicted", evicted) {
            evicted.set(was_there.into());
        }
    }

    /// Takes the lock away from all its holders, by deleting their nodes. See zklock_evict for what
    /// this breaks. Waiters stay in the queue, and so does a set of locks that is first in this queue
    /// but still waits for another of its locks.
    ///
    /// The next holder of a single-node lock keeps its lock, with one exception: if the servers are of
    /// version 3.4, or another library holds the lock, a node that is created just between the request
    /// that reads the node and the one that deletes it is deleted too.
    ///
    /// @param lock the lock.
    /// @param visitor called on this thread for each holder, before zklock_break_lock returns. It may
    ///         make any call. It may be NULL.
    /// @param context passed to the visitor.
    /// @return ZKLOCK_OK; ZKLOCK_UNREACHABLE if no server answers within the connect timeout;
    ///         ZKLOCK_REFUSED; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback.
    pub fn zklock_break_lock(
        lock: *mut zklock_lock,
        visitor: zklock_contender_visitor,
        context: *mut c_void,
    ) -> zklock_status {
        let broken = Lock::table().find(lock)?.inner().break_lock().wait()?;
        if let Some(visitor) = visitor {
            show_all(&broken, visitor, Context(context));
        }
    }

    /// Asks all holders of the lock to release it. Nothing is taken away: a holder learns of the
    /// request if it looks for waiters (see zklock_hold_is_wanted), and keeps the lock until it
    /// releases it.
    ///
    /// The request is written as Curator's Revoker writes it: the data of the holder's node becomes
    /// `__REVOKE__`. So it reaches holders of zklock, in this process too, and holders of a Curator
    /// InterProcessMutex that called makeRevocable. Other libraries ignore it. Below that word, the node
    /// of a holder of zklock keeps its identity. For a holder of another library, the word replaces it.
    ///
    /// @param lock the lock.
    /// @param visitor called on this thread for each holder, before zklock_request_release returns. It may make
    ///         any call. It may be NULL.
    /// @param context passed to the visitor.
    /// @return ZKLOCK_OK, even if the lock has no holder; ZKLOCK_UNREACHABLE if no server answers
    ///         within the connect timeout; ZKLOCK_REFUSED, for example if the access list does not
    ///         allow writing to a holder's node (all other holders are still asked, but the visitor is
    ///         not called); ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback.
    pub fn zklock_request_release(
        lock: *mut zklock_lock,
        visitor: zklock_contender_visitor,
        context: *mut c_void,
    ) -> zklock_status {
        let asked = Lock::table().find(lock)?.inner().request_release().wait()?;
        if let Some(visitor) = visitor {
            show_all(&asked, visitor, Context(context));
        }
    }
}

starts! {
    /// Starts to ask for the queue of a lock as zklock_contenders does, and returns at once. When the
    /// call has its result, zklock_call_contenders shows the contenders.
    ///
    /// @param lock the lock. You may free it before the call.
    pub fn zklock_contenders_start(lock: *mut zklock_lock) {
        let lock = Lock::table().find(lock)?;
        Started::keep(lock.inner().contenders(), lock.events(), Answer::Contenders)
    }
}

pub(crate) fn show_all(contenders: &[QueuedContender], visitor: Visitor<zklock_contender>, context: Context) {
    for contender in contenders {
        let (name, identity) = (c_string(&contender.name), c_string(&contender.identity));
        let (naming, node) = (c_string(&contender.naming.to_string()), c_string(&contender.node));
        let shown = zklock_contender {
            size: size_of::<zklock_contender>(),
            name: name.as_ptr(),
            identity: identity.as_ptr(),
            naming: naming.as_ptr(),
            session: unsigned(contender.session),
            token: contender.token.value(),
            since: contender.since.duration_since(UNIX_EPOCH).map_or(0, whole),
            node: node.as_ptr(),
            role: zklock_role::of(contender.role),
            holds: contender.holds.into(),
        };
        show(visitor, &shown, context);
    }
}
