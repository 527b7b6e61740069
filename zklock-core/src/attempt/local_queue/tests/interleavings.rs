//! Threads that use one lock, in every order in which they can meet, beside the one that runs the attempts.

use super::kept::{LINGERS, rival};
use super::*;
use crate::base::sync::{in_every_order, wait};
use loom::thread::{spawn, yield_now};
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The lock where the threads meet: a read-write lock, of which most use only the write side.
struct Meeting {
    writers: Arc<LocalQueue>,
    readers: Arc<LocalQueue>,
    is_held: AtomicBool,
}

type Caller = fn(&Meeting);

/// Runs callers, each in a thread of its own, while this thread runs the attempts. Then nothing may be left of them.
fn meet<const CALLERS: usize>(passing: Passing, callers: [Caller; CALLERS]) {
    meet_behind(|_| Vec::new(), passing, callers);
}

/// Does so behind the nodes of others.
fn meet_behind<const CALLERS: usize>(
    others: fn(&FakeEnsemble) -> Vec<String>,
    passing: Passing,
    callers: [Caller; CALLERS],
) {
    in_every_order(move || {
        virtual_clock::run(async move {
            let ensemble = FakeEnsemble::new();
            let others = others(&ensemble);
            let (meeting, handle) = meeting(&ensemble, passing);
            let running = Arc::new(AtomicUsize::new(CALLERS));
            let threads = callers.map(|caller| {
                let (meeting, running) = (meeting.clone(), running.clone());
                spawn(move || {
                    caller(&meeting);
                    running.fetch_sub(1, Ordering::Relaxed);
                })
            });
            while running.load(Ordering::Relaxed) > 0 {
                yield_now();
                tokio::task::yield_now().await;
            }
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            drop(handle);
            clock::sleep(Duration::from_millis(1)).await;
            assert_eq!(ensemble.nodes(), others);
            assert_eq!(meeting.writers.shared.counters.attempts.owed(), 0);
            assert!(meeting.writers.lock().places.is_empty() && meeting.writers.lock().waiters.is_empty());
        });
    });
}

fn meeting(ensemble: &FakeEnsemble, passing: Passing) -> (Arc<Meeting>, Handle) {
    let (writers, handle) = with_handle(ensemble, Scheme::Write, passing);
    let claims = vec![Claim::new("/a", Scheme::Read)];
    let (held_at, shared) = (writers.held_at.clone(), handle.shared().clone());
    let readers = LocalQueue::new("/a".into(), claims, passing, held_at, shared);
    (Arc::new(Meeting { writers, readers, is_held: AtomicBool::new(false) }), handle)
}

impl Meeting {
    /// Holds the lock for a moment, alone.
    fn use_alone(&self, hold: Hold) {
        assert!(!self.is_held.swap(true, Ordering::Relaxed), "two hold it");
        yield_now();
        self.is_held.store(false, Ordering::Relaxed);
        drop(hold);
    }
}

fn writes(meeting: &Meeting) {
    let taken = meeting.writers.take(Owner::unique(), false);
    let acquired = || wait(join(&meeting.writers, Patience::Waits).answer()).unwrap().expect("it waits");
    meeting.use_alone(taken.unwrap_or_else(acquired));
}

fn tries_to_write(meeting: &Meeting) {
    if let Some(hold) = wait(join(&meeting.writers, Patience::TriesOnce).answer()).unwrap() {
        meeting.use_alone(hold);
    }
}

fn tries_to_read(meeting: &Meeting) {
    if let Some(hold) = wait(join(&meeting.readers, Patience::TriesOnce).answer()).unwrap() {
        meeting.use_alone(hold);
    }
}

fn goes_away(meeting: &Meeting) {
    let mut ticket = join(&meeting.writers, Patience::Waits);
    let _ = ticket.poll_answer(&mut Context::from_waker(Waker::noop()));
    if let Some(debt) = ticket.leave() {
        wait(poll_fn(|context| debt.poll_settled(context)));
    }
}

#[test]
fn two_exclude_each_other() {
    meet(Passing::default(), [writes, writes]);
}

#[test]
fn one_goes_away_while_another_waits() {
    meet(Passing::default(), [goes_away, writes]);
}

#[test]
fn two_go_away() {
    meet(Passing::default(), [goes_away, goes_away]);
}

#[test]
fn two_go_away_while_another_process_holds_the_lock() {
    meet_behind(|ensemble| vec![rival(ensemble, "__WRIT__")], Passing::default(), [goes_away, goes_away]);
}

#[test]
fn one_tries_while_another_waits() {
    meet(Passing::default(), [tries_to_write, writes]);
}

#[test]
fn two_take_a_node_that_lingers() {
    meet(LINGERS, [writes, writes]);
}

#[test]
fn a_reader_tries_while_the_node_of_a_writer_lingers() {
    meet(LINGERS, [tries_to_read, writes]);
}
