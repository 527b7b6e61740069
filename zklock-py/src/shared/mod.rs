//! What both faces of one thing share.

pub(crate) mod barrier;
pub(crate) mod base_hold;
pub(crate) mod base_lock;
pub(crate) mod block;
pub(crate) mod client;
pub(crate) mod double_barrier;
pub(crate) mod guarded;
pub(crate) mod hold;
pub(crate) mod kept;
pub(crate) mod kinds;
pub(crate) mod lock;
pub(crate) mod loss;
pub(crate) mod observer;
pub(crate) mod patience;
pub(crate) mod wanted;
