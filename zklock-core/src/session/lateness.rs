//! Servers that answer late: how late, and the sentence that says so.

use crate::base::clock;
use crate::machine::Moment;
use crate::machine::times;
use std::fmt;
use std::time::Duration;

/// How late the servers' latest answer was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lateness {
    pub(super) took: Duration,
    pub(super) timeout: Duration,
}

/// The latest answer of the servers: when it came, and how long it took.
#[derive(Clone, Copy)]
pub(super) struct Answered {
    pub(super) at: Moment,
    pub(super) took: Duration,
}

impl Answered {
    /// They have answered now what was sent at `sent`.
    pub(super) fn now(sent: Moment) -> Self {
        let at = clock::now();
        Self { at, took: at.since(sent) }
    }
}

/// The end of a sentence that says what did not happen in time.
impl fmt::Display for Lateness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { took, timeout } = *self;
        let (shown, within) = (Duration::from_millis(took.as_millis() as u64), times::BEARABLE.of(timeout));
        write!(f, "the servers' replies take {shown:?}")?;
        if took > within {
            write!(
                f,
                "; with a session timeout of {timeout:?} they must come within {within:?}: use a longer session timeout, or \
                 servers that are nearer or less busy"
            )
        } else {
            write!(f, ", and an acquire needs several of them: wait longer")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_within_what_holds_can_bear_are_no_reason_for_another_timeout() {
        let timeout = Duration::from_secs(10);
        let text = |took| Lateness { took, timeout }.to_string();
        assert!(text(times::BEARABLE.of(timeout)).ends_with("wait longer"));
        let more = text(times::BEARABLE.of(timeout) + Duration::from_millis(1));
        assert!(more.contains("must come within 2s: use a longer session timeout"), "{more}");
    }
}
