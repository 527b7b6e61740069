//! The enums of C. Each is written once, and this macro makes everything else from it.
//!
//! The body of `c_enum! { … }` is written like a Rust enum, because the header is generated from it
//! without expanding macros (tests/header). `#[from(…)]` on the enum names the type of the core
//! that it mirrors, and on a member the value. If a value of the core has no member, the code does
//! not compile.

/// Makes a C enum.
macro_rules! c_enum {
    (
        $(#[doc = $about:literal])*
        #[from($From:ident)]
        pub enum $Enum:ident {
            $($(#[doc = $doc:literal])* $(#[from($Value:ident $(($($inner:tt)*))?)])? $MEMBER:ident = $number:literal,)+
        }
    ) => {
        $crate::c_enum::c_enum! {
            $(#[doc = $about])*
            pub enum $Enum {
                $($(#[doc = $doc])* $MEMBER = $number,)+
            }
        }

        impl $Enum {
            #[allow(unreachable_patterns, reason = "the type may grow: then the constant below does not compile")]
            pub(crate) const fn of(value: $From) -> Self {
                match value {
                    $($($From::$Value $(($($inner)*))? => Self::$MEMBER,)?)+
                    _ => panic!("there is no member for this value"),
                }
            }
        }

        /// Checks that every value has a member.
        const _: () = {
            let mut at = 0;
            while at < $From::ALL.len() {
                let _ = $Enum::of($From::ALL[at]);
                at += 1;
            }
        };
    };
    (
        $(#[doc = $about:literal])*
        pub enum $Enum:ident {
            $($(#[doc = $doc:literal])* $MEMBER:ident = $number:literal,)+
        }
    ) => {
        $(#[doc = $about])*
        #[allow(non_camel_case_types, reason = "the name in C")]
        #[repr(i32)]
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $Enum {
            $($(#[doc = $doc])* $MEMBER = $number,)+
        }

        #[allow(dead_code, reason = "not every enum comes from C as a number, or has to be printed")]
        impl $Enum {
            /// All members with their names.
            pub(crate) const ALL: &[(Self, &std::ffi::CStr)] =
                &[$((Self::$MEMBER, $crate::c_enum::c_name(concat!(stringify!($MEMBER), "\0")))),+];

            /// Returns the name of the member with this number.
            pub(crate) fn name(number: i32) -> Option<&'static std::ffi::CStr> {
                Self::ALL.iter().find(|(member, _)| *member as i32 == number).map(|(_, name)| *name)
            }
        }

        impl $crate::c_enum::CEnum for $Enum {
            const NAME: &'static str = stringify!($Enum);

            fn find(number: i32) -> Option<Self> {
                Self::ALL.iter().map(|(member, _)| *member).find(|member| *member as i32 == number)
            }
        }
    };
}

pub(crate) use c_enum;

/// What [`c_enum!`] makes.
pub trait CEnum: Sized {
    const NAME: &'static str;

    /// Returns the member with this number.
    fn find(number: i32) -> Option<Self>;
}

pub(crate) const fn c_name(name: &'static str) -> &'static std::ffi::CStr {
    match std::ffi::CStr::from_bytes_with_nul(name.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!("a name has a NUL at its end and nowhere else"),
    }
}
