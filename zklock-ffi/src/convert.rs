//! Values as C has them.

use crate::failure::Failure;
use std::ffi::CString;
use std::time::Duration;

/// `ZKLOCK_FOREVER`.
const FOREVER: i64 = -1;

/// A timeout as C has it; `None` waits for ever. Any other negative number is most likely the rest
/// of a deadline that has passed, and to wait for ever then would be a hang.
pub(crate) fn patience(milliseconds: i64) -> Result<Option<Duration>, Failure> {
    if milliseconds == FOREVER {
        return Ok(None);
    }
    u64::try_from(milliseconds).map(|timeout| Some(Duration::from_millis(timeout))).map_err(|_| {
        Failure::argument(format!(
            "a timeout of {milliseconds} ms: -1 (ZKLOCK_FOREVER) waits for ever, 0 tries once; of the time that is left \
             until a deadline make at least 0"
        ))
    })
}

/// A time as C has it.
pub(crate) fn time(what: &str, milliseconds: i64) -> Result<Duration, Failure> {
    let negative = |_| Failure::argument(format!("a {what} of {milliseconds} ms: it must not be negative"));
    u64::try_from(milliseconds).map(Duration::from_millis).map_err(negative)
}

/// Whole milliseconds: rounded up they would promise too much.
pub(crate) fn whole(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// For C, where a NUL ends it. A path contains none.
pub(crate) fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default()
}

/// The same bits: the number of a session may look negative.
pub(crate) fn unsigned(number: i64) -> u64 {
    u64::from_ne_bytes(number.to_ne_bytes())
}
