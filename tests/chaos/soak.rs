//! Resources of workers and servers while no fault strikes: none of them may grow.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::field::Field;
use crate::servers::Kind;
use crate::workers::PROGRAMS;

/// How often resources are measured.
const EVERY: Duration = Duration::from_secs(10);
/// Growth by a tenth and this number is allowed: small numbers change with the turns that are under way.
const SLACK: u64 = 8;
const SERVERS: &str = "servers";
/// The servers' values that could grow with each turn.
const OF_SERVERS: [&str; 4] =
    ["zk_watch_count", "zk_num_alive_connections", "zk_ephemerals_count", "zk_global_sessions"];

/// The values at one time, by their names.
type Values = BTreeMap<String, u64>;

/// Lets workers take turns for a time without faults, and prints their resources early and late. All values go to a table.
/// Growth is a trouble.
pub(crate) fn soak(field: &mut Field, time: Duration, table: &Path) -> io::Result<()> {
    let (begun, mut series) = (Instant::now(), BTreeMap::<String, Vec<u64>>::new());
    let mut table = fs::File::create(table)?;
    while begun.elapsed() < time {
        field.pass(EVERY)?;
        for (name, value) in look(field) {
            writeln!(table, "{}\t{name}\t{value}", begun.elapsed().as_secs())?;
            series.entry(name).or_default().push(value);
        }
    }
    println!("used, median of the second tenth of the time and of the last:");
    for (name, values) in &series {
        let tenth = values.len() / 10;
        let (early, late) = (median(&values[tenth..]), median(&values[values.len() - tenth.max(1)..]));
        println!("  {name}: {early} {late}");
        let is_ours =
            PROGRAMS.iter().any(|program| program.is_ours && name.split(' ').next() == Some(program.name));
        if (is_ours || name.starts_with(SERVERS)) && late > early + early / 10 + SLACK {
            field.troubles.push(format!("{name} has grown from {early} to {late}"));
        }
    }
    Ok(())
}

/// The median of the first tenth.
fn median(values: &[u64]) -> u64 {
    let mut sorted = values[..(values.len() / 9).max(1)].to_vec();
    sorted.sort_unstable();
    sorted[sorted.len() / 2]
}

/// Measures the sums over all workers of each program, and over all servers.
fn look(field: &Field) -> Values {
    let mut sums = Values::new();
    for worker in &field.workers.running {
        let process = format!("/proc/{}", worker.pid());
        // If a worker has just ended, other code reports that.
        let Ok(status) = fs::read_to_string(format!("{process}/status")) else { continue };
        let number = |key: &str| {
            let line = status.lines().find(|line| line.starts_with(key));
            line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
        };
        let descriptors = fs::read_dir(format!("{process}/fd")).map_or(0, Iterator::count);
        let name = worker.program.name;
        *sums.entry(format!("{name} memory, kB")).or_default() += number("VmRSS:");
        *sums.entry(format!("{name} threads")).or_default() += number("Threads:");
        *sums.entry(format!("{name} descriptors")).or_default() += u64::try_from(descriptors).unwrap_or(0);
    }
    if field.servers.kind() != Kind::ZooKeeper {
        return sums;
    }
    for server in field.servers.zookeeper().servers() {
        let told = server.mntr();
        for key in OF_SERVERS {
            let value = told.get(key).and_then(|value| value.parse().ok()).unwrap_or(0);
            *sums.entry(format!("{SERVERS} {key}")).or_default() += value;
        }
    }
    sums
}
