//! The tests stand on the ground: here are faults whose absence no scenario would notice, against real servers.

use std::io::ErrorKind;
use std::time::Duration;

use crate::support::SOON;
use ground::wire::{Admin, Connection, Failure, Mode};
use ground::{Ensemble, Proxy, shared, until};

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
fn a_half_open_connection_swallows_and_says_nothing() {
    let (path, server) = ("/ground-half", shared().server(0));
    let (proxy, admin) = (Proxy::before(server), Admin::connect(server.address()));
    admin.create(path, "");
    let mut client =
        Connection::open(proxy.address(), Duration::from_millis(500)).expect("the proxy is open");
    client.create(format!("{path}/own").as_bytes(), b"", Mode::Ephemeral).expect("created");
    client.set_patience(Duration::from_millis(200));
    proxy.half_open();
    assert!(matches!(client.ping(), Err(Failure::Link(error)) if error.kind() == ErrorKind::TimedOut));
    assert_eq!(proxy.connections(), 1);
    admin.wait_for_children(path, 0, SOON);
    drop(client);
    assert!(until(SOON, || proxy.connections() == 0));
}
