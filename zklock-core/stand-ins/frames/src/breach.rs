//! Reports what was wrong to the program, because zookeeper-client does not say why a connection ended.

use std::cell::Cell;

thread_local! {
    static FOUND: Cell<Option<&'static str>> = const { Cell::new(None) };
}

/// Runs `what`, and also returns what inspectors on this thread have found to be wrong meanwhile.
///
/// ```
/// # use zklock_frames::{Inspector, watched};
/// let mut inspector = Inspector::default();
/// inspector.received(b"HTTP/1.1 400 Bad Request");
/// let (passed, breach) = watched(|| inspector.pass(&mut [0; 10]));
/// assert!(passed.is_err());
/// assert_eq!(breach, Some("a server speaks before it is spoken to"));
/// ```
pub fn watched<R>(what: impl FnOnce() -> R) -> (R, Option<&'static str>) {
    let before = FOUND.take();
    let done = what();
    (done, FOUND.replace(before))
}

pub(crate) fn found(problem: &'static str) {
    FOUND.set(Some(problem));
}
