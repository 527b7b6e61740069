//! The public API: what a program calls. Each of its types wraps one of the layers below, and gives [`Call`](crate::Call)s of it.

pub(crate) mod barrier;
pub(crate) mod client;
pub(crate) mod double_barrier;
mod home;
mod lazy;
pub(crate) mod lock;
pub(crate) mod member;
pub(crate) mod observer;
pub(crate) mod once;
