//! Four letter words: the lines that a client or an operator acts on.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::client::Wire;
use crate::normalise::Names;

const KEYS: [&str; 4] =
    ["zk_server_state", "zk_watch_count", "zk_ephemerals_count", "zk_num_alive_connections"];
const NODES: &str = "zk_znode_count";

/// A server's figures before a conversation.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    nodes: i64,
}

impl Figures {
    pub(crate) fn read(address: SocketAddr, patience: Duration) -> Self {
        let answer = say(address, "mntr", patience);
        Self { nodes: value(&answer, NODES, '\t').and_then(|text| text.parse().ok()).unwrap_or(0) }
    }

    /// The answer to a word, with this number of open connections besides its own.
    pub(crate) fn word(
        &self,
        address: SocketAddr,
        word: &str,
        names: &Names,
        patience: Duration,
        open: usize,
    ) -> String {
        let answer = said_of(address, word, patience, open + 1);
        let relative = |text: Option<&str>| match text.and_then(|text| text.parse::<i64>().ok()) {
            Some(count) => (count - self.nodes).to_string(),
            None => "none".to_owned(),
        };
        match word {
            "srvr" => {
                let zxid = value(&answer, "Zxid", ':').and_then(|text| text.strip_prefix("0x"));
                let zxid = zxid.and_then(|text| i64::from_str_radix(text, 16).ok()).unwrap_or(-1);
                format!(
                    "srvr: mode {:?} zxid {} connections {:?} nodes {}",
                    value(&answer, "Mode", ':'),
                    names.zxid(zxid),
                    value(&answer, "Connections", ':'),
                    relative(value(&answer, "Node count", ':')),
                )
            }
            "mntr" => {
                let known = KEYS.map(|key| format!("{key} {:?}", value(&answer, key, '\t')));
                format!("mntr: {} nodes {}", known.join(" "), relative(value(&answer, NODES, '\t')))
            }
            "envi" | "stat" | "conf" | "cons" => format!("{word}: {}", form(&answer)),
            _ => format!("{word}: {answer:?}"),
        }
    }
}

/// The part on which scripts rely: the names of the values, line by line. Connections have no order, and the last operation
/// of a connection that was just answered may not be counted yet. Nor may the server be ready to read from it again: until
/// then it reports 0 instead of 1.
fn form(answer: &str) -> String {
    let (mut lines, mut connections) = (Vec::new(), Vec::new());
    for line in answer.lines() {
        match line.split_once('(') {
            Some((who, values)) if line.starts_with(" /127.0.0.1:") => {
                let (number, interest) =
                    who.trim_start_matches(" /127.0.0.1:").split_once('[').unwrap_or_default();
                let number = if number.parse::<u16>().is_ok() { "port" } else { number };
                let interest = if ["0]", "1]"].contains(&interest) { "0 or 1]" } else { interest };
                let names: Vec<_> =
                    values.split(',').map(|value| value.split('=').next().unwrap_or("")).collect();
                let end = if values.ends_with(')') { ")" } else { "" };
                connections.push(format!(" /{number}[{interest}({}{end}", names.join(",")));
            }
            _ => lines.push(line.split_inclusive([':', '=']).next().unwrap_or("").to_owned()),
        }
    }
    connections.sort();
    format!("{} {:?}", connections.join(""), lines)
}

/// The answer, once the server has noticed that connections are closed, which takes some time.
fn said_of(address: SocketAddr, word: &str, patience: Duration, connections: usize) -> String {
    let until = Instant::now() + patience;
    loop {
        let answer = say(address, word, patience);
        if listed(&answer) <= connections || Instant::now() > until {
            return answer;
        }
    }
}

/// How many connections an answer counts, or lists.
fn listed(answer: &str) -> usize {
    let count = value(answer, "Connections", ':').or_else(|| value(answer, "zk_num_alive_connections", '\t'));
    let lines = || answer.lines().filter(|line| line.starts_with(" /127.0.0.1:")).count();
    count.and_then(|count| count.parse().ok()).unwrap_or_else(lines)
}

fn say(address: SocketAddr, word: &str, patience: Duration) -> String {
    let mut wire = Wire::connect(address);
    wire.send(word.as_bytes());
    wire.text(patience)
}

fn value<'a>(answer: &'a str, key: &str, separator: char) -> Option<&'a str> {
    let pairs = answer.lines().filter_map(|line| line.split_once(separator));
    pairs.filter(|(name, _)| *name == key).map(|(_, value)| value.trim()).next()
}
