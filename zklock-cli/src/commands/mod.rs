//! The commands of the program, a file each.

pub(crate) mod acquire;
pub(crate) mod bench;
pub(crate) mod choice;
pub(crate) mod contenders;
pub(crate) mod doctor;
pub(crate) mod fence;
pub(crate) mod held;
pub(crate) mod intervene;
pub(crate) mod jobs;
pub(crate) mod ls;
pub(crate) mod paper;
pub(crate) mod quickstart;
pub(crate) mod release;
pub(crate) mod run;
pub(crate) mod testing;
pub(crate) mod tree;
pub(crate) mod variables;
