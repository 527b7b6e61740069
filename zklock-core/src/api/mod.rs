//! The public API: what a program calls. Each of its types wraps one of the layers below, and gives [`Call`](crate::Call)s of it.

pub(crate) mod barrier;
pub(crate) mod client;
pub(crate) mod double_barrier;
pub(crate) mod guarded;
pub(crate) mod hold;
mod home;
mod lazy;
pub(crate) mod lock;
pub(crate) mod loss;
pub(crate) mod member;
pub(crate) mod observer;
pub(crate) mod once;
pub(crate) mod run;
pub(crate) mod wanted;
pub(crate) mod watch;
