//! The same promises for threads that block, which share one I/O thread.

use crate::support::threads::{assert_left, client};
use crate::support::{GRACE, SOON, operator};
use ground::not_later;
use std::thread;
use std::time::Instant;
use tokio::runtime::Builder;
use zklock::further::{Interrupt, Owner};
use zklock::{ErrorKind, HoldState, LockSpec};

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
