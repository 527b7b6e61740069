//! What is counted of acquires and holds, for a client and for each name, and the tables of all figures.

use crate::base::error::LossReason;
use crate::base::histogram::Recorder;
use crate::base::outcome::AcquireOutcome;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Makes the struct of a table of figures, as users read them. Each row is a field, with the name that Prometheus has for it. The
/// first line of its comment is Prometheus' description, with the space before it.
macro_rules! figures {
    ($(#[$about:meta])* $Stats:ident {
        $(#[doc = $help:literal] $(#[$more:meta])* $visible:vis $figure:ident: $Type:ty $(= $metric:literal)?,)*
    }) => {
        $(#[$about])*
        #[derive(Clone, PartialEq, Eq, Debug)]
        #[non_exhaustive]
        pub struct $Stats {
            $(#[doc = $help] $(#[$more])* $visible $figure: $Type,)*
        }

        impl $Stats {
            pub(crate) const METRICS: &[$crate::base::tally::Metric<Self>] =
                &[$($(($metric, $help, |stats| &stats.$figure),)?)*];

            /// Returns how many calls that acquire a lock ended in this way. A call for one of several locks counts once. The
            /// inner calls of a reentrant owner count too.
            ///
            /// # Examples
            ///
            /// ```
            /// use zklock::further::{AcquireOutcome, Stats};
            ///
            /// assert_eq!(Stats::default().acquires(AcquireOutcome::Granted), 0);
            /// ```
            pub fn acquires(&self, outcome: AcquireOutcome) -> u64 {
                self.acquires.0[outcome as usize]
            }

            /// Returns how many holds were lost for this reason.
            ///
            /// # Examples
            ///
            /// ```
            /// use zklock::LossReason;
            /// use zklock::further::Stats;
            ///
            /// assert_eq!(Stats::default().losses_by(LossReason::SessionExpired), 0);
            /// ```
            pub fn losses_by(&self, reason: LossReason) -> u64 {
                self.losses_by.0[reason as usize]
            }
        }
    };
}
pub(super) use figures;

/// A name, a description, and where the figure is in a `T`.
pub(crate) type Metric<T> = (&'static str, &'static str, fn(&T) -> &dyn Figure);

/// A figure as text for Prometheus.
pub(crate) trait Figure {
    /// Its type, unless it is a counter, whose name shows that.
    fn kind(&self) -> &'static str {
        "gauge"
    }

    fn write(&self, page: &mut String, name: &str, labels: &str);
}

/// How often each outcome was counted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ByOutcome(pub(crate) [u64; AcquireOutcome::ALL.len()]);

/// How often each reason was counted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ByReason(pub(crate) [u64; LossReason::ALL.len()]);

/// A number to which any thread adds.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn subtract(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How acquires ended, how long they and their holds took, and why holds were lost.
#[derive(Default)]
pub(crate) struct Tally {
    acquires: [Counter; AcquireOutcome::ALL.len()],
    losses: [Counter; LossReason::ALL.len()],
    pub(super) acquire_wait: Recorder,
    pub(super) hold_time: Recorder,
}

impl Tally {
    /// Counts an acquire that has ended, after this long.
    pub(crate) fn count_acquire(&self, outcome: AcquireOutcome, waited: Duration) {
        self.acquires[outcome as usize].add();
        if outcome == AcquireOutcome::Granted {
            self.acquire_wait.add_time(waited);
        }
    }

    pub(crate) fn count_hold(&self, held: Duration) {
        self.hold_time.add_time(held);
    }

    pub(crate) fn count_loss(&self, reason: LossReason) {
        self.losses[reason as usize].add();
    }

    pub(super) fn acquires(&self) -> ByOutcome {
        ByOutcome(self.acquires.each_ref().map(Counter::read))
    }

    pub(super) fn losses(&self) -> ByReason {
        ByReason(self.losses.each_ref().map(Counter::read))
    }
}
