//! The asyncio classes.
//!
//! They have the names of the blocking classes, and every call that waits is a coroutine. A lock belongs to the task
//! that acquires it. Dropping, cancelling or losing a coroutine at any point leaves nothing behind.

pub(crate) mod barrier;
pub(crate) mod client;
pub(crate) mod double_barrier;
pub(crate) mod hold;
pub(crate) mod lock;
pub(crate) mod observer;
