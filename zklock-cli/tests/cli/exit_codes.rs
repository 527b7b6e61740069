//! How `zklock run` ends, and that it says nothing when all is well.

use ground::or_once_more;

use crate::support::{Process, operator, output, path, run, zklock, zklock_at, zklock_there};

#[test]
fn the_exit_code_is_that_of_the_command() {
    for (script, code) in [("true", 0), ("exit 3", 3), ("kill -TERM $$", 143), ("kill -KILL $$", 137)] {
        let ended = output(&mut run(&path(), &[], script));
        assert_eq!((ended.code, &*ended.out, &*ended.errors), (Some(code), "", ""), "{script}");
    }
}

#[test]
fn the_command_knows_its_lock() {
    let (path, operator) = (path(), operator());
    let mut process =
        Process::start(&mut run(&path, &[], "echo $ZKLOCK_TOKEN $ZKLOCK_LOCK $ZKLOCK_NODE; read _"));
    let line = process.line();
    let [token, lock, node] = line.split_whitespace().collect::<Vec<_>>()[..] else { panic!("{line:?}") };
    let stat = operator.stat(node).expect("the node is there while the command runs");
    assert_eq!((token, lock), (&*stat.czxid.to_string(), &*path));
    process.write("\n");
    assert_eq!(process.output().code, Some(0));
    assert_eq!(operator.children_or_empty(&path), [""; 0], "it is gone when the command has ended");
}

#[test]
fn every_kind_of_lock_can_be_held() {
    for (kind, place) in [
        ("--mutex", ""),
        ("--read", ""),
        ("--write", ""),
        ("--semaphore", ":3"),
        ("--election", ""),
        ("--single-node", ""),
    ] {
        let (path, operator) = (path(), operator());
        let lock = path.clone() + place;
        let script = "test -n \"$ZKLOCK_TOKEN\" && echo $ZKLOCK_NODE && read _";
        let mut process = Process::start(zklock_there().args(["run", kind, &lock, "--", "sh", "-c", script]));
        let node = process.line();
        assert!(operator.stat(node.trim()).is_some(), "{kind}: {node}");
        process.write("\n");
        assert_eq!(process.output().code, Some(0), "{kind}");
        assert!(operator.stat(node.trim()).is_none(), "{kind}: {node}");
    }
}

#[test]
fn verbose_says_what_it_does() {
    let path = path();
    let mut holder = Process::start(&mut run(&path, &["--verbose"], "echo held; read _"));
    holder.line();
    let waiter = Process::start(&mut run(&path, &["-v"], "exit 3"));
    let place = waiter.error_line("held by");
    assert!(place.starts_with(&format!("zklock: waiting for the lock {path}, held by ")), "{place}");
    assert!(place.ends_with("; we are next\n"), "{place}");
    holder.write("\n");
    let ended = waiter.output();
    assert_eq!(ended.code, Some(3));
    let done = format!("zklock: holding the lock {path}\nzklock: released the lock {path}\n");
    assert!(ended.errors.ends_with(&done), "{ended:?}");
}

#[test]
fn a_busy_lock_and_one_that_is_not_free_in_time_have_codes_of_their_own() {
    let path = path();
    let mut holder = Process::start(&mut run(&path, &[], "echo held; read _"));
    holder.line();
    let tried = output(&mut run(&path, &["--try"], "echo ran"));
    assert_eq!((tried.code, &*tried.out), (Some(120), ""));
    let busy = format!("zklock: the lock {path} is held by another");
    assert!(tried.errors.starts_with(&busy), "{}", tried.errors);
    // On a busy machine the holder's name may not come in time.
    let is_named = |errors: &str| errors.contains(" holds it (its node _c_");
    let mut errors = (0..100).map(|_| output(&mut run(&path, &["--try"], "echo ran")).errors);
    assert!(errors.any(|errors| is_named(&errors)));
    let waited = output(&mut run(&path, &["--timeout", "300ms"], "echo ran"));
    assert_eq!((waited.code, &*waited.out), (Some(121), ""));
    // The time that was given, and not what was left of it.
    let expected = format!("zklock: the lock {path} was not acquired within 300ms: ");
    assert!(waited.errors.starts_with(&expected), "{}", waited.errors);
    for (options, code) in [(&["--try", "-q"][..], 120), (&["--timeout", "100ms", "--quiet"], 121)] {
        let quiet = output(&mut run(&path, options, "echo ran"));
        assert_eq!((quiet.code, &*quiet.out, &*quiet.errors), (Some(code), "", ""), "{options:?}");
    }
    for options in
        [&["--try", "-q", "-E", "75"][..], &["--timeout", "1s", "-q", "--conflict-exit-code", "75"]]
    {
        let ended = output(&mut run(&path, options, "echo ran"));
        if ended.code == Some(123) {
            return or_once_more(false, &format!("no session in time: {ended:?}"));
        }
        assert_eq!((ended.code, &*ended.out, &*ended.errors), (Some(75), "", ""), "{options:?}");
    }
    holder.write("\n");
    assert_eq!(holder.output().code, Some(0));
    assert_eq!(output(&mut run(&path, &["--try"], "echo ran")).out, "ran\n");
    let failed = output(&mut run(&path, &["-E", "75", "--session-timeout", "1ms"], "echo ran"));
    assert_eq!(failed.code, Some(64), "the code is for a busy lock alone");
}

#[test]
fn options_after_the_first_word_of_the_command_are_its_own() {
    for before in [&[][..], &["--"]] {
        let mut command = zklock_there();
        command.args(["run", "--mutex", &path()]).args(before);
        let ended = output(command.args(["printf", "%s|", "--try", "-E", "--", "--hosts"]));
        assert_eq!(
            (ended.code, &*ended.out, &*ended.errors),
            (Some(0), "--try|-E|--|--hosts|", ""),
            "{before:?}"
        );
    }
}

#[test]
fn where_no_server_answers_nobody_knows_who_has_the_lock() {
    let mut command = zklock_at("127.0.0.1:1");
    let ended = output(command.args(["run", "--mutex", "/a", "--timeout", "500ms", "--", "echo", "ran"]));
    assert_eq!((ended.code, &*ended.out), (Some(123), ""));
    assert!(ended.errors.starts_with("zklock: no session could be opened"), "{}", ended.errors);
    assert!(ended.errors.ends_with("(`zklock doctor` asks each server by itself)\n"), "{}", ended.errors);
    let ended = output(zklock_at("127.0.0.1:1").args([
        "--connect-timeout",
        "500ms",
        "run",
        "--quiet",
        "--try",
        "--mutex",
        "/a",
        "--",
        "true",
    ]));
    assert_eq!(ended.code, Some(123));
    assert!(ended.errors.starts_with("zklock: no session could be opened"), "the reason comes all the same");
}

#[test]
fn mistakes_are_named() {
    let cases: [(&[&str], &str); 7] = [
        (
            &["--loss-timeout", "3s", "run", "--mutex", "/a", "--", "true"],
            "--loss-timeout 3.0s: choose 2.0s at most",
        ),
        (&["run", "--", "true"], "required arguments were not provided"),
        (&["run", "--mutex", "/a"], "required arguments were not provided"),
        (&["run", "--mutex", "a", "--", "true"], "zklock: "),
        (&["run", "--mutex", "/a", "--read", "/a", "--", "true"], "cannot be used with"),
        (&["run", "--semaphore", "/a", "--", "true"], "write it as PATH:N"),
        (&["run", "--mutex", "/a", "--timeout", "soon", "--", "true"], "is not a duration"),
    ];
    for (words, part) in cases {
        let ended = output(zklock_at("127.0.0.1:1").args(words));
        assert_eq!((ended.code, &*ended.out), (Some(64), ""), "{words:?}");
        assert!(ended.errors.contains(part), "{words:?}: {}", ended.errors);
    }
    for (word, names) in
        [("lock", "'run', 'acquire'"), ("status", "'ls', 'held'"), ("unlock", "'release', 'break'")]
    {
        let ended = output(zklock().args([word, "/locks/report"]));
        assert_eq!((ended.code, &*ended.out), (Some(64), ""), "{word}");
        assert!(ended.errors.contains(names), "{word}: {}", ended.errors);
    }
    let ended = output(zklock().args(["run", "--mutex", "/a", "--", "true"]));
    assert_eq!(ended.code, Some(64));
    assert!(ended.errors.contains("ZKLOCK_HOSTS"), "{}", ended.errors);
}

#[test]
fn a_command_that_cannot_be_run_is_named() {
    let ended = output(zklock_there().args(["run", "--mutex", &path(), "--", "zklock-no-such-command"]));
    assert_eq!(ended.code, Some(127));
    assert!(
        ended.errors.starts_with("zklock: zklock-no-such-command: command not found"),
        "{}",
        ended.errors
    );
    let ended = output(zklock_there().args(["run", "--mutex", &path(), "--", "/etc/passwd"]));
    assert_eq!(ended.code, Some(126));
    assert!(ended.errors.starts_with("zklock: /etc/passwd: cannot be executed"), "{}", ended.errors);
}
