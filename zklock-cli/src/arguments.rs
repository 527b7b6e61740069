//! The command line.

use clap::{Parser, Subcommand};

use crate::commands::acquire::Acquire;
use crate::commands::bench::Bench;
use crate::commands::doctor::Doctor;
use crate::commands::fence::Fence;
use crate::commands::held::Held;
use crate::commands::intervene::{Break, Evict, RequestRelease};
use crate::commands::jobs::Jobs;
use crate::commands::ls::Ls;
use crate::commands::paper::{Completions, Man};
use crate::commands::quickstart::Quickstart;
use crate::commands::release::Release;
use crate::commands::run::Run;
use crate::commands::testing::Testing;
use crate::commands::tree::Tree;
use crate::configuration;
use crate::connect::Connection;
use crate::exit;

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
    Acquire(Acquire),
    Held(Held),
    Release(Release),
    Ls(Ls),
    Tree(Tree),
    Jobs(Jobs),
    Break(Break),
    Evict(Evict),
    RequestRelease(RequestRelease),
    Doctor(Doctor),
    Bench(Bench),
    Fence(Fence),
    Quickstart(Quickstart),
    Testing(Testing),
    Completions(Completions),
    Man(Man),
}
