//! The counters as text for Prometheus.
//!
//! It is written by hand, because every user would have to build a library for it, for one page of text.

use crate::base::error::LossReason;
use crate::base::histogram::Histogram;
use crate::base::outcome::AcquireOutcome;
use crate::base::stats::Stats;
use std::fmt::Write;

impl Stats {
    /// Returns the counters in Prometheus' text format 0.0.4, to be served as `text/plain; version=0.0.4`.
    ///
    /// The names follow the conventions of Prometheus, and are what OpenTelemetry's names become there:
    /// `zklock_acquires_total`, `zklock_acquire_wait_seconds`. The names of metrics and labels stay the same from version to
    /// version; new ones may be added. The text may share a page with the program's own metrics. It is for one client: with two
    /// on one page every name would appear twice, which Prometheus refuses.
    ///
    /// # Examples
    ///
    /// ```
    /// let text = zklock_core::Stats::default().to_prometheus();
    /// assert!(text.contains("# TYPE zklock_acquires_total counter\n"));
    /// assert!(text.contains("zklock_acquires_total{outcome=\"granted\"} 0\n"));
    /// assert!(text.contains("zklock_acquire_wait_seconds_bucket{le=\"0.1024\"} 0\n"));
    /// ```
    pub fn to_prometheus(self) -> String {
        let mut page = Page(String::with_capacity(8 * 1024));
        page.counter("sessions_total", "Sessions opened.", self.sessions);
        page.counter(
            "reconnects_total",
            "Connections attached to a session after the one before had broken.",
            self.reconnects,
        );
        let outcomes =
            AcquireOutcome::ALL.iter().map(|outcome| (outcome.to_string(), self.acquires(*outcome)));
        page.labelled("acquires_total", "Calls that acquire a lock, by how they ended.", "outcome", outcomes);
        page.counter("grants_total", "Locks granted.", self.grants);
        let reasons = LossReason::ALL.iter().map(|reason| (label(*reason), self.losses_by(*reason)));
        page.labelled("losses_total", "Holds lost, by the reason.", "reason", reasons);
        page.gauge(
            "cleanups_owed",
            "Nodes that nobody wants any more and that are being deleted.",
            self.owed,
        );
        page.histogram(
            "acquire_wait_seconds",
            "From a call that acquires a lock to its hold.",
            &self.acquire_wait,
        );
        page.histogram("hold_seconds", "From a grant to its release or loss.", &self.hold_time);
        page.histogram("heartbeat_lag_seconds", "From a heartbeat to its answer.", &self.heartbeat_lag);
        page.histogram(
            "queue_length",
            "Contenders ahead of a node that has just been created.",
            &self.queue_length,
        );
        page.0
    }
}

/// `session_expired` for `SessionExpired`.
fn label(reason: LossReason) -> String {
    let mut label = String::new();
    for letter in format!("{reason:?}").chars() {
        if letter.is_ascii_uppercase() && !label.is_empty() {
            label.push('_');
        }
        label.push(letter.to_ascii_lowercase());
    }
    label
}

struct Page(String);

impl Page {
    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, help, "counter");
        self.line(name, "", value);
    }

    fn gauge(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, help, "gauge");
        self.line(name, "", value);
    }

    fn labelled(&mut self, name: &str, help: &str, label: &str, values: impl Iterator<Item = (String, u64)>) {
        self.head(name, help, "counter");
        for (text, value) in values {
            self.line(name, &format!("{{{label}=\"{text}\"}}"), value);
        }
    }

    fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.head(name, help, "histogram");
        for (bound, count) in histogram.buckets() {
            let bound = if bound.is_finite() { bound.to_string() } else { "+Inf".to_owned() };
            self.line(&format!("{name}_bucket"), &format!("{{le=\"{bound}\"}}"), count);
        }
        self.line(&format!("{name}_sum"), "", histogram.sum());
        self.line(&format!("{name}_count"), "", histogram.count());
    }

    fn head(&mut self, name: &str, help: &str, kind: &str) {
        // Writing to a string does not fail.
        let _ = writeln!(self.0, "# HELP zklock_{name} {help}\n# TYPE zklock_{name} {kind}");
    }

    fn line(&mut self, name: &str, labels: &str, value: impl std::fmt::Display) {
        let _ = writeln!(self.0, "zklock_{name}{labels} {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::stats::Counters;
    use std::collections::{BTreeMap, BTreeSet};
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
}
