//! Behaviour that is easier to see in a few members than in the model check.

mod answers;

use super::{Answer, Member};
use crate::Moment;
use crate::drive::Machine;
use crate::name::Uuid;
use crate::protocol::{Node, Now, Operation, Origin, Outcome, Patience, Refusal, WatchEvent};
use std::time::Duration;

const NOW: Now = Now { moment: Moment::at(Duration::ZERO), lease_until: Moment::at(Duration::ZERO) };

/// A server that does what it is asked, and knows of no directories.
#[derive(Default)]
struct Server {
    zxid: i64,
    nodes: Vec<Node>,
}

impl Server {
    fn has(&self, path: &str) -> bool {
        self.nodes.iter().any(|node| path == format!("/b/{}", node.name))
    }

    fn create(&mut self, path: &str) -> Node {
        self.zxid += 1;
        let name = path.trim_start_matches("/b/").to_owned();
        let node = Node { name, origin: Some(Origin { czxid: self.zxid, session: 1 }) };
        self.nodes.push(node.clone());
        node
    }

    fn delete(&mut self, path: &str) {
        self.nodes.retain(|node| path != format!("/b/{}", node.name));
    }

    fn found(&self, path: &str) -> Outcome {
        let found = self.nodes.iter().find(|node| path == format!("/b/{}", node.name));
        found.map_or(Outcome::NoNode, |node| Outcome::Found(node.clone()))
    }

    fn execute(&mut self, operation: &Operation) -> Outcome {
        match operation {
            Operation::CreateSingle { path, .. } if self.has(path) => Outcome::NodeExists,
            Operation::CreateSingle { path, data } => {
                assert_eq!(&**data, b"ours");
                Outcome::Created(vec![self.create(path)])
            }
            Operation::InspectAndWatch { path } | Operation::Read { path } => self.found(path),
            Operation::List { .. } => {
                Outcome::Children(self.nodes.iter().map(|node| node.name.clone()).collect())
            }
            Operation::Survey { .. } => Outcome::Surveyed(self.nodes.clone()),
            Operation::Watch { path } if self.has(path) => Outcome::Done,
            Operation::Open { guards, path, replaces, data } => {
                assert_eq!(&**data, b"ours");
                if !guards.iter().all(|guard| self.has(guard)) || *replaces && !self.has(path) {
                    return Outcome::NoNode;
                }
                if self.has(path) && !replaces {
                    return Outcome::NodeExists;
                }
                self.delete(path);
                self.create(path);
                Outcome::Done
            }
            Operation::Delete { path } if self.has(path) => {
                self.delete(path);
                Outcome::Done
            }
            Operation::DeleteAll { paths } if paths.iter().all(|path| self.has(path)) => {
                paths.iter().for_each(|path| self.delete(path));
                Outcome::Done
            }
            Operation::Barrier { .. } | Operation::CreateParents { .. } => Outcome::Done,
            _ => Outcome::NoNode,
        }
    }

    /// Answers one flight of the member, if there is one.
    fn answer(&mut self, member: &mut Member) -> bool {
        let Some(flight) = member.poll_flight() else { return false };
        let outcomes = flight.iter().map(|operation| self.execute(operation)).collect();
        member.handle_replies(outcomes, NOW.moment, NOW);
        true
    }

    /// Answers until nothing more is asked. Watches do not fire by themselves.
    fn serve(&mut self, member: &mut Member) {
        while self.answer(member) {}
    }

    /// Executes one flight of the member, but loses its replies.
    fn lose(&mut self, member: &mut Member) {
        let flight = member.poll_flight().unwrap();
        let outcomes = flight.iter().map(|operation| {
            self.execute(operation);
            Outcome::Unknown
        });
        let outcomes = outcomes.collect();
        member.handle_replies(outcomes, NOW.moment, NOW);
    }
}

/// A member with this number in its name, so that names sort like the numbers.
fn member(number: u128, members: usize, patience: Patience) -> Member {
    let mut member = Member::new("/b", members, b"ours"[..].into(), patience);
    member.handle_session(1, Duration::from_secs(1), Uuid::from_random(number << 96));
    member
}

fn wake(member: &mut Member) {
    member.handle_watch(WatchEvent::Changed, NOW);
}

fn has_entered(member: &mut Member) -> bool {
    matches!(member.poll_verdict(), Some(Answer::Entered { .. }))
}

/// Two members that are inside: the one whose name comes first, and the other.
fn two(server: &mut Server) -> (Member, Member) {
    let (mut first, mut other) = (member(1, 2, Patience::Waits), member(2, 2, Patience::Waits));
    server.serve(&mut first);
    assert!(first.is_waiting() && first.poll_verdict().is_none());
    server.serve(&mut other);
    wake(&mut first);
    server.serve(&mut first);
    assert!(has_entered(&mut first) && has_entered(&mut other));
    (first, other)
}

#[test]
fn members_begin_together_and_end_together_and_leave_nothing() {
    for first_leaves_first in [true, false] {
        let mut server = Server::default();
        let (mut first, mut other) = two(&mut server);
        let (one, two) = if first_leaves_first { (&mut first, &mut other) } else { (&mut other, &mut first) };
        one.handle_leave(Patience::Waits);
        server.serve(one);
        assert!(one.is_waiting() && one.poll_verdict().is_none());
        two.handle_leave(Patience::Waits);
        server.serve(two);
        wake(one);
        server.serve(one);
        wake(two);
        server.serve(two);
        assert_eq!((one.poll_verdict(), two.poll_verdict()), (Some(Answer::Left), Some(Answer::Left)));
        assert!(one.is_gone() && two.is_gone());
        assert_eq!(server.nodes, []);
    }
}

#[test]
fn a_creation_whose_reply_was_lost_is_found_again() {
    let mut server = Server::default();
    let mut alone = member(1, 1, Patience::Waits);
    server.lose(&mut alone);
    let flight = alone.poll_flight().unwrap();
    assert!(matches!(flight[..2], [Operation::Barrier { .. }, Operation::CreateSingle { .. }]), "{flight:?}");
    let outcomes = flight.iter().map(|operation| server.execute(operation)).collect();
    alone.handle_replies(outcomes, NOW.moment, NOW);
    server.serve(&mut alone);
    assert!(has_entered(&mut alone));
    assert_eq!(server.nodes.len(), 2);
}

#[test]
fn a_watch_that_fires_while_it_looks_closer_is_not_missed() {
    let mut server = Server::default();
    let (mut first, other) = two(&mut server);
    first.handle_leave(Patience::Waits);
    // The departure, and the look that sets a watch on `ready`.
    assert!(server.answer(&mut first) && server.answer(&mut first));
    let flight = first.poll_flight().unwrap();
    assert!(matches!(flight[..], [Operation::Watch { .. }]) && first.keeps_watch(), "{flight:?}");
    wake(&mut first);
    first.handle_replies(vec![Outcome::Done], NOW.moment, NOW);
    assert!(!first.is_waiting());
    drop(other);
}

#[test]
fn a_waiter_looks_again_after_a_session_timeout_and_comes_again_by_another_name_if_its_node_is_gone() {
    let mut server = Server::default();
    let mut waiter = member(1, 2, Patience::Waits);
    server.serve(&mut waiter);
    let until = waiter.poll_timeout().unwrap();
    assert_eq!(until.since(NOW.moment), Duration::from_secs(10));
    let first = server.nodes.pop().unwrap().name;
    waiter.handle_timeout(until);
    server.serve(&mut waiter);
    assert!(waiter.is_waiting());
    // The members that were inside with it wait for the end of the first.
    assert_eq!(server.nodes.len(), 1);
    assert_ne!(server.nodes[0].name, first);
}

#[test]
fn one_that_ends_while_it_leaves_a_watch_does_not_wait() {
    let mut server = Server::default();
    let (mut first, _other) = two(&mut server);
    first.handle_leave(Patience::Waits);
    assert!(server.answer(&mut first) && server.answer(&mut first));
    assert!(first.poll_flight().is_some());
    first.handle_end();
    assert_eq!(first.poll_flight(), None, "one is on its way");
    first.handle_replies(vec![Outcome::Done], NOW.moment, NOW);
    assert!(!first.is_waiting());
    server.serve(&mut first);
    assert!(first.is_gone() && !server.has(&format!("/b/{}", first.name)));
}

#[test]
fn one_that_came_again_after_the_barrier_was_opened_is_not_waited_for() {
    let mut server = Server::default();
    let (mut leaver, mut opener) = (member(2, 2, Patience::Waits), member(1, 2, Patience::Waits));
    server.serve(&mut leaver);
    server.serve(&mut opener);
    assert!(has_entered(&mut opener));
    // Its session ends, and it comes again before the other looks.
    server.delete(&format!("/b/{}", opener.name));
    let mut again = member(0, 2, Patience::Waits);
    assert!(server.answer(&mut again));
    wake(&mut leaver);
    server.serve(&mut leaver);
    assert!(has_entered(&mut leaver));
    leaver.handle_leave(Patience::Waits);
    server.serve(&mut leaver);
    assert_eq!(leaver.poll_verdict(), Some(Answer::Left));
}

#[test]
fn one_whose_node_was_deleted_is_told_and_one_whose_reply_was_lost_is_not() {
    for is_lost in [true, false] {
        let mut server = Server::default();
        let (mut first, mut other) = two(&mut server);
        server.delete(&format!("/b/{}", first.name));
        other.handle_leave(Patience::Waits);
        // The departure, and the survey that shows that `ready` goes with it.
        assert!(server.answer(&mut other) && server.answer(&mut other));
        if is_lost {
            server.lose(&mut other);
        } else {
            server.nodes.clear();
        }
        server.serve(&mut other);
        let answer = if is_lost { Answer::Left } else { Answer::Lost };
        assert_eq!(other.poll_verdict(), Some(answer));
        first.handle_leave(Patience::Waits);
        server.serve(&mut first);
        assert_eq!(first.poll_verdict(), Some(Answer::Lost));
        assert!(first.is_gone() && other.is_gone());
        assert_eq!(server.nodes, []);
    }
}

#[test]
fn a_try_goes_at_once_and_a_leave_that_does_not_wait_as_well() {
    let mut server = Server::default();
    let mut alone = member(3, 2, Patience::TriesOnce);
    server.serve(&mut alone);
    assert_eq!((alone.poll_verdict(), alone.is_gone()), (Some(Answer::NotOpen), true));
    assert_eq!(server.nodes, []);
    let (mut first, mut other) = two(&mut server);
    first.handle_leave(Patience::TriesOnce);
    server.serve(&mut first);
    assert_eq!((first.poll_verdict(), first.is_gone()), (Some(Answer::OthersWithin), true));
    other.handle_leave(Patience::TriesOnce);
    server.serve(&mut other);
    assert_eq!((other.poll_verdict(), other.is_gone()), (Some(Answer::Left), true));
    assert_eq!(server.nodes, []);
}

#[test]
fn a_deletion_that_is_refused_is_tried_again_later() {
    let mut server = Server::default();
    let mut alone = member(1, 1, Patience::Waits);
    server.serve(&mut alone);
    alone.handle_end();
    server.answer(&mut alone);
    for _ in ["both", "our own"] {
        assert!(alone.poll_flight().is_some());
        alone.handle_replies(vec![Outcome::Refused(Refusal::Denied)], NOW.moment, NOW);
    }
    assert_eq!(alone.poll_timeout(), Some(Moment::at(Duration::from_secs(1))));
    alone.handle_timeout(Moment::at(Duration::from_secs(1)));
    server.serve(&mut alone);
    assert!(alone.is_gone());
    assert_eq!(server.nodes, []);
}

#[test]
fn a_session_that_ends_means_what_it_ended() {
    let mut server = Server::default();
    // It comes again, even if it was inside and nobody has been told.
    let mut alone = member(1, 1, Patience::Waits);
    server.serve(&mut alone);
    alone.handle_session_over();
    assert!(alone.is_idle() && alone.poll_verdict().is_none());
    server.nodes.clear();
    alone.handle_session(2, Duration::from_secs(1), Uuid::from_random(9));
    server.serve(&mut alone);
    assert!(has_entered(&mut alone));
    alone.handle_session_over();
    assert!(alone.is_gone());

    server.nodes.clear();
    let (mut first, mut other) = two(&mut server);
    // It has already left, and waits for the others in the next session.
    other.handle_leave(Patience::Waits);
    server.serve(&mut other);
    other.handle_session_over();
    assert!(other.is_idle());
    other.handle_session(2, Duration::from_secs(1), Uuid::from_random(9));
    server.serve(&mut other);
    assert!(other.is_waiting());
    // The one that stays has not left.
    first.handle_leave(Patience::Waits);
    server.answer(&mut first);
    first.handle_session_over();
    assert_eq!((first.poll_verdict(), first.is_gone()), (Some(Answer::Lost), true));
}

#[test]
fn an_end_at_any_step_leaves_no_node() {
    for steps in 0..12 {
        let mut server = Server::default();
        let mut alone = member(1, 1, Patience::Waits);
        for _ in 0..steps {
            server.answer(&mut alone);
            if has_entered(&mut alone) {
                alone.handle_leave(Patience::Waits);
            }
        }
        let flight = alone.poll_flight();
        alone.handle_end();
        if let Some(flight) = flight {
            let outcomes = flight.iter().map(|operation| server.execute(operation)).collect();
            alone.handle_replies(outcomes, NOW.moment, NOW);
        }
        server.serve(&mut alone);
        assert!(alone.is_gone(), "after {steps} steps");
        assert!(!server.has(&format!("/b/{}", alone.name)), "after {steps} steps");
    }
}

/// A member that opens the barrier alone, and whose every try to open it has this `outcome`. Returns how many times it
/// tried, how many times it paused for that, and what it said.
fn opens_in_vain(outcome: &Outcome, server: &mut Server) -> (usize, usize, Option<Answer>) {
    let mut alone = member(1, 1, Patience::Waits);
    let (mut tries, mut pauses) = (0, 0);
    while tries < 20 {
        if let Some(answer) = alone.poll_verdict() {
            server.serve(&mut alone);
            assert!(alone.is_gone() && server.nodes.is_empty());
            return (tries, pauses, Some(answer));
        }
        let Some(flight) = alone.poll_flight() else {
            pauses += 1;
            alone.handle_timeout(alone.poll_timeout().unwrap());
            continue;
        };
        tries += usize::from(matches!(flight[..], [Operation::Open { .. }]));
        let outcomes = flight.iter().map(|operation| match operation {
            Operation::Open { .. } => outcome.clone(),
            operation => server.execute(operation),
        });
        let outcomes = outcomes.collect();
        alone.handle_replies(outcomes, NOW.moment, NOW);
    }
    (tries, pauses, alone.poll_verdict())
}

#[test]
fn one_that_cannot_open_gives_up_and_says_why() {
    for (outcome, why) in [(Outcome::NodeExists, "in a loop"), (Outcome::NotEmpty, "has children")] {
        let (tries, _, answer) = opens_in_vain(&outcome, &mut Server::default());
        assert_eq!(tries, 9);
        let Some(Answer::Failed(Refusal::Answer(said))) = answer else { panic!("{answer:?}") };
        assert!(said.contains(why), "{said}");
    }
}

#[test]
fn a_server_that_never_says_what_it_did_is_not_asked_in_a_loop() {
    let (tries, pauses, answer) = opens_in_vain(&Outcome::Unknown, &mut Server::default());
    assert_eq!((tries, answer), (20, None));
    assert!(pauses >= 18, "{pauses}");
}

#[test]
fn one_whose_barrier_was_deleted_with_its_node_comes_again() {
    let mut server = Server::default();
    let mut waiter = member(1, 2, Patience::Waits);
    server.serve(&mut waiter);
    let first = server.nodes.pop().unwrap().name;
    wake(&mut waiter);
    let flight = waiter.poll_flight().unwrap();
    waiter.handle_replies(vec![Outcome::NoNode; flight.len()], NOW.moment, NOW);
    server.serve(&mut waiter);
    assert!(waiter.is_waiting() && server.nodes.len() == 1 && server.nodes[0].name != first);
}

#[test]
fn it_says_what_it_is_waiting_for() {
    let mut alone = Member::new("/b", 1, b"ours"[..].into(), Patience::Waits);
    assert!(alone.is_idle() && !alone.is_gone());
    alone.handle_session(1, Duration::from_secs(1), Uuid::from_random(1));
    assert!(!alone.is_idle() && !alone.is_gone() && !alone.is_waiting());
}

#[test]
fn a_watch_that_fires_before_it_looks_closer_is_not_missed_and_counts_once() {
    let mut server = Server::default();
    let (mut first, _other) = two(&mut server);
    first.handle_leave(Patience::Waits);
    assert!(server.answer(&mut first) && server.answer(&mut first));
    // It has looked, and is about to set one more watch.
    wake(&mut first);
    assert!(server.answer(&mut first) && !first.is_waiting());
    // It looks again, and nothing has fired since then.
    let flight = first.poll_flight().unwrap();
    assert!(matches!(flight[..], [Operation::InspectAndWatch { .. }, Operation::List { .. }]), "{flight:?}");
    assert!(!first.keeps_watch());
    let outcomes = flight.iter().map(|operation| server.execute(operation)).collect();
    first.handle_replies(outcomes, NOW.moment, NOW);
    assert!(server.answer(&mut first) && first.is_waiting());
}

#[test]
fn a_watch_is_of_no_use_to_one_that_only_removes_its_node() {
    let mut server = Server::default();
    let mut alone = member(1, 1, Patience::Waits);
    server.serve(&mut alone);
    alone.handle_end();
    for _ in ["survey", "deletion"] {
        let flight = alone.poll_flight().unwrap();
        assert!(!alone.keeps_watch(), "{flight:?}");
        let outcomes = flight.iter().map(|operation| server.execute(operation)).collect();
        alone.handle_replies(outcomes, NOW.moment, NOW);
    }
    assert!(alone.is_gone());
}

#[test]
fn a_session_that_ends_while_one_leaves_has_taken_its_node_or_what_it_did_is_not_known() {
    // The one that does not stay to the end removes its node first.
    for (is_sent, expected) in [(false, Some(Answer::Lost)), (true, None)] {
        let mut server = Server::default();
        let (_first, mut other) = two(&mut server);
        other.handle_leave(Patience::Waits);
        // The departure, and the survey.
        assert!(server.answer(&mut other) && server.answer(&mut other));
        if is_sent {
            let flight = other.poll_flight().unwrap();
            assert!(matches!(flight[..], [Operation::Delete { .. }]), "{flight:?}");
        }
        other.handle_session_over();
        assert_eq!((other.is_idle(), other.poll_verdict()), (is_sent, expected));
    }
}

#[test]
fn one_that_pauses_before_it_comes_is_over_at_once_and_one_that_pauses_before_a_deletion_waits() {
    let mut server = Server::default();
    let mut alone = member(1, 1, Patience::Waits);
    server.lose(&mut alone);
    server.lose(&mut alone);
    assert!(alone.poll_timeout().is_some());
    alone.handle_end();
    assert_eq!(alone.poll_timeout(), None);
    server.lose(&mut alone);
    let pause = alone.poll_timeout();
    assert!(pause.is_some());
    alone.handle_end();
    assert_eq!((alone.poll_timeout(), alone.poll_flight()), (pause, None));
    alone.handle_timeout(pause.unwrap());
    server.serve(&mut alone);
    assert!(alone.is_gone());
    alone.handle_end();
    assert!(alone.is_gone());
}
