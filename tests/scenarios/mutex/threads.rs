//! The same promises for threads that block, which share one I/O thread.

use crate::support::register::assert_growing;
use crate::support::threads::{assert_left, client};
use crate::support::{GRACE, SESSION, SOON, operator};
use ground::{not_later, until};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};
use tokio::runtime::Builder;
use zklock::further::{Interrupt, Owner};
use zklock::{ErrorKind, HoldState, LockSpec, LossReason};

#[test]
fn two_hundred_threads_hold_one_after_the_other() {
    let (client, operator) = (client(), operator());
    let lock = client.mutex("/threads/200").unwrap();
    let (inside, tokens) = (Arc::<AtomicUsize>::default(), Arc::<Mutex<Vec<u64>>>::default());
    let (done, ended) = mpsc::channel();
    for _ in 0..200 {
        let (lock, inside, tokens, done) = (lock.clone(), inside.clone(), tokens.clone(), done.clone());
        // They are not joined: a thread that never returns must fail the test, not hang it.
        thread::spawn(move || {
            let hold = lock.acquire().wait().unwrap();
            assert!(inside.fetch_add(1, Ordering::SeqCst) == 0 && !hold.valid_for().is_zero());
            tokens.lock().unwrap().push(hold.token().value());
            thread::yield_now();
            inside.fetch_sub(1, Ordering::SeqCst);
            hold.release().wait().unwrap();
            done.send(()).unwrap();
        });
    }
    drop(done);
    let count = || tokens.lock().unwrap().len();
    let mut seen = 0;
    let served = until(SOON * 2, || {
        seen = seen.max(operator.children_or_empty("/threads/200").len());
        count() == 200
    });
    assert!(served, "only {} of 200 had their turn", count());
    assert!(seen <= 2, "{seen} nodes of one process");
    let back = (0..200).take_while(|_| ended.recv_timeout(SOON).is_ok()).count();
    assert_eq!(back, 200, "some panicked, or never came back from the release");
    assert_growing(&tokens.lock().unwrap());
    assert_left(&client, &operator, "/threads/200", 0);
}

#[test]
fn a_client_runs_where_it_was_made_and_serves_threads_and_tasks_everywhere() {
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let elsewhere = Builder::new_current_thread().build().unwrap();
    let (inside, outside) = (runtime.block_on(crate::support::client()), client());
    for (client, path) in [(&inside, "/threads/inside"), (&outside, "/threads/outside")] {
        let lock = client.mutex(path).unwrap();
        lock.acquire().wait().unwrap().release().wait().unwrap();
        for runtime in [&runtime, &elsewhere] {
            let turn = async { lock.acquire_timeout(SOON).await?.release().await };
            runtime.block_on(turn).unwrap();
        }
    }
    runtime.shutdown_background();
    outside.mutex("/threads/inside").unwrap().acquire().wait().unwrap().release().wait().unwrap();
    let ended = inside.mutex("/threads/inside").unwrap().acquire_timeout(GRACE).wait().unwrap_err();
    assert_eq!(ended.kind(), ErrorKind::Closed, "{ended}");
}

#[test]
fn an_interrupt_ends_a_wait_at_once_and_leaves_no_node() {
    let (holder, client, operator) = (client(), client(), operator());
    let hold = holder.mutex("/threads/interrupt").unwrap().acquire().wait().unwrap();
    let lock = client.mutex("/threads/interrupt").unwrap();
    for timeout in [Some(SOON), None] {
        let interrupt = Interrupt::new();
        thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                let error = lock.acquire_as(Owner::current(), timeout).wait_unless(&interrupt).unwrap_err();
                (error.kind(), Instant::now())
            });
            operator.wait_for_children("/threads/interrupt", 2, SOON);
            let triggered = Instant::now();
            interrupt.trigger();
            let (kind, ended) = waiter.join().unwrap();
            assert_eq!(kind, ErrorKind::Interrupted);
            let took = ended.saturating_duration_since(triggered);
            not_later(took, GRACE);
        });
        assert_left(&client, &operator, "/threads/interrupt", 1);
    }
    hold.release().wait().unwrap();
}

#[test]
fn a_thread_that_waits_for_the_loss_is_told() {
    let (client, operator) = (client(), operator());
    let lock = client.mutex("/threads/lost").unwrap();
    let hold = lock.acquire().wait().unwrap();
    let held = hold.lost().wait_timeout(Duration::from_millis(20)).unwrap_err();
    assert_eq!(held.kind(), ErrorKind::Timeout);
    let interrupt = Interrupt::new();
    interrupt.trigger();
    assert_eq!(hold.lost().wait_unless(&interrupt).unwrap_err().kind(), ErrorKind::Interrupted);

    operator.delete(hold.node());
    let deleted = Instant::now();
    assert_eq!(hold.lost().wait_timeout(SOON).unwrap(), Some(LossReason::NodeDeleted));
    let took = deleted.elapsed();
    not_later(took, SESSION / 10 + GRACE);
    assert_eq!(hold.state(), HoldState::Lost(LossReason::NodeDeleted));
    assert_eq!(hold.release().wait().unwrap_err().kind(), ErrorKind::Lost(LossReason::NodeDeleted));

    let hold = lock.acquire().wait().unwrap();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| hold.lost().wait_timeout(SOON));
        hold.release().wait().unwrap();
        assert_eq!(waiter.join().unwrap().unwrap(), None, "released, not lost");
    });
}

#[test]
fn any_thread_releases_what_is_not_reentrant_and_only_the_owner_what_is() {
    let (client, operator) = (client(), operator());
    let lock = client.mutex("/threads/release").unwrap();
    let hold = lock.acquire().wait().unwrap();
    thread::scope(|scope| scope.spawn(|| hold.release().wait()).join().unwrap()).unwrap();
    assert!(operator.children("/threads/release").is_empty());

    let lock = client.lock(&LockSpec::mutex("/threads/release").unwrap().reentrant(true)).unwrap();
    let (outer, inner) = (lock.acquire().wait().unwrap(), lock.acquire().wait().unwrap());
    assert_eq!(outer.token(), inner.token());
    let refused = thread::scope(|scope| scope.spawn(|| outer.release().wait()).join().unwrap()).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::NotOwner);
    assert_eq!(outer.state(), HoldState::Held);
    outer.release().wait().unwrap();
    assert_eq!(operator.children("/threads/release").len(), 1, "the inner hold is still there");
    inner.release().wait().unwrap();
    assert!(operator.children("/threads/release").is_empty());
}
