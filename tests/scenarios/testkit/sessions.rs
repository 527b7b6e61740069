//! Sessions that are ended, cut, moved to another connection, and refused.

use std::io::ErrorKind::NotFound;
use std::time::{Duration, Instant};

use crate::support::embedded::{Raw, SOON, client, client_with, creation, manual, operation, queue_of, soon};
use ground::{not_later, until};
use zklock_core::{ErrorKind, HoldState, LossReason};
use zklock_testkit::Server;

const PATH: &str = "/locks/report";
const LONG: Duration = Duration::from_secs(40);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_is_ended_is_told_to_its_holder_and_frees_the_lock_for_the_next() {
    let server = Server::start().unwrap();
    let (holder, waiter) = (client_with(&server, LONG).await, client(&server).await);
    let hold = soon(holder.mutex(PATH).unwrap().acquire()).await.unwrap();
    let lock = waiter.mutex(PATH).unwrap();
    let waiting = tokio::spawn(async move { lock.acquire().await });
    queue_of(&server, PATH, 2);
    let begun = Instant::now();
    assert!(server.expire(holder.session_id().unwrap()));
    let (reason, next) = tokio::join!(soon(hold.lost()), soon(waiting));
    assert_eq!(reason, Some(LossReason::SessionExpired));
    let next = next.unwrap().unwrap();
    not_later(begun.elapsed(), LONG / 4);
    assert!(next.token() > hold.token());
    assert_eq!(queue_of(&server, PATH, 1).len(), 1);
    // It goes on with the next session.
    let again = holder.mutex(PATH).unwrap();
    let again = tokio::spawn(async move { again.acquire().await });
    queue_of(&server, PATH, 2);
    soon(next.release()).await.unwrap();
    let last = soon(again).await.unwrap().unwrap();
    assert!(last.token() > next.token());
    assert_eq!(holder.stats().sessions, 2);
}

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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_keeps_its_session_and_its_hold_over_a_cut() {
    let server = Server::start().unwrap();
    let client = client(&server).await;
    let hold = soon(client.mutex(PATH).unwrap().acquire()).await.unwrap();
    let (session, nodes) = (client.session_id(), queue_of(&server, PATH, 1));
    for all in [true, false] {
        if all {
            server.cut();
        } else {
            assert!(server.cut_session(session.unwrap()));
        }
        soon(hold.confirm()).await.unwrap();
    }
    assert_eq!((client.session_id(), client.stats().sessions), (session, 1));
    assert_eq!((hold.state(), queue_of(&server, PATH, 1)), (HoldState::Held, nodes));
    soon(hold.release()).await.unwrap();
}

#[test]
fn a_cut_of_one_session_leaves_others_alone() {
    let server = manual();
    let (mut one, mut other) = (Raw::open(&server), Raw::open(&server));
    assert!(server.cut_session(one.session));
    assert!(one.is_closed(SOON));
    other.is_served();
    server.cut();
    assert!(other.is_closed(SOON));
    assert_eq!(server.sessions().len(), 2);
}

#[test]
fn a_session_moves_to_a_connection_that_knows_its_password_and_to_no_other() {
    let server = manual();
    let mut first = Raw::open(&server);
    assert_eq!(first.ask(1, operation::CREATE, &creation("/mine", 1)).error, 0);
    let mut second = first.again(&server).unwrap();
    assert_eq!((second.session, &second.password), (first.session, &first.password));
    assert!(first.is_closed(SOON), "a session has one connection");
    second.is_served();

    for wrong in [[0; 16].as_slice(), &first.password[..15], b""] {
        let refused = Raw::attach(&server, SOON, first.session, wrong).unwrap_err();
        assert_eq!(refused.kind(), NotFound);
        second = second.again(&server).unwrap();
    }
    let unknown = Raw::attach(&server, SOON, first.session + 1, &first.password).unwrap_err();
    assert_eq!(unknown.kind(), NotFound);
    second.is_served();
    assert_eq!(server.owner("/mine"), Some(first.session));
}

#[test]
fn a_session_that_its_client_closes_is_gone_with_its_nodes() {
    let server = manual();
    let mut raw = Raw::open(&server);
    assert_eq!(raw.ask(1, operation::CREATE, &creation("/mine", 1)).error, 0);
    assert_eq!(raw.ask(2, operation::CLOSE, &[]).error, 0);
    assert!(raw.is_closed(SOON));
    assert_eq!((server.sessions(), server.children("/mine")), (vec![], None));
    assert_eq!(raw.again(&server).unwrap_err().kind(), NotFound);
}

#[test]
fn refusal_is_for_new_connections_alone() {
    let server = manual();
    let mut there = Raw::open(&server);
    server.refuse(true);
    assert!(Raw::silent(server.address()).is_closed(SOON));
    there.is_served();
    server.refuse(false);
    Raw::open(&server).is_served();
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_says_what_the_servers_lack_that_keep_sessions_to_themselves() {
    let server = Server::builder().local_sessions(true).start().unwrap();
    let client = client(&server).await;
    for lock in
        [client.mutex(PATH).unwrap(), client.semaphore("/sem", 3).unwrap(), client.exclusive("/x").unwrap()]
    {
        let error = soon(lock.acquire()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert!(error.to_string().contains("localSessionsUpgradingEnabled"), "{error}");
    }
}
