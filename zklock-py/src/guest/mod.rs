//! Being a guest of the interpreter.

pub(crate) mod dispatch;
pub(crate) mod entrance;
pub(crate) mod error;
pub(crate) mod exit;
pub(crate) mod log;
pub(crate) mod mirror;
pub(crate) mod number;
pub(crate) mod patched;
pub(crate) mod platform;
pub(crate) mod sync;
pub(crate) mod value;
pub(crate) mod wait;
