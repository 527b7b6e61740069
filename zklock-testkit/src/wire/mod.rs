//! What goes over the wire.

pub(crate) mod access;
pub(crate) mod code;
pub(crate) mod frame;
pub(crate) mod jute;
pub(crate) mod kind;
pub(crate) mod path;
pub(crate) mod profile;
pub(crate) mod request;
pub(crate) mod words;
