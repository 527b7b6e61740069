//! Transcripts of the commands that take locks from others.

use crate::shown::contender;
use crate::support::pty::OnTerminal;
use crate::support::transcript::plain;
use crate::support::{SOON, operator, output, path, zklock_there};

#[test]
fn break_takes_the_lock_from_its_holder_and_no_one_else() {
    let (path, operator) = (path(), operator());
    let nobody = output(zklock_there().args(["break", "--yes", &path]));
    assert_eq!((nobody.code, &*nobody.errors), (Some(1), &*format!("zklock: nobody holds {path}\n")));
    let holder = contender("db7/1", "--mutex", &path);
    holder.line();
    let mut waiter = contender("db8/2", "--mutex", &path);
    operator.wait_for_children(&path, 2, SOON);
    let ended = output(zklock_there().args(["break", "--yes", &path]));
    assert_eq!((ended.code, &*ended.errors), (Some(0), ""));
    assert_eq!(plain(&ended.out), "db7/1 (session SESSION, since TIME) has lost the lock");
    assert_eq!(holder.output().code, Some(122));
    waiter.line();
    waiter.write("\n");
    assert_eq!(waiter.output().code, Some(0));
}

#[test]
fn break_asks_on_a_terminal_and_refuses_without_one() {
    let (path, operator) = (path(), operator());
    let mut holder = contender("db7/1", "--mutex", &path);
    holder.line();
    let ended = output(zklock_there().args(["break", &path]));
    assert_eq!(ended.code, Some(64));
    assert_eq!(ended.errors, "zklock: there is no terminal on which to ask: give --yes if you are certain\n");
    let ask = || {
        let mut command = zklock_there();
        command.args(["break", &path]);
        let mut terminal = OnTerminal::start(&command);
        terminal.shows(&format!("Take the lock {path} away from db7/1"));
        terminal.shows("[y/N] ");
        terminal
    };
    let mut no = ask();
    no.types("\n");
    no.shows("zklock: nothing was done");
    assert_eq!(no.code(), Some(1));
    assert_eq!(operator.children(&path).len(), 1);
    let mut yes = ask();
    yes.types("y\n");
    yes.shows("has lost the lock");
    assert_eq!(yes.code(), Some(0));
    holder.status();
}

#[test]
fn evict_takes_one_contender_out() {
    let (path, operator) = (path(), operator());
    let mut holder = contender("db7/1", "--mutex", &path);
    holder.line();
    let ended = output(zklock_there().args(["evict", "--yes", &path, "db8/2"]));
    assert_eq!(ended.code, Some(1));
    assert_eq!(
        ended.errors,
        format!(
            "zklock: \"db8/2\" neither holds {path} nor waits for it: `zklock ls {path}` shows who does\n"
        )
    );
    let name = operator.children(&path).remove(0);
    let ended = output(zklock_there().args(["evict", "--yes", "--json", &path, &name]));
    assert_eq!(ended.code, Some(0), "{}", ended.errors);
    let found: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!((&found[0]["identity"], &found[0]["name"]), (&"db7/1".into(), &name.into()));
    assert_eq!(holder.status().code(), Some(122));
}

#[test]
fn a_request_asks_and_takes_nothing() {
    let (path, operator) = (path(), operator());
    let mut holder = contender("db7/1", "--mutex", &path);
    holder.line();
    let ended = output(zklock_there().args(["request-release", &path]));
    assert_eq!((ended.code, &*ended.errors), (Some(0), ""));
    assert_eq!(plain(&ended.out), "db7/1 (session SESSION, since TIME) was asked to release the lock");
    let node = format!("{path}/{}", operator.children(&path)[0]);
    assert!(operator.data(&node).starts_with(b"__REVOKE__"));
    holder.write("\n");
    assert_eq!(holder.output().code, Some(0));
    let nobody = output(zklock_there().args(["request-release", &path]));
    assert_eq!(nobody.code, Some(1));
}

/// If it does not let go, the operator needs its name to take the lock away.
#[test]
fn a_holder_that_was_asked_keeps_its_name() {
    for kind in ["--mutex", "--read", "--election", "--single-node", "--semaphore"] {
        let path = path();
        let lock = if kind == "--semaphore" { format!("{path}:1") } else { path.clone() };
        let holder = contender("db7/1", kind, &lock);
        holder.line();
        let request = || plain(&output(zklock_there().args(["request-release", &path])).out);
        assert_eq!(request(), "db7/1 (session SESSION, since TIME) was asked to release the lock", "{kind}");
        assert_eq!(request(), "db7/1 (session SESSION, since TIME) was asked to release the lock", "{kind}");
        let shown = output(zklock_there().args(["ls", &path])).out;
        assert!(shown.contains("holds  db7/1 "), "{kind}: {shown}");
        let evicted = output(zklock_there().args(["evict", "--yes", &path, "db7/1"]));
        assert_eq!(plain(&evicted.out), "db7/1 (session SESSION, since TIME) was evicted", "{kind}");
        assert_eq!(holder.output().code, Some(122), "{kind}");
    }
}
