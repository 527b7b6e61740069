//! The execution of requests by a server.

use super::client::is_of_permits;
use super::ensemble::{Child, Ensemble, Owner, Tree};
use super::machine::name::have_one_mark;
use super::machine::protocol::{Node, Operation, Origin, Outcome, Refusal};
use super::watch::{Target, Watch};
use super::world::Scene;

/// What a server shows.
#[derive(Debug)]
pub(crate) struct Shown<'a> {
    pub(crate) tree: &'a Tree,
    /// Nodes that it shows although they are deleted, or although there are others by now.
    pub(crate) ghosts: &'a [(&'static str, Child)],
}

impl Shown<'_> {
    /// The node at this path, in this state.
    fn find(&self, path: &str) -> Option<&Child> {
        let is_it =
            |(directory, child): &&(&str, Child)| path.rsplit_once('/') == Some((directory, &child.name));
        self.ghosts.iter().find(is_it).map(|(_, child)| child).or_else(|| self.tree.find(path))
    }

    fn list(&self, directory: &str) -> Outcome {
        let Some(listed) = self.tree.directory(directory) else { return Outcome::NoNode };
        let mut names = listed.names();
        for (_, ghost) in self.ghosts.iter().filter(|(path, _)| *path == directory) {
            if !names.contains(&ghost.name) {
                names.push(ghost.name.clone());
            }
        }
        Outcome::Children(names)
    }

    /// The outcome of a read in this session, and what it watches; `None` if it is no read.
    pub(crate) fn read(&self, operation: &Operation, session: i64) -> Option<(Outcome, Option<Target>)> {
        use Operation as O;
        Some(match operation {
            O::List { directory } => (self.list(directory), None),
            O::ListMarked { directory, prefix, data } => {
                let is_own = |child: &&Child| {
                    child.name.starts_with(prefix)
                        && child.owner.session == session
                        && have_one_mark(data, &child.data)
                };
                let own = self.tree.directory(directory).map(|listed| {
                    listed.children.iter().filter(is_own).map(|child| child.name.clone()).collect()
                });
                (own.map_or(Outcome::NoNode, Outcome::Children), None)
            }
            O::ListAndWatch { directory } => {
                (self.list(directory), Some(Target::Children(directory.to_string())))
            }
            O::Owns { path } => {
                (done_if(self.find(path).is_some_and(|child| child.owner.session == session)), None)
            }
            O::Inspect { path } => {
                let found = self.find(path).map(|child| node(child, true));
                (found.map_or(Outcome::NoNode, Outcome::Found), None)
            }
            O::Watch { path } => (done_if(self.find(path).is_some()), Some(Target::Node(path.clone()))),
            O::WatchOwn { path } => {
                let said = |child: &Child| if child.is_revoked { Outcome::Revoked } else { Outcome::Done };
                (self.find(path).map_or(Outcome::NoNode, said), Some(Target::Node(path.clone())))
            }
            O::ReadLimit { .. } => {
                (Outcome::Limit(self.tree.limit.map(|limit| limit.0)), Some(Target::Limit))
            }
            _ => return None,
        })
    }
}

/// Executes what is no read. A creation at the end of the numbers may get one beyond it.
pub(crate) fn write(
    ensemble: &mut Ensemble,
    operation: &Operation,
    owner: Owner,
    in_flight: bool,
    tells_origin: bool,
) -> Outcome {
    use Operation as O;
    let head = ensemble.head();
    let is_there = |path: &String| head.find(path).is_some();
    let is_in_directory =
        |path: &str| path.rsplit_once('/').is_some_and(|(directory, _)| head.directory(directory).is_some());
    let created = match operation {
        O::Create(new) => ensemble.create(std::slice::from_ref(new), owner, in_flight),
        O::CreateAll(new) => ensemble.create(new, owner, in_flight),
        O::CreateWithin { path, guard, .. } => match head.find(guard).map(|child| child.place) {
            Some(_) if is_there(path) => return Outcome::NodeExists,
            Some(place) => ensemble.create_fixed(path, Some(place), owner).map(|child| vec![child]),
            None => None,
        },
        O::CreatePair { companion, .. } if is_there(companion) => return Outcome::Unknown,
        O::CreateSingle { path, .. } | O::CreatePair { path, .. } if is_there(path) => {
            return Outcome::NodeExists;
        }
        O::CreateSingle { path, .. } | O::CreatePair { path, .. } if !is_in_directory(path) => None,
        O::CreateSingle { path, .. } => ensemble.create_fixed(path, None, owner).map(|child| vec![child]),
        O::CreatePair { path, companion, .. } => ensemble.create_pair(companion, path, owner),
        O::CreateParents { directory } | O::CreateLastingParents { directory } => {
            ensemble.create_directory(directory);
            return Outcome::Done;
        }
        O::DeleteDirectory { directory } => {
            return ensemble.delete_if_empty(directory).map_or(Outcome::NotEmpty, done_if);
        }
        O::Check { paths } => return done_if(paths.iter().all(is_there)),
        O::Delete { path } => return done_if(ensemble.delete_all(std::slice::from_ref(path))),
        O::DeletePair { path, companion } => {
            return done_if(ensemble.delete_all(&[companion.clone(), path.clone()]));
        }
        _ => return Outcome::Done,
    };
    created.map_or(Outcome::NoNode, |children| {
        Outcome::Created(children.iter().map(|child| node(child, tells_origin)).collect())
    })
}

impl Scene {
    /// Executes the next request of a client. A read is answered from this one of the states that its
    /// server may be in.
    pub(super) fn execute(&mut self, number: usize, view: u8) {
        let now = self.now();
        let line = self.line_of(number);
        let floor = self.lines[line].floor;
        let Some(operation) = self.clients[number].next_operation(&self.lines[line]).cloned() else { return };
        let views = self.ensemble.views(floor);
        let views = &views[usize::from(view).min(views.len() - 1)..];
        let shown = Shown { tree: &views[0].1, ghosts: &self.lines[line].ghosts };
        let session = self.lines[line].session.as_ref().map_or(0, |session| session.id);
        if let Some((mut outcome, watched)) = shown.read(&operation, session) {
            if self.setup.hides_nodes && matches!(operation, Operation::Inspect { .. }) {
                outcome = Outcome::Refused(Refusal::Denied);
            }
            let watch = watched.and_then(|target| Watch::new(target, views));
            let zxid = floor.max(views[0].0);
            // Nobody listens to a watch that was given up.
            if self.clients[number].late.is_empty() {
                self.clients[number].watches.extend(watch);
            }
            self.lines[line].floor = zxid;
            return self.clients[number].answer(outcome, zxid);
        }
        self.judge_deletion(number, &operation);
        let owner = Owner { session, client: number, attempt: self.clients[number].attempt };
        let outcome = write(&mut self.ensemble, &operation, owner, view > 0, self.setup.tells_origin);
        if matches!(outcome, Outcome::Created(_)) && !is_of_permits(&self.setup.plans[number], &operation) {
            self.clients[number].removed.clear();
        }
        let zxid = self.ensemble.zxid();
        self.lines[line].floor = zxid;
        if let Some(session) = &mut self.lines[line].session {
            session.touched = now;
        }
        self.clients[number].answer(outcome, zxid);
    }

    /// If a client deletes nodes that exist, they must be its own.
    fn judge_deletion(&mut self, number: usize, operation: &Operation) {
        let paths = match operation {
            Operation::Delete { path } => {
                if self.clients[number].was_granted {
                    self.released = Some(path.clone());
                }
                vec![path]
            }
            Operation::DeletePair { path, companion } => vec![companion, path],
            _ => return,
        };
        let goes =
            |(directory, child): &(&str, &Child)| paths.contains(&&format!("{directory}/{}", child.name));
        let found = self.ensemble.head().children().filter(goes);
        let found: Vec<_> = found.map(|(directory, child)| (directory, child.clone())).collect();
        if found.len() < paths.len() {
            return;
        }
        if let Some((_, child)) = found.iter().find(|(_, child)| child.owner.client != number) {
            let detail = format!("client {number} deletes {} of client {}", child.name, child.owner.client);
            self.violate("its own alone", detail);
        }
        if self.setup.faults.ghosts > 0 {
            self.lost = found;
        }
    }

    pub(super) fn refuse(&mut self, number: usize) {
        let zxid = self.lines[self.line_of(number)].floor;
        self.clients[number].answer(Outcome::Refused(Refusal::Denied), zxid);
    }
}

fn node(child: &Child, tells_origin: bool) -> Node {
    let origin = Origin { czxid: child.czxid, session: child.owner.session };
    Node { name: child.name.clone(), origin: tells_origin.then_some(origin) }
}

fn done_if(done: bool) -> Outcome {
    if done { Outcome::Done } else { Outcome::NoNode }
}
