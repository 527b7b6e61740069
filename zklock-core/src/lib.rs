//! Distributed locks on Apache ZooKeeper.

#![forbid(unsafe_code)]

#[deny(clippy::disallowed_methods, clippy::disallowed_types, clippy::disallowed_macros)]
pub mod machine;
