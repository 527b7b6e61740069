//! Signals are passed on to the command, and end a wait.

use std::process::Command;

use rustix::process::Signal;

use crate::support::{LEFT, Process, SOON, holder, left_with, operator, output, path, run, started};

#[test]
fn signals_reach_the_command() {
    for (name, signal) in [
        ("HUP", Signal::HUP),
        ("INT", Signal::INT),
        ("QUIT", Signal::QUIT),
        ("TERM", Signal::TERM),
        ("USR1", Signal::USR1),
        ("USR2", Signal::USR2),
        ("WINCH", Signal::WINCH),
    ] {
        let script = format!("trap 'echo {name}; exit 9' {name}; echo on; while :; do sleep 0.1; done");
        let process = started(&path(), &[], &script);
        process.line();
        process.signal(signal);
        assert_eq!(process.line(), format!("{name}\n"));
        assert_eq!(process.output().code, Some(9), "{name}");
    }
}

#[test]
fn a_signal_ends_a_wait_and_leaves_no_node() {
    let (path, operator) = (path(), operator());
    let holder = holder(&path);
    let waiter = started(&path, &[], "echo ran");
    operator.wait_for_children(&path, 2, SOON);
    waiter.signal(Signal::INT);
    waiter.output().is(130, "").is_quiet();
    operator.wait_for_children(&path, 1, SOON);
    holder.lets_go();
}

#[test]
fn what_is_ignored_stays_ignored() {
    let zklock = run(&path(), &[], "echo on; read line && echo $line");
    let mut process = Process::start(&mut left_with("env --ignore-signal=HUP", &zklock));
    process.line();
    process.signal(Signal::HUP);
    process.write("done\n");
    assert_eq!(process.line(), "done\n");
    assert_eq!(process.output().code, Some(0));
}

#[test]
fn whatever_a_parent_has_left_the_end_of_the_command_is_known_and_it_inherits_none_of_it() {
    // The tests may have a parent that ignores signals, too.
    let ours = output(Command::new("grep").args(["SigIgn", "/proc/self/status"])).out;
    for left in LEFT {
        let path = path();
        let zklock = run(&path, &[], "grep -E 'Sig(Blk|Ign)' /proc/self/status; exit 5");
        let ended = output(&mut left_with(left, &zklock));
        ended.is(5, &format!("SigBlk:\t0000000000000000\n{ours}")).is_quiet();
        assert_eq!(operator().children_or_empty(&path), [""; 0], "{left}");
    }
}
