//! The command line.

use clap::{Arg, ArgAction, CommandFactory, Parser, Subcommand};

use crate::commands::{
    acquire, bench, doctor, fence, held, intervene, jobs, ls, paper, quickstart, release, run, testing, tree,
};
use crate::configuration;
use crate::connect::{self, Connection};
use crate::exit;
use crate::output::columns;

/// Distributed locks on Apache ZooKeeper, from the command line
#[derive(Parser)]
#[command(name = "zklock", version, disable_help_flag = true, disable_help_subcommand = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,

    #[command(flatten)]
    pub(crate) connection: Connection,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    Run(run::Run),
    Acquire(acquire::Acquire),
    Held(held::Held),
    Release(release::Release),
    Ls(ls::Ls),
    Tree(tree::Tree),
    Jobs(jobs::Jobs),
    Break(intervene::Break),
    Evict(intervene::Evict),
    RequestRelease(intervene::RequestRelease),
    Doctor(doctor::Doctor),
    Bench(bench::Bench),
    Fence(fence::Fence),
    Quickstart(quickstart::Quickstart),
    Testing(testing::Testing),
    Completions(paper::Completions),
    Man(paper::Man),
}

/// The commands that `zklock --help` shows first.
const FIRST: [&str; 6] = ["run", "ls", "jobs", "break", "doctor", "quickstart"];

/// Returns the command line, with all that there is to say in its help, or as much as a screen shows.
pub(crate) fn command(says_all: bool) -> clap::Command {
    let help = Arg::new("help").short('h').long("help").action(ArgAction::HelpShort);
    let help_all = Arg::new("help-all").long("help-all").action(ArgAction::HelpLong);
    let command = Arguments::command()
        .args(connect::arguments())
        .arg(help.global(true).help_heading(None).help("Print help"))
        .arg(help_all.global(true).help_heading(None).help("Print all of the help"));
    if says_all {
        // The man page has no help of what is hidden anywhere.
        let show = |command: clap::Command| command.mut_args(|arg| arg.hide_short_help(false));
        let after = format!("{}\n\n{}", configuration::HELP, exit::TABLE);
        return show(command).mut_subcommands(show).after_help(after);
    }
    let further = |command: &clap::Command| !FIRST.contains(&command.get_name());
    let row = |command: &clap::Command| {
        vec![
            format!("  {}", command.get_name()),
            command.get_about().map(ToString::to_string).unwrap_or_default(),
        ]
    };
    let rows = columns(&[], command.get_subcommands().filter(|command| further(command)).map(row));
    command
        .mut_subcommands(|command| if further(&command) { command.hide(true) } else { command })
        .mut_subcommand("run", |run| run.override_usage("zklock run [OPTIONS] --mutex PATH COMMAND..."))
        .after_help(format!("Further:\n{rows}"))
}
