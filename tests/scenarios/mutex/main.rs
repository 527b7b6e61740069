//! What the mutex promises, against real ZooKeeper servers: a module for each promise, a test for each way in which
//! it could be broken.

mod bad_input;
mod bounded;
mod cancel_sweep;
mod common;
mod confirm;
mod connection;
mod connector;
mod crash;
mod crowd;
mod exclusive;
mod fair;
mod fenced;
mod handed_on;
mod lease;
mod local_sessions;
mod no_false_grant;
mod nothing_left_behind;
mod numbers;
mod one_node_a_process;
mod owners;
mod parents;
mod read;
mod reconnect;
mod renegotiated;
mod self_waits;
mod stale_leader;
mod threads;
mod tickets;
mod timing;
mod tls;
mod told;
mod wire;
