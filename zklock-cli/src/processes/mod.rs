//! The processes around a job, and what they share.

pub(crate) mod clock;
pub(crate) mod descendants;
pub(crate) mod guardian;
pub(crate) mod launch;
pub(crate) mod orders;
pub(crate) mod questions;
pub(crate) mod signals;
pub(crate) mod terminal;
pub(crate) mod warden;
