//! Sessions of one server alone.

use crate::support::embedded::{Raw, creation, operation};
use zklock_testkit::Server;

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
