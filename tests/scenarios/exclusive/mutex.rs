//! Promise 1: two holds of one mutex never both have `valid_for() > 0`.

use crate::support::register::{Register, assert_growing, clients};
use crate::support::{SOON, client, client_of, operator, options, proxied_client, says, settled, soon};
use ground::wire::Mode;
use ground::{Direction, Ensemble, Kind, Proxy, Trigger, shared, until};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;
use zklock_core::{Client, ErrorKind, Lock, LossReason};

/// One grant, which enters the register and leaves it again.
async fn turn(lock: &Lock, register: &Register) {
    let hold = Arc::new(lock.acquire().await.expect("its turn comes"));
    register.enter(&hold, 1);
    tokio::task::yield_now().await;
    register.leave();
    // A fault may end a hold, and the release must then report that.
    match hold.release().await.map_err(|error| error.kind()) {
        Ok(()) | Err(ErrorKind::Lost(_)) => {}
        Err(kind) => panic!("the release failed: {kind:?}"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixty_four_clients_hold_one_after_the_other_in_the_order_of_their_nodes() {
    let register = Register::of(1);
    let clients = clients(&shared().connect_string(), 64).await;
    let mut contenders = JoinSet::new();
    for client in &clients {
        let (lock, register) = (client.mutex("/exclusive/64").unwrap(), register.clone());
        contenders.spawn(async move {
            for _ in 0..3 {
                turn(&lock, &register).await;
            }
        });
    }
    soon(contenders.join_all()).await;
    let tokens = register.tokens();
    assert_eq!(tokens.len(), 64 * 3);
    // The token is the number of the transaction that created the node.
    assert_growing(&tokens);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_break_all_the_time_let_nobody_in_beside_the_holder() {
    const CONTENDERS: usize = 8;
    const ROUNDS: usize = 6;
    let register = Register::of(1);
    let proxies: Arc<Vec<_>> = Arc::new((0..CONTENDERS).map(|_| Proxy::before(shared().server(0))).collect());
    let mut clients = Vec::new();
    for proxy in proxies.iter() {
        clients.push(client_of(&proxy.connect_string()).await);
    }
    let strikes = Arc::new(AtomicUsize::new(1));
    let mut contenders = JoinSet::new();
    for client in &clients {
        let (lock, register) = (client.mutex("/exclusive/faults").unwrap(), register.clone());
        let (proxies, strikes) = (proxies.clone(), strikes.clone());
        contenders.spawn(async move {
            for _ in 0..ROUNDS {
                let strike = strikes.fetch_add(1, Ordering::Relaxed);
                // Scattered, but the same in every run.
                let victim = &proxies[strike.wrapping_mul(2_654_435_761) >> 7 & (CONTENDERS - 1)];
                if strike % 2 == 0 {
                    victim.reset();
                } else {
                    victim.cut();
                }
                turn(&lock, &register).await;
            }
        });
    }
    tokio::time::timeout(SOON * 2, contenders.join_all()).await.expect("everybody gets its turns");
    assert_growing(&register.tokens());
    assert!(proxies.iter().map(Proxy::accepted).sum::<u64>() > 2 * CONTENDERS as u64, "nothing broke");
    for client in &clients {
        settled(client).await;
        assert_eq!(client.stats().sessions, 1, "a broken connection ends no session");
    }
    operator().wait_for_children("/exclusive/faults", 0, SOON);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_dies_and_comes_back_lets_nobody_in_beside_the_holder() {
    let builder = Ensemble::builder().tick(Duration::from_millis(200));
    let ensemble = builder.real("its data survives a restart").start();
    let register = Register::of(1);
    let ended = Arc::new(AtomicBool::new(false));
    let clients = clients(&ensemble.connect_string(), 8).await;
    let mut contenders = JoinSet::new();
    for client in &clients {
        let lock = client.mutex("/exclusive/restart").unwrap();
        let (register, ended) = (register.clone(), ended.clone());
        contenders.spawn(async move {
            while !ended.load(Ordering::Relaxed) {
                turn(&lock, &register).await;
            }
        });
    }
    assert!(until(SOON, || register.count() > 40));
    ensemble.server(0).kill();
    ensemble.server(0).restart();
    let before = register.count();
    // The sessions may have outlived the restart, or new ones were opened.
    assert!(until(SOON * 2, || register.count() > before + 40), "nobody gets the lock any more");
    ended.store(true, Ordering::Relaxed);
    soon(contenders.join_all()).await;
    assert_growing(&register.tokens());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_holder_that_is_cut_off_stops_before_the_next_begins() {
    let proxy = Proxy::before(shared().server(0));
    let short = options(&proxy.connect_string()).session_timeout(Duration::from_secs(1)).unwrap();
    let cut_off = Client::connect(short).await.unwrap();
    let register = Register::of(1);
    let first = Arc::new(cut_off.mutex("/exclusive/cut-off").unwrap().acquire().await.unwrap());
    assert!(register.enter(&first, 1));
    proxy.freeze(Direction::Both);

    let next = client().await;
    let second = Arc::new(soon(next.mutex("/exclusive/cut-off").unwrap().acquire()).await.unwrap());
    assert!(register.enter(&second, 1));
    let told = soon(first.lost()).await;
    assert_eq!(told, Some(LossReason::LeaseLapsed));
    proxy.thaw();
    // When it is back in touch, it opens the next session and queues. Its old hold stays lost.
    let lock = cut_off.mutex("/exclusive/cut-off").unwrap();
    let third = tokio::spawn(async move { lock.acquire().await });
    operator().wait_for_children("/exclusive/cut-off", 2, SOON);
    register.leave();
    second.release().await.unwrap();
    let third = Arc::new(soon(third).await.unwrap().unwrap());
    assert!(register.enter(&third, 1));
    assert_growing(&register.tokens());
}

const UUID: &str = "01234567-89ab-4cde-8f01-23456789abcd";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_contender_of_kazoo_is_named_and_not_held_beside() {
    let (client, other, operator) = (client().await, client().await, operator());
    let lock = client.mutex("/exclusive/kazoo").unwrap();
    operator.create_all("/exclusive/kazoo", "");
    let kazoo = "0123456789abcdef0123456789abcdef__lock__";
    let node = operator.create_mode(&format!("/exclusive/kazoo/{kazoo}"), "", Mode::EphemeralSequential);
    for error in [
        soon(lock.acquire()).await.unwrap_err(),
        soon(lock.acquire_timeout(SOON)).await.unwrap_err(),
        soon(other.mutex("/exclusive/kazoo").unwrap().try_acquire()).await.unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::ForeignContender);
        let name = node.rsplit('/').next().unwrap();
        assert!(error.to_string().contains(name), "{error} should name {name}");
    }
    // Only kazoo's is left.
    operator.wait_for_children("/exclusive/kazoo", 1, SOON);
    operator.delete(&node);
    soon(lock.acquire()).await.expect("kazoo is gone").release().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contenders_of_other_libraries_are_waited_for() {
    let ((client, proxy), operator) = (proxied_client().await, operator());
    let lock = client.mutex("/exclusive/others").unwrap();
    operator.create_all("/exclusive/others", "");
    for name in [
        "x-72057594037927936-".to_owned(),
        format!("_c_{UUID}-lock-"),
        "_c_0123456789abcdef0123456789abcdef-lock-".to_owned(),
    ] {
        let other = operator.create_mode(&format!("/exclusive/others/{name}"), "", Mode::EphemeralSequential);
        let watched = proxy.on(Trigger::reply(Kind::GetData).path(&other));
        let waiter = tokio::spawn({
            let lock = lock.clone();
            async move { lock.acquire().await }
        });
        assert!(watched.wait(SOON), "{other} should be watched");
        assert!(!waiter.is_finished(), "{other} should be waited for");
        operator.delete(&other);
        soon(waiter).await.unwrap().unwrap().release().await.unwrap();
    }
}

/// In Curator, a mutex and a read/write lock do not see each other, and our nodes look like Curator's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mutex_is_not_held_beside_a_read_write_lock() {
    let (client, operator) = (client().await, operator());
    operator.create_all("/exclusive/kinds", "");
    for infix in ["__READ__", "__WRIT__"] {
        let other = format!("/exclusive/kinds/_c_{UUID}-{infix}");
        let other = operator.create_mode(&other, "", Mode::EphemeralSequential);
        let error = soon(client.mutex("/exclusive/kinds").unwrap().acquire()).await.unwrap_err();
        says(&error, ErrorKind::ForeignContender, &["/exclusive/kinds", other.rsplit('/').next().unwrap()]);
        operator.delete(&other);
    }
    soon(client.mutex("/exclusive/kinds").unwrap().acquire()).await.unwrap().release().await.unwrap();
}

/// Curator's reader that comes after its own writer takes the writer's number, below the waiters that are there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_of_curator_that_becomes_a_reader_is_still_waited_for() {
    let ((client, proxy), operator) = (proxied_client().await, operator());
    operator.create_all("/exclusive/downgrade", "");
    let writer = format!("/exclusive/downgrade/_c_{UUID}-__WRIT__");
    let writer = operator.create_mode(&writer, "", Mode::EphemeralSequential);
    let lock = client.write("/exclusive/downgrade").unwrap();
    let watched = proxy.on(Trigger::reply(Kind::GetData).path(&writer));
    let waiter = tokio::spawn(async move { lock.acquire().await });
    assert!(watched.wait(SOON));

    let reader = writer.replace("WRIT", "READ").replace("_c_0", "_c_1");
    operator.create_mode(&reader, "", Mode::Ephemeral);
    let watched = proxy.on(Trigger::reply(Kind::GetData).path(&reader));
    operator.delete(&writer);
    assert!(until(SOON, || watched.fired() || waiter.is_finished()));
    assert!(!waiter.is_finished(), "granted beside the reader {reader}");
    operator.delete(&reader);
    soon(waiter).await.unwrap().unwrap().release().await.unwrap();
}
