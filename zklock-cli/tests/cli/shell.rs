//! `zklock acquire`, `zklock held` and `zklock release`: a lock for a shell, over several commands.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use ground::{Direction, Proxy, or_once_more, until};
use rustix::process::{Pid, Signal};

use crate::support::pty::OnTerminal;
use crate::support::transcript::plain;
use crate::support::{
    LEFT, Process, SOON, delete_holder, holder, is_alive, open_files, operator, output, path, run, servers,
    signal, with_environment_of, zklock, zklock_at, zklock_there,
};

/// The shells of this machine. Any has the first two.
fn shells() -> impl Iterator<Item = &'static str> {
    let path = std::env::var("PATH").expect("a path");
    let is_there = move |name: &str| path.split(':').any(|folder| Path::new(folder).join(name).exists());
    ["sh", "bash", "dash", "zsh"]
        .into_iter()
        .filter(move |name| ["sh", "bash"].contains(name) || is_there(name))
}

/// A script for a shell that finds `zklock`, and the lock's path in `$LOCK`.
fn script_at(hosts: &str, shell: &str, lock: &str, text: &str) -> Command {
    let mut command = with_environment_of(&zklock_at(hosts), Command::new(shell));
    let folder = Path::new(env!("CARGO_BIN_EXE_zklock")).parent().expect("a folder").display();
    let path = format!("{folder}:{}", std::env::var("PATH").expect("a path"));
    command.env("PATH", path).env("LOCK", lock).args(["-c", text]);
    command
}

fn script(shell: &str, lock: &str, text: &str) -> Command {
    script_at(&servers().connect_string(), shell, lock, text)
}

/// A shell that has got so far that it writes a line.
fn started(shell: &str, lock: &str, text: &str) -> (Process, String) {
    let process = Process::start(&mut script(shell, lock, text));
    let line = process.line();
    (process, line)
}

/// The process that holds the lock for a shell: others see its name.
fn keeper(path: &str) -> Pid {
    let operator = operator();
    let [node] = &operator.wait_for_children(path, 1, SOON)[..] else { unreachable!("as asked") };
    let identity = String::from_utf8(operator.data(&format!("{path}/{node}"))).expect("a name");
    identity.rsplit_once('/').and_then(|(_, number)| Pid::from_raw(number.parse().ok()?)).expect("host/pid")
}

/// Whether the keeper ends, and not before the lock is free. Without a release it would be free when the session times out.
fn releases_and_ends(keeper: Pid, path: &str) -> bool {
    until(SOON, || !is_alive(keeper)) && operator().children_or_empty(path).is_empty()
}

const ACQUIRE: &str = r#"eval "$(zklock acquire --mutex "$LOCK" --timeout 60)" || exit; "#;

#[test]
fn a_shell_holds_a_lock_over_several_commands() {
    for shell in shells() {
        // Nothing in a value is an order to the shell.
        let (path, operator) = (path() + "'$(false)`false`\";*~", operator());
        let text = r#"set -eu
            eval "$(zklock acquire --fence --mutex "$LOCK" --timeout 60)"
            echo "$ZKLOCK_TOKEN $ZKLOCK_LOCK $ZKLOCK_NODE $ZKLOCK_ENSEMBLE"; read -r line
            zklock held
            zklock release
            echo released; read -r line"#;
        let (mut process, line) = started(shell, &path, text);
        let [token, lock, node, _] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("{line:?}")
        };
        let stat = operator.stat(node).expect("the node is there while the lock is held");
        assert_eq!((token, lock), (&*stat.czxid.to_string(), &*path), "{shell}");
        assert_eq!(output(&mut run(&path, &["--try"], "true")).code, Some(120), "{shell}");
        let keeper = keeper(&path);
        process.write("\n");
        let held = format!("the lock {path} is held for TIME at least (token NUMBER)");
        assert_eq!(plain(&process.line()), held, "{shell}");
        assert_eq!(process.line(), "released\n");
        assert_eq!(operator.children_or_empty(&path), [""; 0], "{shell}: it is free before release returns");
        assert!(until(SOON, || !is_alive(keeper)), "{shell}: nothing is left while the shell goes on");
        process.write("\n");
        process.output().is(0, "").is_quiet();
    }
}

#[test]
fn a_shell_does_not_go_on_without_the_lock() {
    let (path, ran) = (path(), "; echo ran");
    let holder = holder(&path);
    for shell in shells() {
        for (text, code, errors) in [
            (r#"eval "$(zklock acquire --try --mutex "$LOCK")" || exit"#, 120, "is held by another"),
            (r#"set -e; eval "$(zklock acquire --try --mutex "$LOCK")""#, 120, "is held by another"),
            (r#"eval "$(zklock acquire -q -E 75 --try --mutex "$LOCK")" || exit"#, 75, ""),
            (r#"hold=$(zklock acquire -q --try --mutex "$LOCK") && eval "$hold" || exit"#, 120, ""),
            (r#"eval "$(zklock acquire --try)" || exit"#, 64, "required arguments"),
            (r#"eval "$(zklock acquire -E 0 --mutex "$LOCK")" || exit"#, 64, "give another code"),
            (r#"eval "$(zklock acquire --mutex "$LOCK" --pid 0)" || exit"#, 64, "$$"),
            (r#"eval "$(zklock -H 127.0.0.1:1 acquire --mutex /a --timeout 1)" || exit"#, 123, "no session"),
        ] {
            let ended = output(&mut script(shell, &path, &(text.to_owned() + ran)));
            ended.is(code, "").says(errors);
            assert_eq!(ended.errors.is_empty(), errors.is_empty(), "{shell}: {text}: {}", ended.errors);
        }
    }
    let text = r#"eval "$(zklock acquire --timeout 1s --mutex "$LOCK")" || exit; echo ran"#;
    let ended = output(&mut script("sh", &path, text));
    if ended.code == Some(123) {
        return or_once_more(false, &format!("no session in time: {ended:?}"));
    }
    ended.is(121, "").says("within 1s");
    // None of them is left in the queue.
    operator().wait_for_children(&path, 1, SOON);
    holder.lets_go();
}

/// The parts of a shell that end when the output has come do not count, nor what runs `zklock` for it.
#[test]
fn the_lock_is_free_when_the_shell_is_killed_and_not_before() {
    for shell in shells() {
        for acquire in [
            r#"zklock acquire --mutex "$LOCK""#,
            r#":; (zklock acquire --mutex "$LOCK"); :"#,
            r#"env nice timeout 100 zklock acquire --mutex "$LOCK""#,
            r#"zklock acquire --pid $$ --mutex "$LOCK" | cat"#,
        ] {
            let path = path();
            let text = format!(
                "eval \"$({acquire})\" && zklock held && read -r line && zklock held; echo $?; read -r line"
            );
            let mut process = Process::start(&mut script(shell, &path, &text));
            process.line();
            process.write("\n");
            process.line();
            assert_eq!(process.line(), "0\n", "{shell}: {acquire}");
            let keeper = keeper(&path);
            process.signal(Signal::KILL);
            assert!(releases_and_ends(keeper, &path), "{shell}: {acquire}");
        }
    }
}

/// Then the end of the pipe from which it reads may take the place of its output.
#[test]
fn a_shell_without_an_output_is_found_too() {
    for shell in shells() {
        let path = path();
        let (process, _) = started(shell, &path, &format!("exec 3>&1 >&-; {ACQUIRE} echo >&3; read -r line"));
        let keeper = keeper(&path);
        process.signal(Signal::KILL);
        assert!(releases_and_ends(keeper, &path), "{shell}");
    }
}

/// The nearest process with another output is then a part of the shell that ends when the output has come, and the lock would be
/// free while the shell goes on.
#[test]
fn a_shell_that_gets_the_output_from_another_process_has_to_be_named() {
    for shell in shells() {
        let text = r#"eval "$(zklock acquire --mutex "$LOCK" | cat)" || exit; echo ran"#;
        let ended = output(&mut script(shell, &path(), text));
        ended.is(64, "").says("the output goes to another process").says("--pid $$");
    }
}

#[test]
fn a_wait_that_is_ended_fails_in_the_shell_and_leaves_no_node() {
    let (path, operator) = (path(), operator());
    let holder = holder(&path);
    for (end, code, out) in [(Signal::TERM, Some(143), "(exit 143)\n"), (Signal::KILL, None, "")] {
        let waiter = Process::start(zklock_there().args(["acquire", "--mutex", &path]));
        operator.wait_for_children(&path, 2, SOON);
        waiter.signal(end);
        let ended = waiter.output();
        assert_eq!((ended.code, &*ended.out, &*ended.errors), (code, out, ""));
        operator.wait_for_children(&path, 1, SOON);
    }
    holder.lets_go();
}

#[test]
fn a_lock_that_no_shell_learns_of_is_not_kept() {
    let path = path();
    let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
    drop(reader);
    let mut acquire = zklock_there();
    let us = std::process::id().to_string();
    acquire.args(["acquire", "--mutex", &path, "--pid", &us]).stdout(Stdio::from(writer));
    let ended = acquire.status().expect("the command is built");
    assert_eq!(ended.code(), Some(125), "a shell must not go on without the lock");
    operator().wait_for_children(&path, 0, SOON);
}

#[test]
fn a_loss_is_told_by_held_and_by_release() {
    let path = path();
    let text = format!(
        "{ACQUIRE} echo; code=0; while [ $code = 0 ]; do message=$(zklock held 2>&1); code=$?; done
        echo $code $message; zklock release; exit $?"
    );
    let (process, _) = started("sh", &path, &text);
    delete_holder(&path);
    let lost = format!("zklock: the lock {path} was lost: its node was deleted\n");
    assert_eq!(process.line(), format!("122 {lost}"));
    process.output().is(122, "").says(&lost);
}

#[test]
fn a_shell_that_asks_for_a_signal_gets_it_at_a_loss() {
    let path = path();
    let text = r#"trap 'echo told; exit 5' USR1; trap 'echo term' TERM
        eval "$(zklock acquire --on-lost-signal USR1 --mutex "$LOCK")"; echo; while :; do sleep 0.05; done"#;
    let (process, _) = started("sh", &path, text);
    delete_holder(&path);
    process.output().is(5, "told\n");
    // A release is no loss.
    let text = r#"trap 'echo told' USR1
        eval "$(zklock acquire --on-lost-signal SIGUSR1 --mutex "$LOCK")"; zklock release"#;
    output(&mut script("sh", &path, text)).is(0, "");
}

#[test]
fn the_signal_comes_before_the_lease_ends() {
    let (path, proxy) = (path(), Proxy::before(servers().server(0)));
    let text = r#"trap 'zklock held --json; exit 5' TERM
        eval "$(zklock acquire --on-lost-signal 15 --mutex "$LOCK")" || exit; echo; while :; do sleep 0.05; done"#;
    let process = Process::start(&mut script_at(&proxy.connect_string(), "sh", &path, text));
    process.line();
    proxy.freeze(Direction::Both);
    let ended = process.output();
    // The servers still wait for the session: nobody else has had the lock.
    assert_eq!(operator().children(&path).len(), 1);
    // On a busy machine, the shell may not ask in time.
    or_once_more(ended.code == Some(5) && ended.out.contains("\"valid_for\":"), &format!("{ended:?}"));
}

#[test]
fn a_keeper_that_is_killed_holds_nothing_any_more() {
    let path = path();
    let text = format!("{ACQUIRE} echo; read -r line; zklock held; echo $?; zklock release; exit $?");
    let (mut process, _) = started("sh", &path, &text);
    let keeper = keeper(&path);
    signal(keeper, Signal::KILL);
    assert!(until(SOON, || !is_alive(keeper)));
    process.write("\n");
    process.output().is(122, "122\n").says("zklock: the lock is not held: it was released, or the process");
}

/// As when a service is stopped: TERM comes to all its processes.
#[test]
fn a_shell_that_is_told_to_end_has_the_lock_until_it_has_ended() {
    let path = path();
    let text =
        format!("{ACQUIRE} trap 'echo told; read -r line; zklock held; exit' TERM; echo; read -r line");
    let (mut process, _) = started("bash", &path, &text);
    let keeper = keeper(&path);
    for end in [Signal::TERM, Signal::INT, Signal::HUP] {
        signal(keeper, end);
    }
    process.signal(Signal::TERM);
    assert_eq!(process.line(), "told\n");
    // The keeper has had time to end, too.
    assert!(!until(Duration::from_millis(500), || !is_alive(keeper)));
    process.write("\n");
    let held = format!("the lock {path} is held for TIME at least (token NUMBER)");
    assert_eq!(plain(&process.line()), held);
    assert_eq!(process.output().code, Some(0));
    assert!(releases_and_ends(keeper, &path));
}

#[test]
fn the_keeper_has_nothing_of_the_shell_open() {
    let path = path();
    let text = format!("exec 5</etc/passwd 7<\"$HOME\"; {ACQUIRE} echo; read -r line");
    let mut command = script("sh", &path, &text);
    command.env("HOME", "/usr");
    let mut terminal = OnTerminal::start(&command);
    terminal.shows("\n");
    let keeper = keeper(&path);
    let files = open_files(keeper);
    let own =
        |file: &String| file == "/dev/null" || file.starts_with("socket:") || file.starts_with("anon_inode:");
    assert!(files.values().all(own), "{files:?}");
    assert_eq!(fs::read_link(format!("/proc/{keeper}/cwd")).expect("it runs"), Path::new("/"));
    let stat = fs::read_to_string(format!("/proc/{keeper}/stat")).expect("it runs");
    let after_name: Vec<_> = stat.rsplit_once(')').expect("a name").1.split_whitespace().collect();
    assert_eq!((after_name[3], after_name[4]), (&*keeper.to_string(), "0"), "a session, and no terminal");
    // The shell gets HUP, and the keeper sees it end.
    drop(terminal);
    assert!(releases_and_ends(keeper, &path));
}

#[test]
fn another_user_can_neither_ask_nor_release() {
    let text = format!("{ACQUIRE} echo $ZKLOCK_HOLD; read -r line; zklock release");
    let (mut process, hold) = started("sh", &path(), &text);
    // Only root can become another user.
    let nobody = Command::new(env!("CARGO_BIN_EXE_zklock"))
        .args(["--config", "/dev/null", "release", hold.trim()])
        .current_dir("/")
        .uid(65534)
        .output();
    if let Ok(ended) = nobody {
        assert_eq!(ended.status.code(), Some(122), "{ended:?}");
    }
    process.write("\n");
    // It was still held.
    process.output().is(0, "").is_quiet();
}

#[test]
fn a_shell_can_hold_several_locks() {
    let path = path();
    let text = r#"set -e
        export ZKLOCK_ENSEMBLE=old
        eval "$(zklock acquire --mutex "$LOCK/a")"; first=$ZKLOCK_HOLD; [ -z "${ZKLOCK_ENSEMBLE+set}" ]
        eval "$(zklock acquire --mutex "$LOCK/b")"
        zklock release "$first"; zklock held --json; read -r line; zklock release"#;
    let (process, line) = started("sh", &path, text);
    let held: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!(held["lock"], format!("{path}/b"));
    assert_eq!(operator().children_or_empty(&format!("{path}/a")), [""; 0]);
    assert_eq!(operator().children(&format!("{path}/b")).len(), 1);
    process.lets_go();
}

#[test]
fn whatever_a_parent_has_left_a_shell_gets_its_lock_and_releases_it() {
    for left in LEFT {
        let path = path();
        let text = ACQUIRE.replace("zklock", &format!("{left} zklock")) + "zklock held && zklock release";
        let ended = output(&mut script("sh", &path, &text));
        assert_eq!((ended.code, &*ended.errors), (Some(0), ""), "{left}: {}", ended.out);
        assert_eq!(operator().children_or_empty(&path), [""; 0], "{left}");
    }
}

#[test]
fn a_hold_that_nobody_can_name_is_not_kept() {
    let path = path();
    let acquire = r#"zklock acquire --mutex "$LOCK" --pid $$ --timeout 60"#;
    for (text, code, problem) in [
        (">&-", 64, "write eval"),
        (">/dev/null", 64, "write eval"),
        (">/dev/full", 125, "so the lock is released"),
    ] {
        // The next command gets the lock, although the shell lives.
        let text = format!("{acquire} {text}; echo $?; zklock run --mutex \"$LOCK\" --timeout 60 echo ran");
        let ended = output(&mut script("sh", &path, &text));
        assert_eq!(ended.out, format!("{code}\nran\n"), "{text}: {}", ended.errors);
        assert!(ended.errors.contains(problem), "{text}: {}", ended.errors);
    }
}

#[test]
fn what_makes_no_sense_is_named() {
    let mut command = zklock_there();
    command.args(["acquire", "--mutex", "/a"]);
    let mut terminal = OnTerminal::start(&command);
    terminal.shows("write eval \"$(zklock acquire ...)\" || exit");
    assert_eq!(terminal.code(), Some(64));
    for word in ["held", "release"] {
        let held_by = |hold: &str| output(zklock().arg(word).env("ZKLOCK_HOLD", hold));
        let how = "ZKLOCK_HOLD is set by eval \"$(zklock acquire ...)\" || exit";
        output(zklock().arg(word)).is(64, "").says(how);
        held_by("").is(64, "").says(how);
        held_by("nothing").is(122, "");
    }
    // Only what `acquire` prints is evaluated, even if its name is a word of another command.
    for words in [&["release", "acquire"][..], &["run", "--nothing", "acquire"], &["ls", "acquire"]] {
        let ended = output(zklock_there().args(words));
        assert!(ended.code != Some(0) && ended.out.is_empty(), "{words:?}: {ended:?}");
    }
    for (words, part) in [
        (&["--nothing", "acquire"][..], "--nothing"),
        (&["acquire", "--mutex"], "--mutex"),
        (&["acquire", "--mutex", "/a", "b"], "'b'"),
        (&["acquire", "--mutex", "/a", "--on-lost-signal", "SIGNAL"], "there is no such signal"),
        (&["acquire", "--mutex", "/a", "--pid", "999999999"], "there is no process 999999999"),
    ] {
        output(zklock_there().args(words)).is(64, "(exit 64)\n").says(part);
    }
}
