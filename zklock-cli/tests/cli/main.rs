//! The command `zklock`, as its users run it, against real servers.

mod support;

mod closed;
mod configuration;
mod doctor;
mod ended;
mod exit_codes;
mod guardian;
mod intervened;
mod jobs;
mod killed;
mod lost;
mod metrics;
mod notify;
mod partition;
mod quickstart;
mod restarts;
mod shell;
mod shown;
mod signals;
mod terminal;
mod tools;
