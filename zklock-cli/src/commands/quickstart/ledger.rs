//! The resource that the lock is for.

/// It keeps the greatest token that has written, and refuses smaller ones: this is what makes a late write harmless, however late
/// it is. A holder may write as often as it likes.
#[derive(Default)]
pub(super) struct Ledger {
    pub(super) greatest: u64,
}

impl Ledger {
    /// Writes with this token. Returns whether that is accepted.
    pub(super) fn write(&mut self, token: u64) -> bool {
        let is_accepted = token >= self.greatest;
        self.greatest = self.greatest.max(token);
        is_accepted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_writes_until_a_greater_one_has_written() {
        let mut ledger = Ledger::default();
        assert_eq!([5, 5, 8, 5, 8].map(|token| ledger.write(token)), [true, true, true, false, true]);
    }
}
