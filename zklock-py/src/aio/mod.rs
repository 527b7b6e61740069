//! The same for asyncio.
//!
//! The names are those of the blocking face, and every call that waits is a coroutine. A lock belongs to the
//! task that acquires it. Dropping, cancelling or losing a coroutine anywhere leaves nothing behind.

pub(crate) mod barrier;
pub(crate) mod client;
pub(crate) mod double_barrier;
pub(crate) mod hold;
pub(crate) mod lock;
pub(crate) mod observer;
