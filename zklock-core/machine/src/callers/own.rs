//! What an owner that is about to wait already holds.

use crate::name::Role;

/// Whether an owner that is about to wait already holds the lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Own {
    /// It holds nothing.
    Nothing,
    /// Its hold goes together with the one that it wants, unless another contender waits in between.
    Beside,
    /// Its hold excludes the one that it wants, and others may release it.
    InTheWay,
    /// Its hold excludes the one that it wants, and nobody else may release it.
    Deadlock {
        /// The role of that hold.
        held: Role,
    },
}

impl Own {
    /// Returns the one that matters more, for a lock with several claims.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        if other.rank() > self.rank() { other } else { self }
    }

    const fn rank(self) -> u8 {
        match self {
            Self::Nothing => 0,
            Self::Beside => 1,
            Self::InTheWay => 2,
            Self::Deadlock { .. } => 3,
        }
    }
}
