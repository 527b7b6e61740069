//! The span of an acquire, for tracing: from its call until nothing is left of its attempt.

use tracing::Span;

/// Returns the span of a new call.
pub(crate) fn of_call(path: &str) -> Span {
    tracing::debug_span!("acquire", path)
}

/// Returns the span of the current call, if it is traced. A span of the program itself is not kept, because it would seem
/// to last until the hold is released.
pub(super) fn of_this_call() -> Span {
    let span = Span::current();
    let is_ours = span.metadata().is_some_and(|metadata| metadata.target() == module_path!());
    if is_ours { span } else { Span::none() }
}
