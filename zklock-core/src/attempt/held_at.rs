//! The record of what the owners in this process hold at one path, through any lock. It serves to refuse a wait that could
//! never end, to log one that may never end, and to let a writer take the read side.

use crate::base::owner::Owner;
use crate::base::progress::Progress;
use crate::base::sync::lock_ignoring_poison;
use crate::hold::grant::Grant;
use crate::machine::claim::Claim;
use crate::machine::name::{Role, Scheme};
use crate::machine::protocol::Outcome;
use crate::machine::status::Status;
use crate::session::holding::Told;
use std::sync::{Arc, Mutex, Weak};
use tokio::sync::watch;

#[derive(Default)]
pub(crate) struct HeldAt {
    held: Mutex<Vec<HeldClaim>>,
    /// Nodes that may stay when nobody uses them.
    kept: Mutex<Vec<(Role, Weak<dyn Lingers>)>>,
    /// Members of a double barrier, by the names of their nodes.
    members: Mutex<Vec<(Arc<str>, Arc<Progress>)>>,
}

struct HeldClaim {
    scheme: Scheme,
    /// Its node in the queue at this path; `None` if permits are held.
    node: Option<Arc<str>>,
    grant: Arc<Grant>,
}

/// A write side that is held.
pub(crate) struct Writer {
    pub(crate) node: Arc<str>,
    pub(crate) grant: Arc<Grant>,
}

/// A node that stays when nobody uses it.
pub(crate) trait Lingers: Send + Sync {
    /// Gives it up if nobody uses it, and returns its state to watch.
    fn give_up_idle(&self) -> watch::Receiver<Told>;
}

impl HeldAt {
    pub(crate) fn add(&self, claim: &Claim, grant: &Arc<Grant>) {
        let is_here = |node: &&Arc<str>| node.rsplit_once('/').is_some_and(|(at, _)| *at == *claim.directory);
        let node = grant.holding().nodes.iter().find(is_here).cloned();
        lock_ignoring_poison(&self.held).push(HeldClaim { scheme: claim.scheme, node, grant: grant.clone() });
    }

    /// Forgets grants that are over.
    pub(crate) fn tidy(&self) {
        lock_ignoring_poison(&self.held).retain(|held| !held.grant.is_over());
    }

    /// Forgets a grant that is over, since its node is passed on.
    pub(crate) fn remove(&self, grant: &Grant) {
        lock_ignoring_poison(&self.held).retain(|held| !std::ptr::eq(&*held.grant, grant));
    }

    /// Notes a member, until it is [forgotten](Self::forget).
    pub(crate) fn note(&self, member: &Arc<str>, progress: &Arc<Progress>) {
        lock_ignoring_poison(&self.members).push((member.clone(), progress.clone()));
    }

    pub(crate) fn forget(&self, member: &str) {
        lock_ignoring_poison(&self.members).retain(|(name, _)| **name != *member);
    }

    /// Removes from listings the members of this process that nobody wants any more, because a caller may come again before
    /// the node of its last try is gone. A member's `own` node stays, even if its caller has just gone: otherwise the
    /// member would believe that it was deleted, and leave it behind.
    pub(crate) fn leave_out_gone(&self, own: Option<&str>, outcomes: &mut [Outcome]) {
        let is_there = |name: &str| own == Some(name) || !self.has_gone(name);
        for outcome in outcomes {
            match outcome {
                Outcome::Children(children) => children.retain(|child| is_there(child)),
                Outcome::Surveyed(nodes) => nodes.retain(|node| is_there(&node.name)),
                _ => {}
            }
        }
    }

    /// Whether this is a member of this process that nobody wants any more, but whose node may still exist.
    fn has_gone(&self, member: &str) -> bool {
        lock_ignoring_poison(&self.members)
            .iter()
            .any(|(name, progress)| **name == *member && !progress.is_wanted())
    }

    /// Whether anybody in this process holds something here.
    pub(crate) fn is_held(&self) -> bool {
        lock_ignoring_poison(&self.held).iter().any(|held| held.grant.is_held())
    }

    /// Returns the roles that the owner holds here, and for each whether only the owner may release it.
    pub(crate) fn held_by(&self, owner: Owner) -> Vec<(Role, bool)> {
        let held = lock_ignoring_poison(&self.held);
        let is_own = |held: &&HeldClaim| held.node.is_some() && held.grant.is_in_use_by(owner);
        held.iter().filter(is_own).map(|held| (held.scheme.role(), held.grant.is_bound())).collect()
    }

    /// Returns the owner's hold of the write side, which it alone can release, in the dialect of this reader. A hold that
    /// anybody can release may have been handed to another thread or task, which writes.
    pub(crate) fn writer(&self, owner: Owner, reader: Scheme) -> Option<Writer> {
        let writer = match reader {
            Scheme::Read => Scheme::Write,
            Scheme::KazooRead => Scheme::KazooLock,
            _ => return None,
        };
        let held = lock_ignoring_poison(&self.held);
        let is_owners = |held: &&HeldClaim| {
            let grant = &held.grant;
            held.scheme == writer && grant.is_bound() && grant.owner() == owner && grant.is_held()
        };
        let held = held.iter().find(is_owners)?;
        Some(Writer { node: held.node.clone()?, grant: held.grant.clone() })
    }

    /// Notes a node that may stay when nobody uses it.
    pub(crate) fn note_kept<T: Lingers + 'static>(&self, role: Role, node: &Arc<T>) {
        let node: Weak<dyn Lingers> = Arc::downgrade(&(node.clone() as Arc<dyn Lingers>));
        let mut kept = lock_ignoring_poison(&self.kept);
        kept.retain(|(_, other)| other.strong_count() > 0);
        kept.push((role, node));
    }

    /// Gives up nodes that nobody uses and that exclude this role. Returns the holds whose release has begun and which
    /// exclude the role until it is done.
    pub(crate) fn make_way(&self, role: Role) -> Vec<watch::Receiver<Told>> {
        let kept: Vec<_> = lock_ignoring_poison(&self.kept)
            .iter()
            .filter(|(other, _)| role.excludes(*other))
            .filter_map(|(_, kept)| kept.upgrade())
            .collect();
        let held = lock_ignoring_poison(&self.held);
        let excludes = held.iter().filter(|held| role.excludes(held.scheme.role()));
        let statuses: Vec<_> = excludes.map(|held| held.grant.holding().watch()).collect();
        drop(held);
        let statuses = statuses.into_iter().chain(kept.iter().map(|kept| kept.give_up_idle()));
        statuses.filter(|told| told.borrow().status == Status::Releasing).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock::{self, virtual_clock};
    use crate::base::error::LossReason;
    use crate::hold::hold::Hold;
    use crate::session::fake::FakeEnsemble;
    use std::time::Duration;

    #[test]
    fn a_member_sees_its_own_node_though_its_caller_has_gone() {
        let held_at = HeldAt::default();
        for name in ["own", "other"] {
            let progress = Progress::new(&Arc::default());
            held_at.note(&name.into(), &progress);
            progress.owe();
        }
        let names = |names: &[&str]| Outcome::Children(names.iter().map(|&name| name.to_owned()).collect());
        let mut listing = [names(&["other", "own", "stranger"])];
        held_at.leave_out_gone(Some("own"), &mut listing);
        assert_eq!(listing, [names(&["own", "stranger"])]);
    }

    #[test]
    fn an_owner_finds_what_it_holds_until_that_is_over() {
        virtual_clock::run(async {
            let (ensemble, held_at) = (FakeEnsemble::new(), HeldAt::default());
            let (session, owner) = (ensemble.session(), Owner::unique());
            let grant = ensemble.grant(&session, "/a", owner, true);
            held_at.add(&Claim::new("/a", Scheme::Mutex), &grant);
            assert_eq!(held_at.held_by(owner), [(Role::Exclusive, true)]);
            assert_eq!(held_at.held_by(Owner::unique()), []);
            assert!(held_at.is_held());
            session.lose(grant.holding(), LossReason::NodeDeleted);
            assert_eq!(held_at.held_by(owner), []);
            assert!(!held_at.is_held());
            held_at.tidy();
            assert_eq!(lock_ignoring_poison(&held_at.held).len(), 1, "somebody still has the hold");
            Hold::new(grant).let_go();
            held_at.tidy();
            assert_eq!(lock_ignoring_poison(&held_at.held).len(), 0);
        });
    }

    #[test]
    fn a_release_is_waited_for_by_those_whom_it_excludes() {
        virtual_clock::run(async {
            let (ensemble, held_at) = (FakeEnsemble::new(), HeldAt::default());
            let session = ensemble.session();
            let grant = ensemble.grant(&session, "/a", Owner::unique(), false);
            held_at.add(&Claim::new("/a", Scheme::Read), &grant);
            assert!(held_at.make_way(Role::Write).is_empty(), "it is held, and not being released");
            Hold::new(grant.clone()).let_go();
            assert!(held_at.make_way(Role::Read).is_empty());
            let mut releases = held_at.make_way(Role::Write);
            let start = clock::now();
            tokio::spawn(async move {
                clock::sleep(Duration::from_secs(3)).await;
                grant.abandon();
            });
            releases[0].wait_for(|told| told.status != Status::Releasing).await.unwrap();
            assert_eq!(clock::now().since(start), Duration::from_secs(3));
        });
    }

    #[test]
    fn only_a_writer_that_its_owner_alone_can_release_lets_a_reader_in() {
        virtual_clock::run(async {
            let (ensemble, held_at) = (FakeEnsemble::new(), HeldAt::default());
            let (session, owner) = (ensemble.session(), Owner::unique());
            let claim = Claim::new("/a", Scheme::Write);
            held_at.add(&claim, &ensemble.grant(&session, "/a", owner, false));
            assert!(held_at.writer(owner, Scheme::Read).is_none());
            let bound = ensemble.grant(&session, "/a", owner, true);
            held_at.add(&claim, &bound);
            assert_eq!(held_at.writer(owner, Scheme::Read).unwrap().grant.token(), bound.token());
            assert!(held_at.writer(owner, Scheme::KazooRead).is_none());
            assert!(held_at.writer(Owner::unique(), Scheme::Read).is_none());
        });
    }
}
