//! Threads that use one lock, in every order with at most two interruptions, beside the one that runs the attempts.

use super::kept::{LINGERS, rival};
use super::*;
use crate::base::clock::virtual_clock;
use crate::base::sync::{in_every_order, spawn, wait};
use loom::thread::yield_now;
use std::future::poll_fn;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The lock where the threads meet: a read-write lock, of which most use only the write side.
struct Meeting {
    writers: Arc<LocalQueue>,
    readers: Arc<LocalQueue>,
    is_held: AtomicBool,
    seen: Arc<Seen>,
}

/// How often something happened, in all orders.
#[derive(Default)]
struct Seen {
    /// A hold was taken from a node that was kept.
    taken: AtomicUsize,
    /// A try got the lock.
    won: AtomicUsize,
    /// A try found it busy.
    busy: AtomicUsize,
}

impl Seen {
    fn has(count: &AtomicUsize) -> bool {
        count.load(Ordering::Relaxed) > 0
    }
}

type Caller = fn(&Meeting);

/// Runs callers, each in a thread of its own, while this thread runs the attempts. Then nothing may be left of them.
fn meet<const CALLERS: usize>(passing: Passing, callers: [Caller; CALLERS]) -> Arc<Seen> {
    meet_behind(|_| Vec::new(), passing, callers)
}

/// Does so behind the nodes of others.
fn meet_behind<const CALLERS: usize>(
    others: fn(&FakeEnsemble) -> Vec<String>,
    passing: Passing,
    callers: [Caller; CALLERS],
) -> Arc<Seen> {
    let seen = Arc::<Seen>::default();
    let sees = seen.clone();
    in_every_order(Some(2), move || {
        let sees = sees.clone();
        virtual_clock::run(async move {
            let ensemble = FakeEnsemble::new();
            let others = others(&ensemble);
            let (meeting, handle) = meeting(&ensemble, passing, sees);
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
    seen
}

fn meeting(ensemble: &FakeEnsemble, passing: Passing, seen: Arc<Seen>) -> (Arc<Meeting>, Handle) {
    let (writers, handle) = with_handle(ensemble, Scheme::Write, passing);
    let claims = vec![Claim::new("/a", Scheme::Read)];
    let (held_at, shared) = (writers.held_at.clone(), handle.shared().clone());
    let readers = LocalQueue::new("/a".into(), claims, passing, held_at, shared);
    (Arc::new(Meeting { writers, readers, is_held: AtomicBool::new(false), seen }), handle)
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
    meeting.seen.taken.fetch_add(usize::from(taken.is_some()), Ordering::Relaxed);
    let acquired = || wait(join(&meeting.writers, Patience::Waits).answer()).unwrap().expect("it waits");
    meeting.use_alone(taken.unwrap_or_else(acquired));
}

fn tries(meeting: &Meeting, queue: &Arc<LocalQueue>) {
    let hold = wait(join(queue, Patience::TriesOnce).answer()).unwrap();
    let count = if hold.is_some() { &meeting.seen.won } else { &meeting.seen.busy };
    count.fetch_add(1, Ordering::Relaxed);
    hold.into_iter().for_each(|hold| meeting.use_alone(hold));
}

fn tries_to_write(meeting: &Meeting) {
    tries(meeting, &meeting.writers);
}

fn tries_to_read(meeting: &Meeting) {
    tries(meeting, &meeting.readers);
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
    let seen = meet(Passing::default(), [tries_to_write, writes]);
    assert!(Seen::has(&seen.won) && Seen::has(&seen.busy));
}

#[test]
fn two_take_a_node_that_lingers() {
    let seen = meet(LINGERS, [writes, writes]);
    assert!(Seen::has(&seen.taken));
}

#[test]
fn a_reader_tries_while_the_node_of_a_writer_lingers() {
    let seen = meet(LINGERS, [tries_to_read, writes]);
    assert!(Seen::has(&seen.won) && Seen::has(&seen.busy));
}
