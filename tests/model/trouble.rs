//! How often faults are possible: while holds are kept, and everywhere.

/// Declares how often each of several things may still happen.
macro_rules! budget {
    ($(#[$about:meta])* $name:ident { $($(#[$of:meta])* $thing:ident,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub(crate) struct $name {
            $($(#[$of])* pub(crate) $thing: u8,)*
        }

        impl $name {
            pub(crate) const NONE: Self = Self { $($thing: 0,)* };
        }
    };
}
pub(crate) use budget;

budget! {
    /// How often each fault is possible.
    Trouble {
        /// All faults together.
        steps,
        /// The connection stalls for a while, or ends.
        stalls,
        breaks,
        /// A server does not answer a check, although it is there.
        refusals,
        /// The process is asleep.
        nights,
        /// Somebody else writes in the same session.
        writes,
        /// An operator deletes a node.
        deletions,
        /// The servers end the session.
        expiries,
        /// Another hold is granted.
        grants,
        /// The server does not learn of deletions before it has to execute a write.
        lags,
        /// How many units of time late every answer is, all the time.
        late,
    }
}
