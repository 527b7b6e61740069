//! Freezing and thawing, which look like a broken network and a stopped server.

use std::time::{Duration, Instant};

use crate::support::embedded::{
    A_WHILE, Raw, SESSION, SOON, client, manual, operation, queue_of, reading, settled, soon,
};
use zklock_core::{Client, ClientOptions, ErrorKind};
use zklock_testkit::Server;

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
fn a_frozen_session_ends_in_its_time_though_its_client_comes_again() {
    let server = manual();
    let raw = Raw::open(&server);
    server.freeze_session(raw.session);
    server.advance(raw.timeout - Duration::from_millis(1));
    let mut again = Raw::silent(server.address());
    again.greet(raw.timeout, raw.session, &raw.password);
    // If the greeting had been read, the session would have a sign of life.
    assert!(!again.is_closed(A_WHILE));
    // The session ends at a full tick.
    server.advance(Duration::from_millis(2001));
    assert_eq!(server.sessions(), []);
    server.thaw();
    assert_eq!(again.greeted().unwrap_err().kind(), std::io::ErrorKind::NotFound);
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
fn a_frozen_server_takes_connections_and_says_nothing() {
    let server = manual();
    let mut old = Raw::open(&server);
    server.freeze();
    old.send(1, operation::EXISTS, &reading("/", false));
    let mut new = Raw::silent(server.address());
    new.greet(SOON, 0, &[0; 16]);
    assert_eq!(old.answer_within(A_WHILE), None);
    assert!(!new.is_closed(A_WHILE), "it is accepted");
    assert_eq!(server.sessions().len(), 1, "nothing is carried out");
    server.thaw();
    assert_eq!(old.answer().xid, 1);
    new.greeted().unwrap();
}

#[test]
fn a_frozen_server_answers_no_words() {
    let server = manual();
    server.freeze();
    let mut raw = Raw::silent(server.address());
    std::io::Write::write_all(&mut raw.stream, b"ruok").unwrap();
    assert!(!raw.is_closed(A_WHILE), "it is as silent as a server that stands");
    assert_eq!(raw.stream.peek(&mut [0]).map_err(|error| error.kind()), Err(std::io::ErrorKind::WouldBlock));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_server_delays_no_try_beyond_the_try_timeout() {
    let server = Server::start().unwrap();
    let options = ClientOptions::new(&server.connect_string()).unwrap().session_timeout(SESSION).unwrap();
    let options = options.connect_timeout(Duration::from_secs(3600)).try_timeout(A_WHILE * 3).unwrap();
    let client = soon(Client::connect(options)).await.unwrap();
    let lock = client.mutex("/bounded-try").unwrap();
    soon(lock.try_acquire()).await.unwrap().expect("it is free").release().await.unwrap();
    server.freeze();
    for _ in 0..2 {
        assert_eq!(soon(lock.try_acquire()).await.unwrap_err().kind(), ErrorKind::Unreachable);
        let error = soon(lock.acquire_timeout(Duration::ZERO)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    }
    server.thaw();
    settled(&client).await;
    soon(lock.try_acquire()).await.unwrap().expect("it is free").release().await.unwrap();
    queue_of(&server, "/bounded-try", 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_server_delays_no_acquire_beyond_its_deadline() {
    let server = Server::start().unwrap();
    let client = client(&server).await;
    let lock = client.mutex("/bounded").unwrap();
    soon(lock.acquire()).await.unwrap().release().await.unwrap();
    server.freeze();
    let begun = Instant::now();
    let error = soon(lock.acquire_timeout(Duration::from_millis(200))).await.unwrap_err();
    let took = begun.elapsed();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error}");
    assert!(took >= Duration::from_millis(200) && took < SOON / 2, "{took:?}");
    server.thaw();
    let hold = soon(lock.acquire()).await.unwrap();
    queue_of(&server, "/bounded", 1);
    drop(hold);
    queue_of(&server, "/bounded", 0);
}
