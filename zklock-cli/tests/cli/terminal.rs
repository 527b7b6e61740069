//! On a terminal: who has it, and who gets its keys.

use std::process::Command;

use crate::support::pty::OnTerminal;
use crate::support::{SOON, is_alive, path, run, with_environment_of};

const CTRL_C: &str = "\x03";
const CTRL_D: &str = "\x04";
const CTRL_Z: &str = "\x1a";

/// A shell with job control, which shows `ready` and a number as its prompt.
fn shell() -> OnTerminal {
    let mut shell = Command::new("bash");
    shell.args(["--norc", "--noprofile", "--noediting", "-i"]).env("PS1", "ready\\$ ");
    let mut shell = OnTerminal::start(&with_environment_of(&run("/", &[], ""), shell));
    shell.shows("ready");
    shell
}

/// Has the shell run `zklock run` with this command.
fn zklock(path: &str, command: &str) -> String {
    format!("'{}' run --mutex {path} -- {command}; echo code=$?.\n", env!("CARGO_BIN_EXE_zklock"))
}

#[test]
fn an_interactive_command_has_the_terminal() {
    let mut shell = shell();
    shell.types(&zklock(&path(), "sh -c 'test -t 0 && echo asks-$((1+1)); read line; echo \"<$line>\"'"));
    shell.shows("asks-2");
    shell.answers("something\n", "<something>");
    shell.shows("code=0.");
    // The shell has it back.
    shell.answers("echo $((20+22))\n", "42");
}

#[test]
fn ctrl_c_ends_the_command_and_its_code_says_so() {
    let mut shell = shell();
    shell.types(&zklock(&path(), "sh -c 'echo on-$((1+1)); exec sleep 1000'"));
    shell.shows("on-2");
    shell.answers(CTRL_C, "code=130.");
}

#[test]
fn ctrl_z_stops_both_and_fg_goes_on_with_both() {
    let mut shell = shell();
    shell.types(&zklock(&path(), "sh -c 'echo on-$((1+1)); while read line; do echo \"<$line>\"; done'"));
    shell.shows("on-2");
    shell.answers(CTRL_Z, "Stopped");
    // The shell has the terminal.
    shell.answers("echo $((20+22))\n", "42");
    shell.answers("fg\n", "run --mutex");
    shell.answers("again\n", "<again>");
    shell.types(CTRL_D);
    shell.answers("echo end=$?.\n", "end=0.");
}

#[test]
fn a_command_that_is_stopped_for_longer_than_its_lease_is_killed() {
    let mut shell = shell();
    let line = zklock(&path(), "sh -c 'echo pid=$$.; read line; echo \"<$line>\"'");
    shell.answers(&line.replace(" run ", " --session-timeout 2s run "), "\npid=");
    let pid = shell.shows(".").parse().ok().and_then(rustix::process::Pid::from_raw).expect("a number");
    shell.answers(CTRL_Z, "Stopped");
    assert!(ground::until(SOON, || !is_alive(pid)), "the warden does not stop");
    shell.answers("fg; echo end=$?.\n", "end=122.");
}

#[test]
fn a_command_in_a_pipeline_leaves_the_terminal_to_the_others() {
    let mut shell = shell();
    // The last of it reads from the terminal, as a pager does.
    let reader = "sh -c 'cat; read line </dev/tty; echo \"<$line>\"'";
    let line = zklock(&path(), "sh -c 'echo on-$((1+1)); exec sleep 0.5'")
        .replace("; echo", &format!(" | {reader}; echo"));
    shell.answers(&line, "on-2");
    shell.answers("something\n", "<something>");
    shell.shows("code=0.");
}

#[test]
fn ctrl_z_where_nobody_could_continue_changes_nothing() {
    let path = path();
    // The leader of the session is `zklock` itself: nobody looks after jobs.
    let mut terminal = OnTerminal::start(&run(&path, &[], "echo on-$((1+1)); read line; echo \"<$line>\""));
    terminal.shows("on-2");
    terminal.types(CTRL_Z);
    terminal.answers("something\n", "<something>");
    assert_eq!(terminal.code(), Some(0));
}

#[test]
fn a_command_in_the_background_gets_the_terminal_with_fg() {
    let mut shell = shell();
    let line = zklock(&path(), "sh -c 'read line; echo \"<$line>\"'").replace("; echo code=$?.", " &");
    shell.types(&line);
    // It wants to read, and so it is stopped, and we with it. The shell tells that when it is asked.
    shell.types_until_shown("jobs\n", "Stopped");
    shell.answers("fg\n", "run --mutex");
    shell.answers("something\n", "<something>");
}
