//! `zklock completions` and `zklock man`: made from the definition of the command line.

use clap::{Args, Command};
use clap_complete::Shell;

use crate::failure::Failure;
use crate::output::print;

/// Write completions for a shell
///
/// bash: zklock completions bash > /etc/bash_completion.d/zklock. zsh: write to a file _zklock in a folder of $fpath. fish: write to
/// ~/.config/fish/completions/zklock.fish.
#[derive(Args, Debug)]
pub(crate) struct Completions {
    #[arg(value_parser = ["bash", "zsh", "fish"])]
    shell: String,
}

impl Completions {
    pub(crate) fn execute(&self, mut whole: Command) -> Result<(), Failure> {
        let Ok(shell) = self.shell.parse::<Shell>() else {
            return Err(Failure::usage(format!("no completions for {}", self.shell)));
        };
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut whole, "zklock", &mut text);
        print(&String::from_utf8_lossy(&text))
    }
}

/// Write the man page
///
/// With the name of a command, the page of that command. zklock man > zklock.1; man -l zklock.1
#[derive(Args, Debug)]
pub(crate) struct Man {
    /// A command, such as run
    command: Option<String>,
}

impl Man {
    pub(crate) fn execute(&self, mut whole: Command) -> Result<(), Failure> {
        whole.build();
        let page = match &self.command {
            None => whole,
            Some(name) => whole.find_subcommand(name).cloned().ok_or_else(|| {
                Failure::usage(format!("there is no command {name}: `zklock --help` lists all"))
            })?,
        };
        let mut text = Vec::new();
        clap_mangen::Man::new(page).render(&mut text)?;
        print(&String::from_utf8_lossy(&text))
    }
}
