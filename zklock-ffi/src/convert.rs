//! Conversions between C's values and ours.

use crate::c_enum::CEnum;
use crate::failure::Failure;
use std::ffi::CString;
use std::marker::PhantomData;
use std::time::Duration;

/// `ZKLOCK_FOREVER`.
const FOREVER: i64 = -1;

/// An enum that C passes. It may have any number, so it is looked up first. The header shows the enum itself.
#[repr(transparent)]
#[derive(Debug)]
pub struct Given<E>(i32, PhantomData<E>);

impl<E: CEnum> Given<E> {
    pub(crate) fn find(&self) -> Result<E, Failure> {
        let unknown = || Failure::argument(format!("there is no {} with the number {}", E::NAME, self.0));
        E::find(self.0).ok_or_else(unknown)
    }
}

/// Converts a timeout from C; `None` waits for ever. Any other negative number is most likely what
/// remains of a deadline that has passed. Waiting for ever would then be a hang.
pub(crate) fn patience(milliseconds: i64) -> Result<Option<Duration>, Failure> {
    if milliseconds == FOREVER {
        return Ok(None);
    }
    u64::try_from(milliseconds).map(|timeout| Some(Duration::from_millis(timeout))).map_err(|_| {
        Failure::argument(format!(
            "a timeout of {milliseconds} ms: -1 (ZKLOCK_FOREVER) waits for ever, 0 tries once; if you compute the time \
             left until a deadline, make it at least 0"
        ))
    })
}

/// Converts a time from C.
pub(crate) fn time(what: &str, milliseconds: i64) -> Result<Duration, Failure> {
    let negative = |_| Failure::argument(format!("a {what} of {milliseconds} ms: it must not be negative"));
    u64::try_from(milliseconds).map(Duration::from_millis).map_err(negative)
}

/// Whole milliseconds, rounded down: rounding up would promise too much.
pub(crate) fn whole(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// Returns a string for C, which ends at the first NUL. A path contains none.
pub(crate) fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default()
}

/// Returns the same bits as an unsigned number, because the number of a session may be negative.
pub(crate) fn unsigned(number: i64) -> u64 {
    u64::from_ne_bytes(number.to_ne_bytes())
}
