//! How a server begins and ends, with clients on it.

use ground::not_later;
use std::error::Error as _;
use std::time::{Duration, Instant};

use crate::support::embedded::{Raw, SOON, manual};
use zklock_testkit::{Fault, Kind, Server};

#[test]
fn a_server_ends_at_once_whatever_its_connections_wait_for() {
    let server = manual();
    let mut delayed = Raw::open(&server);
    let injected = server.inject(Fault::delay_reply(Kind::Ping, Duration::from_secs(3600)));
    delayed.send(-2, crate::support::embedded::operation::PING, &[]);
    assert!(injected.wait(SOON));
    let (mut idle, mut silent) = (Raw::open(&server), Raw::silent(server.address()));
    let mut frozen = Raw::open(&server);
    server.freeze();
    frozen.send(-2, crate::support::embedded::operation::PING, &[]);
    let begun = Instant::now();
    drop(server);
    not_later(begun.elapsed(), SOON / 4);
    for raw in [&mut delayed, &mut idle, &mut silent, &mut frozen] {
        assert!(raw.is_closed(SOON));
    }
}

#[test]
fn a_port_is_free_again_when_its_server_has_ended() {
    let first = manual();
    let address = first.connect_string();
    let _client = Raw::open(&first);
    drop(first);
    let second = Server::builder().address(&address).start().unwrap();
    assert_eq!(second.connect_string(), address);
    Raw::open(&second).is_served();
}

#[test]
fn an_address_that_cannot_be_had_is_named_with_the_reason() {
    let there = manual();
    let taken = there.connect_string();
    for (address, reason) in [
        (taken.as_str(), "in use"),
        ("nonsense", "invalid"),
        ("127.0.0.1", "invalid"),
        ("127.0.0.1:99999", "invalid"),
        ("192.0.2.1:0", "assign"),
    ] {
        let error = Server::builder().address(address).start().unwrap_err();
        let text = error.to_string();
        assert!(text.contains(address) && text.contains("Port 0"), "{text}");
        assert!(text.contains(reason), "{text}");
        assert!(error.source().is_some());
    }
}
