//! What the embedded server promises: with a client of zklock's on it, and with bare sockets where it matters what
//! exactly goes over the wire.

#[path = "../mutex/common.rs"]
#[allow(dead_code, reason = "scenarios on real servers need more of it")]
mod scenarios;

mod attacks;
mod clients;
mod clock;
mod common;
mod console;
mod ends;
mod faults;
mod freeze;
mod healed;
mod limits;
mod lost;
mod program;
mod sequence;
mod sessions;
mod tree;
mod words;
