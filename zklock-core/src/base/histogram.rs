//! Histograms with fixed buckets, each twice as wide as the one before.
//!
//! Counting something takes two additions to atomics: no lock, no allocation, and no search for the bucket, which
//! comes from the position of a bit. So the counting in an acquire is too cheap to be measured beside a request.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The bound of the first bucket of [`Unit::Seconds`], in nanoseconds. Everything that takes a request takes more,
/// everything else less.
const FIRST: u64 = 100_000;
/// The buckets that have a bound. One more, the last, has none.
const BUCKETS: usize = 24;

/// The unit of the values that are counted, which decides where the buckets end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Unit {
    /// 100 µs, 200 µs, and so on to 14 minutes.
    Seconds,
    /// 0, 1, 3, 7, and so on to 2,047 contenders.
    Contenders,
}

impl Unit {
    /// Returns how many buckets have a bound.
    const fn bounds(self) -> usize {
        match self {
            Self::Seconds => BUCKETS,
            Self::Contenders => 12,
        }
    }

    /// Returns the largest value in a bucket.
    fn bound(self, bucket: usize) -> f64 {
        match self {
            Self::Seconds => self.value(FIRST << bucket),
            Self::Contenders => self.value((1 << bucket) - 1),
        }
    }

    /// Returns the bucket of an amount. Times are in nanoseconds.
    fn bucket(self, amount: u64) -> usize {
        let units = match self {
            Self::Seconds => amount.div_ceil(FIRST),
            Self::Contenders => amount.saturating_add(1),
        };
        // How many doublings it takes to get there.
        let doublings = u64::BITS - units.saturating_sub(1).leading_zeros();
        (doublings as usize).min(self.bounds())
    }

    /// Returns an amount as users see it.
    fn value(self, amount: u64) -> f64 {
        match self {
            Self::Seconds => amount as f64 / 1e9,
            Self::Contenders => amount as f64,
        }
    }
}

/// A histogram to which any thread adds, either times or numbers of contenders.
#[derive(Default)]
pub(crate) struct Recorder {
    counts: [AtomicU64; BUCKETS + 1],
    sum: AtomicU64,
}

impl Recorder {
    pub(crate) fn add_time(&self, time: Duration) {
        self.add(Unit::Seconds, u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    pub(crate) fn add_contenders(&self, number: usize) {
        self.add(Unit::Contenders, number as u64);
    }

    fn add(&self, unit: Unit, amount: u64) {
        self.counts[unit.bucket(amount)].fetch_add(1, Ordering::Relaxed);
        if amount > 0 {
            self.sum.fetch_add(amount, Ordering::Relaxed);
        }
    }

    pub(crate) fn times(&self) -> Histogram {
        self.read(Unit::Seconds)
    }

    pub(crate) fn contenders(&self) -> Histogram {
        self.read(Unit::Contenders)
    }

    fn read(&self, unit: Unit) -> Histogram {
        let counts = self.counts.each_ref().map(|count| count.load(Ordering::Relaxed));
        Histogram { unit, counts, sum: self.sum.load(Ordering::Relaxed) }
    }
}

/// A distribution of times in seconds, or of numbers of contenders. It is a copy, which does not change.
///
/// # Examples
///
/// ```no_run
/// # fn example(client: &zklock::Client) {
/// let wait = client.stats().acquire_wait;
/// if wait.count() > 0 {
///     println!("{} acquires waited {} s on average", wait.count(), wait.sum() / wait.count() as f64);
/// }
/// let within_a_second = wait.buckets().take_while(|(bound, _)| *bound <= 1.0).last();
/// println!("{within_a_second:?}");
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Histogram {
    unit: Unit,
    counts: [u64; BUCKETS + 1],
    sum: u64,
}

impl Histogram {
    /// Returns how many values were counted.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(zklock::further::Stats::default().acquire_wait.count(), 0);
    /// ```
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the sum of all values.
    ///
    /// # Examples
    ///
    /// ```
    /// assert_eq!(zklock::further::Stats::default().hold_time.sum(), 0.0);
    /// ```
    pub fn sum(&self) -> f64 {
        self.unit.value(self.sum)
    }

    /// Returns the upper bound of each bucket, and how many values were not larger than that. The last bound is
    /// infinite, so its number is the [count](Self::count).
    ///
    /// # Examples
    ///
    /// ```
    /// let queue = zklock::further::Stats::default().queue_length;
    /// let bounds: Vec<f64> = queue.buckets().map(|(bound, _)| bound).collect();
    /// assert_eq!(bounds[..4], [0.0, 1.0, 3.0, 7.0]);
    /// assert_eq!(queue.buckets().last(), Some((f64::INFINITY, 0)));
    /// ```
    pub fn buckets(&self) -> impl Iterator<Item = (f64, u64)> + use<> {
        let Self { unit, counts, .. } = *self;
        let mut so_far = 0;
        (0..=unit.bounds()).map(move |bucket| {
            so_far += counts[bucket];
            let is_last = bucket == unit.bounds();
            (if is_last { f64::INFINITY } else { unit.bound(bucket) }, so_far)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every bucket that is not empty: its bound, and how many values are in it alone.
    fn filled(histogram: &Histogram) -> Vec<(f64, u64)> {
        let mut before = 0;
        let alone = histogram
            .buckets()
            .map(|(bound, so_far)| (bound, so_far - std::mem::replace(&mut before, so_far)));
        alone.filter(|(_, count)| *count > 0).collect()
    }

    #[test]
    fn a_time_is_in_the_first_bucket_whose_bound_is_not_smaller() {
        let recorder = Recorder::default();
        for nanos in [0, 1, 100_000] {
            recorder.add_time(Duration::from_nanos(nanos));
        }
        recorder.add_time(Duration::from_nanos(100_001));
        recorder.add_time(Duration::from_micros(200));
        recorder.add_time(Duration::from_millis(1));
        let histogram = recorder.times();
        assert_eq!(filled(&histogram), [(0.000_1, 3), (0.000_2, 2), (0.001_6, 1)]);
        assert_eq!(histogram.count(), 6);
        assert_eq!(histogram.sum(), 0.001_400_002);
    }

    #[test]
    fn every_bound_is_in_its_own_bucket_and_what_is_larger_in_the_next() {
        for (unit, first) in [(Unit::Seconds, FIRST), (Unit::Contenders, 1)] {
            for bucket in 0..unit.bounds() {
                let largest = if unit == Unit::Seconds { first << bucket } else { (first << bucket) - 1 };
                assert_eq!(unit.bucket(largest), bucket, "{unit:?} {largest}");
                assert_eq!(unit.bucket(largest + 1), bucket + 1, "{unit:?} {largest}");
            }
            assert_eq!(unit.bucket(u64::MAX), unit.bounds());
        }
    }

    #[test]
    fn what_is_larger_than_every_bound_is_counted_all_the_same() {
        let recorder = Recorder::default();
        recorder.add_time(Duration::MAX);
        assert_eq!(filled(&recorder.times()), [(f64::INFINITY, 1)]);
        let bounds: Vec<_> = recorder.times().buckets().map(|(bound, _)| bound).collect();
        assert_eq!((bounds.len(), bounds[BUCKETS - 1]), (BUCKETS + 1, 838.860_8));
        assert!(bounds.is_sorted());
    }

    #[test]
    fn a_queue_without_anybody_has_a_bucket_of_its_own() {
        let recorder = Recorder::default();
        [0, 0, 1, 2, 3, 4, 5_000].into_iter().for_each(|ahead| recorder.add_contenders(ahead));
        let histogram = recorder.contenders();
        assert_eq!(filled(&histogram), [(0.0, 2), (1.0, 1), (3.0, 2), (7.0, 1), (f64::INFINITY, 1)]);
        assert_eq!((histogram.count(), histogram.sum()), (7, 5_010.0));
    }

    #[test]
    fn nothing_that_threads_add_is_lost() {
        let recorder = Recorder::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1_000).for_each(|_| recorder.add_time(Duration::from_millis(1))));
            }
        });
        assert_eq!((recorder.times().count(), recorder.times().sum()), (4_000, 4.0));
    }
}
