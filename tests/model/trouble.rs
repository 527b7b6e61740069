//! The faults that are possible while holds are kept.

/// How often each fault is possible.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Trouble {
    /// All faults together.
    pub(crate) steps: u8,
    /// The connection stalls for a while, or ends.
    pub(crate) stalls: u8,
    pub(crate) breaks: u8,
    /// A server does not answer a check, although it is there.
    pub(crate) refusals: u8,
    /// The process is asleep.
    pub(crate) nights: u8,
    /// Somebody else writes in the same session.
    pub(crate) writes: u8,
    /// An operator deletes a node.
    pub(crate) deletions: u8,
    /// The servers end the session.
    pub(crate) expiries: u8,
    /// Another hold is granted.
    pub(crate) grants: u8,
    /// The server does not learn of deletions before it has to execute a write.
    pub(crate) lags: u8,
    /// How many units of time late every answer is, all the time.
    pub(crate) late: u8,
}

impl Trouble {
    pub(crate) const NONE: Self = Self {
        steps: 0,
        stalls: 0,
        breaks: 0,
        refusals: 0,
        nights: 0,
        writes: 0,
        deletions: 0,
        expiries: 0,
        grants: 0,
        lags: 0,
        late: 0,
    };
}
