//! The counters as text for Prometheus.
//!
//! It is written by hand, because every user would have to build a library for it, for one page of text.

use crate::base::error::LossReason;
use crate::base::histogram::Histogram;
use crate::base::lock_figures::LockStats;
use crate::base::outcome::AcquireOutcome;
use crate::base::stats::Stats;
use crate::base::tally::{ByOutcome, ByReason, Figure};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

impl Stats {
    /// Returns the counters in Prometheus' text format 0.0.4, to be served as `text/plain; version=0.0.4`.
    ///
    /// The names follow the conventions of Prometheus, and are those that OpenTelemetry's names have there:
    /// `zklock_acquires_total`, `zklock_acquire_wait_seconds`. The names of metrics and labels stay the same from version to
    /// version; new ones may be added. The figures of a lock with a [name](crate::LockSpec::metrics_name) have that as the label
    /// `lock`. The text may share a page with the program's own metrics. For several clients on one page, use
    /// [`prometheus_text`]: with two of these texts every name would appear twice, which Prometheus refuses.
    ///
    /// # Examples
    ///
    /// ```
    /// let text = zklock::further::Stats::default().to_prometheus();
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
/// use zklock::further::prometheus_text;
///
/// # fn example(orders: &zklock::Client, billing: &zklock::Client) {
/// let page = prometheus_text(&[("orders", orders.stats()), ("billing", billing.stats())].into());
/// assert!(page.contains("zklock_sessions_total{client=\"billing\"} 1\n"));
/// # }
/// ```
pub fn prometheus_text(clients: &BTreeMap<&str, Stats>) -> String {
    let clients = clients.iter().map(|(name, stats)| (label("client", name), stats));
    text(&clients.collect::<Vec<_>>())
}

/// Writes the text for these clients, each with the labels of all its samples. The samples of a metric stand together. A metric
/// without any is left out.
fn text(clients: &[(String, &Stats)]) -> String {
    let mut page = String::with_capacity(8 * 1024);
    for (name, help, figure) in Stats::METRICS {
        family(&mut page, name, help, clients.iter().map(|(client, stats)| (client.clone(), figure(stats))));
    }
    let mut locks = Vec::new();
    for (client, stats) in clients {
        locks.extend(stats.locks.iter().map(|lock| (joined([client, &label("lock", &lock.name)]), lock)));
    }
    for (name, help, figure) in LockStats::METRICS {
        family(&mut page, name, help, locks.iter().map(|(labels, lock)| (labels.clone(), figure(lock))));
    }
    page
}

fn family<'a>(
    page: &mut String,
    name: &str,
    help: &str,
    samples: impl Iterator<Item = (String, &'a dyn Figure)>,
) {
    for (number, (labels, figure)) in samples.enumerate() {
        if number == 0 {
            let kind = if name.ends_with("_total") { "counter" } else { figure.kind() };
            // Writing to a string does not fail.
            let _ = writeln!(page, "# HELP zklock_{name}{help}\n# TYPE zklock_{name} {kind}");
        }
        figure.write(page, name, &labels);
    }
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

impl Figure for u64 {
    fn write(&self, page: &mut String, name: &str, labels: &str) {
        line(page, name, labels, self);
    }
}

impl Figure for Option<Duration> {
    fn write(&self, page: &mut String, name: &str, labels: &str) {
        line(page, name, labels, self.unwrap_or_default().as_secs_f64());
    }
}

impl Figure for ByOutcome {
    fn write(&self, page: &mut String, name: &str, labels: &str) {
        for (outcome, count) in AcquireOutcome::ALL.iter().zip(self.0) {
            line(page, name, &joined([labels, &label("outcome", &outcome.to_string())]), count);
        }
    }
}

impl Figure for ByReason {
    fn write(&self, page: &mut String, name: &str, labels: &str) {
        for (reason, count) in LossReason::ALL.iter().zip(self.0) {
            line(page, name, &joined([labels, &label("reason", &snake(*reason))]), count);
        }
    }
}

impl Figure for Histogram {
    fn kind(&self) -> &'static str {
        "histogram"
    }

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
    let _ = writeln!(page, "zklock_{name}{open}{labels}{close} {value}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::stats::Counters;
    use std::collections::BTreeSet;

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
    fn a_lock_with_a_name_has_figures_with_that_label_and_others_have_none() {
        let counters = Counters::default();
        assert!(!counters.read().to_prometheus().contains("zklock_lock_"));
        let figures = counters.of_locks("report");
        figures.waiting.add();
        figures.tally.count_acquire(AcquireOutcome::Granted, Duration::from_micros(300));
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
        orders.sessions.add();
        billing.of_locks("report").waiting.add();
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
