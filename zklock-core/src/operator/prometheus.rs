//! The counters as text for Prometheus.
//!
//! It is written by hand, because every user would have to build a library for it, for one page of text.

use crate::base::error::LossReason;
use crate::base::histogram::Histogram;
use crate::base::lock_stats::LockStats;
use crate::base::outcome::AcquireOutcome;
use crate::base::stats::Stats;
use std::collections::BTreeMap;
use std::fmt::Write;

impl Stats {
    /// Returns the counters in Prometheus' text format 0.0.4, to be served as `text/plain; version=0.0.4`.
    ///
    /// The names follow the conventions of Prometheus, and are those that OpenTelemetry's names have there:
    /// `zklock_acquires_total`, `zklock_acquire_wait_seconds`. The names of metrics and labels stay the same from version to
    /// version; new ones may be added. The figures of a lock with a [name](crate::LockSpec::figures) have that as the label
    /// `lock`. The text may share a page with the program's own metrics. For several clients on one page, use
    /// [`prometheus_text`]: with two of these texts every name would appear twice, which Prometheus refuses.
    ///
    /// # Examples
    ///
    /// ```
    /// let text = zklock_core::Stats::default().to_prometheus();
    /// assert!(text.contains("# TYPE zklock_acquires_total counter\n"));
    /// assert!(text.contains("zklock_acquires_total{outcome=\"granted\"} 0\n"));
    /// assert!(text.contains("zklock_acquire_wait_seconds_bucket{le=\"0.1024\"} 0\n"));
    /// ```
    pub fn to_prometheus(&self) -> String {
        text(&[(String::new(), self)])
    }
}

/// Returns the counters of several clients as one text for Prometheus. It is like [`Stats::to_prometheus`], but each client has
/// its name as the label `client`.
///
/// # Examples
///
/// ```no_run
/// use zklock_core::prometheus_text;
///
/// # fn example(orders: &zklock_core::Client, billing: &zklock_core::Client) {
/// let page = prometheus_text(&[("orders", orders.stats()), ("billing", billing.stats())].into());
/// assert!(page.contains("zklock_sessions_total{client=\"billing\"} 1\n"));
/// # }
/// ```
pub fn prometheus_text(clients: &BTreeMap<&str, Stats>) -> String {
    let clients = clients.iter().map(|(name, stats)| (label("client", name), stats));
    text(&clients.collect::<Vec<_>>())
}

/// Writes the text for these clients, each with the labels of all its samples.
fn text(clients: &[(String, &Stats)]) -> String {
    let mut page = Page { text: String::with_capacity(8 * 1024), clients };
    let acquires = "Calls that acquire a lock, by how they ended.";
    let losses = "Holds lost, by the reason.";
    let (wait, hold) =
        ("From a call that acquires a lock to its hold.", "From a grant to its release or loss.");
    page.family("sessions_total", "Sessions opened.", |stats| [plain(stats.sessions)]);
    let reconnects = "New connections of a session whose previous connection broke.";
    page.family("reconnects_total", reconnects, |stats| [plain(stats.reconnects)]);
    page.family("acquires_total", acquires, |stats| by_outcome("", |outcome| stats.acquires(outcome)));
    page.family("grants_total", "Locks granted.", |stats| [plain(stats.grants)]);
    page.family("losses_total", losses, |stats| by_reason("", |reason| stats.losses_by(reason)));
    let owed = "Nodes that are no longer needed and are being deleted.";
    page.family("cleanups_owed", owed, |stats| [plain(stats.owed)]);
    page.family("acquire_wait_seconds", wait, |stats| [plain(stats.acquire_wait)]);
    page.family("hold_seconds", hold, |stats| [plain(stats.hold_time)]);
    let lag = "From a heartbeat to its answer.";
    page.family("heartbeat_lag_seconds", lag, |stats| [plain(stats.heartbeat_lag)]);
    let ahead = "Contenders ahead of a node that has just been created.";
    page.family("queue_length", ahead, |stats| [plain(stats.queue_length)]);

    page.family("lock_held", "Grants that are held now.", |stats| of_locks(stats, |lock| lock.held));
    page.family("lock_waiting", "Calls that wait for the lock now.", |stats| {
        of_locks(stats, |lock| lock.waiting)
    });
    page.family("lock_oldest_hold_seconds", "Age of the oldest grant that is held now.", |stats| {
        of_locks(stats, |lock| lock.oldest_hold.unwrap_or_default().as_secs_f64())
    });
    page.family("lock_acquires_total", acquires, |stats| {
        stats.locks.iter().flat_map(|lock| by_outcome(&name_of(lock), |outcome| lock.acquires(outcome)))
    });
    page.family("lock_losses_total", losses, |stats| {
        stats.locks.iter().flat_map(|lock| by_reason(&name_of(lock), |reason| lock.losses_by(reason)))
    });
    page.family("lock_wait_seconds", wait, |stats| of_locks(stats, |lock| lock.acquire_wait));
    page.family("lock_hold_seconds", hold, |stats| of_locks(stats, |lock| lock.hold_time));
    page.text
}

fn plain<V>(value: V) -> (String, V) {
    (String::new(), value)
}

fn by_outcome(labels: &str, count: impl Fn(AcquireOutcome) -> u64) -> Vec<(String, u64)> {
    let counted = |outcome: &AcquireOutcome| {
        (joined([labels, &label("outcome", &outcome.to_string())]), count(*outcome))
    };
    AcquireOutcome::ALL.iter().map(counted).collect()
}

fn by_reason(labels: &str, count: impl Fn(LossReason) -> u64) -> Vec<(String, u64)> {
    let counted = |reason: &LossReason| (joined([labels, &label("reason", &snake(*reason))]), count(*reason));
    LossReason::ALL.iter().map(counted).collect()
}

fn of_locks<V>(stats: &Stats, value: impl Fn(&LockStats) -> V) -> impl Iterator<Item = (String, V)> {
    stats.locks.iter().map(move |lock| (name_of(lock), value(lock)))
}

fn name_of(lock: &LockStats) -> String {
    label("lock", &lock.name)
}

fn label(name: &str, value: &str) -> String {
    let value = value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
    format!("{name}=\"{value}\"")
}

fn joined<const N: usize>(labels: [&str; N]) -> String {
    let there: Vec<_> = labels.into_iter().filter(|labels| !labels.is_empty()).collect();
    there.join(",")
}

/// `session_expired` for `SessionExpired`.
fn snake(reason: LossReason) -> String {
    let mut label = String::new();
    for letter in format!("{reason:?}").chars() {
        if letter.is_ascii_uppercase() && !label.is_empty() {
            label.push('_');
        }
        label.push(letter.to_ascii_lowercase());
    }
    label
}

/// What a sample is made of.
trait Value {
    /// The type in Prometheus of a metric that is not a counter.
    const KIND: &str = "gauge";

    fn write(&self, page: &mut String, name: &str, labels: &str);
}

impl Value for u64 {
    fn write(&self, page: &mut String, name: &str, labels: &str) {
        line(page, name, labels, self);
    }
}

impl Value for f64 {
    fn write(&self, page: &mut String, name: &str, labels: &str) {
        line(page, name, labels, self);
    }
}

impl Value for Histogram {
    const KIND: &str = "histogram";

    fn write(&self, page: &mut String, name: &str, labels: &str) {
        for (bound, count) in self.buckets() {
            let bound = if bound.is_finite() { bound.to_string() } else { "+Inf".to_owned() };
            line(page, &format!("{name}_bucket"), &joined([labels, &label("le", &bound)]), count);
        }
        line(page, &format!("{name}_sum"), labels, self.sum());
        line(page, &format!("{name}_count"), labels, self.count());
    }
}

fn line(page: &mut String, name: &str, labels: &str, value: impl std::fmt::Display) {
    let (open, close) = if labels.is_empty() { ("", "") } else { ("{", "}") };
    // Writing to a string does not fail.
    let _ = writeln!(page, "zklock_{name}{open}{labels}{close} {value}");
}

struct Page<'a> {
    text: String,
    clients: &'a [(String, &'a Stats)],
}

impl<'a> Page<'a> {
    /// Writes a metric with its samples of all clients, which have to stand together. Without any it is left out.
    fn family<V: Value, S: IntoIterator<Item = (String, V)>>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl Fn(&'a Stats) -> S,
    ) {
        let of_each = |(client, stats): &'a (String, &'a Stats)| {
            samples(stats).into_iter().map(move |(labels, value)| (joined([client, &labels]), value))
        };
        let mut samples = self.clients.iter().flat_map(of_each).peekable();
        if samples.peek().is_some() {
            let kind = if name.ends_with("_total") { "counter" } else { V::KIND };
            let _ = writeln!(self.text, "# HELP zklock_{name} {help}\n# TYPE zklock_{name} {kind}");
        }
        for (labels, value) in samples {
            value.write(&mut self.text, name, &labels);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::stats::Counters;
    use std::collections::BTreeSet;
    use std::time::Duration;

    /// The samples of a page by name and labels. Each belongs to the metric whose head came last.
    fn parsed(page: &str) -> BTreeMap<&str, f64> {
        assert!(page.ends_with('\n'));
        let (mut samples, mut metrics, mut metric) = (BTreeMap::new(), BTreeSet::new(), ("", ""));
        let mut lines = page.lines();
        while let Some(line) = lines.next() {
            if let Some(help) = line.strip_prefix("# HELP ") {
                let (name, text) = help.split_once(' ').unwrap();
                assert!(text.ends_with('.') && metrics.insert(name), "{line}");
                let kind = lines.next().unwrap().strip_prefix("# TYPE ").unwrap();
                metric = kind.split_once(' ').filter(|(typed, _)| *typed == name).unwrap();
                continue;
            }
            let (series, value) = line.rsplit_once(' ').unwrap();
            let name = series.split('{').next().unwrap();
            let suffix = name.strip_prefix(metric.0).unwrap_or_else(|| panic!("{line} is not of {metric:?}"));
            let suffixes: &[&str] =
                if metric.1 == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
            assert!(suffixes.contains(&suffix), "{line}");
            assert_eq!(metric.1 == "counter", name.ends_with("_total"), "{line}");
            assert!(samples.insert(series, value.parse().unwrap()).is_none(), "{series} is there twice");
        }
        samples
    }

    #[test]
    fn a_page_has_every_outcome_and_every_reason() {
        let page = Stats::default().to_prometheus();
        let samples = parsed(&page);
        for outcome in AcquireOutcome::ALL {
            assert_eq!(samples[&*format!("zklock_acquires_total{{outcome=\"{outcome}\"}}")], 0.0);
        }
        assert_eq!(samples.keys().filter(|series| series.contains("reason=")).count(), LossReason::ALL.len());
        assert_eq!(samples["zklock_losses_total{reason=\"foreign_contender\"}"], 0.0);
    }

    #[test]
    fn a_page_says_what_was_counted() {
        let counters = Counters::default();
        counters.count_session();
        counters.count_acquire(AcquireOutcome::Granted, Duration::from_micros(300));
        counters.count_acquire(AcquireOutcome::Granted, Duration::from_millis(50));
        counters.count_acquire(AcquireOutcome::TimedOut, Duration::from_secs(3));
        counters.count_loss(LossReason::NodeDeleted);
        counters.count_entry(2);
        let page = counters.read().to_prometheus();
        let samples = parsed(&page);
        let expected = [
            ("zklock_sessions_total", 1.0),
            ("zklock_acquires_total{outcome=\"granted\"}", 2.0),
            ("zklock_acquires_total{outcome=\"timed_out\"}", 1.0),
            ("zklock_losses_total{reason=\"node_deleted\"}", 1.0),
            ("zklock_acquire_wait_seconds_bucket{le=\"0.0002\"}", 0.0),
            ("zklock_acquire_wait_seconds_bucket{le=\"0.0004\"}", 1.0),
            ("zklock_acquire_wait_seconds_bucket{le=\"0.0512\"}", 2.0),
            ("zklock_acquire_wait_seconds_bucket{le=\"+Inf\"}", 2.0),
            ("zklock_acquire_wait_seconds_sum", 0.0503),
            ("zklock_acquire_wait_seconds_count", 2.0),
            ("zklock_queue_length_bucket{le=\"1\"}", 0.0),
            ("zklock_queue_length_bucket{le=\"3\"}", 1.0),
            ("zklock_queue_length_sum", 2.0),
        ];
        for (series, value) in expected {
            assert_eq!(samples[series], value, "{series}");
        }
    }

    #[test]
    fn a_lock_with_a_name_has_figures_with_that_label_and_others_have_none() {
        let counters = Counters::default();
        assert!(!counters.read().to_prometheus().contains("zklock_lock_"));
        let figures = counters.of_locks("report");
        figures.count_waiter();
        figures.count_acquire(AcquireOutcome::Granted, Duration::from_micros(300));
        let page = counters.read().to_prometheus();
        let samples = parsed(&page);
        let expected = [
            ("zklock_lock_held{lock=\"report\"}", 0.0),
            ("zklock_lock_waiting{lock=\"report\"}", 1.0),
            ("zklock_lock_oldest_hold_seconds{lock=\"report\"}", 0.0),
            ("zklock_lock_acquires_total{lock=\"report\",outcome=\"granted\"}", 1.0),
            ("zklock_lock_losses_total{lock=\"report\",reason=\"lease_lapsed\"}", 0.0),
            ("zklock_lock_wait_seconds_bucket{lock=\"report\",le=\"0.0002\"}", 0.0),
            ("zklock_lock_wait_seconds_bucket{lock=\"report\",le=\"+Inf\"}", 1.0),
            ("zklock_lock_wait_seconds_sum{lock=\"report\"}", 0.0003),
            ("zklock_lock_hold_seconds_count{lock=\"report\"}", 0.0),
        ];
        for (series, value) in expected {
            assert_eq!(samples[series], value, "{series}");
        }
        assert!(page.contains("# TYPE zklock_lock_held gauge\n"));
        assert!(page.contains("# TYPE zklock_lock_wait_seconds histogram\n"));
    }

    #[test]
    fn a_text_of_several_clients_has_each_metric_once_with_all_of_them() {
        let (orders, billing) = (Counters::default(), Counters::default());
        orders.count_session();
        billing.of_locks("report").count_waiter();
        let page = prometheus_text(&[("orders", orders.read()), ("billing", billing.read())].into());
        let samples = parsed(&page);
        assert_eq!(samples["zklock_sessions_total{client=\"orders\"}"], 1.0);
        assert_eq!(samples["zklock_sessions_total{client=\"billing\"}"], 0.0);
        assert_eq!(samples["zklock_acquires_total{client=\"orders\",outcome=\"busy\"}"], 0.0);
        assert_eq!(samples["zklock_lock_waiting{client=\"billing\",lock=\"report\"}"], 1.0);
        assert_eq!(samples["zklock_hold_seconds_bucket{client=\"billing\",le=\"+Inf\"}"], 0.0);
        assert!(!samples.contains_key("zklock_lock_waiting{client=\"orders\",lock=\"report\"}"));
    }

    #[test]
    fn a_name_with_quotes_and_backslashes_is_escaped() {
        let counters = Counters::default();
        counters.of_locks(r#"a "b" \c"#);
        let page = counters.read().to_prometheus();
        assert!(page.contains(r#"zklock_lock_held{lock="a \"b\" \\c"} 0"#), "{page}");
    }
}
