//! The library's log, as lines of text for a host that has a log of its own.

use crate::base::error::{Error, ErrorKind};
use std::fmt::{self, Write};
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Takes log lines. See [`log_to`].
pub trait TakeLine: Send + Sync + 'static {
    /// Returns the level that is wanted now. When it changes, call
    /// [`rebuild_interest_cache`](tracing::callsite::rebuild_interest_cache).
    fn level(&self) -> LevelFilter;

    /// Takes a line. Any thread may call it, so it must not block.
    fn take(&self, level: Level, line: String);

    /// Like [`take`](Self::take), with the metadata of the place in the source.
    fn take_from(&self, origin: &'static Metadata<'static>, line: String) {
        self.take(*origin.level(), line);
    }
}

/// Sends the library's log to `taker`, for the rest of the process. It is for a face that is a
/// library of its own, with its own copy of [`tracing`]. In a Rust program, use any `tracing`
/// subscriber.
///
/// # Errors
///
/// [`ErrorKind::Refused`] if there already is a `tracing` subscriber.
///
/// # Examples
///
/// ```
/// use tracing::{Level, level_filters::LevelFilter};
/// use zklock::face::{TakeLine, log_to};
///
/// struct Print;
///
/// impl TakeLine for Print {
///     fn level(&self) -> LevelFilter {
///         LevelFilter::WARN
///     }
///     fn take(&self, level: Level, line: String) {
///         println!("{level} {line}");
///     }
/// }
/// # fn main() -> Result<(), zklock::Error> {
/// log_to(Print)
/// # }
/// ```
pub fn log_to(taker: impl TakeLine) -> Result<(), Error> {
    tracing::subscriber::set_global_default(Lines(taker))
        .map_err(|_| Error::new(ErrorKind::Refused, "there is a tracing subscriber already: use that"))
}

/// Passes events on, and has no use for spans.
struct Lines<T>(T);

impl<T: TakeLine> Subscriber for Lines<T> {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        !metadata.is_span() && *metadata.level() <= self.0.level()
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.0.level())
    }

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        self.0.take_from(event.metadata(), text.0);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// The message first, then its fields.
struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a string does not fail.
        let _ = match field.name() {
            "message" => {
                let rest = std::mem::take(&mut self.0);
                write!(self.0, "{value:?}{rest}")
            }
            name => write!(self.0, " {name}={value:?}"),
        };
    }
}
