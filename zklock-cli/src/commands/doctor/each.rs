//! Each server by itself, as a client of that one alone: whether it serves, how far it lags, and whether it shows the nodes that the
//! others show, and for how long it grants sessions.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::time::{Duration, Instant};

use zklock::{Client, Error};

use super::finding::Finding;
use super::limits::{self, Limits};
use super::{SLOW, advice};
use crate::connect::Connection;

/// The number of looks. Nodes come and go, so only differences in all of these looks are reported.
const LOOKS: usize = 8;
const BETWEEN_LOOKS: Duration = Duration::from_millis(250);
/// The number of nodes that a finding names.
const NAMED: usize = 3;

/// The nodes that one server has shown so far.
struct Shown {
    server: String,
    client: Client,
    /// `None` if a session ended while they were asked for.
    limits: Option<Limits>,
    /// How long it took to read a state as new as the leader's.
    took: Duration,
    /// The nodes that existed in each look, and those that existed in any.
    always: BTreeSet<String>,
    ever: BTreeSet<String>,
}

/// Compares several servers, and returns the findings. Meanwhile there is a node of ours below the path.
pub(super) async fn compare(connection: &Connection, servers: &[String], path: &str) -> Vec<Finding> {
    let (mut findings, mut shown) = (Vec::new(), Vec::new());
    // All are asked at once, so that a server that does not answer costs its time only once.
    let first_look = |server: &String| {
        let (connection, server, path) = (connection.clone(), server.clone(), path.to_owned());
        tokio::spawn(async move { first_look(&connection, server, &path).await })
    };
    let asked: Vec<_> = servers.iter().map(first_look).collect();
    for asked in asked {
        match asked.await {
            Ok(Ok(first)) => shown.push(first),
            Ok(Err(finding)) => findings.push(finding),
            Err(_) => {}
        }
    }
    for _ in 1..LOOKS {
        if shown.windows(2).all(|pair| pair[0].always == pair[1].always) {
            break;
        }
        tokio::time::sleep(BETWEEN_LOOKS).await;
        for server in &mut shown {
            if let Ok(names) = server.client.children(path).await {
                server.look(names);
            }
        }
    }
    findings.extend(shown.iter().map(|server| verdict(server, &shown, path)));
    let all: Vec<_> =
        shown.iter().filter_map(|server| Some((server.server.as_str(), server.limits?))).collect();
    findings.extend(limits::compare(&all));
    for server in shown {
        let _ = server.client.close().await;
    }
    findings
}

/// Fails with the finding that the server has shown nothing.
async fn first_look(connection: &Connection, server: String, path: &str) -> Result<Shown, Finding> {
    let bad = |problem: &dyn Display, error: Option<&Error>| {
        let general = "others serve: see its log, and whether it reaches the leader (the servers' own ports, server.N in zoo.cfg)";
        let advice = error.map_or_else(|| general.to_owned(), |error| advice(error, general));
        Finding::bad("each server", format!("{server} by itself: {problem}"), advice)
    };
    let options = connection.options_of(&server).map_err(|failure| bad(&failure, None))?;
    let silent = |error: &Error| bad(error, Some(error));
    let client = Client::connect(options.clone()).await.map_err(|error| silent(&error))?;
    let begun = Instant::now();
    let names = match client.children(path).await {
        Ok(names) => names,
        Err(error) => {
            let _ = client.close().await;
            return Err(silent(&error));
        }
    };
    let took = begun.elapsed();
    let always: BTreeSet<_> = names.into_iter().collect();
    let limits = match client.session_timeout() {
        Some(granted) => Limits::of(&options, granted).await.ok(),
        None => None,
    };
    Ok(Shown { server, client, limits, took, ever: always.clone(), always })
}

impl Shown {
    fn look(&mut self, names: Vec<String>) {
        let names: BTreeSet<_> = names.into_iter().collect();
        self.always.retain(|name| names.contains(name));
        self.ever.extend(names);
    }
}

/// Judges one server. A node is in dispute if some have always shown it, and others never. The minority is suspected; of
/// two, the one without the node.
fn verdict(server: &Shown, all: &[Shown], path: &str) -> Finding {
    let showing = |name: &String| all.iter().filter(|other| other.always.contains(name)).count();
    let lacking = |name: &String| all.iter().filter(|other| !other.ever.contains(name)).count();
    let lacks: Vec<_> = all
        .iter()
        .flat_map(|other| &other.always)
        .filter(|name| !server.ever.contains(*name) && lacking(name) <= showing(name))
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    let alone: Vec<_> = server.always.iter().filter(|name| lacking(name) > showing(name)).collect();
    let name = &server.server;
    if lacks.is_empty() && alone.is_empty() {
        let text = format!("{name} by itself shows what the others show, in {:.1?}", server.took);
        let advice = "it lags behind the leader: check its disk, its load and its network";
        return match server.took <= SLOW {
            true => Finding::good("each server", text),
            false => Finding::warning("each server", text, advice),
        };
    }
    let finding = match lacks.is_empty() {
        true => {
            format!("{name} by itself shows nodes below {path} that the others do not: {}", named(&alone))
        }
        false => {
            format!("{name} by itself does not show nodes below {path} that others do: {}", named(&lacks))
        }
    };
    let advice = "a lock could be granted twice. If this server belongs to another ensemble, take it out of \
                  --hosts. If not, it has lost data: stop it, move all but myid out of its dataDir and \
                  dataLogDir, and start it again. It then copies the leader's data";
    Finding::bad("each server", finding, advice)
}

fn named(names: &[&String]) -> String {
    let shown: Vec<_> = names.iter().take(NAMED).map(|name| name.as_str()).collect();
    match names.len().saturating_sub(NAMED) {
        0 => shown.join(", "),
        more => format!("{}, and {more} more", shown.join(", ")),
    }
}
