//! How a call waits, on whose behalf, and the functions of the user's that are called.

pub(crate) mod anchor;
pub(crate) mod callback;
pub(crate) mod connection;
pub(crate) mod coroutine;
pub(crate) mod event_loop;
pub(crate) mod greenlet;
pub(crate) mod hold_callbacks;
pub(crate) mod owner;
pub(crate) mod waker;
