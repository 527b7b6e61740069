//! The nodes of an attempt: those that are there, may be there, or are to be.

use crate::Moment;
use crate::claim::Claim;
use crate::exchange::{NewNode, Node, Operation, Stay};
use crate::name::{Name, Scheme, Uuid};
use std::sync::Arc;

/// Nodes that are created together: the places in the queues, or the permits.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Nodes {
    pub(super) posts: Vec<Post>,
    /// Whether a creation may have been executed that was not heard of.
    pub(super) is_open: bool,
    /// Paths of further nodes with our mark, to be deleted.
    pub(super) surplus: Vec<String>,
}

/// A place for a node.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Post {
    pub(super) claim: usize,
    pub(super) directory: Arc<str>,
    scheme: Scheme,
    pub(super) prefix: String,
    stay: Stay,
    pub(super) node: Option<Node>,
    /// When a write was sent that proved the node.
    pub(super) proven: Option<Moment>,
}

impl Nodes {
    /// A place in each queue.
    pub(super) fn of_queues(claims: &[Claim], uuid: Uuid, session: i64) -> Self {
        let post = |(number, claim): (usize, &Claim)| {
            let mut prefix = claim.scheme.prefix(uuid, session);
            // Such a reader takes the number of its writer.
            if let Some(writer) = claim.within.as_deref().and_then(Name::parse) {
                prefix.push_str(&writer.sequence.to_string());
            }
            let stay = if claim.permits.is_some() { Stay::UntilPermits } else { Stay::WithHold };
            Post { stay, ..Post::new(number, &claim.directory, claim.scheme, prefix) }
        };
        Self { posts: claims.iter().enumerate().map(post).collect(), ..Self::default() }
    }

    /// All the permits.
    pub(super) fn of_permits(claims: &[Claim], uuid: Uuid, session: i64) -> Self {
        let posts = claims.iter().enumerate().flat_map(|(number, claim)| {
            claim.permits.iter().flat_map(move |permits| {
                let prefix = Scheme::Lease.prefix(uuid, session);
                (0..permits.count)
                    .map(move |_| Post::new(number, &permits.directory, Scheme::Lease, prefix.clone()))
            })
        });
        Self { posts: posts.collect(), ..Self::default() }
    }

    /// One transaction for all of them.
    pub(super) fn creation(&self) -> Operation {
        let mut nodes: Vec<NewNode> = self.posts.iter().map(Post::new_node).collect();
        match (nodes.len(), nodes.pop()) {
            (1, Some(node)) => Operation::Create(node),
            (_, last) => Operation::CreateAll(nodes.into_iter().chain(last).collect()),
        }
    }

    pub(super) fn directories(&self) -> Vec<Arc<str>> {
        let mut directories: Vec<Arc<str>> = Vec::new();
        for post in &self.posts {
            if !directories.contains(&post.directory) {
                directories.push(post.directory.clone());
            }
        }
        directories
    }

    pub(super) fn is_there(&self) -> bool {
        !self.posts.is_empty() && self.posts.iter().all(|post| post.node.is_some())
    }

    /// Whether nothing is there, nor will be.
    pub(super) fn is_gone(&self) -> bool {
        !self.is_open && self.surplus.is_empty() && self.posts.iter().all(|post| post.node.is_none())
    }

    /// The first claim in whose queue the number of the node is used up.
    pub(super) fn used_up(&self) -> Option<usize> {
        let is_used_up =
            |post: &&Post| Name::parse(post.name()).is_some_and(|name| name.sequence.is_used_up());
        self.posts.iter().find(is_used_up).map(|post| post.claim)
    }

    /// The nodes that are there.
    pub(super) fn nodes(&self) -> Vec<Node> {
        self.posts.iter().filter_map(|post| post.node.clone()).collect()
    }

    /// Everything that is there.
    pub(super) fn paths(&self) -> impl Iterator<Item = String> {
        self.posts.iter().filter_map(Post::path).chain(self.surplus.iter().cloned())
    }

    /// They have been created by a write that was sent then.
    pub(super) fn fill(&mut self, nodes: Vec<Node>, sent: Moment) {
        self.is_open = false;
        for (post, node) in self.posts.iter_mut().zip(nodes) {
            post.node = Some(node);
            post.proven = Some(sent);
        }
    }

    /// Takes for its own what bears its mark among the children of one of its directories.
    pub(super) fn recognise(&mut self, directory: &Arc<str>, children: &[String]) {
        let mut posts: Vec<&mut Post> =
            self.posts.iter_mut().filter(|post| post.directory == *directory).collect();
        let Some(first) = posts.first() else { return };
        let mut names = first.own_among(children).into_iter();
        for post in &mut posts {
            post.node = names.next().map(|name| Node { name: name.to_owned(), origin: None });
            post.proven = None;
        }
        self.surplus.extend(names.map(|name| format!("{directory}/{name}")));
    }

    /// Nothing is there any more.
    pub(super) fn forget(&mut self) {
        self.is_open = false;
        self.surplus.clear();
        for post in &mut self.posts {
            (post.node, post.proven) = (None, None);
        }
    }
}

impl Post {
    fn new(claim: usize, directory: &Arc<str>, scheme: Scheme, prefix: String) -> Self {
        let (directory, stay) = (directory.clone(), Stay::AsPermit);
        Self { claim, directory, scheme, prefix, stay, node: None, proven: None }
    }

    fn new_node(&self) -> NewNode {
        NewNode { directory: self.directory.clone(), prefix: self.prefix.clone(), stay: self.stay }
    }

    /// The path of the node that is there.
    pub(super) fn path(&self) -> Option<String> {
        self.node.as_ref().map(|node| format!("{}/{}", self.directory, node.name))
    }

    /// The path of a node to whose name the server appends nothing.
    pub(super) fn fixed_path(&self) -> String {
        format!("{}/{}", self.directory, self.prefix)
    }

    /// The name of the node that is there.
    pub(super) fn name(&self) -> &str {
        self.node.as_ref().map_or("", |node| &node.name)
    }

    /// The children that bear our mark, the lowest first: it has the best place.
    fn own_among<'a>(&self, children: &'a [String]) -> Vec<&'a str> {
        if self.scheme == Scheme::Single {
            return children.iter().map(String::as_str).filter(|child| *child == self.prefix).collect();
        }
        let parse = if self.scheme == Scheme::Lease { Name::parse_lease } else { Name::parse };
        let mut own: Vec<Name<'_>> = children
            .iter()
            .filter(|child| child.starts_with(&self.prefix))
            .filter_map(|child| parse(child))
            .collect();
        own.sort_by(Name::compare);
        own.into_iter().map(|name| name.text).collect()
    }
}
