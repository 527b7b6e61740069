//! The promises of a mutex on a server of ZooKeeper 3.4, and what other kinds can do there.

use super::{old, old_client, old_operator, old_proxied};
use crate::support::register::{Register, assert_growing, clients};
use crate::support::timing::Noise;
use crate::support::{GRACE, HEARTBEAT, SESSION, SOON, settled, soon};
use ground::wire::try_expire;
use ground::{Action, Direction, Gate, Kind, Proxy, Trigger, not_later, until};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use zklock_core::{Client, ErrorKind, HoldState, LossReason};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_holds_after_the_other_and_the_tokens_grow() {
    let (register, path) = (Register::of(1), "/old/exclusive/a");
    let clients = clients(&old().connect_string(), 6).await;
    let mut contenders = JoinSet::new();
    for client in &clients {
        let (lock, register) = (client.mutex(path).unwrap(), register.clone());
        contenders.spawn(async move {
            for _ in 0..5 {
                register.turn(&lock, 1, Duration::from_millis(1)).await;
            }
        });
    }
    soon(contenders.join_all()).await;
    assert_eq!(register.tokens().len(), 6 * 5);
    assert_growing(&register.tokens());
    for client in &clients {
        settled(client).await;
    }
    let operator = old_operator();
    operator.wait_for_children(path, 0, SOON);
    assert_eq!(operator.stat(path).unwrap().ephemeral_owner, 0, "there are no containers");
    // The token is read: such a server does not send it with the creation.
    let hold = soon(clients[0].mutex(path).unwrap().acquire()).await.unwrap();
    assert_eq!(hold.token().value(), operator.stat(hold.node()).unwrap().czxid as u64);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_guarded_by_a_lost_hold_is_refused() {
    let (client, operator) = (old_client().await, old_operator());
    operator.create_all("/old/guarded/state", "0");
    let hold = soon(client.mutex("/old/guarded/lock").unwrap().acquire()).await.unwrap();
    let written = soon(hold.guarded().set_data("/old/guarded/state", b"1", None).commit()).await.unwrap();
    assert_eq!(written.versions(), [Some(1)]);
    operator.delete(hold.node());
    let error = soon(hold.guarded().set_data("/old/guarded/state", b"2", None).commit()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost(LossReason::NodeDeleted), "{error}");
    assert_eq!(operator.data("/old/guarded/state"), b"1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn grants_follow_the_order_of_the_nodes_and_a_release_wakes_one() {
    const WAITERS: usize = 4;
    let (client, operator, path) = (old_client().await, old_operator(), "/old/fair");
    let mut hold = soon(client.mutex(path).unwrap().acquire()).await.unwrap();
    let (mut proxied, mut waiters) = (Vec::new(), Vec::new());
    for number in 0..WAITERS {
        let (client, proxy) = old_proxied().await;
        proxy.record();
        let lock = client.mutex(path).unwrap();
        proxied.push((client, proxy));
        waiters.push(tokio::spawn(async move { lock.acquire().await }));
        operator.wait_for_children(path, number + 2, SOON);
    }
    let woken = |proxy: &Proxy| proxy.messages().iter().filter(|message| message.kind == Kind::Event).count();
    let waits = |proxy: &Proxy| proxy.messages().iter().any(|message| message.watch);
    assert!(until(SOON, || proxied.iter().all(|(_, proxy)| waits(proxy))));
    for (number, waiter) in waiters.into_iter().enumerate() {
        soon(hold.release()).await.unwrap();
        hold = soon(waiter).await.unwrap().unwrap();
        let events: Vec<_> = proxied.iter().map(|(_, proxy)| woken(proxy)).collect();
        assert!(
            events.iter().enumerate().all(|(at, count)| *count == usize::from(at <= number)),
            "{events:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acquire_with_a_deadline_returns_by_then() {
    let ((client, proxy), holder, path) = (old_proxied().await, old_client().await, "/old/bounded");
    let hold = soon(holder.mutex(path).unwrap().acquire()).await.unwrap();
    let lock = client.mutex(path).unwrap();
    for is_frozen in [false, true] {
        if is_frozen {
            proxy.freeze(Direction::Both);
        }
        let (noise, start, timeout) = (Noise::measured(), Instant::now(), Duration::from_millis(400));
        let error = soon(lock.acquire_timeout(timeout)).await.unwrap_err();
        let took = start.elapsed();
        assert!(matches!(error.kind(), ErrorKind::Timeout | ErrorKind::Unreachable), "{error}");
        assert!(took >= timeout);
        not_later(took, timeout + GRACE + noise.allowance());
    }
    proxy.thaw();
    soon(hold.release()).await.unwrap();
    settled(&client).await;
    old_operator().wait_for_children(path, 0, SOON);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_cancelled_or_not_heard_of_leaves_no_node() {
    let ((client, proxy), operator, path) = (old_proxied().await, old_operator(), "/old/left");
    operator.create_all(path, "");
    let lock = client.mutex(path).unwrap();
    for trigger in
        [Trigger::reply(Kind::Create), Trigger::request(Kind::Create), Trigger::reply(Kind::Delete)]
    {
        let lost = proxy.on(trigger.path(path).then(Action::DropAndReset));
        let hold = soon(lock.acquire()).await.unwrap();
        assert_eq!(operator.children(path).len(), 1);
        soon(hold.release()).await.unwrap();
        assert!(lost.fired());
        operator.wait_for_children(path, 0, SOON);
    }
    let holder = old_client().await;
    let hold = soon(holder.mutex(path).unwrap().acquire()).await.unwrap();
    let waiter = tokio::spawn(async move { lock.acquire().await });
    operator.wait_for_children(path, 2, SOON);
    waiter.abort();
    operator.wait_for_children(path, 1, SOON);
    soon(hold.release()).await.unwrap();
    settled(&client).await;
    assert_eq!((client.stats().sessions, operator.children(path).len()), (1, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_is_told_within_a_heartbeat() {
    let ((client, proxy), operator) = (old_proxied().await, old_operator());
    let lock = client.mutex("/old/told").unwrap();
    let noise = Noise::measured();
    let hold = soon(lock.acquire()).await.unwrap();
    // The heartbeat is known to such a server.
    assert!(proxy.on(Trigger::reply(Kind::Multi).nth(3)).wait(SOON));
    assert!(hold.valid_for() > Duration::ZERO && hold.state() == HoldState::Held);
    operator.delete(hold.node());
    let struck = Instant::now();
    let reason = soon(hold.lost()).await;
    not_later(struck.elapsed(), HEARTBEAT + noise.allowance());
    assert_eq!(reason, Some(LossReason::NodeDeleted));

    let hold = soon(lock.acquire()).await.unwrap();
    expire(&proxy);
    assert_eq!(soon(hold.lost()).await, Some(LossReason::SessionExpired));
    // The next session's server is asked again.
    let _hold = soon(lock.acquire()).await.unwrap();
    assert_eq!(client.stats().sessions, 2);
}

/// Ends the latest session that came through the proxy.
fn expire(proxy: &Proxy) {
    let (id, password, _) = proxy.session().pop().expect("a session");
    proxy.refuse(true);
    assert!(until(SOON, || matches!(try_expire(old().server(0).address(), id, &password), Ok(false))));
    proxy.refuse(false);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_creation_answered_late_grants_no_dead_hold() {
    let ((client, proxy), operator, path) = (old_proxied().await, old_operator(), "/old/late");
    operator.create_all(path, "");
    // The opening of the session proves nothing any more.
    tokio::time::sleep(SESSION).await;
    let gate = Gate::new();
    let held = proxy.on(Trigger::reply(Kind::Create).path(path).then(Action::Pause(gate.clone())));
    let lock = client.mutex(path).unwrap();
    let call = tokio::spawn(async move { lock.acquire().await });
    assert!(held.wait(SOON));
    tokio::time::sleep(SESSION / 3).await;
    gate.open();
    let hold = soon(call).await.unwrap().unwrap();
    assert!(hold.valid_for() >= SESSION / 10 && hold.state() == HoldState::Held, "{:?}", hold.valid_for());
    assert_eq!(operator.children(path).len(), 1);
    soon(hold.release()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_share_and_a_writer_waits_for_them() {
    let (one, two, path) = (old_client().await, old_client().await, "/old/rwlock");
    let a = soon(one.read(path).unwrap().acquire()).await.unwrap();
    let b = soon(two.read(path).unwrap().acquire()).await.unwrap();
    let write = two.write(path).unwrap();
    let busy = soon(one.write(path).unwrap().try_acquire()).await.unwrap();
    assert!(busy.is_none());
    let writer = tokio::spawn(async move { write.acquire().await });
    old_operator().wait_for_children(path, 3, SOON);
    soon(a.release()).await.unwrap();
    soon(b.release()).await.unwrap();
    let hold = soon(writer).await.unwrap().unwrap();
    assert!(soon(one.read(path).unwrap().try_acquire()).await.unwrap().is_none());
    soon(hold.release()).await.unwrap();
    let _read = soon(one.read(path).unwrap().acquire()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_semaphore_gives_single_permits_and_follows_its_limit() {
    let (one, two, path) = (old_client().await, old_client().await, "/old/semaphore");
    let permit = |client: &Client| client.semaphore(path, 2).unwrap();
    let a = soon(permit(&one).acquire()).await.unwrap();
    let _b = soon(permit(&two).acquire()).await.unwrap();
    assert!(soon(permit(&one).try_acquire()).await.unwrap().is_none());
    let third = permit(&two);
    let waiter = tokio::spawn(async move { third.acquire().await });
    old_operator().wait_for_children(&format!("{path}/locks"), 1, SOON);
    soon(a.release()).await.unwrap();
    let _c = soon(waiter).await.unwrap().unwrap();
    // It is created, which takes no transaction.
    soon(one.set_limit("/old/limit/n", 3)).await.unwrap();
    assert_eq!(old_operator().data("/old/limit/n"), [0, 0, 0, 3]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exclusive_locks_elections_and_barriers_work() {
    let (one, two) = (old_client().await, old_client().await);
    let hold = soon(one.exclusive("/old/single").unwrap().acquire()).await.unwrap();
    let lock = two.exclusive("/old/single").unwrap();
    assert!(soon(lock.try_acquire()).await.unwrap().is_none());
    let waiter = tokio::spawn(async move { lock.acquire().await });
    soon(hold.release()).await.unwrap();
    let _hold = soon(waiter).await.unwrap().unwrap();
    let _leads = soon(one.election("/old/election").unwrap().acquire()).await.unwrap();
    let barrier = one.barrier("/old/barrier/a").unwrap();
    assert!(soon(barrier.set()).await.unwrap());
    let other = two.barrier("/old/barrier/a").unwrap();
    let waiter = tokio::spawn(async move { other.wait().await });
    assert!(soon(barrier.remove()).await.unwrap());
    soon(waiter).await.unwrap().unwrap();
}
