//! Threads that block, and calls that go on by themselves.

use crate::support::{SOON, on_the_shared_server};
use ground::until;
use ground::wire::Admin;
use std::sync::mpsc::{Receiver, channel};
use zklock::further::Started;
use zklock::{Call, Client, Error};

/// A client of the shared server, as [`crate::support::client`].
pub(crate) fn client() -> Client {
    Client::connect(on_the_shared_server()).wait().unwrap()
}

/// A function for a call to say that it is ready, and where that is heard.
pub(crate) fn bell() -> (impl FnOnce() + Send + 'static, Receiver<()>) {
    let (sender, ready) = channel();
    // Nobody may be listening any more.
    (move || sender.send(()).unwrap_or_default(), ready)
}

#[track_caller]
pub(crate) fn result<T>(call: &Started<T>, ready: &Receiver<()>) -> Result<T, Error> {
    ready.recv_timeout(SOON).expect("it is ready");
    call.fetch().expect("there is a result")
}

/// The result of a call that goes on by itself.
#[track_caller]
pub(crate) fn done<T: Send + 'static>(call: Call<T>) -> Result<T, Error> {
    let (ring, ready) = bell();
    result(&call.detach(ring).unwrap(), &ready)
}

/// Asserts that this many nodes are left in a queue when the client owes nothing any more.
#[track_caller]
pub(crate) fn assert_left(client: &Client, operator: &Admin, path: &str, left: usize) {
    operator.wait_for_children(path, left, SOON);
    assert!(until(SOON, || client.stats().owed == 0));
    assert_eq!(operator.children(path).len(), left, "a node came later");
}
