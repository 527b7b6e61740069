//! The nodes of an attempt: those that exist, may exist, or should exist.

use crate::Moment;
use crate::claim::Claim;
use crate::name::{Scheme, Sequence, Uuid};
use crate::protocol::{NewNode, Node, Operation, Origin};
use std::sync::Arc;

/// Nodes that are created together: the places in the queues, or the permits.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Nodes {
    pub(super) slots: Vec<NodeSlot>,
    /// Whether a creation whose reply has not come may have been executed.
    create_in_doubt: bool,
    /// The paths of extra nodes with our mark, which must be deleted.
    pub(super) surplus: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct NodeSlot {
    pub(super) claim: usize,
    pub(super) directory: Arc<str>,
    pub(super) prefix: String,
    /// Whether its mark is in the data of the node.
    is_marked: bool,
    pub(super) data: Arc<[u8]>,
    node: Option<Node>,
    /// When a write that proved the node was sent.
    proven: Option<Moment>,
}

impl Nodes {
    /// Makes a slot for the place in each queue.
    pub(super) fn of_queues(claims: &[Claim], uuid: Uuid, session: i64) -> Self {
        let slot = |(number, claim): (usize, &Claim)| {
            let (prefix, data) = (claim.prefix(uuid, session), claim.data_with(uuid));
            let slot = NodeSlot::new(number, &claim.directory, prefix, &data);
            NodeSlot { is_marked: !claim.has_mark_in_name(), ..slot }
        };
        Self { slots: claims.iter().enumerate().map(slot).collect(), ..Self::default() }
    }

    /// Makes a slot for each permit.
    pub(super) fn of_permits(claims: &[Claim], uuid: Uuid, session: i64) -> Self {
        let slots = claims.iter().enumerate().flat_map(|(number, claim)| {
            claim.permits.iter().flat_map(move |permits| {
                let prefix = Scheme::Lease.prefix(uuid, session);
                let slot = move |_| NodeSlot::new(number, &permits.directory, prefix.clone(), &permits.data);
                (0..permits.count).map(slot)
            })
        });
        Self { slots: slots.collect(), ..Self::default() }
    }

    /// Returns one transaction that creates them all.
    pub(super) fn creation(&self) -> Operation {
        let mut nodes: Vec<NewNode> = self.slots.iter().map(NodeSlot::new_node).collect();
        match (nodes.len(), nodes.pop()) {
            (1, Some(node)) => Operation::Create(node),
            (_, last) => Operation::CreateAll(nodes.into_iter().chain(last).collect()),
        }
    }

    pub(super) fn directories(&self) -> Vec<Arc<str>> {
        let mut directories: Vec<Arc<str>> = Vec::new();
        for slot in &self.slots {
            if !directories.contains(&slot.directory) {
                directories.push(slot.directory.clone());
            }
        }
        directories
    }

    /// Returns the requests that show which nodes have our mark, one for each of the [directories](Self::directories).
    pub(super) fn search(&self) -> Vec<Operation> {
        let of = |directory: Arc<str>| match self
            .slots
            .iter()
            .find(|slot| slot.is_marked && slot.directory == directory)
        {
            Some(NodeSlot { prefix, data, .. }) => {
                Operation::ListMarked { directory, prefix: prefix.clone(), data: data.clone() }
            }
            None => Operation::List { directory },
        };
        self.directories().into_iter().map(of).collect()
    }

    pub(super) fn is_there(&self) -> bool {
        !self.slots.is_empty() && self.slots.iter().all(|slot| slot.node.is_some())
    }

    /// Whether nothing exists, or will exist.
    pub(super) fn is_gone(&self) -> bool {
        !self.create_in_doubt && self.surplus.is_empty() && self.slots.iter().all(|slot| slot.node.is_none())
    }

    /// Returns the first claim in whose queue the number of the node is used up.
    pub(super) fn used_up(&self) -> Option<usize> {
        let is_used_up = |slot: &&NodeSlot| slot.number_in(slot.name()).is_some_and(Sequence::is_used_up);
        self.slots.iter().find(is_used_up).map(|slot| slot.claim)
    }

    /// Whether the reply to a creation is missing.
    pub(super) fn is_create_in_doubt(&self) -> bool {
        self.create_in_doubt
    }

    /// Returns the paths of all nodes that exist.
    pub(super) fn paths(&self) -> impl Iterator<Item = String> {
        self.slots.iter().filter_map(NodeSlot::path).chain(self.surplus.iter().cloned())
    }

    /// Notes that the creation is about to be sent.
    pub(super) fn begin_creation(&mut self) {
        debug_assert!(self.is_gone(), "none may exist when others are created");
        self.create_in_doubt = true;
    }

    /// Records that all have been created by a write that was sent at `sent`.
    pub(super) fn fill(&mut self, nodes: Vec<Node>, sent: Moment) {
        debug_assert_eq!(self.slots.len(), nodes.len());
        self.create_in_doubt = false;
        for (slot, node) in self.slots.iter_mut().zip(nodes) {
            slot.node = Some(node);
            slot.proven = Some(sent);
        }
    }

    /// Adopts all nodes that have its mark, now that the outcome of the creation is known. The listings are what the
    /// [search](Self::search) has shown.
    pub(super) fn recover(&mut self, listings: &[Vec<String>]) {
        self.create_in_doubt = false;
        for (directory, children) in self.directories().iter().zip(listings) {
            self.recognise(directory, children);
        }
    }

    fn recognise(&mut self, directory: &Arc<str>, children: &[String]) {
        let mut slots: Vec<&mut NodeSlot> =
            self.slots.iter_mut().filter(|slot| slot.directory == *directory).collect();
        let Some(first) = slots.first() else { return };
        let mut names = first.own_among(children).into_iter();
        for slot in &mut slots {
            slot.node = names.next().map(|name| Node { name: name.to_owned(), origin: None });
            slot.proven = None;
        }
        self.surplus.extend(names.map(|name| format!("{directory}/{name}")));
    }

    /// Records the origin of this slot's node, as the server has reported it.
    pub(super) fn adopt(&mut self, slot: usize, origin: Origin) {
        if let Some(node) = &mut self.slots[slot].node {
            node.origin = Some(origin);
        }
    }

    /// Notes that a write which was sent at `sent` has proven all nodes.
    pub(super) fn prove(&mut self, sent: Moment) {
        self.slots.iter_mut().for_each(|slot| slot.proven = Some(sent));
    }

    /// Empties this slot, because its node is gone or was never ours.
    pub(super) fn lose(&mut self, slot: usize) {
        self.slots[slot].empty();
    }

    /// Forgets everything, because nothing exists any more.
    pub(super) fn forget(&mut self) {
        self.create_in_doubt = false;
        self.surplus.clear();
        self.slots.iter_mut().for_each(NodeSlot::empty);
    }
}

impl NodeSlot {
    fn new(claim: usize, directory: &Arc<str>, prefix: String, data: &Arc<[u8]>) -> Self {
        let (directory, data) = (directory.clone(), data.clone());
        Self { claim, directory, prefix, is_marked: false, data, node: None, proven: None }
    }

    fn empty(&mut self) {
        (self.node, self.proven) = (None, None);
    }

    fn new_node(&self) -> NewNode {
        NewNode { directory: self.directory.clone(), prefix: self.prefix.clone(), data: self.data.clone() }
    }

    /// Returns the path of the node, if it exists.
    pub(super) fn path(&self) -> Option<String> {
        self.node.as_ref().map(|node| format!("{}/{}", self.directory, node.name))
    }

    /// Returns the name of the node; empty if it does not exist.
    pub(super) fn name(&self) -> &str {
        self.node.as_ref().map_or("", |node| &node.name)
    }

    /// Returns the origin of the node, if the server has reported it.
    pub(super) fn origin(&self) -> Option<Origin> {
        self.node.as_ref()?.origin
    }

    /// Returns when a write that proved the node was sent.
    pub(super) fn proven(&self) -> Option<Moment> {
        self.proven
    }

    /// Returns the number in a name with our mark; `None` for any other name.
    fn number_in(&self, name: &str) -> Option<Sequence> {
        Sequence::parse(name.strip_prefix(&self.prefix)?)
    }

    /// Returns the children that have our mark. The lowest comes first, because it has the best place.
    fn own_among<'a>(&self, children: &'a [String]) -> Vec<&'a str> {
        let numbered = |child: &'a String| Some((self.number_in(child)?, child.as_str()));
        let mut own: Vec<_> = children.iter().filter_map(numbered).collect();
        // A creation that was sent again may have been done twice.
        own.sort_by(|(one, _), (other, _)| one.compare(*other));
        own.into_iter().map(|(_, name)| name).collect()
    }
}
