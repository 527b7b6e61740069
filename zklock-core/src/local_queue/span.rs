//! The span of an acquire, for those who trace it: from its call until nothing is left of its attempt.

use tracing::Span;

/// Begins with a call.
pub(crate) fn of_call(path: &str) -> Span {
    tracing::debug_span!("acquire", path)
}

/// That of the call which is now under way, if it is traced. A span of the program's own is not kept: it would seem to last
/// until the hold is released.
pub(super) fn of_this_call() -> Span {
    let span = Span::current();
    let is_ours = span.metadata().is_some_and(|metadata| metadata.target() == module_path!());
    if is_ours { span } else { Span::none() }
}
