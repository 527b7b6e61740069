//! Transcripts of the commands that take locks from others.

use crate::shown::{contender, holder};
use crate::support::pty::OnTerminal;
use crate::support::transcript::plain;
use crate::support::{SOON, operator, output, path, zklock_there};

#[test]
fn break_takes_the_lock_from_its_holder_and_no_one_else() {
    let (path, operator) = (path(), operator());
    output(zklock_there().args(["break", "--yes", &path]))
        .is(1, "")
        .says(&format!("zklock: nobody holds {path}\n"));
    let holder = holder("db7/1", "--mutex", &path);
    let waiter = contender("db8/2", "--mutex", &path);
    operator.wait_for_children(&path, 2, SOON);
    let ended = output(zklock_there().args(["break", "--yes", &path]));
    ended.is(0, &ended.out).is_quiet();
    assert_eq!(plain(&ended.out), "db7/1 (session SESSION, since TIME) has lost the lock");
    assert_eq!(holder.output().code, Some(122));
    waiter.line();
    waiter.lets_go();
}

#[test]
fn break_asks_on_a_terminal_and_refuses_without_one() {
    let (path, operator) = (path(), operator());
    let mut holder = holder("db7/1", "--mutex", &path);
    let ended = output(zklock_there().args(["break", &path]));
    ended.is(64, "").says("zklock: there is no terminal on which to ask: give --yes if you are certain\n");
    let ask = || {
        let mut command = zklock_there();
        command.args(["break", &path]);
        let mut terminal = OnTerminal::start(&command);
        terminal.shows(&format!("Take the lock {path} away from db7/1"));
        terminal.shows("[y/N] ");
        terminal
    };
    let mut no = ask();
    no.answers("\n", "zklock: nothing was done");
    assert_eq!(no.code(), Some(1));
    assert_eq!(operator.children(&path).len(), 1);
    let mut yes = ask();
    yes.answers("y\n", "has lost the lock");
    assert_eq!(yes.code(), Some(0));
    holder.status();
}

#[test]
fn evict_takes_one_contender_out() {
    let (path, operator) = (path(), operator());
    let mut holder = holder("db7/1", "--mutex", &path);
    output(zklock_there().args(["evict", "--yes", &path, "db8/2"])).is(1, "").says(&format!(
        "zklock: \"db8/2\" neither holds {path} nor waits for it: `zklock ls {path}` shows who does\n"
    ));
    let name = operator.children(&path).remove(0);
    let found = output(zklock_there().args(["evict", "--yes", "--json", &path, &name])).json();
    assert_eq!((&found[0]["identity"], &found[0]["name"]), (&"db7/1".into(), &name.into()));
    assert_eq!(holder.status().code(), Some(122));
}

/// A request takes nothing. If the holder does not let go, the operator needs its name to take the lock away.
#[test]
fn a_holder_that_is_asked_keeps_its_lock_and_its_name() {
    for kind in ["--mutex", "--read", "--write", "--election", "--single-node", "--semaphore"] {
        let path = path();
        let request = || output(zklock_there().args(["request-release", &path]));
        assert_eq!(request().code, Some(1), "nobody has it");
        let lock = if kind == "--semaphore" { format!("{path}:1") } else { path.clone() };
        let holder = holder("db7/1", kind, &lock);
        for _ in 0..2 {
            let asked = "db7/1 (session SESSION, since TIME) was asked to release the lock";
            assert_eq!(plain(&request().out), asked, "{kind}");
        }
        let shown = output(zklock_there().args(["ls", &path])).out;
        assert!(shown.contains("holds  db7/1 "), "{kind}: {shown}");
        let evicted = output(zklock_there().args(["evict", "--yes", &path, "db7/1"]));
        assert_eq!(plain(&evicted.out), "db7/1 (session SESSION, since TIME) was evicted", "{kind}");
        assert_eq!(holder.output().code, Some(122), "{kind}");
    }
}
