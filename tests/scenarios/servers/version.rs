//! How a client learns which requests its servers know: it asks when it opens a session, or its options state the version.

use super::refusals::is_refused;
use super::{old, old_client, old_operator};
use crate::support::{SOON, client_of, operator, options, proxied, says, settled, soon};
use ground::{Action, Hook, Kind, Proxy, Server, Trigger, shared, until};
use zklock::{Client, Error, ErrorKind, LockSpec};

/// Reports how often servers are asked for their version through this proxy: up to three times.
struct Questions(Vec<Hook>);

impl Questions {
    fn through(proxy: &Proxy, then: fn() -> Action) -> Self {
        let asked = |nth| Trigger::request(Kind::Word).path("srvr").nth(nth).then(then());
        Self((1..=3).map(|nth| proxy.on(asked(nth))).collect())
    }

    fn asked(&self) -> usize {
        self.0.iter().filter(|hook| hook.fired()).count()
    }
}

/// How often this server's version was asked for in one session over three connections.
async fn asked_by(server: &Server, stated: Option<(u32, u32)>) -> usize {
    let proxy = Proxy::before(server);
    let questions = Questions::through(&proxy, || Action::Pass);
    let mut options = options(&proxy.connect_string());
    if let Some((major, minor)) = stated {
        options = options.server_version(major, minor);
    }
    let client = soon(Client::connect(options)).await.unwrap();
    let lock = client.mutex("/version/asked").unwrap();
    for _ in 0..3 {
        soon(lock.acquire()).await.unwrap().release().await.unwrap();
        let accepted = proxy.accepted();
        proxy.reset();
        assert!(until(SOON, || proxy.accepted() > accepted));
    }
    soon(lock.acquire()).await.unwrap().release().await.unwrap();
    settled(&client).await;
    assert_eq!(client.stats().sessions, 1);
    questions.asked()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_is_asked_once_in_a_session_and_never_if_it_is_stated() {
    assert_eq!(asked_by(old().server(0), None).await, 1);
    assert_eq!(asked_by(old().server(0), Some((3, 4))).await, 0);
    assert_eq!(asked_by(shared().server(0), None).await, 1);
    assert_eq!(asked_by(shared().server(0), Some((3, 8))).await, 0);
}

/// A client of a server of 3.4 that does not say its version.
async fn before_silence() -> (Proxy, Questions, Client) {
    let proxy = Proxy::before(old().server(0));
    let questions = Questions::through(&proxy, || Action::Swallow);
    let client = soon(client_of(&proxy.connect_string())).await;
    (proxy, questions, client)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_server_that_does_not_say_its_version_is_found_out() {
    let (_proxy, questions, client) = before_silence().await;
    let hold = soon(client.mutex("/old/silent").unwrap().acquire()).await.unwrap();
    assert_eq!(hold.token().value(), old_operator().stat(hold.node()).unwrap().czxid as u64);
    assert_eq!((questions.asked(), client.stats().sessions), (1, 1));
    let other = old_client().await;
    assert!(soon(other.mutex("/old/silent").unwrap().try_acquire()).await.unwrap().is_none());
    soon(hold.release()).await.unwrap();
    settled(&client).await;
    old_operator().wait_for_children("/old/silent", 0, SOON);
}

/// Returns the error if the first request is one that such a server does not know. The session goes on, and nothing is left.
async fn first_refusal(call: impl AsyncFnOnce(&Client) -> Error, left: &[&str]) -> Error {
    let (_proxy, questions, client) = before_silence().await;
    let error = soon(call(&client)).await;
    settled(&client).await;
    for directory in left {
        old_operator().wait_for_children(directory, 0, SOON);
    }
    soon(client.mutex("/old/first").unwrap().acquire()).await.unwrap().release().await.unwrap();
    assert_eq!((questions.asked(), client.stats().sessions), (1, 1));
    error
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_old_and_silent_server_cannot_do_is_refused_by_name_if_it_comes_first() {
    let set = async |client: &Client| {
        let locks = ["/old/first-set/a", "/old/first-set/b"].map(|path| client.mutex(path).unwrap());
        client.all(&locks).unwrap().acquire().await.unwrap_err()
    };
    // First without the directories, then with them.
    for _ in 0..2 {
        let error = first_refusal(set, &["/old/first-set/a", "/old/first-set/b"]).await;
        is_refused(&error, "a set of locks", "one by one");
        old_operator().create_all("/old/first-set/a", "");
        old_operator().create_all("/old/first-set/b", "");
    }
    let permits = async |client: &Client| {
        let two = client.lock(&LockSpec::semaphore("/old/first-permits", 2).unwrap().permits(2)).unwrap();
        two.acquire().await.unwrap_err()
    };
    let error = first_refusal(permits, &["/old/first-permits/locks", "/old/first-permits/leases"]).await;
    is_refused(&error, "several permits at once", "one by one");
    let double = async |client: &Client| {
        client.double_barrier("/old/first-double", 2).unwrap().enter().await.unwrap_err()
    };
    is_refused(&first_refusal(double, &["/old/first-double"]).await, "a double barrier", "two barriers");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_old_and_silent_server_creates_what_takes_no_transaction() {
    let (_proxy, _, client) = before_silence().await;
    soon(client.set_limit("/old/first-limit", 3)).await.unwrap();
    assert_eq!(old_operator().data("/old/first-limit"), [0, 0, 0, 3]);
    let (_proxy, _, client) = before_silence().await;
    assert!(soon(client.barrier("/old/first-barrier/a").unwrap().set()).await.unwrap());
    assert!(old_operator().stat("/old/first-barrier/a").is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_that_is_stated_and_too_new_is_named_in_the_error() {
    let options = options(&old().connect_string()).server_version(3, 5);
    let client = soon(Client::connect(options)).await.unwrap();
    let error = soon(client.mutex("/old/wrong").unwrap().acquire()).await.unwrap_err();
    says(&error, ErrorKind::Refused, &["/old/wrong", "older than 3.5", "state 3.4"]);
    let locks = ["/old/wrong/a", "/old/wrong/b"].map(|path| client.mutex(path).unwrap());
    let error = soon(client.all(&locks).unwrap().acquire()).await.unwrap_err();
    says(&error, ErrorKind::Refused, &["/old/wrong/a", "older than 3.5", "state 3.4"]);
    let error = soon(client.set_limit("/old/wrong-limit", 3)).await.unwrap_err();
    says(&error, ErrorKind::Refused, &["/old/wrong-limit", "older than 3.5", "state 3.4"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_version_that_is_stated_and_too_old_costs_what_it_does_not_have() {
    let (client, proxy) = proxied(|options| options.server_version(3, 4)).await;
    proxy.record();
    let hold = soon(client.mutex("/version/old").unwrap().acquire()).await.unwrap();
    assert!(operator().stat("/version/old").is_some());
    assert_eq!(proxy.counts().requests(Kind::CreateContainer), 0, "no container");
    let locks = ["/version/a", "/version/b"].map(|path| client.mutex(path).unwrap());
    let error = soon(client.all(&locks).unwrap().acquire()).await.unwrap_err();
    says(&error, ErrorKind::Refused, &["a set of locks", "3.4"]);
    soon(hold.release()).await.unwrap();
    assert_eq!(client.stats().sessions, 1);
}
