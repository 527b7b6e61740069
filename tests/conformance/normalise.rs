//! Removes the parts of answers that may differ between two servers.
//!
//! - Transactions count from the start of a conversation; older ones are all `old`.
//! - Sessions are numbered as they are met.
//! - A time depends on its transaction alone. It is removed, unless it is wrong.
//! - The figures of the root, which outlives conversations, are relative to their start.
//! - The tree of a conversation is called `@`.
//! - Sets have no order.

use std::collections::HashMap;

use ground::wire::Stat;
use ground::wire::codec::Reader;

/// The names of one conversation with one server.
#[derive(Debug, Default)]
pub(crate) struct Names {
    pub(crate) root: String,
    /// The last transaction before the conversation.
    base: i64,
    sessions: Vec<i64>,
    times: HashMap<i64, i64>,
    /// The root's count of children, and its versions.
    root_figures: [i32; 4],
    nodes: i32,
    /// How many children the root has ever had, which is the next sequence number in it.
    root_created: i32,
}

impl Names {
    pub(crate) fn new(root: String) -> Self {
        Self { root, ..Self::default() }
    }

    /// Starts counting from here: the last transaction, the root, and the count of all nodes.
    pub(crate) fn start(&mut self, base: i64, stat: &Stat, nodes: i32) {
        self.base = base;
        self.nodes = nodes;
        // Each created child is either still there, or its deletion was one more change.
        self.root_created = (stat.cversion + stat.num_children) / 2;
        self.root_figures = [stat.num_children, stat.version, stat.cversion, stat.aversion];
    }

    pub(crate) fn meet(&mut self, session: i64) {
        if !self.sessions.contains(&session) {
            self.sessions.push(session);
        }
    }

    pub(crate) fn zxid(&self, zxid: i64) -> String {
        match zxid {
            _ if zxid <= 0 => zxid.to_string(),
            _ if zxid <= self.base => "old".to_owned(),
            _ => format!("+{}", zxid - self.base),
        }
    }

    pub(crate) fn session(&self, session: i64) -> String {
        let known = self.sessions.iter().position(|&known| known == session);
        known.map_or_else(|| format!("{session:#x}"), |index| format!("session {index}"))
    }

    pub(crate) fn path(&self, path: &str) -> String {
        let short = path.replacen(&self.root, "@", 1);
        // Outside of the conversation's tree a sequence continues from other conversations.
        let number =
            short.strip_prefix('@').filter(|rest| rest.len() == 10).and_then(|rest| rest.parse::<i32>().ok());
        number.map_or(short, |number| format!("@#{}", number - self.root_created))
    }

    /// The names of children, in order. Of the root's children, only those that do not belong to a conversation.
    pub(crate) fn children(&self, of: &str, mut names: Vec<String>) -> String {
        if is_root(of) {
            names.retain(|name| name == "zookeeper" || self.root[1..] == **name);
            names.iter_mut().filter(|name| **name != "zookeeper").for_each(|name| *name = "@".to_owned());
        }
        names.sort();
        format!("[{}]", names.join(" "))
    }

    pub(crate) fn count(&self, of: &str, count: i32) -> i32 {
        if is_root(of) { count - self.nodes } else { count }
    }

    /// A stat, of the node at `path`.
    pub(crate) fn stat(&mut self, path: &str, reader: &mut Reader<'_>) -> Option<String> {
        let mut stat = Stat::read(reader)?;
        if is_root(path) {
            let [children, version, child_version, acl_version] = self.root_figures;
            stat.num_children -= children;
            stat.version -= version;
            stat.cversion -= child_version;
            stat.aversion -= acl_version;
        }
        let owner = match stat.ephemeral_owner {
            0 => String::new(),
            owner => format!(" owner={}", self.session(owner)),
        };
        Some(format!(
            "{{c={} m={} p={} v={},{},{}{owner} length={} children={}{}{}}}",
            self.zxid(stat.czxid),
            self.zxid(stat.mzxid),
            self.zxid(stat.pzxid),
            stat.version,
            stat.cversion,
            stat.aversion,
            stat.data_length,
            stat.num_children,
            self.complain("ctime", stat.czxid, stat.ctime),
            self.complain("mtime", stat.mzxid, stat.mtime),
        ))
    }

    fn complain(&mut self, name: &str, zxid: i64, time: i64) -> String {
        let first = *self.times.entry(zxid).or_insert(time);
        // A new server's own nodes have the time 0.
        let is_sound = if zxid == 0 { time == 0 } else { time > 1_000_000_000_000 };
        match (first == time, is_sound) {
            (true, true) => String::new(),
            (false, _) => format!(" {name} is not that of its transaction"),
            (true, false) => format!(" {name} is not a time"),
        }
    }
}

/// Whether it is the root, which has two names.
fn is_root(path: &str) -> bool {
    matches!(path, "/" | "")
}
