//! What the read/write lock promises, against real ZooKeeper servers, where that differs from the mutex: a module for
//! each promise.

#[path = "../mutex/common.rs"]
#[allow(dead_code, reason = "other kinds need more of it")]
mod common;
#[path = "../mutex/timing.rs"]
#[allow(dead_code, reason = "other kinds need more of it")]
mod timing;

mod bounded;
mod curator;
mod downgrade;
mod exclusive;
mod fair;
mod fenced;
mod handed_over;
mod no_false_grant;
mod nothing_left_behind;
mod owners;
mod register;
mod sweep;
mod told;
mod woken;
