pub(crate) mod contenders;
pub(crate) mod observe;
pub(crate) mod prometheus;
