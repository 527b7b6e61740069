//! What the library has to say, for Python's `logging`, under the name `zklock`.

use crate::dispatch::{Call, call, call_later};
use crate::exit::is_over;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};
use tracing::Level;
use tracing::level_filters::LevelFilter;
use zklock_core::blocking::{TakeLine, log_to};

/// Lines that have not been taken yet; what comes beyond is dropped.
const LINES_AT_MOST: usize = 10_000;

static WAITING: AtomicUsize = AtomicUsize::new(0);
static WANTED: AtomicUsize = AtomicUsize::new(0);

/// The levels of `logging`, and ours, from the rarest on.
const LEVELS: [(u8, Level, LevelFilter); 5] = [
    (40, Level::ERROR, LevelFilter::ERROR),
    (30, Level::WARN, LevelFilter::WARN),
    (20, Level::INFO, LevelFilter::INFO),
    (10, Level::DEBUG, LevelFilter::DEBUG),
    (5, Level::TRACE, LevelFilter::TRACE),
];

/// Asks the logger what it wants, when a client is made and when it connects: to ask for each line would take the
/// interpreter for each.
pub(crate) fn prepare(py: Python<'_>) -> PyResult<()> {
    static SUBSCRIBED: Once = Once::new();
    let effective = effective_level(logger(py)?.clone())?;
    let wanted = LEVELS.iter().filter(|(number, ..)| effective <= u64::from(*number)).count();
    // It cannot fail: nobody else speaks to our copy of `tracing`.
    SUBSCRIBED.call_once(|| drop(log_to(ToLogging)));
    if WANTED.swap(wanted, Ordering::Relaxed) != wanted {
        tracing::callsite::rebuild_interest_cache();
    }
    Ok(())
}

/// Says that something went otherwise than it should, where nothing can be raised.
pub(crate) fn warn(py: Python<'_>, message: &str) {
    say(py, Level::WARN, message);
}

/// Says why an answer is what it is.
pub(crate) fn inform(py: Python<'_>, message: &str) {
    say(py, Level::INFO, message);
}

/// Whether it is wanted is for the logger to say, on the thread for such calls.
fn say(py: Python<'_>, level: Level, message: &str) {
    if let Err(failure) = line(py, level, message).and_then(|line| call(py, line)) {
        failure.write_unraisable(py, None);
    }
}

fn line(py: Python<'_>, level: Level, message: &str) -> PyResult<Call> {
    let number = LEVELS.iter().find(|(_, known, _)| *known == level).map_or(20, |(number, ..)| *number);
    Ok((
        logger(py)?.getattr(intern!(py, "log"))?.unbind(),
        (number, "%s", message).into_pyobject(py)?.unbind(),
    ))
}

fn logger(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static LOGGER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let load = || py.import("logging")?.call_method1("getLogger", ("zklock",)).map(Bound::unbind);
    Ok(LOGGER.get_or_try_init(py, load)?.bind(py))
}

/// The level of the first logger on the way to the root that has one. (To ask `isEnabledFor` would run code that is
/// written in Python: see `dispatch`.)
fn effective_level(mut logger: Bound<'_, PyAny>) -> PyResult<u64> {
    let py = logger.py();
    while !logger.is_none() {
        let level = logger.getattr(intern!(py, "level"))?.extract()?;
        if level != 0 {
            return Ok(level);
        }
        logger = logger.getattr(intern!(py, "parent"))?;
    }
    Ok(0)
}

struct ToLogging;

impl TakeLine for ToLogging {
    fn level(&self) -> LevelFilter {
        let wanted = WANTED.load(Ordering::Relaxed);
        wanted.checked_sub(1).map_or(LevelFilter::OFF, |last| LEVELS[last].2)
    }

    fn take(&self, level: Level, line: String) {
        if self.level() < level || is_over() {
            return;
        }
        if WAITING.fetch_add(1, Ordering::Relaxed) >= LINES_AT_MOST {
            WAITING.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        let handed_over = call_later(move |py| {
            WAITING.fetch_sub(1, Ordering::Relaxed);
            self::line(py, level, &line).map(Some)
        });
        if !handed_over {
            // Without a thread for it nobody can be told anything.
            WAITING.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
