//! Sessions that are ended, cut and refused.

use std::time::Duration;

use crate::support::embedded::{Raw, SOON, creation, manual, operation};
use ground::until;
use zklock_testkit::Server;

const LONG: Duration = Duration::from_secs(40);

#[test]
fn there_is_no_ending_or_cutting_of_a_session_that_is_not_there() {
    let server = manual();
    let raw = Raw::open(&server);
    assert!(!server.expire(raw.session + 1) && !server.cut_session(raw.session + 1));
    assert!(server.cut_session(raw.session));
    assert!(!server.cut_session(raw.session), "it has no connection any more");
    assert!(server.expire(raw.session));
    assert!(!server.expire(raw.session));
}

#[test]
fn sessions_are_told_in_the_order_of_their_beginning_with_what_is_theirs() {
    let server = manual();
    let (mut one, other) = (Raw::open(&server), Raw::open_for(&server, LONG));
    for path in ["/one", "/another"] {
        assert_eq!(one.ask(1, operation::CREATE, &creation(path, 1)).error, 0);
    }
    drop(one.stream.shutdown(std::net::Shutdown::Both));
    assert!(until(SOON, || !server.sessions()[0].is_connected));
    let told: Vec<_> =
        server.sessions().into_iter().map(|s| (s.id, s.timeout, s.is_connected, s.nodes)).collect();
    let nodes = vec!["/another".to_owned(), "/one".to_owned()];
    let expected = [(one.session, one.timeout, false, nodes), (other.session, LONG, true, vec![])];
    assert_eq!(told, expected);
    assert_eq!(server.owner("/one"), Some(one.session));
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
