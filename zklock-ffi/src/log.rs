//! The library's log goes to its host. It never prints anything itself.

use crate::c_enum::c_enum;
use crate::callback::CallbackGate;
use crate::convert::{Given, c_string};
use crate::export::export;
use crate::raw::{Context, TextCallback, call_with_text};
use crate::status::zklock_status;
use std::collections::VecDeque;
use std::ffi::{CString, c_char, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use tracing::Level;
use tracing::level_filters::LevelFilter;
use zklock::face::{OfProcess, TakeLine, call_later, log_to};

c_enum! {
    /// How much to log. Each level includes those above it in this list.
    pub enum zklock_log_level {
        /// Nothing.
        ZKLOCK_LOG_OFF = 0,
        /// Bugs in zklock.
        ZKLOCK_LOG_ERROR = 1,
        /// What an operator should know, such as a lost hold.
        ZKLOCK_LOG_WARN = 2,
        /// Sessions that begin and end.
        ZKLOCK_LOG_INFO = 3,
        /// The steps of each acquire, from its call to the release, and attempts to connect.
        ZKLOCK_LOG_DEBUG = 4,
        /// Everything.
        ZKLOCK_LOG_TRACE = 5,
    }
}

/// Called with a line of the log. The line is valid during the call.
#[allow(non_camel_case_types, reason = "the name in C")]
pub type zklock_log_callback =
    Option<unsafe extern "C" fn(level: i32, message: *const c_char, context: *mut c_void)>;

/// The destination of the lines.
struct Sink {
    callback: TextCallback,
    context: Context,
    level: LevelFilter,
    gate: CallbackGate,
}

#[derive(Clone)]
struct Line {
    sink: Arc<Sink>,
    level: i32,
    text: CString,
}

/// Lines that the callback has not finished with, including the current one. They have their own
/// queue, so that a callback for a loss only has to wait for one line, not for all of them.
static LINES: OfProcess<Mutex<VecDeque<Line>>> = OfProcess::new();
/// Further lines are dropped, so that the log cannot use up the host's memory.
const LINES_AT_MOST: usize = 10_000;

export! {
    /// Sends the library's log to a callback, or to nowhere. The whole process has one log callback:
    /// the one that was set last.
    ///
    /// The callback gets one line at a time (see "Callbacks" above). While 10,000 lines are waiting for
    /// it, further lines are dropped. Once this function returns, the previous callback is not running
    /// and is never called again.
    ///
    /// @param level one of zklock_log_level.
    /// @param callback the callback; NULL for none.
    /// @param context passed to the callback. Both must stay valid until they are replaced.
    /// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if there is no such level.
    pub fn zklock_set_log(
        level: Given<zklock_log_level>,
        callback: zklock_log_callback,
        context: *mut c_void,
    ) -> zklock_status {
        let level = filter(level.find()?);
        let context = Context(context);
        let sink =
            callback.map(|callback| Arc::new(Sink { callback, context, level, gate: CallbackGate::new() }));
        let before = {
            let mut place = place().write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *place, sink.filter(|_| level != LevelFilter::OFF))
        };
        if let Some(before) = before {
            before.gate.end();
        }
        static IS_SUBSCRIBED: AtomicBool = AtomicBool::new(false);
        if !IS_SUBSCRIBED.swap(true, Ordering::Relaxed) {
            // This cannot fail, because nobody else uses our copy of `tracing`.
            let _ = log_to(ToSink);
        }
        tracing::callsite::rebuild_interest_cache();
    }
}

use zklock_log_level::{
    ZKLOCK_LOG_DEBUG, ZKLOCK_LOG_ERROR, ZKLOCK_LOG_INFO, ZKLOCK_LOG_OFF, ZKLOCK_LOG_TRACE, ZKLOCK_LOG_WARN,
};

fn filter(level: zklock_log_level) -> LevelFilter {
    match level {
        ZKLOCK_LOG_OFF => LevelFilter::OFF,
        ZKLOCK_LOG_ERROR => LevelFilter::ERROR,
        ZKLOCK_LOG_WARN => LevelFilter::WARN,
        ZKLOCK_LOG_INFO => LevelFilter::INFO,
        ZKLOCK_LOG_DEBUG => LevelFilter::DEBUG,
        ZKLOCK_LOG_TRACE => LevelFilter::TRACE,
    }
}

/// Returns the number of the lowest log level that includes this one.
fn number(level: Level) -> i32 {
    let is_level = |member: &zklock_log_level| filter(*member) == level;
    let found = zklock_log_level::ALL.iter().map(|(member, _)| *member).find(is_level);
    found.map_or(0, |member| member as i32)
}

/// Passes one line to the callback, and schedules the next.
fn take_next() {
    let Some(Line { sink, level, text }) = lines().front().cloned() else { return };
    sink.gate.run(|| call_with_text(sink.callback, level, &text, sink.context));
    let mut lines = lines();
    lines.pop_front();
    if !lines.is_empty() && call_later(take_next).is_err() {
        lines.clear();
    }
}

fn lines() -> MutexGuard<'static, VecDeque<Line>> {
    LINES.here(|_| Mutex::default()).lock().unwrap_or_else(PoisonError::into_inner)
}

fn sink() -> Option<Arc<Sink>> {
    place().read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Returns the place of the sink. A forked child keeps its parent's sink, in which no call is
/// running, unless that was being replaced at the moment of the fork.
fn place() -> &'static RwLock<Option<Arc<Sink>>> {
    static SINK: OfProcess<RwLock<Option<Arc<Sink>>>> = OfProcess::new();
    SINK.here(|before| {
        let of_parent = before.and_then(|place| place.try_read().ok()?.clone());
        let again = |sink: Arc<Sink>| Sink {
            callback: sink.callback,
            context: sink.context,
            level: sink.level,
            gate: CallbackGate::new(),
        };
        RwLock::new(of_parent.map(|sink| Arc::new(again(sink))))
    })
}

/// Queues lines for the callback.
struct ToSink;

impl TakeLine for ToSink {
    fn level(&self) -> LevelFilter {
        sink().map_or(LevelFilter::OFF, |sink| sink.level)
    }

    fn take(&self, level: Level, line: String) {
        // Since the line was requested, the sink may have been replaced by one with a lower level.
        let Some(sink) = sink().filter(|sink| level <= sink.level) else { return };
        let line = Line { sink, level: number(level), text: c_string(&line) };
        let mut lines = lines();
        if lines.len() == LINES_AT_MOST {
            return;
        }
        lines.push_back(line);
        // Without a thread, nothing can be reported.
        if lines.len() == 1 && call_later(take_next).is_err() {
            lines.clear();
        }
    }
}
