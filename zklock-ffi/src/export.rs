//! The functions of C. Each is written once, and this macro makes the exported function from it.
//!
//! The body of `export! { … }` is written like Rust functions, because the header is generated from it
//! without expanding macros (tests/header). The header in turn is what the tests for misuse and for
//! exported names read, so a function cannot be forgotten there.

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

pub(crate) use {export, guarded};
