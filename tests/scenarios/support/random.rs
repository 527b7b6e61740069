//! Numbers that look random, but are the same in every run.

/// Marsaglia's xorshift.
pub(crate) struct Random(u64);

impl Random {
    /// Another series for each number but 0.
    pub(crate) fn of(series: u64) -> Self {
        Self(series.wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}
