//! The same promises for threads that block, which share one I/O thread.

use crate::support::threads::{assert_left, client};
use crate::support::{GRACE, SOON, operator};
use ground::not_later;
use std::thread;
use std::time::Instant;
use tokio::runtime::Builder;
use zklock::ErrorKind;
use zklock::further::{Interrupt, Owner};

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
