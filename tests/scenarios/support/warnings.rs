//! The warnings in the log of this process.

use std::sync::{Mutex, Once};
use tracing::Level;
use tracing::level_filters::LevelFilter;
use zklock::face::{TakeLine, log_to};

static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Collect;

impl TakeLine for Collect {
    fn level(&self) -> LevelFilter {
        LevelFilter::WARN
    }
    fn take(&self, level: Level, line: String) {
        LINES.lock().unwrap().push(format!("{level} {line}"));
    }
}

/// Begins to collect them.
pub(crate) fn collect() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| log_to(Collect).unwrap());
}

/// The warnings about the lock at this path that say `what`.
pub(crate) fn about(path: &str, what: &str) -> Vec<String> {
    let path = format!("path={path:?}");
    let lines = LINES.lock().unwrap();
    lines.iter().filter(|line| line.contains(&path) && line.contains(what)).cloned().collect()
}
