//! Replies of a real server, changed on their way: each ends its connection, and has no other effect.

use crate::support::fake::panics;
use crate::support::strangers::put;
use crate::support::{SOON, acquire, granted, nodes, operator, options, proxied_client, settled, soon};
use ground::wire::Admin;
use ground::{Action, Ensemble, Kind, Proxy, Trigger};
use std::time::Duration;
use zklock::{Client, ErrorKind, HoldState, LossReason};

/// A change of a reply, after its header of 16 bytes.
type Change = fn(&mut Vec<u8>);

const CHANGES: [(&str, Change); 7] = [
    ("its end is missing", |body| body.truncate(body.len() - 1)),
    ("all but its header is missing", |body| body.truncate(16)),
    ("half of its header is missing", |body| body.truncate(7)),
    ("a length or a count that lies", |body| body.splice(16..20, i32::MAX.to_be_bytes()).for_each(drop)),
    ("a length or a count below nothing", |body| body.splice(16..20, i32::MIN.to_be_bytes()).for_each(drop)),
    ("the number of a later request", |body| body[3] = body[3].wrapping_add(1)),
    ("the reply to something else", |body| body.splice(16.., [0; 9]).for_each(drop)),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_that_was_changed_costs_its_connection_and_grants_nothing() {
    let ((client, proxy), operator, path) = (proxied_client().await, operator(), "/hostile/changed");
    let lock = client.mutex(path).unwrap();
    soon(soon(lock.acquire()).await.unwrap().release()).await.unwrap();
    let (mut token, panicked) = (0, panics());
    for kind in [Kind::Create, Kind::GetChildren, Kind::GetData] {
        for (name, change) in CHANGES {
            let accepted = proxy.accepted();
            // The client waits for the first one, and so reads its node.
            let first = put(&operator, path, "_c_8ad38a9e-3c92-4c6d-9a4f-0a3f4b1f7f10-lock-");
            let change = Action::Rewrite(Box::new(change));
            let hook = proxy.on(Trigger::reply(kind).path(path).then(change));
            let task = acquire(&lock);
            assert!(tokio::task::block_in_place(|| hook.wait(SOON)), "{kind:?}: {name}");
            operator.wait_for_children(path, 2, SOON);
            assert!(!ground::until(Duration::from_millis(20), || task.is_finished()), "{kind:?}: {name}");
            operator.delete(&first);
            let hold = granted(task).await;
            assert_eq!(nodes(&operator, path), [hold.node()], "{kind:?}: {name}");
            assert!(hold.token().value() > token && hold.state() == HoldState::Held);
            token = hold.token().value();
            soon(hold.release()).await.unwrap();
            settled(&client).await;
            operator.wait_for_children(path, 0, SOON);
            assert!(proxy.accepted() > accepted, "{kind:?}: {name}: the connection goes on");
            assert_eq!(panics(), panicked, "{kind:?}: {name}");
        }
    }
    assert_eq!(client.stats().sessions, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_that_lie_again_and_again_are_asked_for_a_bounded_number_of_times() {
    const MANY: usize = 500;
    let ((client, proxy), operator, path) = (proxied_client().await, operator(), "/hostile/again");
    operator.create_all(path, "");
    let lie: Change = |body| body.splice(16..20, i32::MAX.to_be_bytes()).for_each(drop);
    let lies: Vec<_> = (1..=MANY)
        .map(|nth| {
            let trigger = Trigger::reply(Kind::GetChildren).path(path).nth(nth);
            proxy.on(trigger.then(Action::Rewrite(Box::new(lie))))
        })
        .collect();
    let error = soon(client.mutex(path).unwrap().acquire_timeout(Duration::from_secs(1))).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Timeout | ErrorKind::Unreachable), "{error}");
    let told = lies.iter().filter(|lie| lie.fired()).count();
    assert!((1..=40).contains(&told), "{told} in a second");
    lies.iter().for_each(ground::Hook::cancel);
    settled(&client).await;
    operator.wait_for_children(path, 0, SOON);
    soon(soon(client.mutex(path).unwrap().acquire()).await.unwrap().release()).await.unwrap();
}

/// The requests watch the same node, because there the library could read a reply that is not its own. The timeout of the
/// request would reveal the gap as well, but that is half of a session, which is long here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_that_is_left_out_is_noticed_by_the_next() {
    const LONG: Duration = Duration::from_secs(40);
    let ensemble = Ensemble::builder().tick(LONG / 20).start();
    let (proxy, path) = (Proxy::before(ensemble.server(0)), "/hostile/left-out");
    let operator = Admin::connect(ensemble.server(0).address());
    let options = options(&proxy.connect_string()).session_timeout(LONG);
    let client = soon(Client::connect(options)).await.unwrap();
    assert_eq!(client.session_timeout(), Some(LONG));
    let writer = put(&operator, path, "_c_8ad38a9e-3c92-4c6d-9a4f-0a3f4b1f7f10-__WRIT__");
    let left_out = proxy.on(Trigger::reply(Kind::GetData).path(path).then(Action::Swallow));
    let accepted = proxy.accepted();
    let lock = client.read_lock(path).unwrap();
    let readers: Vec<_> = (0..8).map(|_| acquire(&lock)).collect();
    assert!(tokio::task::block_in_place(|| left_out.wait(SOON)));
    operator.wait_for_children(path, 9, SOON);
    assert!(ground::until(LONG / 4, || proxy.accepted() > accepted), "the connection is given up");
    operator.delete(&writer);
    for reader in readers {
        soon(granted(reader).await.release()).await.unwrap();
    }
    settled(&client).await;
    operator.wait_for_children(path, 0, SOON);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_outlives_an_absurd_timeout_that_a_connection_was_granted_but_no_short_one() {
    let ((client, proxy), path) = (proxied_client().await, "/hostile/granted");
    let hold = soon(client.mutex(path).unwrap().acquire()).await.unwrap();
    let absurd = |millis: i32| {
        let change = move |body: &mut Vec<u8>| body.splice(4..8, millis.to_be_bytes()).for_each(drop);
        Trigger::reply(Kind::Connect).then(Action::Rewrite(Box::new(change)))
    };
    let hooks = [proxy.on(absurd(i32::MAX)), proxy.on(absurd(-1).nth(2))];
    proxy.cut();
    for hook in hooks {
        assert!(tokio::task::block_in_place(|| hook.wait(SOON)));
    }
    assert!(soon(hold.confirm()).await.is_ok_and(|left| !left.is_zero()));
    soon(hold.release()).await.unwrap();
    assert_eq!(client.stats().sessions, 1);

    // After so short a timeout the servers may give the lock to others. The library may end such a connection before we see it.
    let hold = soon(client.mutex(path).unwrap().acquire()).await.unwrap();
    let hooks: Vec<_> = (1..100).map(|nth| proxy.on(absurd(99).nth(nth))).collect();
    proxy.cut();
    assert_eq!(soon(hold.lost()).await, Ok(Some(LossReason::SessionExpired)));
    hooks.iter().for_each(ground::Hook::cancel);
    soon(soon(client.mutex("/hostile/granted-next").unwrap().acquire()).await.unwrap().release())
        .await
        .unwrap();
    assert_eq!(client.stats().sessions, 2);
}
