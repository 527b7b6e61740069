//! The functions of C, and its nouns. Each is written once, and these macros make what is exported from it.
//!
//! The body of `export! { … }`, of `noun! { … }` and of `starts! { … }` is written like Rust functions, because the header is
//! generated from it without expanding macros (tests/header). The header in turn is what the tests for misuse and for exported
//! names read, so a function cannot be forgotten there.

/// Makes functions that C can call, and that no panic passes. The body may end early with `?`, unless the function returns
/// nothing because it frees a handle. Then a status says why, and any other value is the safe one: see `Safe`.
macro_rules! export {
    ($(
        $(#[doc = $doc:literal])*
        pub fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $(*$constant:tt)? $returned:ident)? $body:block
    )+) => {
        $(
            $(#[doc = $doc])*
            #[unsafe(no_mangle)]
            pub extern "C-unwind" fn $name($($argument: $type),*) $(-> $(*$constant)? $returned)? {
                $crate::export::guarded!($name, $body $(, $(*$constant)? $returned)?)
            }
        )+
    };
}

/// Makes the call inside of an exported function.
macro_rules! guarded {
    ($name:ident, $body:block, zklock_status) => {
        $crate::call::status(stringify!($name), || {
            $body
            Ok(())
        })
    };
    ($name:ident, $body:block, $returned:ty) => {
        $crate::call::value::<$returned>(stringify!($name), || Ok($body))
    };
    ($name:ident, $body:block) => {
        $crate::call::free(stringify!($name), || $body)
    };
}

/// Makes what every noun of C has: the opaque type, the table of its handles, and the function that frees one. After them
/// stand the methods of `Object` that differ from the usual.
macro_rules! noun {
    (
        $(#[doc = $about:literal])*
        pub struct $opaque:ident: $Object:ident, $kind:literal;

        $(#[doc = $doc:literal])*
        pub fn $free:ident($handle:ident: *mut $_same:ident);

        $($method:item)*
    ) => {
        $(#[doc = $about])*
        #[allow(non_camel_case_types, reason = "the name in C")]
        #[derive(Debug)]
        pub struct $opaque {
            _opaque: [u8; 0],
        }

        impl $crate::handle::Object for $Object {
            type Opaque = $opaque;
            const NAME: &'static str = stringify!($opaque);
            const KIND: u64 = $kind;

            fn table() -> &'static $crate::handle::Table<Self> {
                static TABLE: $crate::handle::Table<$Object> = $crate::handle::Table::new();
                &TABLE
            }

            $($method)*
        }

        $crate::export::export! {
            $(#[doc = $doc])*
            pub fn $free($handle: *mut $opaque) {
                if let Some(freed) = $Object::table().take($handle) {
                    freed.freed();
                }
            }
        }
    };
}

pub(crate) use {export, guarded, noun};
