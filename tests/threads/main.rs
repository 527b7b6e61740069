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
    pub(crate) mod progress;

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

    pub(crate) mod clock {
        use zklock_machine::Moment;

        /// Time does not pass.
        pub(crate) fn now() -> Moment {
            Moment::default()
        }
    }
}

mod machine {
    pub(crate) use zklock_machine::Moment;
}

use base::progress::Progress;
use base::stats::Counters;
use base::sync::atomic::{AtomicBool, Ordering};
use interrupt::Interrupt;
use loom::thread::spawn;
use park::Signal;
use std::sync::Arc;
use std::task::{Context, Waker};

fn main() {
    let tried: [(&str, fn()); 6] = [
        ("a thread that waits for a future wakes", a_thread_that_waits_for_a_future_wakes),
        ("an interrupt ends a wait whenever it comes", an_interrupt_ends_a_wait_whenever_it_comes),
        ("what an attempt owes is settled once", what_an_attempt_owes_is_settled_once),
        ("no attempt begins that nobody wants", no_attempt_begins_that_nobody_wants),
        ("a caller wakes when nothing is owed", a_caller_wakes_when_nothing_is_owed),
        ("what is passed on owes nothing", what_is_passed_on_owes_nothing),
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
    let progress = Progress::new(&counters);
    assert!(progress.begin());
    let (of_caller, of_task) = (progress.clone(), progress);
    let caller = spawn(move || of_caller.owe());
    // First as an attempt that is leaving, then as one that has left.
    of_task.owe();
    of_task.settle();
    caller.join().unwrap();
    assert_eq!(counters.attempts.owed(), 0);
}

fn no_attempt_begins_that_nobody_wants() {
    let counters = Arc::new(Counters::default());
    let progress = Progress::new(&counters);
    let of_caller = progress.clone();
    let caller = spawn(move || of_caller.owe());
    let has_begun = progress.begin();
    let owed = counters.attempts.owed();
    caller.join().unwrap();
    assert!(!progress.is_wanted());
    // An attempt counts from its beginning until it is settled.
    assert!(has_begun || owed == 0);
    assert_eq!(counters.attempts.owed(), u64::from(has_begun));
    progress.settle();
    assert_eq!(counters.attempts.owed(), 0);
}

/// As in `leaving.rs`: the caller waits while the task cleans up.
fn a_caller_wakes_when_nothing_is_owed() {
    let progress = Progress::new(&Arc::default());
    assert!(progress.begin());
    progress.owe();
    let of_task = progress.clone();
    let task = spawn(move || of_task.settle());
    let signal = Signal::of_this_thread();
    let waker = Waker::from(signal.clone());
    while progress.poll_settled(&mut Context::from_waker(&waker)).is_pending() {
        signal.wait(None);
    }
    task.join().unwrap();
}

/// The grant settles the attempt's debts. Then its caller goes away.
fn what_is_passed_on_owes_nothing() {
    let counters = Arc::new(Counters::default());
    let progress = Progress::new(&counters);
    assert!(progress.begin());
    let of_caller = progress.clone();
    let caller = spawn(move || of_caller.owe());
    progress.settle();
    caller.join().unwrap();
    assert!(!progress.is_wanted());
    assert_eq!(counters.attempts.owed(), 0);
}
