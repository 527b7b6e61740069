//! How `zklock run` ends, and that it says nothing when all is well.

use ground::or_once_more;

use crate::support::{holder, operator, output, path, run, started, zklock, zklock_at, zklock_there};

#[test]
fn the_exit_code_is_that_of_the_command() {
    for (script, code) in [("true", 0), ("exit 3", 3), ("kill -TERM $$", 143), ("kill -KILL $$", 137)] {
        output(&mut run(&path(), &[], script)).is(code, "").is_quiet();
    }
}

#[test]
fn the_command_knows_its_lock() {
    let (path, operator) = (path(), operator());
    let mut process = started(&path, &[], "echo $ZKLOCK_TOKEN $ZKLOCK_LOCK $ZKLOCK_NODE; read _");
    let line = process.line();
    let [token, lock, node] = line.split_whitespace().collect::<Vec<_>>()[..] else { panic!("{line:?}") };
    let stat = operator.stat(node).expect("the node is there while the command runs");
    assert_eq!((token, lock), (&*stat.czxid.to_string(), &*path));
    process.write("\n");
    assert_eq!(process.output().code, Some(0));
    assert_eq!(operator.children_or_empty(&path), [""; 0], "it is gone when the command has ended");
}

#[test]
fn verbose_says_what_it_does() {
    let path = path();
    let holder = holder(&path);
    let waiter = started(&path, &["-v"], "exit 3");
    let place = waiter.error_line("held by");
    assert!(place.starts_with(&format!("zklock: waiting for the lock {path}, held by ")), "{place}");
    assert!(place.ends_with("; we are next\n"), "{place}");
    holder.lets_go();
    let done = format!("zklock: holding the lock {path}\nzklock: released the lock {path}\n");
    waiter.output().is(3, "").says(&done);
}

#[test]
fn a_busy_lock_and_one_that_is_not_free_in_time_have_codes_of_their_own() {
    let path = path();
    let holder = holder(&path);
    let busy = |options: &[&str]| output(&mut run(&path, options, "echo ran"));
    busy(&["--try"]).is(120, "").says(&format!("zklock: the lock {path} is held by another"));
    // On a busy machine the holder's name may not come in time.
    assert!((0..100).any(|_| busy(&["--try"]).errors.contains(" holds it (its node _c_")));
    // The time that was given, and not what was left of it.
    let late = format!("zklock: the lock {path} was not acquired within 300ms: ");
    busy(&["--timeout", "300ms"]).is(121, "").says(&late);
    busy(&["--try", "-q"]).is(120, "").is_quiet();
    busy(&["--timeout", "100ms", "--quiet"]).is(121, "").is_quiet();
    busy(&["--try", "-q", "-E", "75"]).is(75, "").is_quiet();
    let ended = busy(&["--timeout", "1s", "-q", "--conflict-exit-code", "75"]);
    if ended.code == Some(123) {
        return or_once_more(false, &format!("no session in time: {ended:?}"));
    }
    ended.is(75, "").is_quiet();
    // The code is for a busy lock alone.
    busy(&["-E", "75", "--session-timeout", "1ms"]).is(64, "");
    holder.lets_go();
    busy(&["--try"]).is(0, "ran\n");
}

#[test]
fn options_after_the_first_word_of_the_command_are_its_own() {
    for before in [&[][..], &["--"]] {
        let mut command = zklock_there();
        command.args(["run", "--mutex", &path()]).args(before);
        let ended = output(command.args(["printf", "%s|", "--try", "-E", "--", "--hosts"]));
        ended.is(0, "--try|-E|--|--hosts|").is_quiet();
    }
}

#[test]
fn where_no_server_answers_nobody_knows_who_has_the_lock() {
    for options in [&["--timeout", "500ms"][..], &["--quiet", "--try"]] {
        let mut command = zklock_at("127.0.0.1:1");
        command.args(["--connect-timeout", "500ms", "run", "--mutex", "/a"]).args(options);
        let ended = output(command.args(["--", "echo", "ran"]));
        ended.is(123, "").says("zklock: no session could be opened");
        assert!(ended.errors.ends_with("(`zklock doctor` asks each server by itself)\n"), "{ended:?}");
    }
}

#[test]
fn mistakes_are_named() {
    let cases: [(&[&str], &str); 13] = [
        (
            &["--loss-timeout", "3s", "run", "--mutex", "/a", "true"],
            "--loss-timeout 3.0s: choose 2.0s at most",
        ),
        (&["run", "--", "true"], "required arguments were not provided"),
        (&["run", "--mutex", "/a"], "required arguments were not provided"),
        (&["run", "--mutex", "a", "--", "true"], "zklock: "),
        (&["run", "--mutex", "/a", "--read", "/a", "--", "true"], "cannot be used with"),
        (&["run", "--semaphore", "/a", "--", "true"], "write it as PATH:N"),
        (&["run", "--mutex", "/a", "--timeout", "soon", "--", "true"], "is not a duration"),
        (&["lock", "/a"], "'run', 'acquire'"),
        (&["status", "/a"], "'ls', 'held'"),
        (&["unlock", "/a"], "'release', 'break'"),
        (&["fly"], "unrecognized"),
        (&["guardian"], "does nothing by itself"),
        (&["guardian", "--hosts", "zk1"], "does nothing by itself"),
    ];
    for (words, part) in cases {
        output(zklock_at("127.0.0.1:1").args(words)).is(64, "").says(part);
    }
    output(zklock().args(["run", "--mutex", "/a", "--", "true"])).is(64, "").says("ZKLOCK_HOSTS");
}

#[test]
fn a_command_that_cannot_be_run_is_named() {
    let ended = |program: &str| output(zklock_there().args(["run", "--mutex", &path(), "--", program]));
    ended("zklock-no-such-command").is(127, "").says("zklock: zklock-no-such-command: command not found");
    ended("/etc/passwd").is(126, "").says("zklock: /etc/passwd: cannot be executed");
}
