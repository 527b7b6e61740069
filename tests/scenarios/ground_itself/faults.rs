//! The tests stand on the ground, so every fault that it promises is proved here, against real servers.

use std::io::ErrorKind;
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{SESSION, SOON};
use ground::wire::{Admin, Connection, Failure, Mode};
use ground::{Direction, Ensemble, Proxy, not_later, shared, until};

/// A separate path on the shared server, a proxy in front of the server, and an operator that does not use the proxy.
fn place(name: &str) -> (String, Proxy, Admin) {
    let server = shared().server(0);
    let admin = Admin::connect(server.address());
    let path = format!("/ground-{name}");
    admin.create(&path, "");
    (path, Proxy::before(server), admin)
}

fn session_through(proxy: &Proxy) -> Connection {
    let mut connection = Connection::open(proxy.address(), SESSION).expect("the proxy is open");
    connection.set_patience(SOON);
    connection
}

/// The way in which a connection ended for its client.
fn end_of(result: Result<(), Failure>) -> ErrorKind {
    match result {
        Err(Failure::Link(error)) => error.kind(),
        other => panic!("the connection should have failed, not {other:?}"),
    }
}

#[test]
fn a_server_sleeps_and_dies_and_leaves_nothing() {
    let ensemble = Ensemble::builder().tick(Duration::from_millis(200)).start();
    let server = ensemble.server(0);
    server.pause();
    assert_eq!(server.word("ruok").expect_err("a paused server is silent").kind(), ErrorKind::TimedOut);
    server.resume();
    server.wait_until_serving(SOON);
    let home = server.home().to_owned();
    server.kill();
    assert!(!server.is_serving() && server.pid().is_none());
    assert_eq!(server.word("ruok").expect_err("nobody is there").kind(), ErrorKind::ConnectionRefused);
    drop(ensemble);
    assert!(!home.exists(), "{} should be gone", home.display());
}

#[test]
fn each_direction_freezes_and_thaws() {
    let (path, proxy, admin) = place("freeze");
    let mut client = session_through(&proxy);
    client.set_patience(Duration::from_millis(200));
    proxy.freeze(Direction::ToServer);
    let lost = client.create(format!("{path}/held").as_bytes(), b"", Mode::Persistent);
    assert_eq!(end_of(lost.map(drop)), ErrorKind::TimedOut);
    assert!(admin.children(&path).is_empty(), "the request is held");
    proxy.thaw();
    admin.wait_for_children(&path, 1, SOON);

    proxy.freeze(Direction::ToClient);
    let lost = client.create(format!("{path}/done").as_bytes(), b"", Mode::Persistent);
    assert_eq!(end_of(lost.map(drop)), ErrorKind::TimedOut);
    admin.wait_for_children(&path, 2, SOON);
    proxy.thaw();
    client.set_patience(SOON);
    assert!(client.exists(&path, false).is_ok(), "the connection has survived");
}

#[test]
fn a_frozen_proxy_holds_newcomers_and_forgets_those_that_leave() {
    let (path, proxy, _) = place("held");
    proxy.freeze(Direction::Both);
    let received = || shared().server(0).mntr()["zk_num_alive_connections"].clone();
    let gone = TcpStream::connect(proxy.address()).expect("it accepts");
    assert!(until(SOON, || proxy.connections() == 1));
    drop(gone);
    assert!(until(SOON, || proxy.connections() == 0), "given up before it reached the server");
    thread::scope(|scope| {
        let client = scope.spawn(|| session_through(&proxy).exists(&path, false).is_ok());
        assert!(until(SOON, || proxy.connections() == 1));
        thread::sleep(Duration::from_millis(100));
        assert!(!client.is_finished(), "held; the server has {} connections", received());
        proxy.thaw();
        assert!(client.join().expect("no panic"));
    });
}

#[test]
fn a_delay_is_added_each_way_and_to_every_message_alike() {
    let (path, proxy, _) = place("delay");
    let mut client = session_through(&proxy);
    proxy.delay(Duration::from_millis(60));
    let start = Instant::now();
    client.exists(&path, false).expect("an answer");
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(120) && took < SOON, "{took:?}");
    proxy.delay(Duration::ZERO);
    let start = Instant::now();
    client.exists(&path, false).expect("an answer");
    not_later(start.elapsed(), Duration::from_millis(100));
}

#[test]
fn a_half_open_connection_swallows_and_says_nothing() {
    let (path, proxy, admin) = place("half");
    let mut client =
        Connection::open(proxy.address(), Duration::from_millis(500)).expect("the proxy is open");
    client.create(format!("{path}/own").as_bytes(), b"", Mode::Ephemeral).expect("created");
    client.set_patience(Duration::from_millis(200));
    proxy.half_open();
    assert_eq!(end_of(client.ping()), ErrorKind::TimedOut);
    assert_eq!(proxy.connections(), 1);
    admin.wait_for_children(&path, 0, SOON);
    drop(client);
    assert!(until(SOON, || proxy.connections() == 0));
}

#[test]
fn an_ensemble_has_its_links_cut_one_by_one() {
    let ensemble =
        Ensemble::builder().servers(3).tick(Duration::from_millis(200)).quorum_proxies(true).start();
    let _talk = ensemble.keep_talking();
    let leader = ensemble.leader();
    let [near, far] = ensemble.followers()[..] else { panic!("two follow") };
    let link = ensemble.quorum_link(far, leader);
    assert_eq!(link.connections(), 1, "the follower leads its data through the proxy");
    assert_eq!(ensemble.quorum_link(leader, far).connections(), 0);

    // A write commits without the frozen follower, which does not see it.
    let operators = [leader, near, far].map(|server| Admin::connect(server.address()));
    link.freeze(Direction::Both);
    operators[0].create("/x", "");
    operators[1].sync("/x");
    assert!(operators[1].stat("/x").is_some());
    assert!(operators[2].stat("/x").is_none());
    link.thaw();
    operators[2].wait_for_node("/x", true, SOON);

    // A follower that is cut off comes back.
    link.cut();
    assert!(until(SOON, || link.accepted() >= 2));
    ensemble.wait_until_whole(Duration::from_secs(20));
    operators[2].sync("/x");
}
