//! Connecting on first use, and other calls that run in the background.

use crate::support::threads::{bell, done, result};
use crate::support::{SOON, operator, options, says, soon};
use ground::{Direction, Proxy, not_later, shared, until};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};
use zklock::further::{ConnectionState, Interrupt, Owner, Wait};
use zklock::{Call, Client, ErrorKind, Hold, LossReason};

fn lazy(hosts: &str, patience: Duration) -> Client {
    Client::lazy(options(hosts).connect_timeout(patience))
}

/// A client of the shared server, behind its own proxy.
fn proxied(patience: Duration) -> (Client, Proxy) {
    let proxy = Proxy::before(shared().server(0));
    (lazy(&proxy.connect_string(), patience), proxy)
}

#[test]
fn nothing_is_done_before_a_call_needs_it() {
    let (client, proxy) = proxied(SOON);
    let locks = [client.mutex("/lazy/first").unwrap(), client.semaphore("/lazy/second", 2).unwrap()];
    let both = client.all(&locks).unwrap();
    let (barrier, members) =
        (client.barrier("/lazy/barrier").unwrap(), client.double_barrier("/lazy/members", 1).unwrap());
    let observer = locks[0].observe().unwrap();
    assert!(!client.has_connected());
    assert_eq!((client.session_id(), client.connection_state()), (None, None));
    assert_eq!(proxy.session().len(), 0);

    let hold = both.acquire_timeout(SOON).wait().unwrap();
    assert!(client.has_connected());
    assert_eq!(observer.next().wait_timeout(SOON).unwrap().unwrap().token, hold.token());
    hold.release().wait().unwrap();
    assert!(!barrier.is_set().wait().unwrap());
    members.enter_timeout(SOON).wait().unwrap().leave().wait().unwrap();
    assert_eq!(proxy.session().len(), 1);
}

#[tokio::test]
async fn a_call_that_is_dropped_or_may_not_block_here_begins_nothing() {
    let (client, proxy) = proxied(SOON);
    let lock = client.mutex("/lazy/refused").unwrap();
    let elsewhere = lock.clone();
    let blocks = tokio::task::spawn_blocking(move || elsewhere.acquire().wait().map(drop));
    for refused in [lock.acquire().wait().map(drop), soon(blocks).await.unwrap()] {
        says(&refused.unwrap_err(), ErrorKind::Deadlock, &["await the call"]);
    }
    drop(lock.acquire());
    assert_eq!((client.has_connected(), proxy.connections()), (false, 0));
    soon(lock.acquire()).await.unwrap().release().await.unwrap();
}

#[test]
fn what_is_wrong_with_a_lock_is_said_before_it_connects() {
    let client = lazy(&shared().connect_string(), SOON);
    let other = lazy(&shared().connect_string(), SOON).mutex("/lazy/other").unwrap();
    for wrong in [
        client.mutex("locks").map(drop),
        client.semaphore("/lazy/none", 0).map(drop),
        client.barrier("/").map(drop),
        client.double_barrier("/lazy/members", 0).map(drop),
        client.all(&[other]).map(drop),
        client.semaphore("/lazy/two", 2).unwrap().observe().map(drop),
    ] {
        assert_eq!(wrong.unwrap_err().kind(), ErrorKind::InvalidInput);
    }
    assert!(!client.has_connected());
}

#[test]
fn a_wait_for_a_lock_or_for_a_connection_ends_in_its_own_time_and_the_try_to_connect_goes_on() {
    let (client, proxy) = proxied(SOON);
    proxy.refuse(true);
    let lock = client.mutex("/lazy/waits").unwrap();
    let timeout = Duration::from_millis(100);
    for ended in [
        lock.acquire_timeout(timeout).wait().map(drop),
        done(lock.acquire_as(Owner::once(), timeout)).map(drop),
        client.connect_within(timeout).wait().map(drop),
        done(client.connect_within(timeout)).map(drop),
    ] {
        // An error that names this time came when it was over, and not with the connect timeout.
        says(&ended.unwrap_err(), ErrorKind::Unreachable, &["check", "100ms"]);
    }

    // The try to connect goes on, and its success is for all who come then.
    let (ring, ready) = bell();
    let ticket = lock.acquire_as(Owner::once(), SOON).detach(ring).unwrap();
    let (never, _ready) = bell();
    let cancelled = lock.acquire_as(Owner::once(), Wait::Forever).detach(never).unwrap();
    cancelled.cancel();
    assert_eq!(cancelled.fetch().unwrap().unwrap_err().kind(), ErrorKind::Interrupted);
    proxy.refuse(false);
    result(&ticket, &ready).unwrap().release().wait().unwrap();
    // A try connects as well, and is one try.
    let other = lazy(&shared().connect_string(), SOON).mutex("/lazy/waits").unwrap();
    let hold = other.try_acquire().wait().unwrap().unwrap();
    assert!(lock.try_acquire().wait().unwrap().is_none());
    hold.release().wait().unwrap();
}

#[test]
fn an_interrupt_ends_the_wait_for_a_connection() {
    let (client, proxy) = proxied(SOON);
    proxy.freeze(Direction::Both);
    let lock = client.mutex("/lazy/interrupted").unwrap();
    let interrupt = Interrupt::new();
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| lock.acquire_as(Owner::current(), Wait::Forever).wait_unless(&interrupt));
        assert!(until(SOON, || proxy.connections() > 0));
        interrupt.trigger();
        assert_eq!(waits.join().unwrap().unwrap_err().kind(), ErrorKind::Interrupted);
    });
}

#[test]
fn many_threads_that_need_it_at_once_are_all_told_of_a_failure_and_then_connect_once() {
    let patience = Duration::from_secs(1);
    let (client, proxy) = proxied(patience);
    let all = || {
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..16).map(|_| scope.spawn(|| client.connect_within(None).wait())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        })
    };
    proxy.refuse(true);
    let begun = Instant::now();
    for failed in all() {
        says(&failed.unwrap_err(), ErrorKind::Unreachable, &["1s"]);
    }
    // One after the other would take sixteen times as long.
    not_later(begun.elapsed(), patience * 6);
    proxy.refuse(false);
    let ids: Vec<_> = all().into_iter().map(|connected| connected.unwrap().session_id()).collect();
    assert!(ids.iter().all(|id| id.is_some() && *id == ids[0]), "{ids:x?}");
    assert_eq!(proxy.session().len(), 1);
}

#[tokio::test]
async fn those_that_wait_for_it_get_the_lock_in_the_order_in_which_they_came() {
    let (client, _proxy) = proxied(SOON);
    let lock = client.mutex("/lazy/order").unwrap();
    let acquire = || lock.acquire_as(Owner::once(), SOON);
    let waits =
        |call: &mut Call<Hold>| Pin::new(call).poll(&mut Context::from_waker(Waker::noop())).is_pending();
    let mut calls: Vec<_> = std::iter::repeat_with(acquire).take(5).collect();
    assert!(calls.iter_mut().all(waits), "there is no connection yet");
    soon(client.connect_within(None)).await.unwrap();
    // Another comes before these go on, and they do so in another order.
    calls.push(acquire());
    assert!(calls[1..].iter_mut().rev().all(waits), "the first is before them");
    for call in calls {
        soon(soon(call).await.unwrap().release()).await.unwrap();
    }
}

#[test]
fn one_that_is_closed_does_not_connect_whenever_that_was() {
    let hosts = shared().connect_string();
    let never = lazy(&hosts, SOON);
    let lock = never.mutex("/lazy/never").unwrap();
    never.close().wait().unwrap();
    assert_eq!(never.connection_state(), Some(ConnectionState::Closed));
    says(&never.connect_within(None).wait().unwrap_err(), ErrorKind::Closed, &["make a new one"]);
    says(&lock.acquire().wait().unwrap_err(), ErrorKind::Closed, &["make a new one"]);
    says(&done(lock.acquire_as(Owner::once(), SOON)).unwrap_err(), ErrorKind::Closed, &["make a new one"]);

    let (meanwhile, proxy) = proxied(SOON);
    proxy.refuse(true);
    let (ring, ready) = bell();
    let call = meanwhile.connect_within(None).detach(ring).unwrap();
    done(meanwhile.close()).unwrap();
    proxy.refuse(false);
    assert_eq!(result(&call, &ready).unwrap_err().kind(), ErrorKind::Closed);
    assert!(!meanwhile.has_connected());

    let client = lazy(&hosts, SOON);
    let hold = client.mutex("/lazy/closed").unwrap().acquire().wait().unwrap();
    done(client.close()).unwrap();
    assert_eq!(hold.lost().wait_timeout(SOON).unwrap(), Some(LossReason::ClientClosed));
    assert!(operator().children("/lazy/closed").is_empty());
}

#[test]
fn a_close_and_the_last_drop_end_the_connecting() {
    for is_closed in [true, false] {
        let (client, proxy) = proxied(SOON * 4);
        proxy.freeze(Direction::Both);
        let (ring, _ready) = bell();
        let call = client.connect_within(None).detach(ring).unwrap();
        assert!(until(SOON, || proxy.connections() > 0));
        if is_closed {
            client.close().wait().unwrap();
        } else {
            drop((client, call));
        }
        // The connection ends before the connect timeout, and nobody opens another one.
        assert!(until(SOON, || proxy.connections() == 0));
    }
}

#[test]
fn a_call_connects_though_its_client_is_dropped() {
    let hosts = shared().connect_string();
    let (ring, ready) = bell();
    let limit = lazy(&hosts, SOON).set_limit("/lazy/dropped-limit", 1).detach(ring).unwrap();
    result(&limit, &ready).unwrap();
    let (ring, ready) = bell();
    let lock = lazy(&hosts, SOON).mutex("/lazy/dropped").unwrap();
    let call = lock.acquire_as(Owner::once(), SOON).detach(ring).unwrap();
    drop(lock);
    result(&call, &ready).unwrap().release().wait().unwrap();
}

#[test]
fn a_release_that_nobody_waits_for_is_done_all_the_same() {
    let (client, proxy) = proxied(SOON);
    let path = "/lazy/unawaited";
    let hold = client.mutex(path).unwrap().acquire().wait().unwrap();
    let rang = Arc::new(AtomicBool::new(false));
    let bell = rang.clone();
    // It cannot be done before its caller has gone.
    proxy.freeze(Direction::ToClient);
    drop(hold.release_as(Owner::unique()).detach(move || bell.store(true, Ordering::Release)).unwrap());
    proxy.thaw();
    operator().wait_for_children(path, 0, SOON);
    assert!(until(SOON, || client.stats().owed == 0));
    assert!(!rang.load(Ordering::Acquire), "nobody was to be called");
}
