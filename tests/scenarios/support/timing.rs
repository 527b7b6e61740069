//! Holds under observation, and how late the machine is: a promise is about zklock, so a test must add the machine's
//! delays to its limits.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use zklock::{Hold, HoldState, LossReason};

/// Measures, until it is dropped, how late a thread of this process is that wants to run every two milliseconds.
pub(crate) struct Noise {
    worst: Arc<AtomicU64>,
    _thread: Thread,
}

impl Noise {
    pub(crate) fn measured() -> Self {
        let worst = Arc::new(AtomicU64::new(0));
        let seen = worst.clone();
        let thread = Thread::repeat(Duration::from_millis(2), move |late| {
            seen.fetch_max(u64::try_from(late.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
        });
        Self { worst, _thread: thread }
    }

    pub(crate) fn worst(&self) -> Duration {
        Duration::from_micros(self.worst.load(Ordering::Relaxed))
    }

    /// An addition to a time limit: several threads run one after the other, including those of the proxy and the server, and
    /// the server may be slower than this process.
    pub(crate) fn allowance(&self) -> Duration {
        Duration::from_millis(100) + self.worst() * 4
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// Taken after the poll, so that nothing seems to have been seen earlier than it was.
    pub(crate) at: Instant,
    pub(crate) state: HoldState,
    pub(crate) valid_for: Duration,
}

/// A thread that polls a hold every millisecond.
pub(crate) struct Observer {
    start: Instant,
    samples: Arc<Mutex<Vec<Sample>>>,
    thread: Thread,
}

impl Observer {
    pub(crate) fn of(hold: Arc<Hold>) -> Self {
        let (start, samples) = (Instant::now(), Arc::new(Mutex::new(Vec::new())));
        let kept = samples.clone();
        let thread = Thread::repeat(Duration::from_millis(1), move |_| {
            let (state, valid_for) = (hold.state(), hold.valid_for());
            let sample = Sample { at: Instant::now(), state, valid_for };
            kept.lock().unwrap_or_else(PoisonError::into_inner).push(sample);
        });
        Self { start, samples, thread }
    }

    /// The first sample after `from` for which `condition` holds. It blocks: not for tasks.
    #[track_caller]
    pub(crate) fn first(
        &self,
        from: Instant,
        bound: Duration,
        condition: impl Fn(&Sample) -> bool,
    ) -> Sample {
        let mut found = None;
        ground::until(bound, || {
            let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
            found = samples.iter().find(|sample| sample.at > from && condition(sample)).copied();
            found.is_some()
        });
        found.unwrap_or_else(|| panic!("not seen within {bound:?}: {:?}", self.states()))
    }

    /// When the hold was first seen as lost, and why it was.
    #[track_caller]
    pub(crate) fn told(&self, bound: Duration) -> (Instant, LossReason) {
        let told = self.first(self.start, bound, |sample| matches!(sample.state, HoldState::Lost(_)));
        match told.state {
            HoldState::Lost(reason) => (told.at, reason),
            other => unreachable!("{other:?}"),
        }
    }

    /// When the hold was first seen as not valid, after `from`.
    #[track_caller]
    pub(crate) fn lapsed(&self, from: Instant, bound: Duration) -> Instant {
        self.first(from, bound, |sample| sample.valid_for.is_zero()).at
    }

    /// The states in their order, one entry for each change.
    pub(crate) fn states(&self) -> Vec<HoldState> {
        let samples = self.samples.lock().unwrap_or_else(PoisonError::into_inner);
        let mut states: Vec<_> = samples.iter().map(|sample| sample.state).collect();
        states.dedup();
        states
    }

    /// All samples, after the checks that hold in any case.
    #[track_caller]
    pub(crate) fn finish(self) -> Vec<Sample> {
        drop(self.thread);
        let samples = std::mem::take(&mut *self.samples.lock().unwrap_or_else(PoisonError::into_inner));
        let lost = samples.iter().position(|sample| matches!(sample.state, HoldState::Lost(_)));
        if let Some(lost) = lost {
            let (after, end) = (&samples[lost..], samples[lost].state);
            assert!(after.iter().all(|sample| sample.state == end), "a loss is final");
            // A release may come between the two reads of one sample, but after a loss the lease must not come back.
            assert!(after.iter().all(|sample| sample.valid_for.is_zero()), "a lost hold claims to be valid");
        }
        samples
    }
}

/// A thread that repeats something until this is dropped.
struct Thread {
    ended: Arc<AtomicBool>,
    handle: Option<JoinHandle<()>>,
}

impl Thread {
    /// Passes to `work` how late each call is.
    fn repeat(pause: Duration, mut work: impl FnMut(Duration) + Send + 'static) -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let end = ended.clone();
        let handle = thread::spawn(move || {
            while !end.load(Ordering::Relaxed) {
                let start = Instant::now();
                thread::sleep(pause);
                work(start.elapsed().saturating_sub(pause));
            }
        });
        Self { ended, handle: Some(handle) }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        self.handle.take().map(JoinHandle::join).transpose().expect("the observer does not panic");
    }
}
