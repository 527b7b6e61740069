//! `libzklock`: the C face of [`zklock`].
//!
//! Its documentation is `include/zklock.h`, which is generated from the comments here.

// The layers: a module imports from lower lines, or from its own, and never in a circle. `tests/layers.py` checks that.
//
// ```text
// .  kinds barrier double_barrier  one C noun a file: what is exported
//    event job
//    contenders observer stats fence
//    client lock
//    options guarded hold_wanted
//    hold
//    started log last_error version record
//    loss events                   telling the host, and values as C has them
//    callback connection readiness convert
//    export                        what every function and noun of C is made with
//    call                          around every call: no panic passes
//    handle                        handles, which are numbers in a table
//    raw                           all that is unsafe
//    failure                       why a call failed
//    status                        the statuses, and which error has which
//    c_enum                        what every enum of C is made with
// ```

#![allow(
    unsafe_code,
    reason = "exported names; `tests/run lint` looks that unsafe blocks stand in raw.rs alone"
)]

pub mod barrier;
mod c_enum;
mod call;
mod callback;
pub mod client;
mod connection;
pub mod contenders;
mod convert;
pub mod double_barrier;
pub mod event;
pub mod events;
mod export;
mod failure;
pub mod fence;
pub mod guarded;
mod handle;
pub mod hold;
pub mod hold_wanted;
pub mod job;
pub mod kinds;
pub mod last_error;
pub mod lock;
pub mod log;
pub mod loss;
pub mod observer;
pub mod options;
mod raw;
mod readiness;
pub mod record;
pub mod started;
pub mod stats;
pub mod status;
pub mod version;
