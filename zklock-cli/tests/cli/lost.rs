//! What becomes of the command when the lock is in danger, or lost.

use ground::{Direction, Proxy, until};
use rustix::process::Signal;

use crate::support::{
    Folder, Process, SOON, delete_holder, is_alive, of_job, operator, path, run_at, started,
};

#[test]
fn a_command_that_ignores_term_is_killed_with_all_that_it_started() {
    let path = path();
    let process = started(&path, &["--kill-after", "100ms"], &of_job("trap '' TERM"));
    let pids = process.numbers();
    delete_holder(&path);
    assert_eq!(process.output().code, Some(122));
    assert_eq!(pids.iter().map(|pid| is_alive(*pid)).collect::<Vec<_>>(), [false; 3]);
}

#[test]
fn a_command_whose_lock_is_taken_away_gets_term_and_on_lost_runs_meanwhile() {
    let (path, folder) = (path(), Folder::new());
    let running = folder.file("running", "").display().to_string();
    // It waits for the end of the command, which must not wait for it.
    let on_lost = format!(
        "while [ -e {running} ]; do sleep 0.05; done; echo $ZKLOCK_LOCK $ZKLOCK_TOKEN $ZKLOCK_REASON; read -r line || echo end"
    );
    let script =
        format!("trap 'rm {running}; exit 0' TERM; echo $ZKLOCK_TOKEN; while :; do sleep 0.05; done");
    let process = started(&path, &["--on-lost", &on_lost], &script);
    let token = process.line();
    delete_holder(&path);
    let ended = process.output();
    assert_eq!(ended.code, Some(122));
    assert_eq!(ended.out, format!("{path} {} its node was deleted\nend\n", token.trim()));
    // Else the end of the lease would have ended it.
    assert_eq!(
        ended.told(),
        format!("zklock: the lock {path} is lost: its node was deleted; ending the command\n")
    );
}

#[test]
fn on_lost_runs_at_every_loss() {
    let path = path();
    let process = started(&path, &["--retry", "--on-lost", "echo lost"], "echo held; read -r line");
    for _ in 0..2 {
        assert_eq!(process.line(), "held\n");
        delete_holder(&path);
        assert_eq!(process.line(), "lost\n");
    }
    assert_eq!(process.line(), "held\n");
    process.error_line(&format!("waiting for the lock {path} to run the command again (--retry)"));
    // A release is no loss.
    process.lets_go();
}

#[test]
fn signals_end_a_command_of_on_lost_that_hangs() {
    let path = path();
    let options = ["--retry", "--on-lost", "echo lost; exec sleep 1000"];
    let mut process = started(&path, &options, "echo held; exec sleep 1000");
    process.line();
    delete_holder(&path);
    assert_eq!(process.line(), "lost\n");
    process.signal_to_the_end(Signal::TERM);
    assert_eq!(process.output().code, Some(143), "it neither hangs nor tries again");
}

#[test]
fn a_short_silence_of_the_servers_is_a_warning() {
    let proxy = Proxy::before(crate::support::servers().server(0));
    let path = path();
    let start = || {
        let mut command = run_at(&proxy.connect_string(), &path, &[], "echo on; read line && echo $line");
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
    let script = of_job("trap 'echo term >&2' TERM");
    let on_lost = ["--on-lost", "echo \"on lost: $ZKLOCK_REASON\""];
    let process = Process::start(&mut run_at(&proxy.connect_string(), &path, &on_lost, &script));
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
    let ended = process.output();
    assert_eq!((ended.code, &*ended.out), (Some(122), "on lost: no server has confirmed it in time\n"));
}
