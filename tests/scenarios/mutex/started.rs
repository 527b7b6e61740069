//! Waits and losses that a callback reports, for callers that cannot block.

use crate::support::threads::{assert_left, bell, client, result};
use crate::support::{SOON, operator};
use ground::until;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;
use zklock::face::call_later;
use zklock::further::{Owner, Started};
use zklock::{ErrorKind, Hold, Lock, LockSpec, LossReason};

fn start(lock: &Lock) -> (Started<Hold>, Receiver<()>) {
    let (ring, ready) = bell();
    (lock.acquire_as(Owner::once(), SOON).detach(ring).unwrap(), ready)
}

#[test]
fn one_thread_waits_for_many_and_each_has_its_turn() {
    let client = client();
    // Even if it is reentrant: the calls of a thread are not one owner.
    let lock = client.lock(&LockSpec::mutex("/calls/many").unwrap().reentrant(true)).unwrap();
    let calls: Vec<_> = (0..20).map(|_| start(&lock)).collect();
    let mut before = None;
    for (call, ready) in &calls {
        let hold = result(call, ready).unwrap();
        assert!(before < Some(hold.token()), "{before:?}, then {:?}", hold.token());
        before = Some(hold.token());
        let released = std::thread::spawn(move || hold.release().wait());
        released.join().unwrap().unwrap();
        assert_eq!(call.fetch().unwrap().unwrap_err().kind(), ErrorKind::NotHeld);
    }
    assert_left(&client, &operator(), "/calls/many", 0);
}

#[test]
fn a_call_that_is_cancelled_or_dropped_leaves_no_node() {
    let (client, other, operator) = (client(), client(), operator());
    let path = "/calls/dropped";
    let hold = other.mutex(path).unwrap().acquire().wait().unwrap();
    let lock = client.mutex(path).unwrap();
    let (cancelled, never) = start(&lock);
    operator.wait_for_children(path, 2, SOON);
    assert!(cancelled.fetch().is_none());
    cancelled.cancel();
    assert_eq!(cancelled.fetch().unwrap().unwrap_err().kind(), ErrorKind::Interrupted);
    assert_left(&client, &operator, path, 1);
    let (dropped, _ready) = start(&lock);
    operator.wait_for_children(path, 2, SOON);
    drop(dropped);
    assert_left(&client, &operator, path, 1);
    hold.release().wait().unwrap();
    assert!(never.try_recv().is_err());

    let (unfetched, ready) = start(&lock);
    ready.recv_timeout(SOON).unwrap();
    assert_left(&client, &operator, path, 1);
    drop(unfetched);
    assert_left(&client, &operator, path, 0);
    assert_eq!(client.stats().grants, 1);
}

#[test]
fn a_grant_that_is_lost_before_it_is_fetched_is_not_delivered() {
    let (client, operator) = (client(), operator());
    let (call, ready) = start(&client.mutex("/calls/late").unwrap());
    ready.recv_timeout(SOON).unwrap();
    operator.delete_tree("/calls/late");
    assert!(until(SOON, || client.stats().losses == 1));
    let error = call.fetch().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Lost(LossReason::NodeDeleted), "{error}");
}

#[test]
fn a_loss_is_told_to_those_who_still_watch() {
    let (client, operator) = (client(), operator());
    let lock = client.lock(&LockSpec::mutex("/calls/loss").unwrap().reentrant(true)).unwrap();
    let (outer, inner) = (lock.acquire().wait().unwrap(), lock.acquire().wait().unwrap());
    let (sender, told) = channel();
    let watch = |hold: &Hold, name| {
        let sender = sender.clone();
        let tell = move |reason| call_later(move || sender.send((name, reason)).unwrap()).unwrap();
        hold.on_lost(tell).unwrap()
    };
    let _watches = [watch(&outer, "outer"), watch(&inner, "released")];
    drop(watch(&outer, "dropped"));
    inner.release().wait().unwrap();
    operator.delete(outer.node());
    assert_eq!(told.recv_timeout(SOON).unwrap(), ("outer", LossReason::NodeDeleted));
    // A callback that comes too late is called at once. By then the others would have been called.
    let _late = watch(&outer, "late");
    assert_eq!(told.recv_timeout(SOON).unwrap(), ("late", LossReason::NodeDeleted));
    assert!(told.try_recv().is_err());
}

/// Waits for the loss of a hold on a separate thread, and returns once that thread waits.
fn wait_lost(hold: &Arc<Hold>) -> Receiver<Option<LossReason>> {
    let (sender, told) = channel();
    let waiting = hold.clone();
    std::thread::spawn(move || sender.send(waiting.lost().wait().unwrap()).unwrap());
    assert_eq!(told.recv_timeout(Duration::from_millis(20)), Err(RecvTimeoutError::Timeout));
    told
}

#[test]
fn a_wait_for_a_loss_ends_when_its_own_hold_is_released() {
    let client = client();
    let lock = client.lock(&LockSpec::mutex("/calls/inner").unwrap().reentrant(true)).unwrap();
    let (outer, inner) = (lock.acquire().wait().unwrap(), Arc::new(lock.acquire().wait().unwrap()));
    let told = wait_lost(&inner);
    inner.release().wait().unwrap();
    assert_eq!(told.recv_timeout(SOON).unwrap(), None);
    outer.confirm().wait().unwrap();
}

#[test]
fn a_hold_is_let_go_even_if_somebody_waits_with_it() {
    let (client, other) = (client(), client());
    let hold = Arc::new(client.mutex("/calls/let-go").unwrap().acquire().wait().unwrap());
    let told = wait_lost(&hold);
    hold.let_go();
    assert_eq!(told.recv_timeout(SOON).unwrap(), None);
    other.mutex("/calls/let-go").unwrap().acquire_timeout(SOON).wait().unwrap().release().wait().unwrap();
    assert_eq!(hold.release().wait().unwrap_err().kind(), ErrorKind::NotHeld);
}
