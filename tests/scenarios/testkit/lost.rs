//! Deletions that were confirmed but are lost: the nodes reappear.

use crate::support::embedded::{
    A_WHILE, EVENT, Raw, creation, manual, operation, reading, text, transaction,
};
use zklock_testkit::{Fault, Kind, Server};

const EPHEMERAL: i32 = 1;

/// A connection that has created ephemeral nodes and a persistent one.
fn with_nodes(server: &Server) -> Raw {
    let mut raw = Raw::open(server);
    for (path, flags) in [("/mine", EPHEMERAL), ("/stays", 0), ("/stays/below", EPHEMERAL)] {
        assert_eq!(raw.ask(1, operation::CREATE, &creation(path, flags)).error, 0);
    }
    raw
}

fn delete(raw: &mut Raw, path: &str) -> i32 {
    raw.ask(2, operation::DELETE, &[text(path), vec![255; 4]].concat()).error
}

/// The server's answer about a node.
fn told(raw: &mut Raw, path: &str) -> Vec<u8> {
    let answer = raw.ask(3, operation::EXISTS, &reading(path, false));
    assert_eq!(answer.error, 0, "{path}");
    answer.body
}

#[test]
fn a_node_comes_back_once_its_deletion_is_answered() {
    let server = manual();
    let mut raw = with_nodes(&server);
    let (mine, data) = (told(&mut raw, "/mine"), server.data("/mine"));
    let injected = server.inject(Fault::bring_back(Kind::Delete));
    assert_eq!(delete(&mut raw, "/mine"), 0, "its deletion is confirmed");
    assert_eq!(injected.strikes(), 1);
    assert_eq!((told(&mut raw, "/mine"), server.data("/mine")), (mine, data), "it is there, as it was");
    assert_eq!(server.owner("/mine"), Some(raw.session));
    assert_eq!(delete(&mut raw, "/mine"), 0);
    assert_eq!(server.children("/mine"), None, "the fault is spent");
}

#[test]
fn watchers_hear_of_a_deletion_that_is_lost_and_nothing_of_the_return() {
    let server = manual();
    let (mut raw, mut watcher) = (with_nodes(&server), Raw::open(&server));
    assert_eq!(watcher.ask(1, operation::EXISTS, &reading("/mine", true)).error, 0);
    let _injected = server.inject(Fault::bring_back(Kind::Delete));
    assert_eq!(delete(&mut raw, "/mine"), 0);
    let event = watcher.answer();
    assert!(event.xid == EVENT && event.body.ends_with(&text("/mine")), "{event:?}");
    assert_eq!(watcher.ask(2, operation::EXISTS, &reading("/mine", true)).error, 0, "it sees it again");
    assert_eq!(watcher.answer_within(A_WHILE), None);
}

#[test]
fn all_that_a_transaction_has_deleted_comes_back_and_what_it_has_created_stays() {
    let server = manual();
    let mut raw = with_nodes(&server);
    let deletion = |path| (operation::DELETE, [text(path), vec![255; 4]].concat());
    let mut requests = ["/stays/below", "/stays", "/mine"].map(deletion).to_vec();
    requests.push((operation::CREATE, creation("/new", 0)));
    let injected = server.inject(Fault::bring_back(Kind::Multi));
    assert_eq!(raw.ask(4, operation::MULTI, &transaction(&requests)).error, 0);
    assert_eq!(injected.strikes(), 1);
    assert_eq!(server.children("/").unwrap(), ["mine", "new", "stays", "zookeeper"]);
    assert_eq!(server.children("/stays").unwrap(), ["below"]);
}

#[test]
fn no_node_comes_back_without_its_session_or_its_parent() {
    let server = manual();
    let mut raw = with_nodes(&server);
    let injected = server.inject(Fault::bring_back(Kind::Close));
    assert_eq!(raw.ask(4, operation::CLOSE_SESSION, &[]).error, 0);
    assert_eq!((injected.strikes(), server.children("/mine")), (1, None));
    assert!(!server.bring_back("/mine"), "its session has ended");

    server.put("/a/b", "").unwrap();
    assert!(server.delete("/a"));
    assert!(!server.bring_back("/a/b"), "its parent is gone");
    assert!(server.bring_back("/a") && server.bring_back("/a/b"));
}
