//! Our threads, and how other threads wait for what they do.
//!
//! One I/O thread does the work of all clients of a process. A thread that waits polls the future itself, so the deadline of a
//! wait is kept even if the I/O thread is late, or has stopped because the program has closed its descriptors.

pub(crate) mod call;
pub(crate) mod descriptors;
pub(crate) mod fork;
pub(crate) mod fork_safe;
pub(crate) mod interrupt;
pub(crate) mod io;
pub(crate) mod log;
pub(crate) mod park;
pub(crate) mod started;
pub(crate) mod thread;
pub(crate) mod wait;
pub(crate) mod watch;
