//! `libzklock`: the C face of [`zklock_core`].
//!
//! Its documentation is `include/zklock.h`, which is generated from the comments here.
//!
//! ```text
//!  client  options  lock  ticket  hold  log     one C noun a file: what is exported
//!  call                                         around every call: forks, panics, errors
//!  status                                       what a call returns, and the sentence to it
//!  handle                                       what C holds in its hands; all that is unsafe
//! ```
//!
//! A handle is not an address but a number in a table: so a handle that was freed, or is of another
//! kind, or was never ours, is told apart with certainty, and another thread may free what is in use.

mod call;
mod client;
mod descriptor;
mod handle;
mod hold;
mod lock;
mod log;
mod options;
mod status;
mod ticket;
mod version;
