//! The command `zklock`, as its users run it, against real servers.

mod support;

mod ended;
mod exit_codes;
mod killed;
mod lost;
mod partition;
mod signals;
mod terminal;
