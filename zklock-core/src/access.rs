//! Who may use the nodes that are created here.

use std::fmt;

zklock_machine::listed! {
    /// Who may use the nodes that a client creates: those of locks and barriers, the nodes above them, limits, and what
    /// [`Guarded::create`](crate::Guarded::create) makes.
    ///
    /// All clients of a lock need every right but `ADMIN` on its node: to queue there they create, list and delete children,
    /// and to wait they read those of others. So with `CreatorAll` and `ReadOpen` all must log in as the same user. Nodes that
    /// are there already stay as they are. The first client that needs `/locks/report` also creates `/locks`: if others have
    /// locks of their own below `/locks`, an operator creates that node first.
    ///
    /// ```
    /// use zklock_core::Access;
    ///
    /// assert_eq!(Access::default(), Access::Open);
    /// assert_eq!(Access::ReadOpen.to_string(), "read-open");
    /// ```
    #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
    #[non_exhaustive]
    pub enum Access {
        /// Everyone may do everything.
        #[default]
        Open,
        /// Those who are logged in as the creator may do everything, all others nothing.
        CreatorAll,
        /// Those who are logged in as the creator may do everything, and all others read: so they can list contenders.
        ReadOpen,
    }
}

/// `open`, `creator-all` or `read-open`.
impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Open => "open",
            Self::CreatorAll => "creator-all",
            Self::ReadOpen => "read-open",
        })
    }
}
