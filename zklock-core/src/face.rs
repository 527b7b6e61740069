//! Items that the C and Python layers need, and Rust programs do not. They are not part of the public
//! interface.

pub use crate::base::clock::now;
pub use crate::base::duration::parse_duration;
pub use crate::base::message::{Given, Message};
pub use crate::base::sockets::above_streams;
pub use crate::client::spec::check_metrics_name;
pub use crate::connect::named::{Named, Value, unknown};
pub use crate::connect::options::hosts_from_env;
pub use crate::machine::{Moment, lease::longest, times};
pub use crate::operator::observe::Report;
pub use crate::session::guardian::command as guardian_command;
pub use crate::threads::{
    descriptors::Opened,
    fork::{OfProcess, Process, has_forked},
    io::{call_later, check_descriptors, log_panics},
    log::{TakeLine, log_to},
    park::{Park, Parked, park_by},
};
