//! The proof that a lock is held.

use crate::c_enum::c_enum;
use crate::call::Safe;
use crate::callback::{CallbackGate, teller};
use crate::convert::{c_string, patience, time, whole};
use crate::events::{Events, Notice, zklock_event_kind};
use crate::export::{export, noun};
use crate::failure::Failure;
use crate::handle::{Object, SentHandle};
use crate::loss::zklock_reason;
use crate::raw::{Context, call_with_handle, out};
use crate::started::{Answer, Started, starts};
use crate::status::zklock_status;
use std::ffi::{CString, c_char, c_void};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use zklock::face::call_later;
use zklock::further::Watch;
use zklock::further::{Owner, RunEntry};
use zklock::{HoldState, LossReason};

noun! {
    /// The proof that a lock is held.
    pub struct zklock_hold: Held, 5;

    /// Frees a hold. If the lock is still held, it is released in the background, whichever thread acquired
    /// it. Calls that are waiting with this hold end. A freed hold has no more callbacks or events.
    ///
    /// If a callback of this hold is running, this function waits for it to return, unless the callback
    /// itself calls this function. So do not call it with a mutex locked that the callback locks too.
    /// It waits for nothing else.
    ///
    /// @param hold may be NULL. A handle that was already freed is ignored.
    pub fn zklock_hold_free(hold: *mut zklock_hold);

    fn freed(&self) {
        self.notice.end();
        self.wanted.end();
        self.tell_nobody();
        self.inner.let_go();
    }
}

c_enum! {
    /// The state of a hold.
    #[from(HoldState)]
    pub enum zklock_state {
        /// The lock is held, and the servers have confirmed it recently.
        #[from(Held)]
        ZKLOCK_STATE_HELD = 1,
        /// The servers are out of reach or slow to answer. The lock is held for as long as
        /// zklock_hold_valid_for says. After that, others may hold it.
        #[from(AtRisk)]
        ZKLOCK_STATE_AT_RISK = 2,
        /// The lock is no longer held. This is final.
        #[from(Lost(_))]
        ZKLOCK_STATE_LOST = 3,
        /// The hold was released.
        #[from(Released)]
        ZKLOCK_STATE_RELEASED = 4,
    }
}

/// Called when a hold is lost.
#[allow(non_camel_case_types, reason = "the name in C")]
pub type zklock_loss_callback =
    Option<unsafe extern "C" fn(hold: *mut zklock_hold, reason: zklock_reason, context: *mut c_void)>;

pub(crate) struct Held {
    inner: zklock::Hold,
    /// Made when it is first asked for.
    path: OnceLock<CString>,
    node: OnceLock<CString>,
    events: Arc<Events>,
    /// The notice of a loss.
    notice: Arc<Notice>,
    /// The notice that others wait.
    wanted: Arc<Notice>,
    told: Mutex<Told>,
    /// The run of a job that holds the lock.
    run: Option<Box<RunEntry>>,
}

/// The reports about the hold that somebody has asked for.
#[derive(Default)]
struct Told {
    /// Whether the notice that others wait is connected.
    wanted: bool,
    /// One for each callback.
    gates: Vec<Arc<CallbackGate>>,
    watches: Vec<Watch>,
    /// Nothing is reported any more.
    ended: bool,
}

impl Safe for zklock_state {
    const SAFE: Self = Self::ZKLOCK_STATE_LOST;
}

impl Held {
    /// Watches for a loss from now on, if events are wanted.
    pub(crate) fn keep(
        inner: zklock::Hold,
        run: Option<Box<RunEntry>>,
        events: &Arc<Events>,
        context: Context,
    ) -> *mut zklock_hold {
        let (path, node, events) = (OnceLock::new(), OnceLock::new(), events.clone());
        let of = events.are_wanted().then(|| events.clone());
        let notice = Notice::new(zklock_event_kind::ZKLOCK_EVENT_LOST, of.clone(), context);
        let wanted = Notice::new(zklock_event_kind::ZKLOCK_EVENT_WANTED, of, context);
        let (lost_notice, wanted_notice) = (notice.clone(), wanted.clone());
        let held = Self { inner, path, node, events, notice, wanted, told: Mutex::default(), run };
        if lost_notice.is_event() {
            let happen = held.notice.teller();
            // This only fails in a forked child, which cannot have a hold of its parent.
            held.told().watches.extend(held.inner.on_lost(|_| happen()));
        }
        let handle = Self::table().put(held);
        lost_notice.known(handle);
        wanted_notice.known(handle);
        handle
    }

    /// Returns the events of its client.
    pub(crate) fn events(&self) -> &Arc<Events> {
        &self.events
    }

    /// Returns its run of a job.
    pub(crate) fn run(&self) -> Result<&RunEntry, Failure> {
        let none = || Failure::argument("the zklock_hold is of no run: zklock_job_begin gives one that is");
        self.run.as_deref().ok_or_else(none)
    }

    pub(crate) fn inner(&self) -> &zklock::Hold {
        &self.inner
    }

    /// Returns the notice that others wait.
    pub(crate) fn wanted(&self) -> &Arc<Notice> {
        &self.wanted
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an error if another thread is freeing the hold.
    fn open_told(&self) -> Result<MutexGuard<'_, Told>, Failure> {
        let told = self.told();
        if told.ended {
            Err(Failure::new(zklock_status::ZKLOCK_INVALID_HANDLE, "the zklock_hold has been freed"))
        } else {
            Ok(told)
        }
    }

    /// Connects the notice that others wait. Returns whether they do now.
    pub(crate) fn watch_wanted(&self) -> Result<bool, Failure> {
        let mut told = self.open_told()?;
        if !told.wanted {
            told.watches.push(self.inner.on_wanted(self.wanted.teller())?);
            told.wanted = true;
        }
        let is_wanted = self.inner.is_wanted();
        // Report it at once, not when the I/O thread gets to it.
        if is_wanted {
            self.wanted.happen();
        }
        Ok(is_wanted)
    }

    /// Registers a function of the host, which is called when the hold is lost.
    fn tell_loss(&self, call: impl FnOnce(LossReason) + Send + 'static) -> Result<(), Failure> {
        // Start the thread now, so that a failure shows now and not later.
        call_later(|| ())?;
        let gate = Arc::new(CallbackGate::new());
        let mut told = self.open_told()?;
        told.watches.push(self.inner.on_lost(teller(gate.clone(), call))?);
        told.gates.push(gate);
        Ok(())
    }

    /// After this, no callback of this hold starts, and none is running except one that called
    /// this.
    fn tell_nobody(&self) {
        let told = std::mem::replace(&mut *self.told(), Told { ended: true, ..Told::default() });
        drop(told.watches);
        // Not while the mutex is locked, because a callback may query its hold.
        for gate in told.gates {
            gate.end();
        }
    }
}

export! {
    /// Releases a hold, and waits until the servers have confirmed it. If a reentrant lock has several
    /// holds, only the release of the last one reaches the servers.
    ///
    /// Whatever this returns, except for ZKLOCK_NOT_OWNER, ZKLOCK_DEADLOCK and ZKLOCK_FORKED, the hold
    /// has ended. You must still free it.
    ///
    /// @param hold the hold.
    /// @return ZKLOCK_OK; ZKLOCK_LOST if the hold was lost before the release; ZKLOCK_NOT_HELD if it
    ///         was already released; ZKLOCK_NOT_OWNER if the lock is reentrant and another thread
    ///         acquired it, in which case nothing changes; ZKLOCK_TIMEOUT if the servers have not
    ///         answered within a session timeout, in which case the release goes on in the background;
    ///         ZKLOCK_UNREACHABLE if the client can no longer connect to its session, for example after
    ///         a change of passwords, in which case the lock is free once the servers end the session,
    ///         a session timeout after they last heard from it; ZKLOCK_REFUSED if the access list does
    ///         not allow deleting its node, in which case the client's session was ended to remove the
    ///         node, and its other holds are lost too; ZKLOCK_REFUSED also if the process is exiting
    ///         and no thread can be started; ZKLOCK_DEADLOCK in a callback.
    pub fn zklock_release(hold: *mut zklock_hold) -> zklock_status {
        Held::table().find(hold)?.inner.release_as(Owner::current()).wait()?;
    }

    /// Gets the fencing token of a hold. If two grants at one path exclude each other, the later one
    /// never has a smaller token. Have the resource that the lock guards refuse any token smaller than
    /// the largest it has seen, and accept an equal one.
    ///
    /// Grants that follow one another on one node have the same token. These are nested holds of a lock
    /// that is reentrant, and grants that a client takes over because of the option linger or
    /// max-local-handoffs. All other grants that exclude each other have different tokens.
    ///
    /// Among grants that can be held at the same time, the order of tokens means nothing: the later of
    /// two readers with no writer between them may have the smaller token, and so may the later of two
    /// permits. So compare a reader's token only with those of writers.
    ///
    /// @param hold the hold.
    /// @return the token; 0, which is smaller than any token, if the handle is wrong.
    pub fn zklock_hold_token(hold: *const zklock_hold) -> u64 {
        Held::table().find(hold)?.inner.token().value()
    }

    /// Gets how long the lock is certain to be held, even if the client hears nothing more from the
    /// servers. 0 means that others may hold the lock. It sends no request.
    ///
    /// An answer stays true to its end, whatever the network and the servers do, unless you release the
    /// hold or an operator ends it. But if the process is paused right after the call, that end may have
    /// passed by the time it goes on. The token (zklock_hold_token) and zklock_hold_commit protect you
    /// against that.
    ///
    /// @param hold the hold.
    /// @return milliseconds, rounded down; 0 if the handle is wrong.
    pub fn zklock_hold_valid_for(hold: *const zklock_hold) -> i64 {
        whole(Held::table().find(hold)?.inner.valid_for())
    }

    /// Checks that the lock is certain to be held for this time plus a hundredth of the session
    /// timeout, even if the client hears nothing more from the servers. Call it before work that takes
    /// this long, so that you begin nothing that cannot end in time. It sends no request and does not
    /// wait.
    ///
    /// A lease is never longer than half of the session timeout, and in normal operation seldom shorter
    /// than four tenths of it. If the process is paused after the call, its work may still be late:
    /// have the resource compare tokens (zklock_hold_token).
    ///
    ///     if (zklock_hold_ensure(hold, 2000) != ZKLOCK_OK) return fail(zklock_last_error());
    ///     send_the_request(2000);
    ///
    /// @param hold the hold.
    /// @param needs the time in milliseconds.
    /// @return ZKLOCK_OK; ZKLOCK_AT_RISK if the lease is shorter: ask again later, or zklock_hold_confirm
    ///         it; ZKLOCK_LOST if the hold is lost; ZKLOCK_NOT_HELD if it was released;
    ///         ZKLOCK_INVALID_ARGUMENT if no lease of this session can be that long.
    pub fn zklock_hold_ensure(hold: *const zklock_hold, needs: i64) -> zklock_status {
        Held::table().find(hold)?.inner.ensure(time("need", needs)?)?;
    }

    /// Gets the state of a hold. It sends no request.
    ///
    /// @param hold the hold.
    /// @param[out] reason why the hold was lost; ZKLOCK_REASON_NONE if it is not lost. It may be NULL.
    /// @return the state; ZKLOCK_STATE_LOST, with ZKLOCK_REASON_OTHER, if the handle is wrong.
    pub fn zklock_hold_state(hold: *const zklock_hold, reason: *mut zklock_reason) -> zklock_state {
        let now = Held::table().find(hold).map(|held| held.inner.state());
        if let Ok(reason) = out("reason", reason) {
            reason.set(match now {
                Ok(HoldState::Lost(why)) => zklock_reason::of(why),
                Ok(_) => zklock_reason::ZKLOCK_REASON_NONE,
                Err(_) => zklock_reason::ZKLOCK_REASON_OTHER,
            });
        }
        zklock_state::of(now?)
    }

    /// Gets the path of the lock that a hold is on.
    ///
    /// @param hold the hold.
    /// @return the path, valid until the hold is freed; "" if the handle is wrong.
    pub fn zklock_hold_path(hold: *const zklock_hold) -> *const c_char {
        let held = Held::table().find(hold)?;
        held.path.get_or_init(|| c_string(held.inner.path())).as_ptr()
    }

    /// Gets the path of a hold's node.
    ///
    /// @param hold the hold.
    /// @return the path, valid until the hold is freed; "" if the handle is wrong.
    pub fn zklock_hold_node(hold: *const zklock_hold) -> *const c_char {
        let held = Held::table().find(hold)?;
        held.node.get_or_init(|| c_string(held.inner.node())).as_ptr()
    }

    /// Sets the pointer that the events of a hold give back to you. The library never follows it.
    /// Before you set it, it is the pointer of the call that gave the hold, or NULL.
    ///
    /// @param hold the hold.
    /// @param context any pointer, or NULL.
    /// @return ZKLOCK_OK.
    pub fn zklock_hold_set_context(hold: *mut zklock_hold, context: *mut c_void) -> zklock_status {
        let held = Held::table().find(hold)?;
        held.notice.set_context(Context(context));
        held.wanted.set_context(Context(context));
    }

    /// Registers a callback for the loss of a hold, and returns at once. The callback is called once,
    /// on a thread of the library, and not at all if the hold is released first. If the hold is already
    /// lost, it is called right away. Several callbacks may be registered.
    ///
    /// @param hold the hold.
    /// @param callback see "Callbacks" above. It may query the hold, and free it.
    /// @param context passed to the callback. Both must stay valid until zklock_hold_free returns.
    /// @return ZKLOCK_OK; ZKLOCK_REFUSED if no thread can be started for callbacks.
    pub fn zklock_hold_on_lost(
        hold: *mut zklock_hold,
        callback: zklock_loss_callback,
        context: *mut c_void,
    ) -> zklock_status {
        let callback = callback.ok_or_else(|| Failure::argument("the callback is NULL"))?;
        let held = Held::table().find(hold)?;
        let (hold, context) = (SentHandle::new(hold), Context(context));
        let call = move |why| call_with_handle(callback, hold.get(), zklock_reason::of(why), context);
        held.tell_loss(call)?;
    }

    /// Waits until a hold is lost.
    ///
    /// @param hold the hold.
    /// @param timeout in milliseconds. ZKLOCK_FOREVER waits as long as it takes.
    /// @param[out] reason why the hold was lost. It may be NULL.
    /// @return ZKLOCK_OK if the hold is lost; ZKLOCK_TIMEOUT if it is still held at the end;
    ///         ZKLOCK_NOT_HELD if it is released or freed; ZKLOCK_DEADLOCK in a callback.
    pub fn zklock_hold_wait_lost(
        hold: *mut zklock_hold,
        timeout: i64,
        reason: *mut zklock_reason,
    ) -> zklock_status {
        let held = Held::table().find(hold)?;
        let why = held.inner.lost().within(patience(timeout)?).wait()?;
        let why = why.ok_or_else(is_released)?;
        if let Ok(reason) = out("reason", reason) {
            reason.set(zklock_reason::of(why));
        }
    }

    /// Asks the servers whether the lock is still held, and waits for their answer.
    ///
    /// @param hold the hold.
    /// @param[out] milliseconds how long the lock is certain to be held. It may be NULL.
    /// @return ZKLOCK_OK if it is held; ZKLOCK_LOST if it is not; ZKLOCK_UNREACHABLE if the servers did
    ///         not answer within what was left of the lease, or within a second; ZKLOCK_NOT_HELD if the
    ///         hold was released, before the call or during it; ZKLOCK_DEADLOCK in a callback.
    pub fn zklock_hold_confirm(hold: *mut zklock_hold, milliseconds: *mut i64) -> zklock_status {
        let valid_for = Held::table().find(hold)?.inner.confirm().wait()?;
        if let Ok(milliseconds) = out("milliseconds", milliseconds) {
            milliseconds.set(whole(valid_for));
        }
    }
}

starts! {
    /// Starts to release a hold as zklock_release does, and returns at once. If this gives you a call,
    /// and this thread may release the hold, then the hold has ended, and the release goes on even if
    /// you cancel or free the call.
    ///
    /// @param hold the hold. You must still free it, and may do so before the call has its result.
    pub fn zklock_release_start(hold: *mut zklock_hold) {
        let held = Held::table().find(hold)?;
        let notice = Notice::of_release(held.events.clone(), &held.notice);
        Started::keep_with(&notice, held.inner.release_as(Owner::current()), Answer::nothing)
    }

    /// Starts to wait for a loss as zklock_hold_wait_lost does, and returns at once. zklock_call_finish gives
    /// the reason as its number. So a program with one hold needs no events: it waits for zklock_call_fd.
    ///
    /// @param hold the hold. If you release or free it, the call has the result ZKLOCK_NOT_HELD.
    pub fn zklock_hold_wait_lost_start(hold: *mut zklock_hold) {
        let held = Held::table().find(hold)?;
        Started::keep(held.inner.lost(), &held.events, |why| match why {
            Some(why) => Answer::Number(zklock_reason::of(why) as i64),
            None => Answer::Status(is_released()),
        })
    }

    /// Starts to ask the servers as zklock_hold_confirm does, and returns at once. zklock_call_finish
    /// gives the milliseconds as its number.
    ///
    /// @param hold the hold. Keep it until the call has its result: freeing it releases the lock, and
    ///         the call may then give ZKLOCK_NOT_HELD.
    pub fn zklock_hold_confirm_start(hold: *mut zklock_hold) {
        let held = Held::table().find(hold)?;
        Started::keep(held.inner.confirm(), &held.events, |valid_for| Answer::Number(whole(valid_for)))
    }
}

fn is_released() -> Failure {
    Failure::new(zklock_status::ZKLOCK_NOT_HELD, "the hold is released")
}
