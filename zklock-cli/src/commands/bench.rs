//! `zklock bench`: how long a lock takes on this ensemble.

use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use zklock::{Client, Lock};

use crate::connect::Connection;
use crate::failure::Failure;
use crate::output::{columns, print, print_json};

const WIDTH: usize = 40;
/// The first step of the distribution that is drawn. Each further one is twice as long.
const STEP: Duration = Duration::from_micros(64);

/// Measure how long it takes to acquire a free lock on this ensemble, and to hand a lock over
///
/// One client acquires and releases a free lock. In a hand-over, one client releases the lock, and another, which has waited,
/// gets it.
#[derive(Args, Debug)]
pub(crate) struct Bench {
    /// The path of the lock that is measured
    #[arg(default_value = "/zklock-bench")]
    path: String,

    /// How many times to measure each
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
    count: usize,
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
        one.close().await?;
        other.close().await?;
        let measured = measured?;
        if self.json {
            let figures: Vec<_> = measured.iter().map(|(what, times)| times.figures(what)).collect();
            return print_json(&figures);
        }
        let texts: Vec<_> = measured.iter().map(|(what, times)| times.text(what)).collect();
        print(&texts.join("\n"))
    }

    async fn measure(&self, one: &Client, other: &Client) -> Result<[(&'static str, Times); 2], Failure> {
        let (one, other) = (one.mutex(&self.path)?, other.mutex(&self.path)?);
        let (free, hand_over) = (self.free(&one).await?, self.hand_over(&one, &other).await?);
        Ok([("free lock (acquire and release)", free), ("hand-over (release to grant)", hand_over)])
    }

    async fn free(&self, lock: &Lock) -> Result<Times, Failure> {
        let mut times = Vec::new();
        for _ in 0..self.count {
            let begun = Instant::now();
            lock.acquire().await?.release().await?;
            times.push(begun.elapsed());
        }
        Ok(Times::new(times))
    }

    async fn hand_over(&self, mut holder: &Lock, mut waiter: &Lock) -> Result<Times, Failure> {
        let mut times = Vec::new();
        let mut hold = holder.acquire().await?;
        for _ in 0..self.count {
            let waits = async { waiter.acquire().await.map(|hold| (hold, Instant::now())) };
            let releases = async {
                // Only a contender in the queue has waited.
                while holder.contenders().await?.len() < 2 {
                    tokio::task::yield_now().await;
                }
                let begun = Instant::now();
                // The grant may come before the reply to this.
                hold.release().await.map(|()| begun)
            };
            let ((next, granted), begun) = tokio::try_join!(waits, releases)?;
            times.push(granted.duration_since(begun));
            hold = next;
            std::mem::swap(&mut holder, &mut waiter);
        }
        hold.release().await?;
        Ok(Times::new(times))
    }
}

/// The times of one measurement, in order.
struct Times(Vec<Duration>);

impl Times {
    fn new(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        Self(times)
    }

    /// The least, the median, 90 %, 99 %, and the greatest; by the definition of the repository's benchmarks.
    fn percentiles(&self) -> [Duration; 5] {
        let last = self.0.len().saturating_sub(1);
        let at = |percent: usize| self.0.get((self.0.len() * percent / 100).min(last));
        [0, 50, 90, 99, 100].map(|percent| at(percent).copied().unwrap_or_default())
    }

    /// How many took less than a limit, and not less than the limit before, from the first time to the last.
    fn steps(&self) -> Vec<(Duration, usize)> {
        let (mut steps, mut rest, mut limit) = (Vec::new(), &self.0[..], STEP);
        while !rest.is_empty() {
            let count = rest.partition_point(|time| *time < limit);
            if count > 0 || !steps.is_empty() {
                steps.push((limit, count));
            }
            rest = &rest[count..];
            limit *= 2;
        }
        steps
    }

    fn figures(&self, what: &'static str) -> Figures {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let [min, p50, p90, p99, max] = self.percentiles().map(micros);
        Figures { what, count: self.0.len(), min, p50, p90, p99, max }
    }

    /// Writes the percentiles, and below them how many took how long.
    fn text(&self, what: &str) -> String {
        let written = |time: Duration| format!("{time:.1?}");
        let ([min, p50, p90, p99, max], count) = (self.percentiles().map(written), self.0.len());
        let head = format!("{what}, {count} times: median {p50}, 90 % {p90}, 99 % {p99}; {min} to {max}\n");
        let steps = self.steps();
        let most = steps.iter().map(|(_, count)| *count).max().unwrap_or(1);
        let row = |(limit, count): (Duration, usize)| {
            let bar = "#".repeat(count * WIDTH / most);
            vec![format!("  up to {}", written(limit)), format!("{count:>6}"), bar]
        };
        head + &columns(&[], steps.into_iter().map(row))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_is_drawn_from_the_first_time_to_the_last() {
        let times = [5000, 1000, 900, 1000].map(Duration::from_micros);
        let text = Times::new(times.to_vec()).text("free lock");
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines[0], "free lock, 4 times: median 1.0ms, 90 % 5.0ms, 99 % 5.0ms; 900.0µs to 5.0ms");
        assert!(lines[1].starts_with("  up to 1.0ms") && lines[1].ends_with(&"#".repeat(WIDTH)), "{text}");
        assert!(lines.last().is_some_and(|line| line.contains("     1  ####")), "{text}");
    }
}
