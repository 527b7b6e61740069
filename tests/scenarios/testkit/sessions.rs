//! Sessions that are ended, cut and refused.

use crate::support::embedded::{Raw, creation, manual, operation};
use zklock_testkit::Server;

#[test]
fn there_is_no_ending_or_cutting_of_a_session_that_is_not_there() {
    let server = manual();
    let raw = Raw::open(&server);
    let none = raw.session + 1;
    assert!(!server.expire(none) && !server.cut_session(none) && !server.freeze_session(none));
    assert!(server.cut_session(raw.session));
    assert!(!server.cut_session(raw.session), "it has no connection any more");
    assert!(server.expire(raw.session));
    assert!(!server.expire(raw.session));
}

#[test]
fn local_sessions_can_have_no_ephemeral_nodes_and_are_told_so() {
    const EPHEMERAL_ON_LOCAL_SESSION: i32 = -120;
    let server = Server::builder().local_sessions(true).start().unwrap();
    let mut raw = Raw::open(&server);
    for (path, flags, error) in [("/a", 0, 0), ("/b", 1, EPHEMERAL_ON_LOCAL_SESSION), ("/c-", 2, 0)] {
        assert_eq!(raw.ask(1, operation::CREATE, &creation(path, flags)).error, error, "{path}");
    }
    let refused = raw.ask(1, operation::CREATE, &creation("/d-", 3));
    assert_eq!(refused.error, EPHEMERAL_ON_LOCAL_SESSION);
    assert_eq!(server.children("/").unwrap(), ["a", "c-0000000001", "zookeeper"]);
    raw.is_served();
}
