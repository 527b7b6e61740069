//! What becomes of the command when the lock is in danger, or lost.

use ground::{Direction, Proxy, until};

use crate::support::{Process, SOON, is_alive, of_job, operator, path, run, zklock_at};

/// The nodes of the lock, of the holder and of those that wait.
fn delete_holder(path: &str) {
    let operator = operator();
    let [holder] = &operator.wait_for_children(path, 1, SOON)[..] else { unreachable!("as asked") };
    operator.delete(&format!("{path}/{holder}"));
}

#[test]
fn a_command_whose_lock_is_taken_away_gets_term() {
    let path = path();
    let process = Process::start(&mut run(
        &path,
        &[],
        "trap 'echo term; exit 0' TERM; echo on; while :; do sleep 0.1; done",
    ));
    process.line();
    delete_holder(&path);
    assert_eq!(process.line(), "term\n");
    let ended = process.output();
    assert_eq!(ended.code, Some(122));
    assert_eq!(
        ended.told(),
        format!("zklock: the lock {path} is lost: its node was deleted; ending the command\n")
    );
}

#[test]
fn a_command_that_ignores_term_is_killed_with_all_that_it_started() {
    let path = path();
    let process = Process::start(&mut run(&path, &["--kill-after", "100ms"], &of_job("trap '' TERM")));
    let pids = process.numbers();
    delete_holder(&path);
    assert_eq!(process.output().code, Some(122));
    assert_eq!(pids.iter().map(|pid| is_alive(*pid)).collect::<Vec<_>>(), [false; 3]);
}

#[test]
fn retry_runs_the_command_again_when_the_lock_is_held_anew() {
    let path = path();
    let mut process =
        Process::start(&mut run(&path, &["--retry"], "echo $ZKLOCK_TOKEN; read line && echo $line"));
    let first: u64 = process.line().trim().parse().unwrap();
    delete_holder(&path);
    let second: u64 = process.line().trim().parse().unwrap();
    assert!(second > first, "{first} {second}");
    process.write("done\n");
    assert_eq!(process.line(), "done\n");
    let ended = process.output();
    assert_eq!(ended.code, Some(0));
    assert!(
        ended.told().ends_with(&format!("waiting for the lock {path} to run the command again (--retry)\n"))
    );
}

#[test]
fn a_short_silence_of_the_servers_is_a_warning() {
    let proxy = Proxy::before(crate::support::servers().server(0));
    let path = path();
    let start = || {
        let mut command = zklock_at(&proxy.connect_string());
        command.args(["run", "--mutex", &path, "--", "sh", "-c", "echo on; read line && echo $line"]);
        let process = Process::start(&mut command);
        process.line();
        process
    };
    let mut process = start();
    // Whether a silence is short enough is a matter of the machine. If it was not, there is another try.
    let mut tries = 0;
    loop {
        proxy.freeze(Direction::Both);
        let warning = process.error_line("zklock: ");
        proxy.thaw();
        assert!(warning.contains("warning: the servers do not answer"), "{warning}");
        assert!(warning.contains(&format!("before the lock {path} is lost")), "{warning}");
        let next = process.error_line("zklock: ");
        if next.contains("the servers answer again") {
            break;
        }
        assert!(next.contains("is about to be lost") && tries < 5, "{next}");
        tries += 1;
        process = start();
    }
    process.write("done\n");
    assert_eq!(process.line(), "done\n");
    assert_eq!(process.output().code, Some(0));
}

#[test]
fn a_long_silence_ends_the_command_before_its_lease() {
    let proxy = Proxy::before(crate::support::servers().server(0));
    let path = path();
    let mut command = zklock_at(&proxy.connect_string());
    let script = of_job("trap 'echo term >&2' TERM");
    let process = Process::start(command.args(["run", "--mutex", &path, "--", "sh", "-c", &script]));
    let pids = process.numbers();
    proxy.freeze(Direction::Both);
    process.error_line("warning: the servers do not answer");
    // The command's own words may come before ours.
    let words = process.error_line("") + &process.error_line("");
    assert!(words.contains("term\n"), "{words}");
    assert!(
        words.contains("is about to be lost, since no server has confirmed it in time; ending the command\n"),
        "{words}"
    );
    assert!(until(SOON, || !pids.iter().any(|pid| is_alive(*pid))));
    // The servers still wait for the session: nobody else has had the lock.
    assert_eq!(operator().children(&path).len(), 1);
    assert_eq!(process.output().code, Some(122));
}
