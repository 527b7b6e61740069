//! Calls that run in the background, for event loops. The `_start` function of each noun starts
//! one.

use crate::convert::patience;
use crate::events::{Events, Notice, zklock_event_kind};
use crate::export::{export, noun};
use crate::failure::Failure;
use crate::handle::Object;
use crate::raw::{Context, out};
use crate::status::zklock_status::{self, ZKLOCK_INVALID_ARGUMENT, ZKLOCK_NOT_HELD, ZKLOCK_PENDING};
use std::ffi::{c_int, c_void};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zklock::Call;
use zklock::further::{RunEntry, Wait};
use zklock::{Error, ErrorKind, QueuedContender};

noun! {
    /// A call that runs in the background, for event loops. Every function with _start in its name
    /// starts one.
    pub struct zklock_call: Started, 11;

    /// Frees a call and its descriptor. Remove the descriptor from your event loop first. A call that
    /// is still running is cancelled, as by zklock_call_cancel. If it has acquired a lock, entered a double
    /// barrier or begun a run, and you have not taken the hold or member from it, then the lock is
    /// released, the member leaves, or the run counts as failed, in the background. A freed call has no
    /// more events.
    ///
    /// @param call may be NULL. A handle that was already freed is ignored.
    pub fn zklock_call_free(call: *mut zklock_call);

    fn freed(&self) {
        self.notice.end();
        // Another thread may wait for the result.
        self.running.cancel();
    }
}

/// The result of a successful call.
pub(crate) enum Answer {
    Nothing,
    Number(i64),
    Versions(Vec<i32>),
    Contenders(Vec<QueuedContender>),
    Hold(zklock::Hold, Option<Box<RunEntry>>),
    Member(zklock::further::Member),
    /// The call worked, and its result is a status.
    Status(Failure),
    /// The result was an object of this name, and the caller has taken it.
    Taken(&'static str),
}

pub(crate) struct Started {
    running: Box<dyn Running>,
    /// The result, once it is known. It stays here.
    answer: Mutex<Option<Result<Answer, Failure>>>,
    notice: Arc<Notice>,
}

/// A call whose result becomes an answer.
trait Running: Send + Sync {
    fn fetch(&self) -> Option<Result<Answer, Error>>;
    fn wait(&self, wait: Wait) -> Result<(), Error>;
    fn cancel(&self);
}

struct Answered<T, A>(zklock::further::Started<T>, A);

impl<T: Send + 'static, A: Fn(T) -> Answer + Send + Sync> Running for Answered<T, A> {
    fn fetch(&self) -> Option<Result<Answer, Error>> {
        self.0.fetch().map(|result| result.map(&self.1))
    }

    fn wait(&self, wait: Wait) -> Result<(), Error> {
        match self.0.wait(wait) {
            Err(late) if late.kind() == ErrorKind::Timeout => Ok(()),
            waited => waited,
        }
    }

    fn cancel(&self) {
        self.0.cancel();
    }
}

impl Started {
    /// Lets a call go on in the background. Its event goes to these events.
    pub(crate) fn keep<T: Send + 'static>(
        call: Call<T>,
        events: &Arc<Events>,
        answer: impl Fn(T) -> Answer + Send + Sync + 'static,
    ) -> Result<*mut zklock_call, Failure> {
        let notice = Notice::new(zklock_event_kind::ZKLOCK_EVENT_CALL, Some(events.clone()), Context::NONE);
        Self::keep_with(&notice, call, answer)
    }

    /// The same with a notice of the call.
    pub(crate) fn keep_with<T: Send + 'static>(
        notice: &Arc<Notice>,
        call: Call<T>,
        answer: impl Fn(T) -> Answer + Send + Sync + 'static,
    ) -> Result<*mut zklock_call, Failure> {
        let running = Box::new(Answered(call.detach(notice.teller())?, answer));
        let handle = Self::table().put(Self { running, answer: Mutex::default(), notice: notice.clone() });
        notice.known(handle);
        Ok(handle)
    }

    /// Applies a function to the result, if there is one and it is not an error.
    pub(crate) fn answer<T>(
        &self,
        look: impl FnOnce(&mut Answer) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        match self.known().as_mut() {
            None => Err(Failure::new(ZKLOCK_PENDING, "")),
            Some(Err(failure)) => Err(failure.clone()),
            Some(Ok(answer)) => look(answer),
        }
    }

    /// Takes the object that is the result, once. `of` returns it, or the answer if that is something else.
    pub(crate) fn take<T>(
        &self,
        wanted: &'static str,
        of: impl FnOnce(Answer) -> Result<T, Answer>,
    ) -> Result<T, Failure> {
        self.answer(|answer| {
            of(std::mem::replace(answer, Answer::Taken(wanted))).map_err(|other| {
                *answer = other;
                answer.unsuited(wanted)
            })
        })
    }

    /// Makes this failure the result, also for those who ask again.
    pub(crate) fn fail(&self, failure: Failure) -> Failure {
        *self.known() = Some(Err(failure.clone()));
        failure
    }

    pub(crate) fn context(&self) -> Context {
        self.notice.context()
    }

    /// Returns the events for the object that is the result.
    pub(crate) fn events(&self) -> Arc<Events> {
        self.notice.events().cloned().unwrap_or_else(Events::new)
    }

    fn known(&self) -> MutexGuard<'_, Option<Result<Answer, Failure>>> {
        let mut known = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_none() {
            *known = self.running.fetch().map(|result| match result? {
                Answer::Status(failure) => Err(failure),
                answer => Ok(answer),
            });
        }
        known
    }
}

impl Answer {
    pub(crate) fn nothing((): ()) -> Self {
        Self::Nothing
    }

    pub(crate) fn yes(yes: bool) -> Self {
        Self::Number(yes.into())
    }

    /// Returns the error for a result of another type than the one asked for.
    pub(crate) fn unsuited(&self, wanted: &str) -> Failure {
        match self {
            Self::Taken(what) if *what == wanted => {
                Failure::new(ZKLOCK_NOT_HELD, format!("{wanted} was already taken from this call"))
            }
            _ => Failure::new(ZKLOCK_INVALID_ARGUMENT, format!("this call does not give {wanted}")),
        }
    }

    fn number(&self) -> i64 {
        let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        match self {
            Self::Number(number) => *number,
            Self::Versions(versions) => count(versions.len()),
            Self::Contenders(contenders) => count(contenders.len()),
            Self::Nothing | Self::Hold(..) | Self::Member(_) | Self::Status(_) | Self::Taken(_) => 0,
        }
    }
}

export! {
    /// Gets the descriptor of a call. It becomes readable when there is a result, and stays readable.
    /// Do not read from it, write to it or close it. It is created the first time that you ask for it.
    /// A program with thousands of calls should use the one descriptor of their client instead:
    /// zklock_client_fd.
    ///
    /// @param call the call.
    /// @param[out] descriptor valid until the call is freed.
    /// @return ZKLOCK_OK; ZKLOCK_REFUSED if the system has no descriptor left.
    pub fn zklock_call_fd(call: *const zklock_call, descriptor: *mut c_int) -> zklock_status {
        out("descriptor", descriptor)?.set(Started::table().find(call)?.notice.descriptor()?);
    }

    /// Sets the pointer that the event of a call gives back to you. The library never follows it.
    /// Before you set it, a call of zklock_release_start has the pointer of its hold, and any other
    /// call has NULL. A hold that you take from a call starts with the pointer of the call.
    ///
    /// The event may come as soon as the call is started. So start calls and fetch events on the same
    /// thread, or lock a mutex of yours from the start until the context is set, and also while you
    /// handle an event.
    ///
    /// @param call the call.
    /// @param context any pointer, or NULL.
    /// @return ZKLOCK_OK.
    pub fn zklock_call_set_context(call: *mut zklock_call, context: *mut c_void) -> zklock_status {
        Started::table().find(call)?.notice.set_context(Context(context));
    }

    /// Gets the result of a call, once there is one. You may call it more than once.
    ///
    /// This function only gives a number. zklock_call_hold, zklock_call_member, zklock_call_versions and
    /// zklock_call_contenders give other results, and you need not call this function before them.
    ///
    /// @param call the call. You must still free it.
    /// @param timeout how long to wait for the result, in milliseconds; 0 in an event loop.
    ///         zklock_call_cancel on another thread ends the wait.
    /// @param[out] number for zklock_hold_confirm_start, for how many milliseconds the lock is certain
    ///         to be held; for zklock_hold_wait_lost_start, the zklock_reason; for
    ///         zklock_barrier_set_start and zklock_barrier_remove_start, 1 or 0, as the function without
    ///         _start gives it; for zklock_hold_commit_start and zklock_contenders_start, the number of
    ///         versions or contenders; otherwise 0. It may be NULL.
    /// @return ZKLOCK_OK; ZKLOCK_PENDING while the call is running; ZKLOCK_INTERRUPTED after
    ///         zklock_call_cancel; ZKLOCK_CLOSED if the client was closed meanwhile; ZKLOCK_DEADLOCK in a
    ///         callback that would have to wait; and everything that the function without _start returns.
    pub fn zklock_call_finish(call: *mut zklock_call, timeout: i64, number: *mut i64) -> zklock_status {
        let (call, wait) = (Started::table().find(call)?, Wait::from(patience(timeout)?));
        if wait != Wait::Once && call.known().is_none() {
            call.running.wait(wait)?;
            if call.known().is_some() {
                // The I/O thread wakes this thread before it says so.
                call.notice.happen();
            }
        }
        let answer = call.answer(|answer| Ok(answer.number()))?;
        if let Ok(number) = out("number", number) {
            number.set(answer);
        }
    }

    /// Stops waiting for a call, and returns at once: the call's descriptor becomes readable, its event
    /// comes, and zklock_call_finish gives ZKLOCK_INTERRUPTED, or the result if there already is one.
    ///
    /// An acquire leaves nothing behind in the queue, and a member that has not entered a double barrier
    /// yet withdraws: their nodes are deleted in the background. Before the process ends, close the
    /// client, which waits for that. Work that has already begun goes on in the background: a release,
    /// leaving a barrier, closing a client. A cancelled commit, or end of a run, may or may not be done. If
    /// a run is begun just then, it counts as failed.
    ///
    /// @param call the call. You must still free it.
    /// @return ZKLOCK_OK.
    pub fn zklock_call_cancel(call: *mut zklock_call) -> zklock_status {
        let call = Started::table().find(call)?;
        call.running.cancel();
        call.notice.happen();
    }
}

/// Makes functions that start a call for an event loop, and return at once. The body gives the handle of the call, for
/// which the function has one more parameter. It may end early with `?`.
macro_rules! starts {
    ($(
        $(#[doc = $doc:literal])*
        pub fn $name:ident($($argument:ident: $type:ty),* $(,)?) $body:block
    )+) => {
        $(
            $(#[doc = $doc])*
            #[unsafe(no_mangle)]
            pub extern "C-unwind" fn $name(
                $($argument: $type,)*
                call: *mut *mut $crate::started::zklock_call,
            ) -> $crate::status::zklock_status {
                $crate::call::status(stringify!($name), || {
                    let call = $crate::raw::out("call", call)?;
                    call.set($body?);
                    Ok(())
                })
            }
        )+
    };
}

pub(crate) use starts;
