//! Changes of the tree: checks whether they are allowed, and does all of a transaction or none.
//!
//! Each operation is checked against the tree as the earlier ones of the transaction have left it, and in the same order
//! as in ZooKeeper, so that of two errors the same one is reported.

use std::collections::HashMap;

use crate::state::node::{Lifetime, Node, TTL_MAX};
use crate::state::settings::Settings;
use crate::state::tree::Tree;
use crate::state::watches::{Change, EventType};
use crate::wire::access::{self, Id, Wanted, right};
use crate::wire::code::{Code, opcode};
use crate::wire::jute::Writer;
use crate::wire::path;
use crate::wire::request::{Create, Write};

/// The client that does it, and the time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) session: i64,
    pub(crate) shown: &'a [Id],
    pub(crate) zxid: i64,
    /// Wall clock, in ms.
    pub(crate) time: i64,
    pub(crate) settings: &'a Settings,
}

/// The result of an operation: its number in the answer to a multi, and what the answer says of it.
pub(crate) type Done = (i32, Writer);

/// A transaction on the tree. It is undone unless it is committed.
#[derive(Debug)]
pub(crate) struct Transaction<'a> {
    tree: &'a mut Tree,
    context: Context<'a>,
    /// The events for watchers.
    changes: Vec<Change>,
    /// The numbers of the next children, if this transaction has created some. ZooKeeper continues from these numbers,
    /// even if the tree no longer follows them.
    numbers: HashMap<String, i32>,
}

impl<'a> Transaction<'a> {
    pub(crate) fn new(tree: &'a mut Tree, context: Context<'a>) -> Self {
        Self { tree, context, changes: Vec::new(), numbers: HashMap::new() }
    }

    /// Makes it final, and returns the events, in order.
    pub(crate) fn commit(mut self) -> Vec<Change> {
        self.tree.commit();
        std::mem::take(&mut self.changes)
    }

    /// Does one operation.
    pub(crate) fn write(&mut self, write: &Write) -> Result<Done, Code> {
        match write {
            Write::Create(create) => self.create(create),
            Write::Delete { path, version } => self.delete(path, *version),
            Write::SetData { path, data, version } => self.set_data(path, data.as_ref(), *version),
            Write::Check { path, version } => self.check(path, *version),
            Write::SetAcl { path, access, version } => self.set_acl(path, access, *version),
            Write::Unfit => Err(Code::MarshallingError),
        }
    }

    /// Deletes a node of a session that has ended, or one that is to be reaped.
    pub(crate) fn end_node(&mut self, path: &str) {
        self.note(EventType::Deleted, path);
        self.tree.delete(path, self.context.zxid);
        self.numbers.remove(path);
        self.note_parent(path);
    }

    /// Creates an empty persistent node where there is none, below an existing parent.
    pub(crate) fn place(&mut self, path: &str, access: access::List) {
        let Context { zxid, time, .. } = self.context;
        self.put(path, Node::new(Some(Vec::new()), access, Lifetime::Persistent, zxid, time));
    }

    /// Sets the data of an existing node.
    pub(crate) fn replace(&mut self, path: &str, data: &[u8]) {
        self.store(path, Some(data.to_vec()));
    }

    fn create(&mut self, create: &Create) -> Result<Done, Code> {
        let mode = self.mode(create);
        if self.context.settings.profile.judges_flags_first() {
            mode?;
        }
        let path = create.path.as_ref().ok_or(Code::MarshallingError)?;
        let parent_path = path::parent(path)?;
        let list = access::settle(self.context.settings.profile, &create.access, self.context.shown)?;
        let parent = self.node(parent_path)?;
        access::check(&parent.access, right::CREATE, self.context.shown)?;
        let (lifetime, is_sequential) = mode?;
        let path = match is_sequential {
            true => format!("{path}{:010}", self.next_number(parent_path)),
            false => path.clone(),
        };
        path::validate(self.context.settings.profile, &path)?;
        if self.tree.node(&path).is_some() {
            return Err(Code::NodeExists);
        }
        if parent.lifetime.owner().is_some() {
            return Err(Code::NoChildrenForEphemerals);
        }
        let node = Node::new(create.data.clone(), list, lifetime, self.context.zxid, self.context.time);
        let stat = node.stat();
        self.put(&path, node);
        let body = Writer::default().text(&path);
        Ok(match create.opcode {
            opcode::CREATE => (opcode::CREATE, body),
            _ => (opcode::CREATE_2, body.and(stat)),
        })
    }

    /// The lifetime of the node and whether it is sequential, which depend on both the form of the request and its flags.
    fn mode(&self, create: &Create) -> Result<(Lifetime, bool), Code> {
        if !(0..=self.context.settings.profile.highest_flags()).contains(&create.flags) {
            return Err(Code::BadArguments);
        }
        let is_ttl = matches!(create.flags, 5 | 6);
        if is_ttl && !self.context.settings.extended_types {
            return Err(Code::Unimplemented);
        }
        let is_valid = if is_ttl { (1..=TTL_MAX).contains(&create.ttl) } else { create.ttl < 0 };
        if !is_valid {
            return Err(Code::BadArguments);
        }
        if matches!(create.flags, 1 | 3) && self.context.settings.local_sessions {
            return Err(Code::EphemeralOnLocalSession);
        }
        let lifetime = match create.opcode {
            opcode::CREATE_CONTAINER => Lifetime::Container,
            opcode::CREATE_TTL => Lifetime::Ttl(create.ttl),
            _ if matches!(create.flags, 1 | 3) => Lifetime::Ephemeral(self.context.session),
            _ => Lifetime::Persistent,
        };
        Ok((lifetime, matches!(create.flags, 2 | 3 | 6)))
    }

    fn delete(&mut self, path: &str, version: i32) -> Result<Done, Code> {
        let parent = self.node(self.deletable_parent(path)?)?;
        if self.context.settings.profile.misses_before_it_denies() {
            self.node(path)?;
        }
        access::check(&parent.access, right::DELETE, self.context.shown)?;
        let node = self.node(path)?;
        expect_version(node.version, version)?;
        if !node.children.is_empty() {
            return Err(Code::NotEmpty);
        }
        self.end_node(path);
        Ok((opcode::DELETE, Writer::default()))
    }

    fn set_data(&mut self, path: &str, data: Option<&Vec<u8>>, version: i32) -> Result<Done, Code> {
        path::validate(self.context.settings.profile, path)?;
        let node = self.node(path)?;
        access::check(&node.access, right::WRITE, self.context.shown)?;
        expect_version(node.version, version)?;
        Ok((opcode::SET_DATA, self.store(path, data.cloned())))
    }

    fn store(&mut self, path: &str, data: Option<Vec<u8>>) -> Writer {
        let Context { zxid, time, .. } = self.context;
        self.note(EventType::DataChanged, path);
        self.tree.change(path, |node| {
            node.data = data;
            node.version = node.version.wrapping_add(1);
            (node.mzxid, node.mtime) = (zxid, time);
        })
    }

    fn check(&mut self, path: &str, version: i32) -> Result<Done, Code> {
        path::validate(self.context.settings.profile, path)?;
        let node = self.node(path)?;
        access::check(&node.access, right::READ, self.context.shown)?;
        expect_version(node.version, version)?;
        Ok((opcode::CHECK, Writer::default()))
    }

    fn set_acl(&mut self, path: &str, list: &[Wanted], version: i32) -> Result<Done, Code> {
        path::validate(self.context.settings.profile, path)?;
        let list = access::settle(self.context.settings.profile, list, self.context.shown)?;
        let node = self.node(path)?;
        access::check(&node.access, right::ADMIN, self.context.shown)?;
        expect_version(node.aversion, version)?;
        let stat = self.tree.change(path, |node| {
            node.access = list;
            node.aversion = node.aversion.wrapping_add(1);
        });
        Ok((opcode::SET_ACL, stat))
    }

    fn put(&mut self, path: &str, node: Node) {
        let parent = parent_of(path);
        let next = self.next_number(parent).wrapping_add(1);
        self.tree.create(path, node, next);
        self.numbers.insert(parent.to_owned(), next);
        self.note(EventType::Created, path);
        self.note_parent(path);
    }

    /// Notes an event of an existing node.
    fn note(&mut self, event: EventType, path: &str) {
        if let Some(node) = self.tree.node(path) {
            self.changes.push(Change { event, path: path.to_owned(), access: node.access.clone() });
        }
    }

    /// The number of the next sequential child.
    fn next_number(&self, parent: &str) -> i32 {
        let of_tree = || self.tree.node(parent).map_or(0, |parent| parent.created);
        self.numbers.get(parent).copied().unwrap_or_else(of_tree)
    }

    /// Notes a change of the children of this node's parent.
    fn note_parent(&mut self, path: &str) {
        let parent = parent_of(path);
        self.note(EventType::ChildrenChanged, if parent.is_empty() { "/" } else { parent });
    }

    fn deletable_parent<'b>(&self, path: &'b str) -> Result<&'b str, Code> {
        let is_own = self.context.settings.profile.first_nodes().contains(&path);
        if is_own { Err(Code::BadArguments) } else { path::parent(path) }
    }

    fn node(&self, path: &str) -> Result<&Node, Code> {
        self.tree.node(path).ok_or(Code::NoNode)
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        self.tree.roll_back(); // nothing, after a commit
    }
}

/// The parent of a node. That of a node below the root is the empty path.
fn parent_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

fn expect_version(version: i32, expected: i32) -> Result<(), Code> {
    if expected == -1 || expected == version { Ok(()) } else { Err(Code::BadVersion) }
}
