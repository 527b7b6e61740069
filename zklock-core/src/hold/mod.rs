pub(crate) mod guarded;
pub(crate) mod hold;
pub(crate) mod token;
