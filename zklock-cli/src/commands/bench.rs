//! `zklock bench`: how long a lock takes on this ensemble.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use clap::Args;
use hdrhistogram::Histogram;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;
use zklock_core::{Client, Lock};

use crate::connect::Connection;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{columns, print, print_json};

/// Times are kept in microseconds, with three digits.
const DIGITS: u8 = 3;
const WIDTH: usize = 40;

/// Measure how long a free lock takes on this ensemble, and a hand-over
///
/// A free lock is acquired and released by one client. In a hand-over one client releases the lock, and another has waited for
/// it.
#[derive(Args, Debug)]
pub(crate) struct Bench {
    /// Where the lock of the measurement is
    #[arg(default_value = "/zklock-bench")]
    path: String,

    /// How many of each
    #[arg(long, short = 'n', value_name = "NUMBER", default_value = "500", value_parser = clap::value_parser!(u32).range(1..))]
    count: u32,

    /// Write JSON: percentiles in microseconds
    #[arg(long)]
    json: bool,
}

/// The figures as programs read them, in microseconds.
#[derive(Debug, Serialize)]
struct Figures {
    what: &'static str,
    count: u64,
    min: u64,
    p50: u64,
    p90: u64,
    p99: u64,
    max: u64,
}

impl Bench {
    pub(crate) async fn execute(&self, connection: &Connection) -> Result<(), Failure> {
        let (one, other) = (connection.client().await?, connection.client().await?);
        let measured = self.measure(&one, &other).await;
        one.close().await;
        other.close().await;
        let measured = measured?;
        if self.json {
            let figures: Vec<_> = measured.iter().map(|(what, times)| Figures::of(what, times)).collect();
            return print_json(&figures);
        }
        let texts: Vec<_> = measured.iter().map(|(what, times)| text(what, times)).collect();
        print(&texts.join("\n"))
    }

    async fn measure(
        &self,
        one: &Client,
        other: &Client,
    ) -> Result<Vec<(&'static str, Histogram<u64>)>, Failure> {
        let (one, other) = (one.mutex(&self.path)?, other.mutex(&self.path)?);
        let progress = self.progress();
        let free = self.free(&one, &progress).await?;
        let hand_over = self.hand_over(&one, &other, &progress).await?;
        progress.finish_and_clear();
        Ok(vec![("free lock (acquire and release)", free), ("hand-over (release to grant)", hand_over)])
    }

    async fn free(&self, lock: &Lock, progress: &ProgressBar) -> Result<Histogram<u64>, Failure> {
        let mut times = histogram()?;
        for _ in 0..self.count {
            let begun = Instant::now();
            lock.acquire().await?.release().await?;
            record(&mut times, begun.elapsed());
            progress.inc(1);
        }
        Ok(times)
    }

    async fn hand_over(
        &self,
        one: &Lock,
        other: &Lock,
        progress: &ProgressBar,
    ) -> Result<Histogram<u64>, Failure> {
        let mut times = histogram()?;
        let (mut holder, mut waiter) = (one, other);
        let mut hold = holder.acquire().await?;
        for _ in 0..self.count {
            let waiting = waiter.clone();
            let next =
                tokio::spawn(async move { waiting.acquire().await.map(|hold| (hold, Instant::now())) });
            // Only a contender in the queue has waited.
            while holder.contenders().await?.len() < 2 {
                tokio::task::yield_now().await;
            }
            let begun = Instant::now();
            // The grant may come before the reply to the release.
            let released = hold.release().await;
            let granted = next.await.map_err(|error| Failure::new(Exit::Other, error.to_string()))?;
            released?;
            let (next, at) = granted?;
            record(&mut times, at.duration_since(begun));
            hold = next;
            std::mem::swap(&mut holder, &mut waiter);
            progress.inc(1);
        }
        hold.release().await?;
        Ok(times)
    }

    /// Shows the progress on stderr, if somebody looks there.
    fn progress(&self) -> ProgressBar {
        let is_shown = std::io::stderr().is_terminal();
        let target = if is_shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(u64::from(self.count) * 2), target);
        let style = ProgressStyle::with_template("{bar:40} {pos}/{len}, {eta} left");
        style.map_or(bar.clone(), |style| bar.with_style(style))
    }
}

fn histogram() -> Result<Histogram<u64>, Failure> {
    Histogram::new(DIGITS).map_err(|error| Failure::new(Exit::Other, error.to_string()))
}

fn record(times: &mut Histogram<u64>, time: Duration) {
    // It grows with the values that it is given, so it refuses none.
    let _ = times.record(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
}

impl Figures {
    fn of(what: &'static str, times: &Histogram<u64>) -> Self {
        Self {
            what,
            count: times.len(),
            min: times.min(),
            p50: times.value_at_quantile(0.5),
            p90: times.value_at_quantile(0.9),
            p99: times.value_at_quantile(0.99),
            max: times.max(),
        }
    }
}

/// Writes the percentiles, and below them how many took how long.
fn text(what: &'static str, times: &Histogram<u64>) -> String {
    let Figures { count, min, p50, p90, p99, max, .. } = Figures::of(what, times);
    let [min, p50, p90, p99, max] = [min, p50, p90, p99, max].map(written);
    let head = format!("{what}, {count} times: median {p50}, 90 % {p90}, 99 % {p99}; {min} to {max}\n");
    let mut buckets: Vec<_> = times
        .iter_log(64, 2.0)
        .map(|step| (step.value_iterated_to(), step.count_since_last_iteration()))
        .collect();
    // Empty buckets at both ends say nothing.
    while buckets.last().is_some_and(|(_, count)| *count == 0) {
        buckets.pop();
    }
    let most = buckets.iter().map(|(_, count)| *count).max().unwrap_or(1).max(1);
    let rows: Vec<_> = buckets
        .into_iter()
        .skip_while(|(_, count)| *count == 0)
        .map(|(limit, count)| {
            let length = usize::try_from(count).unwrap_or(WIDTH) * WIDTH / usize::try_from(most).unwrap_or(1);
            vec![format!("  up to {}", written(limit + 1)), format!("{count:>6}"), "#".repeat(length)]
        })
        .collect();
    head + &columns(&rows)
}

fn written(micros: u64) -> String {
    format!("{:.1?}", Duration::from_micros(micros))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_is_drawn_from_the_first_time_to_the_last() {
        let mut times = histogram().unwrap_or_else(|failure| panic!("{failure}"));
        for micros in [900, 1000, 1000, 5000] {
            record(&mut times, Duration::from_micros(micros));
        }
        let text = text("free lock", &times);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "free lock, 4 times: median 1.0ms, 90 % 5.0ms, 99 % 5.0ms; 900.0µs to 5.0ms");
        assert!(lines[1].starts_with("  up to 1.0ms") && lines[1].ends_with(&"#".repeat(WIDTH)), "{text}");
        assert!(lines.last().is_some_and(|line| line.contains("     1  ####")), "{text}");
    }
}
