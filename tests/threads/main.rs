//! State that threads of zklock share, in every possible interleaving: files of zklock-core as they ship, with loom's
//! mutexes, condition variables and atomics in place of std's.
//!
//!     tests/run threads
//!
//! loom runs each of the functions below once for each order, and fails if all threads wait for one another.

#[allow(dead_code, reason = "not all of it is tried here")]
#[path = "../../zklock-core/src/threads/interrupt.rs"]
mod interrupt;
#[allow(dead_code, reason = "not all of it is tried here")]
#[path = "../../zklock-core/src/threads/park.rs"]
mod park;

#[path = "../../zklock-core/src/base"]
mod base {
    #[allow(dead_code, reason = "not all of it is tried here")]
    pub(crate) mod attempts;
    #[allow(dead_code, reason = "not all of it is tried here")]
    pub(crate) mod debt;

    // The other modules that those files import.

    pub(crate) mod sync {
        pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard, atomic};
        use std::sync::PoisonError;

        pub(crate) fn lock_ignoring_poison<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
            mutex.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    pub(crate) mod stats {
        /// Everything else is only counted.
        #[derive(Default)]
        pub(crate) struct Counters {
            pub(crate) attempts: super::attempts::Attempts,
        }
    }
}

use base::debt::Debt;
use base::stats::Counters;
use base::sync::atomic::{AtomicBool, Ordering};
use interrupt::Interrupt;
use loom::thread::spawn;
use park::Signal;
use std::sync::Arc;
use std::task::{Context, Waker};

fn main() {
    let tried: [(&str, fn()); 4] = [
        ("a thread that waits for a future wakes", a_thread_that_waits_for_a_future_wakes),
        ("an interrupt ends a wait whenever it comes", an_interrupt_ends_a_wait_whenever_it_comes),
        ("what an attempt owes is settled once", what_an_attempt_owes_is_settled_once),
        ("a caller wakes when nothing is owed", a_caller_wakes_when_nothing_is_owed),
    ];
    for (name, meet) in tried {
        loom::model(meet);
        println!("{name}: ok");
    }
    println!("{} passed, 0 failed", tried.len());
}

/// As in `threads/wait.rs`: after the future becomes ready, the thread is woken.
fn a_thread_that_waits_for_a_future_wakes() {
    let signal = Signal::of_this_thread();
    let is_ready = loom::sync::Arc::new(AtomicBool::new(false));
    let (makes_ready, waker) = (is_ready.clone(), Waker::from(signal.clone()));
    let other = spawn(move || {
        makes_ready.store(true, Ordering::Release);
        waker.wake();
    });
    while !is_ready.load(Ordering::Acquire) {
        signal.wait(None);
    }
    other.join().unwrap();
}

/// A wait is registered before the first check, and checks the interrupt after each wake. A reset hides nothing from a wait.
fn an_interrupt_ends_a_wait_whenever_it_comes() {
    let (signal, interrupt) = (Signal::of_this_thread(), Interrupt::new());
    let (elsewhere, registered) = (interrupt.clone(), interrupt.register(&signal));
    let other = spawn(move || {
        elsewhere.trigger();
        elsewhere.reset();
    });
    while !interrupt.has_ended(registered) {
        signal.wait(None);
    }
    other.join().unwrap();
    assert!(!interrupt.is_triggered());
}

/// The caller goes away while the task cleans up.
fn what_an_attempt_owes_is_settled_once() {
    let counters = Arc::new(Counters::default());
    let debt = Debt::new(&counters);
    let (of_caller, of_task) = (debt.clone(), debt);
    let caller = spawn(move || of_caller.owe());
    // First as an attempt that is leaving, then as one that has left.
    of_task.owe();
    of_task.settle();
    caller.join().unwrap();
    assert_eq!(counters.attempts.owed(), 0);
}

/// As in `leaving.rs`: the caller waits while the task cleans up.
fn a_caller_wakes_when_nothing_is_owed() {
    let debt = Debt::new(&Arc::default());
    debt.owe();
    let of_task = debt.clone();
    let task = spawn(move || of_task.settle());
    let signal = Signal::of_this_thread();
    let waker = Waker::from(signal.clone());
    while debt.poll_settled(&mut Context::from_waker(&waker)).is_pending() {
        signal.wait(None);
    }
    task.join().unwrap();
}
