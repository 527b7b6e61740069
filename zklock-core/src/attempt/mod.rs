mod entry;
pub(crate) mod local_queue;
pub(crate) mod members;
mod refused;
pub(crate) mod set;
pub(crate) mod shared;
pub(crate) mod strangers;
