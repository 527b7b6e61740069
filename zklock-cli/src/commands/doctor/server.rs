//! One server by itself: whether it can be reached, and what it reports about itself.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::finding::Finding;
use crate::connect::Connection;
use crate::failure::Failure;

const PATIENCE: Duration = Duration::from_secs(3);
const DEFAULT_PORT: &str = "2181";

/// Looks at each server of the hosts, and returns those that accept connections.
pub(super) async fn look_at_all(
    connection: &Connection,
    findings: &mut Vec<Finding>,
) -> Result<Vec<String>, Failure> {
    let hosts = connection.hosts()?;
    let servers = hosts.split('/').next().unwrap_or_default();
    let is_encrypted = connection.is_encrypted();
    let mut reached = Vec::new();
    for server in servers.split(',').map(str::trim).filter(|server| !server.is_empty()) {
        // An IPv6 address has colons of its own, in brackets.
        let has_port =
            server.rsplit_once(':').is_some_and(|(host, _)| !host.contains(':') || host.ends_with(']'));
        let address = if has_port { server.to_owned() } else { format!("{server}:{DEFAULT_PORT}") };
        let found = look_at(&address, is_encrypted).await;
        if !found.iter().any(Finding::is_bad) {
            reached.push(address);
        }
        findings.extend(found);
    }
    Ok(reached)
}

async fn look_at(address: &str, is_encrypted: bool) -> Vec<Finding> {
    let begun = Instant::now();
    let stream = match timeout(PATIENCE, TcpStream::connect(address)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            let advice =
                "see whether it runs, and whether the name and the port (clientPort in zoo.cfg) are right";
            return vec![Finding::bad("server", format!("{address} {error}"), advice)];
        }
        Err(_) => {
            let text = format!("{address} does not answer within {PATIENCE:?}");
            return vec![Finding::bad(
                "server",
                text,
                "packets may be dropped on the way: check the firewall",
            )];
        }
    };
    let took = begun.elapsed();
    let reached = Finding::good("server", format!("{address} accepts connections, in {took:.1?}"));
    if is_encrypted {
        return vec![reached];
    }
    vec![reached, version(address, stream).await]
}

/// Asks the server for its version, with the word `srvr`.
async fn version(address: &str, mut stream: TcpStream) -> Finding {
    let mut answer = String::new();
    let asked = timeout(PATIENCE, async {
        stream.write_all(b"srvr").await?;
        stream.read_to_string(&mut answer).await
    });
    let _ = asked.await;
    let after = |head: &str| answer.lines().find_map(|line| line.strip_prefix(head)).map(str::trim);
    let Some(version) = after("Zookeeper version:").and_then(|text| text.split(['-', ',']).next()) else {
        if answer.contains("not currently serving requests") {
            let advice =
                "its ensemble has no leader: see whether most of its servers run and reach one another";
            return Finding::bad("server", format!("{address} runs, but serves no client"), advice);
        }
        let advice = match answer.contains("not in the whitelist") {
            true => "allow the word: 4lw.commands.whitelist=srvr in zoo.cfg. Or do without it",
            false => "is it ZooKeeper, or does the port expect TLS?",
        };
        return Finding::warning("server", format!("{address} does not say its version"), advice);
    };
    let mode = after("Mode:").unwrap_or("unknown");
    let text = format!("{address} is ZooKeeper {version}, {mode}");
    let mut numbers = version.split('.').filter_map(|number| number.parse::<u32>().ok());
    let numbers = [(); 3].map(|()| numbers.next().unwrap_or(0));
    if numbers < [3, 5, 0] {
        let advice = "before 3.5 there are no containers: nodes of unused locks stay; upgrade when you can";
        return Finding::warning("server", text, advice);
    }
    match forgets(numbers).filter(|_| mode != "standalone") {
        Some(issue) => {
            let advice = format!(
                "after a crash, this release can lose writes that its ensemble had confirmed ({issue}): a \
                 lock could be granted twice, or never; upgrade to 3.8.5, 3.9.4 or later"
            );
            Finding::warning("server", text, advice)
        }
        None => Finding::good("server", format!("{text}; it has containers")),
    }
}

/// Returns why servers of this release may lose transactions that the quorum has committed, if they may. A single server
/// loses nothing in these ways.
fn forgets(release: [u32; 3]) -> Option<&'static str> {
    let is_mended = release >= [3, 9, 2] || ([3, 8, 5]..[3, 9, 0]).contains(&release);
    match release {
        [3, 9, 3] => Some("ZOOKEEPER-4925"),
        _ if is_mended => None,
        _ => Some("ZOOKEEPER-4785"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_that_lose_transactions_are_known() {
        for (release, issue) in [
            ([3, 6, 4], Some("ZOOKEEPER-4785")),
            ([3, 8, 0], Some("ZOOKEEPER-4785")),
            ([3, 8, 4], Some("ZOOKEEPER-4785")),
            ([3, 8, 5], None),
            ([3, 9, 1], Some("ZOOKEEPER-4785")),
            ([3, 9, 2], None),
            ([3, 9, 3], Some("ZOOKEEPER-4925")),
            ([3, 9, 5], None),
            ([3, 10, 0], None),
            ([4, 0, 0], None),
        ] {
            assert_eq!(forgets(release), issue, "{release:?}");
        }
    }
}
