//! The proof that a lock is held.

use crate::async_call::{Answer, AsyncCall, zklock_call};
use crate::c_enum::c_enum;
use crate::call;
use crate::callback::{CallbackGate, teller};
use crate::convert::{c_string, patience, whole};
use crate::events::{Events, Notice, zklock_event_kind};
use crate::failure::Failure;
use crate::handle::{Object, SentHandle, handle};
use crate::loss::zklock_reason;
use crate::raw::{Context, call_with_handle, out};
use crate::status::zklock_status;
use std::ffi::{CString, c_char, c_int, c_void};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use zklock_core::blocking::{self, Watch};
use zklock_core::face::call_later;
use zklock_core::{Error, HoldState, Owner};

/// The proof that a lock is held.
#[allow(non_camel_case_types, reason = "the name in C")]
#[derive(Debug)]
pub struct zklock_hold {
    _opaque: [u8; 0],
}

c_enum! {
    /// How a hold stands.
    #[from(HoldState)]
    pub enum zklock_state {
        /// The lock is held, and the servers have confirmed it recently.
        #[from(Held)]
        ZKLOCK_STATE_HELD = 1,
        /// The servers are out of reach or late. The lock is held for as long as
        /// zklock_hold_valid_for says; after that others may hold it.
        #[from(AtRisk)]
        ZKLOCK_STATE_AT_RISK = 2,
        /// The lock is not held any more. This is final.
        #[from(Lost(_))]
        ZKLOCK_STATE_LOST = 3,
        /// It was released.
        #[from(Released)]
        ZKLOCK_STATE_RELEASED = 4,
    }
}

/// Is called when a hold is lost.
#[allow(non_camel_case_types, reason = "the name in C")]
pub type zklock_loss_callback =
    Option<unsafe extern "C" fn(hold: *mut zklock_hold, reason: zklock_reason, context: *mut c_void)>;

pub(crate) struct Held {
    inner: blocking::Hold,
    /// Made for those who ask.
    path: OnceLock<CString>,
    node: OnceLock<CString>,
    events: Arc<Events>,
    /// Of the loss.
    notice: Arc<Notice>,
    /// That others wait.
    wanted: Arc<Notice>,
    told: Mutex<Told>,
}

/// What is told of what happens to the hold.
#[derive(Default)]
struct Told {
    /// The notice of the loss is.
    loss: bool,
    /// The notice that others wait is.
    wanted: bool,
    /// Of each callback.
    gates: Vec<Arc<CallbackGate>>,
    watches: Vec<Watch>,
    /// Nobody is to be told any more.
    ended: bool,
}

handle!(Held: zklock_hold, 5);

impl Held {
    /// From now on the loss is watched, if events are wanted.
    pub(crate) fn keep(inner: blocking::Hold, events: &Arc<Events>, context: Context) -> *mut zklock_hold {
        let (path, node, events) = (OnceLock::new(), OnceLock::new(), events.clone());
        let of = events.are_wanted().then(|| events.clone());
        let notice = Notice::new(zklock_event_kind::ZKLOCK_EVENT_LOST, of.clone(), context);
        let wanted = Notice::new(zklock_event_kind::ZKLOCK_EVENT_WANTED, of, context);
        let (lost_notice, wanted_notice) = (notice.clone(), wanted.clone());
        let held = Self { inner, path, node, events, notice, wanted, told: Mutex::default() };
        if lost_notice.is_event() {
            // It fails only in a child, where nobody has a hold of the parent's.
            let _ = held.watch_loss(&mut held.told());
        }
        let handle = Self::table().put(held);
        lost_notice.known(handle);
        wanted_notice.known(handle);
        handle
    }

    /// That of a call with this hold.
    pub(crate) fn notice_of_call(&self) -> Arc<Notice> {
        AsyncCall::notice(Some(&self.events))
    }

    pub(crate) fn inner(&self) -> &blocking::Hold {
        &self.inner
    }

    /// Of this that others wait.
    pub(crate) fn wanted(&self) -> &Arc<Notice> {
        &self.wanted
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An error if it is being freed by another thread.
    fn open_told(&self) -> Result<MutexGuard<'_, Told>, Failure> {
        let told = self.told();
        if told.ended {
            Err(Failure::new(zklock_status::ZKLOCK_INVALID_HANDLE, "the zklock_hold has been freed"))
        } else {
            Ok(told)
        }
    }

    fn watch_loss(&self, told: &mut Told) -> Result<(), Failure> {
        if !told.loss {
            let happen = self.notice.teller();
            told.watches.push(self.inner.on_lost(|_| happen())?);
            told.loss = true;
        }
        Ok(())
    }

    /// From now on the notice is told that others wait. Whether they do now.
    pub(crate) fn watch_wanted(&self) -> Result<bool, Failure> {
        let mut told = self.open_told()?;
        if !told.wanted {
            told.watches.push(self.inner.on_wanted(self.wanted.teller())?);
            told.wanted = true;
        }
        let is_wanted = self.inner.is_wanted();
        // At once, and not when the I/O thread comes to it.
        if is_wanted {
            self.wanted.happen();
        }
        Ok(is_wanted)
    }

    /// Has a function of the host's called when that happens for which `watch` looks out.
    pub(crate) fn tell<V: Send + 'static>(
        &self,
        call: impl FnOnce(V) + Send + 'static,
        watch: impl FnOnce(&blocking::Hold, Box<dyn FnOnce(V) + Send>) -> Result<Watch, Error>,
    ) -> Result<(), Failure> {
        // Better now than when it happens.
        call_later(|| ())?;
        let gate = Arc::new(CallbackGate::new());
        let mut told = self.open_told()?;
        told.watches.push(watch(&self.inner, teller(gate.clone(), call))?);
        told.gates.push(gate);
        Ok(())
    }

    /// From now on no callback of this hold begins, and none is running but the one that asks for
    /// this.
    fn tell_nobody(&self) {
        let told = std::mem::replace(&mut *self.told(), Told { ended: true, ..Told::default() });
        drop(told.watches);
        // Not with the mutex locked: a callback may look at its hold.
        for gate in told.gates {
            gate.end();
        }
    }
}

/// Releases the lock and waits until the servers have confirmed it. Of a reentrant lock, only the
/// release of the last hold reaches the servers.
///
/// Whatever is returned, but for ZKLOCK_NOT_OWNER, ZKLOCK_DEADLOCK and ZKLOCK_FORKED, this hold has
/// come to its end. It must be freed all the same.
///
/// @param hold the hold.
/// @return ZKLOCK_OK; ZKLOCK_LOST if the hold was found to be lost; ZKLOCK_NOT_HELD if it was
///         released before; ZKLOCK_NOT_OWNER if the lock is reentrant and another thread acquired
///         it: nothing changes; ZKLOCK_TIMEOUT if the servers have not answered within a session
///         timeout: the release goes on in the background; ZKLOCK_UNREACHABLE if no connection can
///         be had for its session any more, such as after a change of passwords: the lock is free
///         when the servers end the session, a session timeout after they last heard of it;
///         ZKLOCK_REFUSED if the access list does not allow to delete its node, which has gone with
///         its session then, and so have the client's other holds, or the process is exiting and no
///         thread can be started; ZKLOCK_DEADLOCK in a callback.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_release(hold: *mut zklock_hold) -> zklock_status {
    call::status("zklock_release", || Ok(Held::table().find(hold)?.inner.release()?))
}

/// Begins what zklock_release does, and returns at once. If there is a call, and this thread may
/// release the hold, the hold has come to its end by then, and the release goes on even if the call
/// is cancelled or freed.
///
/// @param hold the hold. It must be freed all the same, which may be done before the call has its
///        result.
/// @param[out] call the call. Free it with zklock_call_free.
/// @return ZKLOCK_OK. Other statuses come with the result.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_release_start(
    hold: *mut zklock_hold,
    call: *mut *mut zklock_call,
) -> zklock_status {
    call::status("zklock_release_start", || {
        let call = out("call", call)?;
        let held = Held::table().find(hold)?;
        let hold = held.inner.core();
        let notice = Notice::of_release(held.events.clone(), &held.notice);
        call.set(match hold.get()?.begin_release(Owner::current()) {
            Ok(Some(rest)) => {
                AsyncCall::start(&notice, |ready| hold.start(ready, |_| rest), Answer::nothing)?
            }
            Ok(None) => AsyncCall::over(&notice, Ok(Answer::Nothing)),
            Err(error) => AsyncCall::over(&notice, Err(error.into())),
        });
        Ok(())
    })
}

/// Frees a hold and its descriptor, which must be in no event loop any more. A lock that is still
/// held is released in the background, whichever thread acquired it, and calls that wait with this
/// hold end. Nothing of it is told from now on.
///
/// It waits for nothing but a callback of this hold that is just running, unless that is what calls
/// it. So call it with nothing locked that the callback locks.
///
/// @param hold may be NULL; a handle that was freed before is ignored.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_hold_free(hold: *mut zklock_hold) {
    call::free("zklock_hold_free", || {
        if let Some(held) = Held::table().take(hold) {
            held.notice.end();
            held.wanted.end();
            held.tell_nobody();
            held.inner.let_go();
        }
    });
}

/// The fencing token: of two grants of one path that exclude each other, the later has the greater
/// token. Let what the lock guards refuse a token smaller than one it has seen, and accept an equal
/// one: grants that follow one another on one node have the same. Those are the holds within a hold
/// of ZKLOCK_REENTRANT, and what zklock_lock_options_set_linger and
/// zklock_lock_options_set_local_turns let a client take again.
///
/// Holders that may hold together learn of their grants in any order: of two readers without a
/// writer between them the later may have the smaller token, and so may the later of two permits.
/// So compare a reader's token with those of writers alone.
///
/// @param hold the hold.
/// @param[out] token the token.
/// @return ZKLOCK_OK.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_hold_token(hold: *const zklock_hold, token: *mut u64) -> zklock_status {
    call::status("zklock_hold_token", || {
        out("token", token)?.set(Held::table().find(hold)?.inner.token().value());
        Ok(())
    })
}

/// For how long the lock is certain to be held without the servers being heard from again. Zero
/// means that others may hold it. It costs no request.
///
/// It is the state of now: a process that is paused just after this call may find it changed.
/// Against that help the token, and zklock_hold_commit.
///
/// @param hold the hold.
/// @param[out] milliseconds rounded down.
/// @return ZKLOCK_OK.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_hold_valid_for(
    hold: *const zklock_hold,
    milliseconds: *mut i64,
) -> zklock_status {
    call::status("zklock_hold_valid_for", || {
        out("milliseconds", milliseconds)?.set(whole(Held::table().find(hold)?.inner.valid_for()));
        Ok(())
    })
}

/// How the hold stands. It costs no request.
///
/// @param hold the hold.
/// @param[out] state how it stands.
/// @param[out] reason why it was lost, ZKLOCK_REASON_NONE if it is not. It may be NULL.
/// @return ZKLOCK_OK.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_hold_state(
    hold: *const zklock_hold,
    state: *mut zklock_state,
    reason: *mut zklock_reason,
) -> zklock_status {
    call::status("zklock_hold_state", || {
        let state = out("state", state)?;
        let now = Held::table().find(hold)?.inner.state();
        state.set(zklock_state::of(now));
        if let Ok(reason) = out("reason", reason) {
            reason.set(match now {
                HoldState::Lost(why) => zklock_reason::of(why),
                _ => zklock_reason::ZKLOCK_REASON_NONE,
            });
        }
        Ok(())
    })
}

/// The path of the lock.
///
/// @param hold the hold.
/// @param[out] path valid until the hold is freed.
/// @return ZKLOCK_OK.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_hold_path(
    hold: *const zklock_hold,
    path: *mut *const c_char,
) -> zklock_status {
    call::status("zklock_hold_path", || {
        let path = out("path", path)?;
        let held = Held::table().find(hold)?;
        path.set(held.path.get_or_init(|| c_string(held.inner.path())).as_ptr());
        Ok(())
    })
}

/// The path of the node that stands for this hold.
///
/// @param hold the hold.
/// @param[out] node valid until the hold is freed.
/// @return ZKLOCK_OK.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_hold_node(
    hold: *const zklock_hold,
    node: *mut *const c_char,
) -> zklock_status {
    call::status("zklock_hold_node", || {
        let node = out("node", node)?;
        let held = Held::table().find(hold)?;
        node.set(held.node.get_or_init(|| c_string(held.inner.node())).as_ptr());
        Ok(())
    })
}

/// The descriptor of a hold: readable when the hold is lost, and from then on. Do not read from it,
/// write to it or close it.
///
/// @param hold the hold.
/// @param[out] descriptor valid until the hold is freed.
/// @return ZKLOCK_OK; ZKLOCK_REFUSED if the system gives none.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_hold_fd(hold: *const zklock_hold, descriptor: *mut c_int) -> zklock_status {
    call::status("zklock_hold_fd", || {
        let descriptor = out("descriptor", descriptor)?;
        let held = Held::table().find(hold)?;
        let mut told = held.open_told()?;
        let number = held.notice.descriptor()?;
        held.watch_loss(&mut told)?;
        // If it is lost already, it is readable at once, and not when the I/O thread comes to it.
        if let HoldState::Lost(_) = held.inner.state() {
            held.notice.happen();
        }
        descriptor.set(number);
        Ok(())
    })
}

/// What the events of a hold give back: a pointer of yours, behind which nobody looks. Until it is
/// set, it is that of the ticket from which the hold was fetched, or NULL.
///
/// @param hold the hold.
/// @param context any pointer, or NULL.
/// @return ZKLOCK_OK.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_hold_set_context(
    hold: *mut zklock_hold,
    context: *mut c_void,
) -> zklock_status {
    call::status("zklock_hold_set_context", || {
        let held = Held::table().find(hold)?;
        held.notice.set_context(Context(context));
        held.wanted.set_context(Context(context));
        Ok(())
    })
}

/// Calls back when the hold is lost: once, on a thread of ours, and not if it is released before. A
/// hold that is lost already is reported at once. Each call adds a callback.
///
/// @param hold the hold.
/// @param callback see "Callbacks" above. It may look at the hold, and free it.
/// @param context handed to it. Both must stay until zklock_hold_free returns.
/// @return ZKLOCK_OK; ZKLOCK_REFUSED if the system gives no thread for callbacks.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_hold_on_lost(
    hold: *mut zklock_hold,
    callback: zklock_loss_callback,
    context: *mut c_void,
) -> zklock_status {
    call::status("zklock_hold_on_lost", || {
        let callback = callback.ok_or_else(|| Failure::argument("the callback is NULL"))?;
        let held = Held::table().find(hold)?;
        let (hold, context) = (SentHandle::new(hold), Context(context));
        let call = move |why| call_with_handle(callback, hold.get(), zklock_reason::of(why), context);
        held.tell(call, blocking::Hold::on_lost)
    })
}

/// Waits until the hold is lost.
///
/// @param hold the hold.
/// @param timeout milliseconds; ZKLOCK_FOREVER waits as long as it takes.
/// @param[out] reason why it was lost.
/// @return ZKLOCK_OK if it is lost; ZKLOCK_TIMEOUT if it is still held then; ZKLOCK_NOT_HELD if it
///         is released; ZKLOCK_DEADLOCK in a callback.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_hold_wait_lost(
    hold: *mut zklock_hold,
    timeout: i64,
    reason: *mut zklock_reason,
) -> zklock_status {
    call::status("zklock_hold_wait_lost", || {
        let reason = out("reason", reason)?;
        let held = Held::table().find(hold)?;
        match held.inner.loss().wait(patience(timeout)?, None)? {
            Some(why) => reason.set(zklock_reason::of(why)),
            None => return Err(Failure::new(zklock_status::ZKLOCK_NOT_HELD, "the hold is released")),
        }
        Ok(())
    })
}

/// Asks the servers whether the lock is still held.
///
/// @param hold the hold.
/// @param[out] milliseconds for how long it is certain to be held. It may be NULL.
/// @return ZKLOCK_OK if it is held; ZKLOCK_LOST if it is not; ZKLOCK_UNREACHABLE if the servers did
///         not answer within what was left of the lease, or a second; ZKLOCK_NOT_HELD after a
///         release, including one that comes before their answer; ZKLOCK_DEADLOCK in a callback.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_hold_confirm(
    hold: *mut zklock_hold,
    milliseconds: *mut i64,
) -> zklock_status {
    call::status("zklock_hold_confirm", || {
        let valid_for = Held::table().find(hold)?.inner.confirm()?;
        if let Ok(milliseconds) = out("milliseconds", milliseconds) {
            milliseconds.set(whole(valid_for));
        }
        Ok(())
    })
}

/// Begins what zklock_hold_confirm does, and returns at once. zklock_call_finish gives the
/// milliseconds.
///
/// @param hold the hold. It must stay until the call has its result: to free it releases the lock,
///        and the call may give ZKLOCK_NOT_HELD.
/// @param[out] call the call. Free it with zklock_call_free.
/// @return ZKLOCK_OK. Other statuses come with the result.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_hold_confirm_start(
    hold: *mut zklock_hold,
    call: *mut *mut zklock_call,
) -> zklock_status {
    call::status("zklock_hold_confirm_start", || {
        let call = out("call", call)?;
        let held = Held::table().find(hold)?;
        let begin = |ready| held.inner.core().start(ready, |hold| async move { hold.confirm().await });
        let answer = |valid_for| Answer::Number(whole(valid_for));
        call.set(AsyncCall::start(&held.notice_of_call(), begin, answer)?);
        Ok(())
    })
}
