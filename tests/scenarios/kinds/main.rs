//! What the other kinds of lock, and the options, promise against real ZooKeeper servers, where that differs from the
//! mutex: sets, the election, the exclusive lock, the watching of children, the dialects, and the operator's calls.

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

mod all;
mod all_contest;
mod all_input;
mod all_lost;
mod all_sweep;
mod break_lock;
mod children;
mod contenders;
mod dialects;
mod dropped;
mod election;
mod evict;
mod exclusive;
mod exclusive_sweep;
mod observe;
mod process;
mod queue;
mod strangers;
