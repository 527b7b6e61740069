//! `libzklock`: the C face of [`zklock_core`].
//!
//! Its documentation is `include/zklock.h`, which is generated from the comments here.
//!
//! ```text
//!  options  client  lock_options  kinds  lock        one C noun a file: what is exported
//!  ticket  hold  guarded  loss  queued  observer
//!  log  barrier  double_barrier
//!  callback  descriptor                              telling the host
//!  call  status                                      around every call: panics, errors
//!  handle                                            what C holds in its hands; all that is unsafe
//! ```
//!
//! A handle is not an address but a number in a table: so a handle that was freed, or is of another
//! kind, or was never ours, is told apart with certainty, and another thread may free what is in use.

#![allow(
    unsafe_code,
    reason = "exported names; `tests/run lint` looks that unsafe blocks stand in handle.rs alone"
)]

pub mod barrier;
mod call;
mod callback;
pub mod client;
mod descriptor;
pub mod double_barrier;
pub mod guarded;
mod handle;
pub mod hold;
pub mod kinds;
pub mod lock;
pub mod lock_options;
pub mod log;
pub mod loss;
pub mod observer;
pub mod options;
pub mod queued;
pub mod status;
pub mod ticket;
pub mod version;
