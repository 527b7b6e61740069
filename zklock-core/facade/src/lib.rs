#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

#[doc(inline)]
pub use zklock_core::*;
