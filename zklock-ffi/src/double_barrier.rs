//! The double barrier: its members begin together and end together.

use crate::client::{Client, zklock_client};
use crate::convert::{c_string, patience};
use crate::events::Events;
use crate::export::{export, noun};
use crate::handle::Object;
use crate::loss::zklock_reason;
use crate::raw::{out, text};
use crate::started::{Answer, Started, starts, zklock_call};
use crate::status::zklock_status;
use std::ffi::{CString, c_char};
use std::sync::Arc;

noun! {
    /// A double barrier at a path, whose members begin together and end together.
    pub struct zklock_double_barrier: DoubleBarrier, 9;

    /// Frees the handle of a double barrier. Its members are not affected, and waits for it go on.
    ///
    /// @param double_barrier may be NULL. A handle that was already freed is ignored.
    pub fn zklock_double_barrier_free(double_barrier: *mut zklock_double_barrier);

    fn inherited(&self) -> Option<Self> {
        (!self.0.is_forked()).then(|| self.clone())
    }
}

noun! {
    /// A member of a double barrier, from entering to leaving.
    pub struct zklock_member: Member, 10;

    /// Frees a member. If it has not left yet, it leaves in the background, without waiting for the
    /// others.
    ///
    /// @param member may be NULL. A handle that was already freed is ignored.
    pub fn zklock_member_free(member: *mut zklock_member);
}

#[derive(Clone)]
pub(crate) struct DoubleBarrier(zklock::further::DoubleBarrier, Arc<Events>);

pub(crate) struct Member {
    inner: zklock::further::Member,
    node: CString,
    events: Arc<Events>,
}

impl Member {
    fn keep(inner: zklock::further::Member, events: &Arc<Events>) -> *mut zklock_member {
        let (node, events) = (c_string(inner.node()), events.clone());
        Self::table().put(Self { inner, node, events })
    }
}

export! {
    /// Creates the handle of the double barrier at a path. This sends no request. The barrier is
    /// compatible with Curator's DistributedDoubleBarrier.
    ///
    /// @param client the client. You may free it before the barrier.
    /// @param path such as "/barriers/round".
    /// @param members how many members open the barrier, 1 to 4294967295. Every program that uses it
    ///         must give the same number. Additional members that come while it is open enter as well.
    /// @param[out] double_barrier the barrier. Free it with zklock_double_barrier_free.
    /// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the path is invalid.
    pub fn zklock_double_barrier_new(
        client: *mut zklock_client,
        path: *const c_char,
        members: u32,
        double_barrier: *mut *mut zklock_double_barrier,
    ) -> zklock_status {
        let double_barrier = out("double_barrier", double_barrier)?;
        let path = text("path", path)?;
        let client = Client::table().find(client)?;
        let made = DoubleBarrier(client.inner().double_barrier(path, members)?, client.events().clone());
        double_barrier.set(DoubleBarrier::table().put(made));
    }

    /// Enters the barrier as a new member, and waits until the barrier is open. Every call makes a
    /// member of its own.
    ///
    /// @param double_barrier the barrier.
    /// @param timeout in milliseconds. 0 enters only if the barrier is open or this member opens it,
    ///         and takes the try timeout if no server answers. ZKLOCK_FOREVER waits as long as it
    ///         takes. With any other timeout the call returns in time, whatever the network does.
    /// @param[out] member the member, which stays inside until zklock_member_leave. Free it with
    ///         zklock_member_free.
    /// @return ZKLOCK_OK; ZKLOCK_TIMEOUT if the barrier did not open in that time; ZKLOCK_UNREACHABLE
    ///         if there was no connection in the end, or no server answered a single try;
    ///         ZKLOCK_REFUSED; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback.
    pub fn zklock_double_barrier_enter(
        double_barrier: *mut zklock_double_barrier,
        timeout: i64,
        member: *mut *mut zklock_member,
    ) -> zklock_status {
        let member = out("member", member)?;
        let barrier = DoubleBarrier::table().find(double_barrier)?;
        let entered = barrier.0.enter_within(patience(timeout)?).wait()?;
        member.set(Member::keep(entered, &barrier.1));
    }

    /// Takes the member from a call of zklock_double_barrier_enter_start that has entered. It returns
    /// at once.
    ///
    /// @param call the call. You must still free it.
    /// @param[out] member the member, which you now own. Free it with zklock_member_free.
    /// @return ZKLOCK_OK; ZKLOCK_NOT_HELD if the member was already taken from the call;
    ///         ZKLOCK_INVALID_ARGUMENT if the call is of another function; and everything that
    ///         zklock_call_finish returns.
    pub fn zklock_call_member(call: *mut zklock_call, member: *mut *mut zklock_member) -> zklock_status {
        let member = out("member", member)?;
        let call = Started::table().find(call)?;
        let entered = call.take("a member", |answer| match answer {
            Answer::Member(entered) => Ok(entered),
            other => Err(other),
        })?;
        member.set(Member::keep(entered, &call.events()));
    }

    /// Leaves the barrier, and waits until all other members have left. A member that crashes counts as
    /// having left once its session is over.
    ///
    /// Whatever this returns, except for ZKLOCK_DEADLOCK and ZKLOCK_FORKED, this member has left or is
    /// leaving in the background.
    ///
    /// @param member the member. You must still free it.
    /// @param timeout in milliseconds. 0 does not wait for the others, and takes the try timeout if no
    ///         server answers. ZKLOCK_FOREVER waits as long as it takes.
    /// @return ZKLOCK_OK; ZKLOCK_TIMEOUT if other members are still inside; ZKLOCK_LOST if the member's
    ///         session ended earlier, or its node was deleted, so that the others may have gone on
    ///         without it; ZKLOCK_NOT_HELD if it has already left; ZKLOCK_UNREACHABLE if there was no
    ///         connection in the end, or the timeout was 0 and no server answered; ZKLOCK_REFUSED;
    ///         ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback.
    pub fn zklock_member_leave(member: *mut zklock_member, timeout: i64) -> zklock_status {
        Member::table().find(member)?.inner.leave_within(patience(timeout)?).wait()?;
    }

    /// Gets the path of a member's node.
    ///
    /// @param member the member.
    /// @return the path, valid until the member is freed; "" if the handle is wrong.
    pub fn zklock_member_node(member: *const zklock_member) -> *const c_char {
        Member::table().find(member)?.node.as_ptr()
    }

    /// Says whether and why a member is lost. Once its session has ended, the others consider it to
    /// have left. It sends no request.
    ///
    /// @param member the member.
    /// @return why it was lost; ZKLOCK_REASON_NONE if it is not lost; ZKLOCK_REASON_OTHER if the
    ///         handle is wrong.
    pub fn zklock_member_loss(member: *const zklock_member) -> zklock_reason {
        let why = Member::table().find(member)?.inner.loss();
        why.map_or(zklock_reason::ZKLOCK_REASON_NONE, zklock_reason::of)
    }
}

starts! {
    /// Starts to enter the barrier as zklock_double_barrier_enter does, and returns at once. When the
    /// call has its result, take the member from it with zklock_call_member.
    ///
    /// @param double_barrier the barrier. You may free it before the call.
    /// @param timeout in milliseconds, as for zklock_double_barrier_enter.
    pub fn zklock_double_barrier_enter_start(double_barrier: *mut zklock_double_barrier, timeout: i64) {
        let barrier = DoubleBarrier::table().find(double_barrier)?;
        Started::keep(barrier.0.enter_within(patience(timeout)?), &barrier.1, Answer::Member)
    }

    /// Starts to leave the barrier as zklock_member_leave does, and returns at once. If this gives you
    /// a call, the member has left or is leaving in the background, even if you cancel or free the
    /// call.
    ///
    /// @param member the member. You must still free it, and may do so before the call has its result.
    /// @param timeout in milliseconds, as for zklock_member_leave.
    pub fn zklock_member_leave_start(member: *mut zklock_member, timeout: i64) {
        let member = Member::table().find(member)?;
        Started::keep(member.inner.leave_within(patience(timeout)?), &member.events, Answer::nothing)
    }
}
