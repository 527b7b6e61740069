//! The library's log lines, for Python's `logging`, under the name `zklock`.
//!
//! Lines come on threads that must not wait for the interpreter, so they need to know beforehand which levels are
//! wanted: the logger has a cache of its levels, which `logging` clears whenever any level changes, and our cache
//! reports that. The final decision about each line is made by the logger, in Python.

use crate::guest::dispatch::{Call, LOG, call, call_later};
use crate::guest::exit::is_over;
use crate::guest::sync::{Found, intern};
use pyo3::prelude::*;
use pyo3::wrap_pyfunction;
use std::panic::Location;
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};
use tracing::level_filters::LevelFilter;
use tracing::{Level, Metadata};
use zklock::face::{OfProcess, TakeLine, log_to};

/// Lines that have not been taken yet. Further lines are dropped.
const LINES_AT_MOST: usize = 10_000;

static WAITING: OfProcess<AtomicUsize> = OfProcess::new();
static WANTED: AtomicUsize = AtomicUsize::new(0);

/// The levels of `logging`, and ours, from the rarest to the most frequent.
const LEVELS: [(u8, Level, LevelFilter); 5] = [
    (40, Level::ERROR, LevelFilter::ERROR),
    (30, Level::WARN, LevelFilter::WARN),
    (20, Level::INFO, LevelFilter::INFO),
    (10, Level::DEBUG, LevelFilter::DEBUG),
    (5, Level::TRACE, LevelFilter::TRACE),
];

/// The place in the source that a line comes from.
struct Origin {
    file: &'static str,
    line: u32,
    /// The name of the module.
    module: &'static str,
}

/// Makes sure that lines are recorded and can be delivered, when a client is made and when it connects.
pub(crate) fn prepare(py: Python<'_>) -> PyResult<()> {
    static SUBSCRIBED: Once = Once::new();
    static HEARS: Found<()> = Found::new();
    HEARS.or_find(|| {
        let told = wrap_pyfunction!(levels_changed, py)?;
        py.import("zklock._dispatch")?.getattr("hear_of_levels")?.call1((logger(py)?, told)).map(drop)
    })?;
    levels_changed(py)?;
    // This cannot fail, because nobody else uses our copy of `tracing`.
    SUBSCRIBED.call_once(|| drop(log_to(ToLogging)));
    LOG.start_in_a_greenlet(py)
}

/// Reads which levels the logger wants now.
#[pyfunction]
#[pyo3(name = "_levels_changed")]
fn levels_changed(py: Python<'_>) -> PyResult<()> {
    let effective = effective_level(logger(py)?.clone())?;
    let wanted = LEVELS.iter().filter(|(number, ..)| effective <= i64::from(*number)).count();
    if WANTED.swap(wanted, Ordering::Relaxed) != wanted {
        tracing::callsite::rebuild_interest_cache();
    }
    Ok(())
}

/// Logs that something went wrong, where nothing can be raised.
#[track_caller]
pub(crate) fn warn(py: Python<'_>, message: &str) {
    say(py, Level::WARN, message);
}

/// Logs the reason for an answer.
#[track_caller]
pub(crate) fn inform(py: Python<'_>, message: &str) {
    say(py, Level::INFO, message);
}

#[track_caller]
fn say(py: Python<'_>, level: Level, message: &str) {
    let caller = Location::caller();
    let origin = Origin { file: caller.file(), line: caller.line(), module: "zklock" };
    if let Err(failure) = line(py, level, message, &origin).and_then(|line| call(py, &LOG, line)) {
        failure.write_unraisable(py, None);
    }
}

/// Returns the Python function that delivers a line.
fn line(py: Python<'_>, level: Level, message: &str, origin: &Origin) -> PyResult<Call> {
    static SAY: Found<Py<PyAny>> = Found::new();
    let say =
        SAY.or_find(|| py.import("zklock._dispatch")?.getattr(intern!(py, "say")).map(Bound::unbind))?;
    let number = LEVELS.iter().find(|(_, known, _)| *known == level).map_or(20, |(number, ..)| *number);
    let Origin { file, line, module } = *origin;
    let arguments = (logger(py)?, number, message, within_crate(file), line, module);
    Ok((say.clone_ref(py), arguments.into_pyobject(py)?.unbind()))
}

fn logger(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static LOGGER: Found<Py<PyAny>> = Found::new();
    let load = || py.import("logging")?.call_method1("getLogger", ("zklock",)).map(Bound::unbind);
    Ok(LOGGER.or_find(load)?.bind(py))
}

/// Returns the level of the first logger on the way to the root that has one, but at least the level that is disabled
/// for all. (Calling `isEnabledFor`, or reading `disable`, would run code that is written in Python: see `dispatch`.)
fn effective_level(logger: Bound<'_, PyAny>) -> PyResult<i64> {
    let py = logger.py();
    let disabled = logger.getattr(intern!(py, "manager"))?.getattr_opt(intern!(py, "_disable"))?;
    let disabled: i64 = disabled.map_or(Ok(0), |level| level.extract())?;
    let mut next = logger;
    let mut level = 0;
    while level == 0 && !next.is_none() {
        level = next.getattr(intern!(py, "level"))?.extract()?;
        next = next.getattr(intern!(py, "parent"))?;
    }
    Ok(level.max(disabled.saturating_add(1)))
}

/// Returns the path of a source file, starting with its crate. The part before that belongs to the machine that
/// compiled it.
fn within_crate(file: &str) -> &str {
    let Some(source) = file.rfind("/src/") else { return file };
    file[..source].rfind('/').map_or(file, |slash| &file[slash + 1..])
}

fn waiting() -> &'static AtomicUsize {
    WAITING.here(|_| AtomicUsize::new(0))
}

struct ToLogging;

impl ToLogging {
    fn pass_on(&self, level: Level, line: String, origin: Origin) {
        if self.level() < level || is_over() {
            return;
        }
        if waiting().fetch_add(1, Ordering::Relaxed) >= LINES_AT_MOST {
            waiting().fetch_sub(1, Ordering::Relaxed);
            return;
        }
        let handed_over = call_later(&LOG, move |py| {
            waiting().fetch_sub(1, Ordering::Relaxed);
            self::line(py, level, &line, &origin).map(Some)
        });
        if !handed_over {
            // Without a thread, nothing can be reported.
            waiting().fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl TakeLine for ToLogging {
    fn level(&self) -> LevelFilter {
        let wanted = WANTED.load(Ordering::Relaxed);
        wanted.checked_sub(1).map_or(LevelFilter::OFF, |last| LEVELS[last].2)
    }

    fn take(&self, level: Level, line: String) {
        self.pass_on(level, line, Origin { file: "zklock", line: 0, module: "zklock" });
    }

    fn take_from(&self, origin: &'static Metadata<'static>, line: String) {
        let module = origin.module_path().unwrap_or("zklock");
        let file = origin.file().unwrap_or(module);
        self.pass_on(*origin.level(), line, Origin { file, line: origin.line().unwrap_or(0), module });
    }
}
