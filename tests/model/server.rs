//! The execution of requests by a server.

use super::client::{is_creation, is_of_permits};
use super::ensemble::{Child, Owner};
use super::machine::name::have_one_mark;
use super::machine::protocol::{Node, Operation, Origin, Outcome, Refusal};
use super::watch::{Target, Watch};
use super::world::Scene;

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
        let find = |path: &String| self.lines[line].find(&views[0].1, path);
        let listing = |directory: &str| {
            self.lines[line].names(&views[0].1, directory).map_or(Outcome::NoNode, Outcome::Children)
        };
        let (outcome, is_read, watched) = match &operation {
            Operation::List { directory } => (listing(directory), true, None),
            Operation::ListMarked { directory, prefix, data } => {
                let session = self.lines[line].session.as_ref().map(|session| session.id);
                let is_own = |child: &&Child| {
                    child.name.starts_with(prefix)
                        && Some(child.owner.session) == session
                        && have_one_mark(data, &child.data)
                };
                let listed = views[0].1.directory(directory);
                let own = listed
                    .map(|it| it.children.iter().filter(is_own).map(|child| child.name.clone()).collect());
                (own.map_or(Outcome::NoNode, Outcome::Children), true, None)
            }
            Operation::ListAndWatch { directory } => {
                (listing(directory), true, Some(Target::Children(directory.to_string())))
            }
            Operation::Inspect { .. } if self.setup.hides_nodes => {
                (Outcome::Refused(Refusal::Denied), true, None)
            }
            Operation::Owns { path } => {
                let session = self.lines[line].session.as_ref().map(|session| session.id);
                let found = find(path).filter(|child| Some(child.owner.session) == session);
                (done_if(found.is_some()), true, None)
            }
            Operation::Inspect { path } => {
                let found = find(path).map(|child| node(child, true));
                (found.map_or(Outcome::NoNode, Outcome::Found), true, None)
            }
            Operation::Watch { path } => {
                let found = find(path).is_some();
                (done_if(found), true, Some(Target::Node(path.clone())))
            }
            Operation::WatchOwn { path } => {
                let found = find(path);
                let said = |child: &Child| if child.is_revoked { Outcome::Revoked } else { Outcome::Done };
                (found.map_or(Outcome::NoNode, said), true, Some(Target::Node(path.clone())))
            }
            Operation::ReadLimit { .. } => {
                let limit = views[0].1.limit.map(|limit| limit.0);
                (Outcome::Limit(limit), true, Some(Target::Limit))
            }
            _ => (Outcome::Done, false, None),
        };
        if is_read {
            let watch = watched.and_then(|target| Watch::new(target, views));
            let zxid = floor.max(views[0].0);
            // Nobody listens to a watch that was given up.
            if self.clients[number].late.is_empty() {
                self.clients[number].watches.extend(watch);
            }
            self.lines[line].floor = zxid;
            return self.clients[number].answer(outcome, zxid);
        }
        let outcome = self.write(number, &operation, view > 0);
        let zxid = self.ensemble.zxid();
        self.lines[line].floor = zxid;
        if let Some(session) = &mut self.lines[line].session {
            session.touched = now;
        }
        self.clients[number].answer(outcome, zxid);
    }

    fn write(&mut self, number: usize, operation: &Operation, in_flight: bool) -> Outcome {
        let tells = self.setup.tells_origin;
        let session = self.lines[self.line_of(number)].session.as_ref().map_or(0, |session| session.id);
        let owner = Owner { session, client: number, attempt: self.clients[number].attempt };
        let head = self.ensemble.head();
        let created = match operation {
            Operation::Create(new) => self.ensemble.create(std::slice::from_ref(new), owner, in_flight),
            Operation::CreateAll(new) => self.ensemble.create(new, owner, in_flight),
            Operation::CreateWithin { path, guard, .. } => {
                let place = head.find(guard).map(|child| child.place);
                if place.is_some() && head.find(path).is_some() {
                    return Outcome::NodeExists;
                }
                let created = place.and_then(|_| self.ensemble.create_fixed(path, place, owner));
                created.map(|child| vec![child])
            }
            Operation::CreateSingle { path, .. } => {
                let directory = path.rsplit_once('/').map_or("", |split| split.0);
                if head.find(path).is_some() {
                    return Outcome::NodeExists;
                }
                let is_there = head.directory(directory).is_some();
                let created = is_there.then(|| self.ensemble.create_fixed(path, None, owner)).flatten();
                created.map(|child| vec![child])
            }
            Operation::CreatePair { path, companion, .. } => {
                let directory = path.rsplit_once('/').map_or("", |split| split.0);
                if head.find(companion).is_some() {
                    return Outcome::Unknown;
                }
                if head.find(path).is_some() {
                    return Outcome::NodeExists;
                }
                let is_there = head.directory(directory).is_some();
                is_there.then(|| self.ensemble.create_pair(companion, path, owner)).flatten()
            }
            Operation::CreateParents { directory } | Operation::CreateLastingParents { directory } => {
                self.ensemble.create_directory(directory);
                return Outcome::Done;
            }
            Operation::DeleteDirectory { directory } => {
                return self.ensemble.delete_if_empty(directory).map_or(Outcome::NotEmpty, done_if);
            }
            Operation::Check { paths } => return done_if(paths.iter().all(|path| head.find(path).is_some())),
            Operation::Delete { path } => {
                if self.clients[number].was_granted {
                    self.released = Some(path.clone());
                }
                return self.delete_own(number, std::slice::from_ref(path));
            }
            Operation::DeletePair { path, companion } => {
                return self.delete_own(number, &[companion.clone(), path.clone()]);
            }
            _ => return Outcome::Done,
        };
        let is_place = is_creation(operation) && !is_of_permits(&self.setup.plans[number], operation);
        if created.is_some() && is_place {
            self.clients[number].removed.clear();
        }
        created.map_or(Outcome::NoNode, |children| {
            Outcome::Created(children.iter().map(|child| node(child, tells)).collect())
        })
    }

    /// A client deletes nodes in one transaction. If they exist, they must be its own.
    fn delete_own(&mut self, number: usize, paths: &[String]) -> Outcome {
        let head = self.ensemble.head();
        let mut found = Vec::new();
        for path in paths {
            let Some(child) = head.find(path) else { return Outcome::NoNode };
            let directory = self
                .setup
                .paths()
                .into_iter()
                .find(|it| path.rsplit_once('/').is_some_and(|split| split.0 == *it));
            found.extend(directory.map(|directory| (directory, child.clone())));
        }
        let is_anothers = |(_, child): &&(&str, Child)| child.owner.client != number;
        if let Some((_, child)) = found.iter().find(is_anothers) {
            let detail = format!("client {number} deletes {} of client {}", child.name, child.owner.client);
            self.violate("its own alone", detail);
        }
        if self.setup.faults.ghosts > 0 {
            self.lost = found;
        }
        done_if(self.ensemble.delete_all(paths))
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
