//! What the semaphore promises, against real ZooKeeper servers, where that differs from the mutex: a module for each
//! promise.

#[path = "../mutex/common.rs"]
#[allow(dead_code, reason = "other kinds need more of it")]
mod common;
#[path = "../rwlock/register.rs"]
#[allow(dead_code, reason = "other kinds need more of it")]
mod register;
#[path = "../rwlock/sweep.rs"]
#[allow(dead_code, reason = "other kinds need more of it")]
mod sweep;
#[path = "../mutex/timing.rs"]
#[allow(dead_code, reason = "other kinds need more of it")]
mod timing;

mod bounded;
mod exclusive;
mod fair;
mod fenced;
mod head;
mod input;
mod limit;
mod no_false_grant;
mod nothing_left_behind;
mod permits;
mod told;
mod tries;
