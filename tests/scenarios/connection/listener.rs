//! A program that follows the state of its client's connection.

use crate::support::{SOON, client, expire_session, options, proxied_client, soon};
use ConnectionState::{Closed, Connected, Disconnected, SessionLost};
use ground::{Direction, Proxy, shared, until};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;
use zklock::further::{Connection, ConnectionState};
use zklock::{Client, LossReason};

async fn next(connection: &mut Connection) -> Option<ConnectionState> {
    soon(connection.next()).await
}

/// A function to be told each state, and where that is heard.
fn teller() -> (impl Fn(ConnectionState) + Send + Sync + 'static, Receiver<ConnectionState>) {
    let (sender, states) = channel();
    (move |state| sender.send(state).unwrap_or_default(), states)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_is_reported_and_its_end() {
    let (client, proxy) = proxied_client().await;
    let mut connection = client.connection().unwrap();
    assert_eq!(next(&mut connection).await, Some(Connected));
    for _ in 0..3 {
        proxy.refuse(true);
        proxy.reset();
        assert_eq!(next(&mut connection).await, Some(Disconnected));
        assert_eq!(client.connection_state(), Some(Disconnected));
        proxy.refuse(false);
        assert_eq!(next(&mut connection).await, Some(Connected));
        assert_eq!(client.connection_state(), Some(Connected));
    }
    // An outage that is too short to be seen while it lasts is still reported.
    proxy.reset();
    assert_eq!(next(&mut connection).await, Some(Disconnected));
    assert_eq!(next(&mut connection).await, Some(Connected));
    assert_eq!(client.stats().sessions, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_session_is_reported_before_the_next_one() {
    let (client, proxy) = proxied_client().await;
    let (mut connection, mut late) = (client.connection().unwrap(), client.connection().unwrap());
    assert_eq!(next(&mut connection).await, Some(Connected));
    assert_eq!(next(&mut late).await, Some(Connected));
    let hold = soon(client.mutex("/connection/lost").unwrap().acquire()).await.unwrap();
    expire_session(&proxy);
    let mut seen = Vec::new();
    while seen.last() != Some(&SessionLost) {
        seen.extend(next(&mut connection).await);
    }
    // The server may hang up before it says that the session is over.
    assert!(matches!(seen[..], [SessionLost] | [Disconnected, SessionLost]), "{seen:?}");
    assert_eq!(soon(hold.lost()).await, Ok(Some(LossReason::SessionExpired)));
    assert_eq!(next(&mut connection).await, Some(Connected));
    assert_eq!(client.stats().sessions, 2);
    // A listener that looks only now still learns that the session was lost.
    assert_eq!(next(&mut late).await, Some(SessionLost));
    assert_eq!(next(&mut late).await, Some(Connected));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_report_is_that_the_client_is_closed() {
    let of_closed = client().await;
    let mut connection = of_closed.connection().unwrap();
    assert_eq!(next(&mut connection).await, Some(Connected));
    soon(of_closed.close()).await.unwrap();
    assert_eq!(next(&mut connection).await, Some(Closed));
    assert_eq!(next(&mut connection).await, None);
    assert_eq!(of_closed.connection_state(), Some(Closed));

    // No handle is left: following a client's connection does not keep the client open.
    let of_dropped: Client = client().await;
    let mut connection = of_dropped.connection().unwrap();
    assert_eq!(next(&mut connection).await, Some(Connected));
    drop(of_dropped);
    assert_eq!(next(&mut connection).await, Some(Closed));
}

#[test]
fn a_thread_is_told_by_a_function() {
    let proxy = Proxy::before(shared().server(0));
    let client = Client::connect(options(&proxy.connect_string())).wait().unwrap();
    let ((tell, states), (tell_too, others)) = (teller(), teller());
    let watch = client.on_connection(tell).unwrap();
    let dropped = client.on_connection(tell_too).unwrap();
    assert_eq!(states.recv_timeout(SOON), Ok(Connected));
    assert_eq!(others.recv_timeout(SOON), Ok(Connected));
    drop(dropped);
    // Its sender is gone with it.
    assert!(others.recv_timeout(SOON).is_err());
    proxy.reset();
    assert_eq!(states.recv_timeout(SOON), Ok(Disconnected));
    assert_eq!(states.recv_timeout(SOON), Ok(Connected));
    client.close().wait().unwrap();
    assert_eq!(states.recv_timeout(SOON), Ok(Closed));
    assert_eq!(client.connection_state(), Some(Closed));
    drop(watch);
}

#[test]
fn a_client_that_connects_when_it_is_needed_tells_of_that() {
    let proxy = Proxy::before(shared().server(0));
    proxy.refuse(true);
    let ((tell, states), patience) = (teller(), Duration::from_millis(300));
    let options = options(&proxy.connect_string()).connect_timeout(patience);
    let client = Client::lazy(options).with_listener(tell);
    assert_eq!(client.connection_state(), None);
    client.connect_within(None).wait().unwrap_err();
    assert_eq!(client.connection_state(), None);
    assert!(states.try_recv().is_err());
    proxy.refuse(false);
    client.connect_within(SOON).wait().unwrap();
    assert_eq!(states.recv_timeout(SOON), Ok(Connected));
    assert_eq!(client.connection_state(), Some(Connected));
    expire_session(&proxy);
    while states.recv_timeout(SOON).unwrap() != SessionLost {}
    assert_eq!(states.recv_timeout(SOON), Ok(Connected));
    client.close().wait().unwrap();
    assert_eq!(states.recv_timeout(SOON), Ok(Closed));
    assert_eq!(client.connection_state(), Some(Closed));
}

#[test]
fn a_client_that_is_closed_while_it_connects_tells_that_and_nothing_after_it() {
    let proxy = Proxy::before(shared().server(0));
    proxy.freeze(Direction::Both);
    let (tell, states) = teller();
    let client = Client::lazy(options(&proxy.connect_string()).connect_timeout(SOON));
    let client = client.with_listener(tell);
    let call = client.connect_within(None).detach(|| ()).unwrap();
    assert!(until(SOON, || proxy.connections() > 0));
    client.close().wait().unwrap();
    assert_eq!(states.recv_timeout(SOON), Ok(Closed));
    proxy.thaw();
    drop((call, client));
    // The connecting task owns the listener, and with it the sender, until it ends.
    assert_eq!(states.recv_timeout(SOON), Err(RecvTimeoutError::Disconnected));
    assert!(until(SOON, || proxy.connections() == 0));
}

#[test]
fn a_function_may_be_given_before_the_client_connects() {
    let client = || {
        let client = Client::lazy(options(&shared().connect_string()));
        let (tell, states) = teller();
        let watch = client.on_connection(tell).unwrap();
        assert!(!client.has_connected());
        (client, states, watch)
    };
    let (connected, states, _watch) = client();
    assert!(states.try_recv().is_err());
    connected.connect_within(SOON).wait().unwrap();
    assert_eq!(states.recv_timeout(SOON), Ok(Connected));
    connected.close().wait().unwrap();
    assert_eq!(states.recv_timeout(SOON), Ok(Closed));

    let (closed, states, _watch) = client();
    closed.close().wait().unwrap();
    assert_eq!(states.recv_timeout(SOON), Ok(Closed));
    assert_eq!(states.recv_timeout(SOON), Err(RecvTimeoutError::Disconnected));

    let (dropped, states, _watch) = client();
    drop(dropped);
    assert_eq!(states.recv_timeout(SOON), Err(RecvTimeoutError::Disconnected));

    let (unwatched, states, watch) = client();
    drop(watch);
    assert_eq!(states.recv_timeout(SOON), Err(RecvTimeoutError::Disconnected));
    drop(unwatched);
}
