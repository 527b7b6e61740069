//! How a call waits, on whose behalf, and the functions of the user's that are called.

pub(crate) mod anchor;
pub(crate) mod bell;
pub(crate) mod callback;
pub(crate) mod connection;
pub(crate) mod coroutine;
pub(crate) mod greenlet;
pub(crate) mod hold_callbacks;
pub(crate) mod task;
