pub(crate) mod grant;
pub(crate) mod guarded;
pub(crate) mod hold;
pub(crate) mod loss;
mod released;
pub(crate) mod token;
pub(crate) mod wanted;
