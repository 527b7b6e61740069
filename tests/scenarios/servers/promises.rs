//! The promises of a mutex on the oldest and on the newest release, and other kinds there.

use super::{client_at, new, old, operator_at, proxied_at};
use crate::support::register::{Register, assert_growing, clients};
use crate::support::timing::Noise;
use crate::support::{GRACE, HEARTBEAT, SESSION, SOON, settled, soon};
use ground::wire::try_expire;
use ground::{Action, Direction, Ensemble, Gate, Kind, Proxy, Trigger, not_later, until};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use zklock_core::{Client, ErrorKind, HoldState, LossReason};

/// Makes a module with all these tests for each release.
macro_rules! on {
    ($($release:ident)+ => $tests:tt) => {
        $(mod $release { on! { @each $release $tests } })+
    };
    (@each $release:ident { $($test:ident)+ }) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::$test(super::$release()).await;
            }
        )+
    };
}

on! {
    old new => {
        one_holds_after_the_other_and_the_tokens_grow
        a_write_guarded_by_a_lost_hold_is_refused
        grants_follow_the_order_of_the_nodes_and_a_release_wakes_two
        an_acquire_with_a_deadline_returns_by_then
        what_is_cancelled_or_not_heard_of_leaves_no_node
        a_holder_is_told_within_a_heartbeat
        a_creation_answered_late_grants_no_dead_hold
        readers_share_and_a_writer_waits_for_them
        a_semaphore_gives_single_permits_and_follows_its_limit
        exclusive_locks_elections_and_barriers_work
    }
}

async fn one_holds_after_the_other_and_the_tokens_grow(servers: &'static Ensemble) {
    let (register, path) = (Register::of(1), "/promises/exclusive/a");
    let clients = clients(&servers.connect_string(), 6).await;
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
    let operator = operator_at(servers);
    operator.wait_for_children(path, 0, SOON);
    // On a server of 3.4 the client has to read the token: the reply to the creation does not have it.
    let hold = soon(clients[0].mutex(path).unwrap().acquire()).await.unwrap();
    assert_eq!(hold.token().value(), operator.stat(hold.node()).unwrap().czxid as u64);
}

async fn a_write_guarded_by_a_lost_hold_is_refused(servers: &'static Ensemble) {
    let (client, operator) = (client_at(servers).await, operator_at(servers));
    operator.create_all("/promises/guarded/state", "0");
    let hold = soon(client.mutex("/promises/guarded/lock").unwrap().acquire()).await.unwrap();
    let written =
        soon(hold.guarded().set_data("/promises/guarded/state", b"1", None).commit()).await.unwrap();
    assert_eq!(written.versions(), [Some(1)]);
    operator.delete(hold.node());
    let error =
        soon(hold.guarded().set_data("/promises/guarded/state", b"2", None).commit()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost(LossReason::NodeDeleted), "{error}");
    assert_eq!(operator.data("/promises/guarded/state"), b"1");
}

async fn grants_follow_the_order_of_the_nodes_and_a_release_wakes_two(servers: &'static Ensemble) {
    const WAITERS: usize = 4;
    let (client, operator, path) = (client_at(servers).await, operator_at(servers), "/promises/fair");
    let mut hold = soon(client.mutex(path).unwrap().acquire()).await.unwrap();
    let (mut proxied, mut waiters) = (Vec::new(), Vec::new());
    for number in 0..WAITERS {
        let (client, proxy) = proxied_at(servers).await;
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
        let events = || proxied.iter().map(|(_, proxy)| woken(proxy)).collect::<Vec<_>>();
        // The next waiter, and the one behind it, which looks while the next holds.
        let is_expected = |(at, count): (usize, &usize)| match at.checked_sub(number) {
            None | Some(0) => (1..=2).contains(count),
            Some(behind) => *count == usize::from(behind == 1),
        };
        assert!(until(SOON, || events().iter().enumerate().all(is_expected)), "{:?}", events());
    }
}

async fn an_acquire_with_a_deadline_returns_by_then(servers: &'static Ensemble) {
    let ((client, proxy), holder, path) =
        (proxied_at(servers).await, client_at(servers).await, "/promises/bounded");
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
    operator_at(servers).wait_for_children(path, 0, SOON);
}

async fn what_is_cancelled_or_not_heard_of_leaves_no_node(servers: &'static Ensemble) {
    let ((client, proxy), operator, path) =
        (proxied_at(servers).await, operator_at(servers), "/promises/left");
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
    let holder = client_at(servers).await;
    let hold = soon(holder.mutex(path).unwrap().acquire()).await.unwrap();
    let waiter = tokio::spawn(async move { lock.acquire().await });
    operator.wait_for_children(path, 2, SOON);
    waiter.abort();
    operator.wait_for_children(path, 1, SOON);
    soon(hold.release()).await.unwrap();
    settled(&client).await;
    assert_eq!((client.stats().sessions, operator.children(path).len()), (1, 0));
}

async fn a_holder_is_told_within_a_heartbeat(servers: &'static Ensemble) {
    let ((client, proxy), operator) = (proxied_at(servers).await, operator_at(servers));
    let lock = client.mutex("/promises/told").unwrap();
    let noise = Noise::measured();
    let hold = soon(lock.acquire()).await.unwrap();
    // Such a server knows the heartbeat's requests.
    assert!(proxy.on(Trigger::reply(Kind::Multi).nth(3)).wait(SOON));
    assert!(hold.valid_for() > Duration::ZERO && hold.state() == HoldState::Held);
    operator.delete(hold.node());
    let struck = Instant::now();
    let reason = soon(hold.lost()).await;
    not_later(struck.elapsed(), HEARTBEAT + noise.allowance());
    assert_eq!(reason, Some(LossReason::NodeDeleted));

    let hold = soon(lock.acquire()).await.unwrap();
    expire(servers, &proxy);
    assert_eq!(soon(hold.lost()).await, Some(LossReason::SessionExpired));
    // The client asks the server of its next session again.
    let _hold = soon(lock.acquire()).await.unwrap();
    assert_eq!(client.stats().sessions, 2);
}

/// Ends the latest session that came through the proxy.
fn expire(servers: &Ensemble, proxy: &Proxy) {
    let (id, password, _) = proxy.session().pop().expect("a session");
    proxy.refuse(true);
    assert!(until(SOON, || matches!(try_expire(servers.server(0).address(), id, &password), Ok(false))));
    proxy.refuse(false);
}

async fn a_creation_answered_late_grants_no_dead_hold(servers: &'static Ensemble) {
    let ((client, proxy), operator, path) =
        (proxied_at(servers).await, operator_at(servers), "/promises/late");
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

async fn readers_share_and_a_writer_waits_for_them(servers: &'static Ensemble) {
    let (one, two, path) = (client_at(servers).await, client_at(servers).await, "/promises/rwlock");
    let a = soon(one.read(path).unwrap().acquire()).await.unwrap();
    let b = soon(two.read(path).unwrap().acquire()).await.unwrap();
    let write = two.write(path).unwrap();
    let busy = soon(one.write(path).unwrap().try_acquire()).await.unwrap();
    assert!(busy.is_none());
    let writer = tokio::spawn(async move { write.acquire().await });
    operator_at(servers).wait_for_children(path, 3, SOON);
    soon(a.release()).await.unwrap();
    soon(b.release()).await.unwrap();
    let hold = soon(writer).await.unwrap().unwrap();
    assert!(soon(one.read(path).unwrap().try_acquire()).await.unwrap().is_none());
    soon(hold.release()).await.unwrap();
    let _read = soon(one.read(path).unwrap().acquire()).await.unwrap();
}

async fn a_semaphore_gives_single_permits_and_follows_its_limit(servers: &'static Ensemble) {
    let (one, two, path) = (client_at(servers).await, client_at(servers).await, "/promises/semaphore");
    let permit = |client: &Client| client.semaphore(path, 2).unwrap();
    let a = soon(permit(&one).acquire()).await.unwrap();
    let _b = soon(permit(&two).acquire()).await.unwrap();
    assert!(soon(permit(&one).try_acquire()).await.unwrap().is_none());
    let third = permit(&two);
    let waiter = tokio::spawn(async move { third.acquire().await });
    operator_at(servers).wait_for_children(&format!("{path}/locks"), 1, SOON);
    soon(a.release()).await.unwrap();
    let _c = soon(waiter).await.unwrap().unwrap();
    // Creating the node takes no transaction.
    soon(one.set_limit("/promises/limit/n", 3)).await.unwrap();
    assert_eq!(operator_at(servers).data("/promises/limit/n"), [0, 0, 0, 3]);
}

async fn exclusive_locks_elections_and_barriers_work(servers: &'static Ensemble) {
    let (one, two) = (client_at(servers).await, client_at(servers).await);
    let hold = soon(one.exclusive("/promises/single").unwrap().acquire()).await.unwrap();
    let lock = two.exclusive("/promises/single").unwrap();
    assert!(soon(lock.try_acquire()).await.unwrap().is_none());
    let waiter = tokio::spawn(async move { lock.acquire().await });
    soon(hold.release()).await.unwrap();
    let _hold = soon(waiter).await.unwrap().unwrap();
    let _leads = soon(one.election("/promises/election").unwrap().acquire()).await.unwrap();
    let barrier = one.barrier("/promises/barrier/a").unwrap();
    assert!(soon(barrier.set()).await.unwrap());
    let other = two.barrier("/promises/barrier/a").unwrap();
    let waiter = tokio::spawn(async move { other.wait().await });
    assert!(soon(barrier.remove()).await.unwrap());
    soon(waiter).await.unwrap().unwrap();
}
