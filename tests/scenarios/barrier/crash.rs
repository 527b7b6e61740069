//! Members that die, and connections that do.

use crate::support::members::{enters, is_empty, leaves, looks_at, there, waits_to_leave};
use crate::support::{SOON, client, embedded, expire_session, operator, proxied_client, says, settled, soon};
use ground::{Action, Gate, Kind, Proxy, Trigger};
use std::time::Duration;
use zklock::{Client, ClientOptions, ErrorKind, LossReason};
use zklock_testkit::Server;

/// So long a session timeout that a member which only looks again after that fails the test.
const LONG: Duration = Duration::from_secs(120);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_whose_session_ends_is_told_and_the_others_do_not_wait_for_it() {
    let (operator, path) = (operator(), "/crash/within");
    let (one, proxy) = proxied_client().await;
    let a = enters(&one, path, 2);
    let other = client().await;
    let b = soon(enters(&other, path, 2)).await.unwrap().unwrap();
    let a = soon(a).await.unwrap().unwrap();
    let left = leaves(b);
    expire_session(&proxy);
    soon(left).await.unwrap().unwrap();
    assert_eq!(soon(a.lost()).await, Ok(LossReason::SessionExpired));
    assert_eq!(a.loss(), Some(LossReason::SessionExpired));
    let error = soon(a.leave()).await.unwrap_err();
    says(&error, ErrorKind::Lost(LossReason::SessionExpired), &[path, "its session expired"]);
    settled(&one).await;
    // If it was the member that deletes `ready`, the next round has to delete it.
    there(&operator, path, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_creation_had_no_answer_is_found_or_if_it_is_deleted_created_by_another_name() {
    for is_deleted in [false, true] {
        let (operator, path) = (operator(), format!("/crash/unknown-{is_deleted}"));
        operator.create(&path, "");
        let (one, proxy) = proxied_client().await;
        let created = Trigger::reply(Kind::Create).path(&path).then(Action::Pause(Gate::new()));
        let created = proxy.on(created);
        let a = enters(&one, &path, 1);
        assert!(created.wait(SOON), "it creates no node");
        let first = there(&operator, &path, 1);
        if is_deleted {
            operator.delete(&format!("{path}/{}", first[0]));
        }
        proxy.reset();
        let a = soon(a).await.unwrap().unwrap();
        // Others may have entered with the first one, and wait for its end.
        assert_ne!(a.node().ends_with(&first[0]), is_deleted, "{first:?}, and then {}", a.node());
        soon(a.leave()).await.unwrap();
        is_empty(&operator, &path);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_creates_the_directory_keeps_its_first_node() {
    let (one, proxy) = proxied_client().await;
    proxy.record();
    let _member = soon(enters(&one, "/crash/fresh", 1)).await.unwrap().unwrap();
    // Members of Curator's go on when they have counted enough nodes, and wait for none that comes later.
    assert_eq!([Kind::Create, Kind::Delete].map(|kind| proxy.counts().requests(kind)), [2, 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_notification_delays_by_a_session_timeout_at_most() {
    let (operator, path) = (operator(), "/crash/lost-event");
    let (one, proxy) = proxied_client().await;
    let swallowed = proxy.on(Trigger::reply(Kind::Event).path(path).then(Action::Swallow));
    let a = enters(&one, path, 2);
    there(&operator, path, 1);
    let other = client().await;
    let b = soon(enters(&other, path, 2)).await.unwrap().unwrap();
    let a = soon(a).await.unwrap().unwrap();
    assert!(swallowed.fired());
    let swallowed = proxy.on(Trigger::reply(Kind::Event).path(path).then(Action::Swallow));
    let also = proxy.on(Trigger::reply(Kind::Event).nth(2).path(path).then(Action::Swallow));
    let watches = waits_to_leave(&proxy, &a, &b);
    let left = leaves(a);
    assert!(watches.wait(SOON));
    let other = leaves(b);
    soon(left).await.unwrap().unwrap();
    soon(other).await.unwrap().unwrap();
    assert!(swallowed.fired() || also.fired());
    is_empty(&operator, path);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_changes_while_a_member_looks_around_is_not_missed() {
    let server = Server::builder().session_timeouts(LONG, LONG).start().unwrap();
    let (proxy, path) = (Proxy::start(server.address()), "/crash/meanwhile");
    let options = ClientOptions::new(&proxy.connect_string()).session_timeout(LONG);
    let one = soon(Client::connect(options)).await.unwrap();
    let other = embedded::client_with(&server, LONG).await;
    // A round that crashed has left it behind, so a member reads who is older before it waits.
    let ready = format!("{path}/ready");
    server.put(&ready, "").unwrap();
    let gate = Gate::new();
    let reads = Trigger::reply(Kind::GetData).path(&ready).then(Action::Pause(gate.clone()));
    let reads = proxy.on(reads);
    let a = enters(&one, path, 2);
    assert!(reads.wait(SOON), "it does not look whose `ready` that is");
    let b = soon(enters(&other, path, 2)).await.unwrap().unwrap();
    gate.open();
    let a = soon(a).await.unwrap().unwrap();

    let gate = Gate::new();
    let watches = looks_at(Trigger::request(Kind::GetData), &a, &b).then(Action::Pause(gate.clone()));
    let (watches, node) = (proxy.on(watches), b.node().to_owned());
    let left = leaves(a);
    assert!(watches.wait(SOON), "it does not wait for the other");
    assert!(server.delete(&node));
    gate.open();
    soon(left).await.unwrap().unwrap();
}
