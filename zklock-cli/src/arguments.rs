//! The command line.

use clap::{Parser, Subcommand};

use crate::bench::Bench;
use crate::configuration;
use crate::connect::Connection;
use crate::doctor::Doctor;
use crate::exit;
use crate::intervene::{Break, Evict, Revoke};
use crate::ls::Ls;
use crate::paper::{Completions, Man};
use crate::quickstart::Quickstart;
use crate::run::Run;
use crate::testing::Testing;
use crate::tree::Tree;

/// Distributed locks on Apache ZooKeeper, from the command line
#[derive(Parser, Debug)]
#[command(name = "zklock", version, after_help = format!("{}\n\n{}", configuration::HELP, exit::TABLE), disable_help_subcommand = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,

    #[command(flatten)]
    pub(crate) connection: Connection,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    Run(Run),
    Ls(Ls),
    Tree(Tree),
    Break(Break),
    Evict(Evict),
    Revoke(Revoke),
    Doctor(Doctor),
    Bench(Bench),
    Quickstart(Quickstart),
    Testing(Testing),
    Completions(Completions),
    Man(Man),
}
