//! Connecting when it is first needed, and the other calls that go on by themselves.

use crate::support::{SOON, operator, options, says};
use ground::{Proxy, not_later, shared, until};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use zklock_core::blocking::Hold;
use zklock_core::face::{Call, Connector, Loss};
use zklock_core::{Error, ErrorKind, LockSpec, LossReason, Owner};

fn connector(hosts: &str, patience: Duration) -> Connector {
    Connector::new(options(hosts).connect_timeout(patience))
}

fn bell() -> (impl FnOnce() + Send + 'static, Receiver<()>) {
    let (sender, ready) = channel();
    // Nobody may be listening any more.
    (move || sender.send(()).unwrap_or_default(), ready)
}

#[track_caller]
fn result<T: Send + 'static>(call: &Call<T>, ready: &Receiver<()>) -> Result<T, Error> {
    ready.recv_timeout(SOON).unwrap();
    call.fetch().unwrap()
}

fn start_release(
    hold: &Hold,
    owner: Owner,
    ready: impl FnOnce() + Send + 'static,
) -> Result<Option<Call<()>>, Error> {
    let rest = hold.core().get()?.begin_release(owner)?;
    rest.map(|rest| hold.core().start(ready, |_| rest)).transpose()
}

#[test]
fn many_threads_that_need_it_at_once_connect_once() {
    let proxy = Proxy::before(shared().server(0));
    let connector = connector(&proxy.connect_string(), SOON);
    assert!(connector.connected().is_none());
    assert_eq!(proxy.session().len(), 0);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..16).map(|_| scope.spawn(|| connector.connect(None).unwrap())).collect();
        let ids: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap().session_id()).collect();
        assert!(ids.iter().all(|id| id.is_some() && *id == ids[0]), "{ids:x?}");
    });
    assert_eq!(proxy.session().len(), 1);
}

#[test]
fn a_failure_is_told_to_all_who_waited_and_the_next_call_tries_again() {
    let proxy = Proxy::before(shared().server(0));
    proxy.refuse(true);
    let patience = Duration::from_millis(300);
    let connector = connector(&proxy.connect_string(), patience);
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| connector.connect(None))).collect();
        for thread in threads {
            says(&thread.join().unwrap().unwrap_err(), ErrorKind::Unreachable, &["300ms"]);
        }
    });
    // One after the other would take eight times as long.
    not_later(begun.elapsed(), patience * 6);
    proxy.refuse(false);
    connector.connect(None).unwrap();
}

#[test]
fn a_timeout_may_end_before_the_try_to_connect() {
    let proxy = Proxy::before(shared().server(0));
    proxy.refuse(true);
    let connector = connector(&proxy.connect_string(), SOON);
    let (begun, timeout) = (Instant::now(), Duration::from_millis(100));
    says(&connector.connect(Some(timeout)).unwrap_err(), ErrorKind::Unreachable, &["check", "100ms"]);
    let (ring, ready) = bell();
    let call = connector.start(Some(timeout), ring).unwrap();
    says(&result(&call, &ready).unwrap_err(), ErrorKind::Unreachable, &["check"]);
    assert!(begun.elapsed() < SOON / 2);
    // The try goes on, and its success is for all who come then.
    proxy.refuse(false);
    let (ring, ready) = bell();
    let call = connector.start(None, ring).unwrap();
    result(&call, &ready).unwrap();
    assert!(connector.connected().is_some());
}

#[test]
fn one_that_is_closed_gives_no_client_whenever_that_was() {
    let hosts = shared().connect_string();
    let never = connector(&hosts, SOON);
    never.close().unwrap();
    assert!(never.is_closed());
    says(&never.connect(None).unwrap_err(), ErrorKind::Closed, &["make a new one"]);

    let proxy = Proxy::before(shared().server(0));
    proxy.refuse(true);
    let meanwhile = connector(&proxy.connect_string(), SOON);
    let (ring, ready) = bell();
    let call = meanwhile.start(None, ring).unwrap();
    let (unused, _ready) = bell();
    assert!(meanwhile.start_close(unused).unwrap().is_none());
    proxy.refuse(false);
    assert_eq!(result(&call, &ready).unwrap_err().kind(), ErrorKind::Closed);
    assert!(meanwhile.connected().is_none());

    let connected = connector(&hosts, SOON);
    let client = connected.connect(None).unwrap();
    let hold = client.mutex("/connector/closed").unwrap().acquire().unwrap();
    let (ring, ready) = bell();
    let call = connected.start_close(ring).unwrap().unwrap();
    result(&call, &ready).unwrap();
    assert_eq!(hold.loss().wait(Some(SOON), None).unwrap(), Some(LossReason::ClientClosed));
    assert!(operator().children("/connector/closed").is_empty());
}

#[test]
fn all_calls_of_a_hold_go_on_by_themselves() {
    let client = connector(&shared().connect_string(), SOON).connect(None).unwrap();
    let path = "/connector/calls";
    let lock = client.lock(&LockSpec::mutex(path).unwrap().reentrant(true)).unwrap();
    let (owner, stranger) = (Owner::unique(), Owner::unique());
    let (ring, ready) = bell();
    let ticket = lock.start(owner, SOON, ring).unwrap();
    ready.recv_timeout(SOON).unwrap();
    let hold = ticket.fetch().unwrap().unwrap();
    assert!(lock.again(stranger).unwrap().is_none());
    let inner = lock.again(owner).unwrap().unwrap();
    assert_eq!(inner.token(), hold.token());

    let (ring, ready) = bell();
    let queue =
        result(&lock.core().start(ring, |lock| async move { lock.contenders().await }).unwrap(), &ready)
            .unwrap();
    assert_eq!(queue.iter().map(|contender| contender.token).collect::<Vec<_>>(), [hold.token()]);
    let (ring, ready) = bell();
    let confirm = hold.core().start(ring, |hold| async move { hold.confirm().await });
    assert!(result(&confirm.unwrap(), &ready).unwrap() > Duration::ZERO);
    let (ring, ready) = bell();
    let write = hold
        .core()
        .start(ring, |hold| async move { hold.guarded().create("/connector/written", b"1").commit().await });
    result(&write.unwrap(), &ready).unwrap();
    assert_eq!(operator().data("/connector/written"), b"1");

    let (ring, _ready) = bell();
    assert_eq!(start_release(&hold, stranger, ring).unwrap_err().kind(), ErrorKind::NotOwner);
    let (ring, _ready) = bell();
    assert!(start_release(&inner, owner, ring).unwrap().is_none(), "the outer hold goes on");
    let (ring, lost) = bell();
    let come = |loss: Arc<Loss>| async move { Ok(Arc::unwrap_or_clone(loss).come().await) };
    let loss = hold.loss().core().start(ring, come).unwrap();
    let (ring, ready) = bell();
    result(&start_release(&hold, owner, ring).unwrap().unwrap(), &ready).unwrap();
    assert_eq!(result(&loss, &lost).unwrap(), None);
    assert!(operator().children(path).is_empty());
}

#[test]
fn a_release_that_nobody_waits_for_is_done_all_the_same() {
    let client = connector(&shared().connect_string(), SOON).connect(None).unwrap();
    let path = "/connector/unawaited";
    let hold = client.mutex(path).unwrap().acquire().unwrap();
    let rang = Arc::new(AtomicBool::new(false));
    let bell = rang.clone();
    drop(start_release(&hold, Owner::unique(), move || bell.store(true, Ordering::Release)).unwrap());
    operator().wait_for_children(path, 0, SOON);
    assert!(until(SOON, || client.stats().owed == 0));
    assert!(!rang.load(Ordering::Acquire), "nobody was to be called");
}
