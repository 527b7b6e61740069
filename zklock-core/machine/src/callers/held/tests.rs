use super::super::Own;
use super::{HeldAt, Holds};
use crate::claim::Claim;
use crate::name::{Role, Scheme};
use crate::status::{LossReason, Status};
use std::cell::Cell;
use std::rc::Rc;

#[derive(Clone, PartialEq, Debug)]
struct Grant {
    number: u32,
    owner: u32,
    is_bound: bool,
    status: Rc<Cell<Status>>,
}

impl Holds for Grant {
    type Owner = u32;

    fn status(&self) -> Status {
        self.status.get()
    }

    fn owner(&self) -> u32 {
        self.owner
    }

    fn is_bound(&self) -> bool {
        self.is_bound
    }

    fn has_holds(&self) -> bool {
        self.number > 0
    }
}

fn grant(number: u32, is_bound: bool) -> Grant {
    Grant { number, owner: 1, is_bound, status: Rc::new(Cell::new(Status::Held)) }
}

fn claim(scheme: Scheme) -> Claim {
    Claim::new("/a", scheme)
}

#[test]
fn an_owner_finds_what_it_holds_until_that_is_over() {
    let mut at = HeldAt::<Grant, u32>::default();
    let turn = grant(1, true);
    at.add(&claim(Scheme::Mutex), turn.clone());
    let deadlock = Own::Deadlock { held: Role::Exclusive };
    assert_eq!(at.own(&1, &claim(Scheme::Mutex)), deadlock);
    assert_eq!(at.own(&2, &claim(Scheme::Mutex)), Own::Nothing);
    assert!(at.is_held());
    turn.status.set(Status::Lost(LossReason::NodeDeleted));
    assert_eq!(at.own(&1, &claim(Scheme::Mutex)), Own::Nothing);
    assert!(!at.is_held());
    at.remove(|it| it.number == 1);
    assert_eq!(at, HeldAt::default());
}

#[test]
fn a_hold_that_others_may_release_is_in_the_way_and_a_reader_is_beside_readers() {
    let mut at = HeldAt::<Grant, u32>::default();
    at.add(&claim(Scheme::Read), grant(1, false));
    assert_eq!(at.own(&1, &claim(Scheme::Read)), Own::Beside);
    assert_eq!(at.own(&1, &claim(Scheme::Write)), Own::InTheWay);
    at.add(&claim(Scheme::Read), grant(2, true));
    assert_eq!(at.own(&1, &claim(Scheme::Write)), Own::Deadlock { held: Role::Read });
    assert_eq!(Own::Beside.or(Own::InTheWay), Own::InTheWay);
    assert_eq!(Own::InTheWay.or(Own::Nothing), Own::InTheWay);
    let (reads, writes) = (Own::Deadlock { held: Role::Read }, Own::Deadlock { held: Role::Write });
    assert_eq!((reads.or(writes), writes.or(reads)), (reads, writes), "the first of two");
}

#[test]
fn a_grant_without_holds_is_nobodys() {
    let mut at = HeldAt::<Grant, u32>::default();
    at.add(&claim(Scheme::Mutex), grant(0, true));
    assert_eq!(at.own(&1, &claim(Scheme::Mutex)), Own::Nothing);
}

#[test]
fn only_a_writer_that_its_owner_alone_can_release_lets_a_reader_in() {
    let mut at = HeldAt::<Grant, u32>::default();
    let (read, kazoo) = (claim(Scheme::Read), claim(Scheme::KazooRead));
    at.add(&claim(Scheme::Write), grant(1, false));
    assert_eq!(at.writer(&1, std::slice::from_ref(&read)), None);
    assert!(!at.may_be_within(&1, &read));
    at.add(&claim(Scheme::Write), grant(2, true));
    assert_eq!(at.writer(&1, std::slice::from_ref(&read)).map(|turn| turn.number), Some(2));
    assert!(at.may_be_within(&1, &read) && !at.may_be_within(&1, &claim(Scheme::Write)));
    assert_eq!(at.writer(&1, std::slice::from_ref(&kazoo)), None);
    assert_eq!(at.writer(&2, std::slice::from_ref(&read)), None);
    assert_eq!(at.writer(&1, &[read.clone(), read]), None, "a set of locks");
    at.add(&claim(Scheme::KazooLock), grant(3, true));
    assert_eq!(at.writer(&1, &[kazoo]).map(|turn| turn.number), Some(3));
}

#[test]
fn a_release_is_waited_for_by_those_whom_it_excludes() {
    let mut at = HeldAt::<Grant, u32>::default();
    let turn = grant(1, false);
    at.add(&claim(Scheme::Read), turn.clone());
    assert_eq!(at.releases(Role::Write).count(), 0, "it is held, and not being released");
    turn.status.set(Status::Releasing);
    assert_eq!(at.releases(Role::Read).count(), 0);
    assert_eq!(at.releases(Role::Write).count(), 1);
    turn.status.set(Status::Stuck);
    assert_eq!(at.releases(Role::Write).count(), 0, "it really is in the way");
}

#[test]
fn kept_places_make_way_for_those_whom_they_exclude() {
    let mut at = HeldAt::<Grant, u32>::default();
    at.note_kept(Role::Read, 1);
    at.note_kept(Role::Write, 2);
    assert_eq!(at.kept(Role::Read).collect::<Vec<_>>(), [&2]);
    assert_eq!(at.kept(Role::Write).collect::<Vec<_>>(), [&1, &2]);
    at.forget_kept(|place| *place == 1);
    assert_eq!(at.kept(Role::Write).collect::<Vec<_>>(), [&2]);
}
