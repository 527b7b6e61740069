//! What the barrier and the double barrier promise, against real ZooKeeper servers.

#[path = "../mutex/common.rs"]
#[allow(dead_code, reason = "other kinds need more of it")]
mod common;

mod bounded;
mod crash;
mod crowd;
mod double;
mod members;
mod single;
mod sweep;
mod threads;
