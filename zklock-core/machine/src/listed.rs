//! Enums that know their values.

/// An enum, and the list of its values. With that other crates, which must expect further values, can check when they are
/// compiled that they know every one.
#[doc(hidden)]
#[macro_export]
macro_rules! listed {
    ($(#[$about:meta])* pub enum $Enum:ident { $($(#[$doc:meta])* $Value:ident $(($Inner:ident))?,)+ }) => {
        $(#[$about])*
        pub enum $Enum { $($(#[$doc])* $Value $(($Inner))?,)+ }

        impl $Enum {
            /// Every value; of those that contain another, one.
            #[doc(hidden)]
            pub const ALL: &'static [Self] = &[$(Self::$Value $(($Inner::ALL[0]))?),+];
        }
    };
}
