//! Freezing and thawing, which look like a broken network and a stopped server.

use crate::support::embedded::{A_WHILE, Raw, SOON, manual, operation, reading};

#[test]
fn a_frozen_session_is_not_served_on_any_connection_until_it_is_thawed() {
    let server = manual();
    let (mut one, mut other) = (Raw::open(&server), Raw::open(&server));
    server.freeze_session(one.session);
    one.send(1, operation::EXISTS, &reading("/", false));
    assert_eq!(one.answer_within(A_WHILE), None);
    other.is_served();
    // The next connection is frozen as well: it is not even greeted.
    let mut again = Raw::silent(server.address());
    again.greet(one.timeout, one.session, &one.password);
    assert!(!again.is_closed(A_WHILE));
    other.is_served();
    server.thaw();
    again.greeted().unwrap();
    again.is_served();
}

#[test]
fn what_waits_for_a_frozen_session_comes_when_it_is_thawed() {
    let server = manual();
    let mut raw = Raw::open(&server);
    assert_eq!(raw.ask(1, operation::EXISTS, &reading("/news", true)).error, -101);
    server.freeze_session(raw.session);
    server.put("/news", "").unwrap();
    assert_eq!(raw.answer_within(A_WHILE), None);
    server.thaw();
    assert_eq!(raw.answer().xid, crate::support::embedded::EVENT);
}

#[test]
fn a_frozen_server_takes_connections_and_answers_neither_requests_nor_words() {
    let server = manual();
    let mut old = Raw::open(&server);
    server.freeze();
    old.send(1, operation::EXISTS, &reading("/", false));
    let mut new = Raw::silent(server.address());
    new.greet(SOON, 0, &[0; 16]);
    assert_eq!(old.answer_within(A_WHILE), None);
    assert!(!new.is_closed(A_WHILE), "it is accepted");
    assert_eq!(server.sessions().len(), 1, "nothing is carried out");
    let mut raw = Raw::silent(server.address());
    std::io::Write::write_all(&mut raw.stream, b"ruok").unwrap();
    assert!(!raw.is_closed(A_WHILE), "it is as silent as a server that stands");
    assert_eq!(raw.stream.peek(&mut [0]).map_err(|error| error.kind()), Err(std::io::ErrorKind::WouldBlock));
    server.thaw();
    assert_eq!(old.answer().xid, 1);
    new.greeted().unwrap();
}
