//! Behaviour that is easier to see in a single attempt than in the model check: leases, pauses, long lives.

mod examined;
mod steps;

use super::Contender;
use crate::Moment;
use crate::claim::{Claim, Permits};
use crate::drive::Machine;
use crate::lease::Lease;
use crate::name::{Scheme, Uuid};
use crate::protocol::{Node, Now, Operation, Origin, Outcome, Patience, Refusal, Verdict, WatchEvent};
use std::time::Duration;

const SESSION: i64 = 7;

fn at(millis: u64) -> Moment {
    Moment::at(Duration::from_millis(millis))
}

/// An attempt alone with a server that does what it is asked, in a session that has been idle for long.
struct Scene {
    contender: Contender,
    lease: Lease,
    clock: u64,
}

impl Scene {
    fn new(timeout: u64) -> Self {
        let lease = Lease::new(Duration::from_millis(timeout), at(0));
        let mut contender = Contender::new(vec![Claim::new("/a", Scheme::Mutex)], Patience::Waits);
        contender.handle_session(SESSION, lease.heartbeat(), Uuid::from_random(7));
        Self { contender, lease, clock: 100_000 }
    }

    fn now(&self) -> Now {
        Now { moment: at(self.clock), lease_until: self.lease.until() }
    }

    /// Sends the next flight; the answer takes this long. `None` if there is nothing to send.
    fn exchange(&mut self, takes: u64) -> Option<Vec<Operation>> {
        let flight = self.contender.poll_flight()?;
        let sent = at(self.clock);
        self.clock += takes;
        self.lease.acknowledge(sent, at(self.clock));
        let outcomes = flight.iter().map(|operation| self.outcome(operation)).collect();
        self.contender.handle_replies(outcomes, sent, self.now());
        Some(flight)
    }

    fn outcome(&self, operation: &Operation) -> Outcome {
        let name = |prefix: &str| format!("{prefix}0000000000");
        match operation {
            Operation::Create(new) => {
                let origin = Some(Origin { czxid: 1, session: SESSION });
                Outcome::Created(vec![Node { name: name(&new.prefix), origin }])
            }
            Operation::List { .. } => {
                Outcome::Children(vec![name(&Scheme::Mutex.prefix(self.contender.mark(), SESSION))])
            }
            _ => Outcome::Done,
        }
    }

    /// Lets the attempt's pause pass, if it makes one, and returns how long it is.
    fn pause(&mut self) -> u64 {
        let Some(until) = self.contender.poll_timeout() else { return 0 };
        let pause = until.since(at(self.clock));
        self.clock += u64::try_from(pause.as_millis()).unwrap();
        self.contender.handle_timeout(until);
        u64::try_from(pause.as_millis()).unwrap()
    }
}

#[test]
fn answers_that_come_late_are_no_reason_to_pause_for_long() {
    let mut scene = Scene::new(1000);
    for _ in 0..9 {
        assert!(scene.exchange(300).is_some());
        assert_eq!(scene.contender.poll_verdict(), None);
        assert!(scene.pause() <= 10, "one check soon after the other is what renews the lease");
    }
    // As soon as answers come in time again, there is a lease.
    let granted = (0..6).find_map(|_| {
        scene.exchange(1);
        scene.pause();
        scene.contender.poll_verdict()
    });
    assert!(matches!(granted, Some(Verdict::Granted { .. })), "{granted:?}");
}

#[test]
fn a_grant_waits_for_the_next_check_where_little_is_left_of_the_lease() {
    let mut scene = Scene::new(10_000);
    // Just opened, but 4.5 s ago: 300 ms are left.
    scene.lease = Lease::new(Duration::from_secs(10), at(95_500));
    let lease_until = scene.lease.until();
    let flight = scene.contender.poll_flight().unwrap();
    let outcomes = flight.iter().map(|operation| scene.outcome(operation)).collect();
    let now = Now { moment: at(100_000), lease_until };
    scene.contender.handle_replies(outcomes, at(99_999), now);
    assert_eq!(scene.contender.poll_verdict(), None);
    scene.lease.acknowledge(at(99_999), at(100_000));
    let flight = scene.exchange(1).unwrap();
    assert!(matches!(flight[..], [Operation::Check { .. }]), "{flight:?}");
    assert!(matches!(scene.contender.poll_verdict(), Some(Verdict::Granted { .. })));
    assert!(scene.lease.until().since(at(scene.clock)) >= Duration::from_secs(1));
}

#[test]
fn a_lease_that_is_always_short_is_taken_after_a_few_checks() {
    let mut scene = Scene::new(10_000);
    let mut checks = 0;
    loop {
        let flight = scene.contender.poll_flight().unwrap();
        checks += usize::from(matches!(flight[..], [Operation::Check { .. }]));
        scene.clock += 10;
        let outcomes = flight.iter().map(|operation| scene.outcome(operation)).collect();
        let now = Now { moment: at(scene.clock), lease_until: at(scene.clock + 5) };
        scene.contender.handle_replies(outcomes, at(scene.clock - 10), now);
        if let Some(verdict) = scene.contender.poll_verdict() {
            assert!(matches!(verdict, Verdict::Granted { .. }));
            break;
        }
    }
    assert!((2..=8).contains(&checks), "{checks} checks");
}

#[test]
fn a_directory_that_vanishes_once_in_each_of_many_sessions_is_made_again() {
    let mut contender = Contender::new(vec![Claim::new("/election", Scheme::Latch)], Patience::Waits);
    for session in 1..=50 {
        let now = Now { moment: at(session * 86_400_000), lease_until: at(session * 86_400_000 + 4_000) };
        contender.handle_session(
            i64::try_from(session).unwrap(),
            Duration::from_secs(1),
            Uuid::from_random(7),
        );
        let mut was_there = false;
        while let Some(flight) = contender.poll_flight() {
            let outcome = |operation: &Operation| match operation {
                Operation::Create(_) | Operation::List { .. } if !was_there => Outcome::NoNode,
                Operation::Create(new) => {
                    let origin = Some(Origin { czxid: 9, session: i64::try_from(session).unwrap() });
                    Outcome::Created(vec![Node { name: format!("{}0000000001", new.prefix), origin }])
                }
                Operation::List { .. } => Outcome::Children(vec![
                    "_c_other-latch-0000000000".to_owned(),
                    format!("{}0000000001", Scheme::Latch.prefix(Uuid::from_random(7), 0)),
                ]),
                _ => Outcome::Done,
            };
            let outcomes = flight.iter().map(outcome).collect();
            was_there |= matches!(flight[..], [Operation::CreateParents { .. }]);
            contender.handle_replies(outcomes, now.moment, now);
            assert_eq!(contender.poll_verdict(), None, "in session {session}");
        }
        assert!(contender.is_waiting());
        contender.handle_session_over();
    }
}

#[test]
fn a_neighbour_that_may_not_be_read_is_watched_through_its_directory() {
    let mut contender = Contender::new(vec![Claim::new("/a", Scheme::Mutex)], Patience::Waits);
    contender.handle_session(SESSION, Duration::from_secs(1), Uuid::from_random(7));
    let own = format!("{}0000000001", Scheme::Mutex.prefix(Uuid::from_random(7), SESSION));
    let children = vec!["_c_other-lock-0000000000".to_owned(), own.clone()];
    let now = Now { moment: at(0), lease_until: at(5_000) };
    let mut send = |expected: &Operation, outcomes: Vec<Outcome>| {
        let flight = contender.poll_flight().unwrap();
        assert_eq!(flight.last(), Some(expected));
        contender.handle_replies(outcomes, at(0), now);
    };
    let created = Node { name: own, origin: Some(Origin { czxid: 1, session: SESSION }) };
    let list = Operation::List { directory: "/a".into() };
    send(&list, vec![Outcome::Created(vec![created]), Outcome::Children(children.clone())]);
    let watch = Operation::Watch { path: "/a/_c_other-lock-0000000000".to_owned() };
    send(&watch, vec![Outcome::Refused(Refusal::Denied)]);
    send(&Operation::ListAndWatch { directory: "/a".into() }, vec![Outcome::Children(children)]);
    assert!(contender.is_waiting());
}

/// An attempt whose turn it is to take two permits.
fn after_two_permits() -> Contender {
    let (directory, data) = ("/s/leases".into(), b"a permit"[..].into());
    let permits = Permits { directory, count: 2, limit: 5, limit_at: None, data };
    let data = b"a place"[..].into();
    let claim = Claim { permits: Some(permits), data, ..Claim::new("/s/locks", Scheme::Mutex) };
    let mut contender = Contender::new(vec![claim], Patience::Waits);
    contender.handle_session(SESSION, Duration::from_secs(1), Uuid::from_random(7));
    let now = Now { moment: at(0), lease_until: at(5_000) };
    let own = format!("{}0000000001", Scheme::Mutex.prefix(Uuid::from_random(7), SESSION));
    let created = Node { name: own.clone(), origin: Some(Origin { czxid: 1, session: SESSION }) };
    let flight = contender.poll_flight().unwrap();
    assert_eq!(said(&flight[0]), ["a place"]);
    contender.handle_replies(vec![Outcome::Created(vec![created]), Outcome::Children(vec![own])], at(0), now);
    contender
}

/// The data of the nodes that this flight creates.
fn said(operation: &Operation) -> Vec<&str> {
    let data: Vec<&[u8]> = match operation {
        Operation::Create(new) => vec![&new.data],
        Operation::CreateAll(new) => new.iter().map(|new| &*new.data).collect(),
        Operation::CreateWithin { data, .. } => vec![data],
        _ => Vec::new(),
    };
    data.into_iter().map(|data| std::str::from_utf8(data).unwrap()).collect()
}

#[test]
fn every_node_says_what_its_claim_is_to_say() {
    let mut contender = after_two_permits();
    let flight = contender.poll_flight().unwrap();
    assert!(flight.iter().any(|operation| said(operation) == ["a permit"; 2]), "{flight:?}");

    let claim =
        |directory, data: &str| Claim { data: data.as_bytes().into(), ..Claim::new(directory, Scheme::Read) };
    let creation = |claims| {
        let mut contender = Contender::new(claims, Patience::Waits);
        contender.handle_session(SESSION, Duration::from_secs(1), Uuid::from_random(7));
        contender.poll_flight().unwrap().remove(0)
    };
    assert_eq!(said(&creation(vec![claim("/a", "one"), claim("/b", "two")])), ["one", "two"]);
    let within = Some("_c_w-__WRIT__0000000007".to_owned());
    let inside = creation(vec![Claim { within, ..claim("/a", "inside") }]);
    assert_eq!(said(&inside), ["inside"]);
    let prefix = Scheme::Read.prefix(Uuid::from_random(7), SESSION);
    let (path, guard) = (format!("/a/{prefix}0000000007"), "/a/_c_w-__WRIT__0000000007".to_owned());
    assert_eq!(inside, Operation::CreateWithin { path, guard, data: b"inside"[..].into() });
}

#[test]
fn several_permits_of_one_name_are_refused() {
    let mut contender = after_two_permits();
    let now = Now { moment: at(0), lease_until: at(5_000) };
    let flight = contender.poll_flight().unwrap();
    let outcomes = flight.iter().map(|_| Outcome::NodeExists).collect();
    contender.handle_replies(outcomes, at(0), now);
    let verdict = contender.poll_verdict();
    assert_eq!(verdict, Some(Verdict::Failed(Refusal::UsedUp("/s/leases".to_owned()))));
}

/// A directory that has given out its numbers while one contender has held all the time.
fn with_an_old_holder(patience: Patience) -> (Contender, Vec<u64>) {
    let mut contender = Contender::new(vec![Claim::new("/a", Scheme::Mutex)], patience);
    contender.handle_session(SESSION, Duration::from_secs(1), Uuid::from_random(7));
    let (mut clock, mut pauses) = (0, Vec::new());
    for _ in 0..40 {
        if let Some(until) = contender.poll_timeout() {
            let pause = u64::try_from(until.since(at(clock)).as_millis()).unwrap();
            pauses.push(pause);
            clock += pause;
            contender.handle_timeout(until);
        }
        let Some(flight) = contender.poll_flight() else { break };
        let outcome = |operation: &Operation| match operation {
            Operation::Create(new) => {
                let origin = Some(Origin { czxid: 9, session: SESSION });
                Outcome::Created(vec![Node { name: format!("{}2147483000", new.prefix), origin }])
            }
            Operation::DeleteDirectory { .. } => Outcome::NotEmpty,
            Operation::Delete { .. } => Outcome::Done,
            _ => Outcome::Children(vec!["_c_other-lock-0000000005".to_owned()]),
        };
        let now = Now { moment: at(clock), lease_until: at(clock + 5_000) };
        contender.handle_replies(flight.iter().map(outcome).collect(), now.moment, now);
    }
    (contender, pauses)
}

#[test]
fn a_directory_whose_holder_came_long_ago_is_not_entered_again_and_again() {
    let (_, pauses) = with_an_old_holder(Patience::Waits);
    assert_eq!(pauses.last(), Some(&640), "{pauses:?}");
    let (mut contender, pauses) = with_an_old_holder(Patience::TriesOnce);
    assert_eq!(contender.poll_verdict(), Some(Verdict::Failed(Refusal::Busy)));
    assert_eq!(pauses, []);
}

#[test]
fn one_that_has_no_session_is_idle_and_nothing_else_is() {
    let mut contender = Contender::new(vec![Claim::new("/a", Scheme::Mutex)], Patience::Waits);
    assert!(contender.is_idle());
    contender.handle_session(SESSION, Duration::from_secs(1), Uuid::from_random(7));
    assert!(!contender.is_idle());
    contender.handle_session_over();
    assert!(contender.is_idle());
}

const NOW: Now = Now { moment: Moment::at(Duration::ZERO), lease_until: Moment::at(Duration::from_secs(5)) };

/// An attempt whose turn it is to take a permit and that has asked for it, with its place in the queue.
fn taking_a_permit() -> (Contender, String) {
    let mut contender = after_two_permits();
    let flight = contender.poll_flight().unwrap();
    assert!(matches!(flight[0], Operation::CreateAll(_)), "{flight:?}");
    let place = format!("/s/locks/{}0000000001", Scheme::Mutex.prefix(Uuid::from_random(7), SESSION));
    (contender, place)
}

#[test]
fn permits_of_which_nobody_knows_whether_they_were_taken_are_looked_for_before_one_leaves() {
    let (mut contender, _) = taking_a_permit();
    contender.handle_end();
    contender.handle_replies(vec![Outcome::Unknown; 4], at(0), NOW);
    let flight = contender.poll_flight().unwrap();
    assert_eq!(flight.last(), Some(&Operation::List { directory: "/s/leases".into() }));
}

/// An attempt whose permits an operator has deleted before it has found them, with its place in the queue.
fn without_its_permits() -> (Contender, String) {
    let (mut contender, place) = taking_a_permit();
    contender.handle_replies(vec![Outcome::Unknown; 4], at(0), NOW);
    assert!(matches!(contender.poll_flight().unwrap()[0], Operation::Barrier { .. }));
    let prefix = Scheme::Lease.prefix(Uuid::from_random(7), SESSION);
    let permits = [2, 3].map(|number| format!("{prefix}000000000{number}")).to_vec();
    contender.handle_replies(vec![Outcome::Done, Outcome::Children(permits)], at(0), NOW);
    assert!(matches!(contender.poll_flight().unwrap()[0], Operation::Inspect { .. }));
    contender.handle_replies(vec![Outcome::NoNode; 2], at(0), NOW);
    (contender, place)
}

/// An attempt that has been told that it holds, with the path of its node.
fn holder() -> (Contender, String) {
    let mut scene = Scene::new(10_000);
    let granted = (0..4).find_map(|_| {
        scene.exchange(1);
        scene.contender.poll_verdict()
    });
    let Some(Verdict::Granted { nodes, .. }) = granted else { panic!("{granted:?}") };
    (scene.contender, nodes[0].clone())
}

#[test]
fn a_holder_that_may_not_leave_the_queue_holds_and_one_that_may_not_begin_anew_fails() {
    let (mut contender, place) = taking_a_permit();
    let prefix = Scheme::Lease.prefix(Uuid::from_random(7), SESSION);
    let permits = [2, 3].map(|number| format!("{prefix}000000000{number}")).to_vec();
    let origin = Some(Origin { czxid: 2, session: SESSION });
    let created = permits.iter().map(|name| Node { name: name.clone(), origin }).collect();
    let found = Outcome::Found(Node { name: place.clone(), origin });
    let none = Outcome::Children(Vec::new());
    contender.handle_replies(
        vec![Outcome::Created(created), none, Outcome::Children(permits), found],
        at(0),
        NOW,
    );
    assert!(matches!(contender.poll_verdict(), Some(Verdict::Granted { .. })));
    let leaves = Some(vec![Operation::Delete { path: place }]);
    assert_eq!(contender.poll_flight(), leaves);
    contender.handle_replies(vec![Outcome::Refused(Refusal::Denied)], at(0), NOW);
    assert_eq!((contender.poll_verdict(), contender.poll_flight()), (None, leaves));

    let (mut contender, place) = without_its_permits();
    assert!(contender.poll_flight().unwrap().contains(&Operation::Delete { path: place }));
    contender.handle_replies(vec![Outcome::Refused(Refusal::Denied)], at(0), NOW);
    assert_eq!(contender.poll_verdict(), Some(Verdict::Failed(Refusal::Denied)));
}

/// An attempt that comes while another has the lock, and has looked around.
fn behind_another(patience: Patience, has_tried: bool) -> (Contender, String) {
    let mut contender = Contender::new(vec![Claim::new("/a", Scheme::Mutex)], patience);
    if has_tried {
        contender.handle_tried_before();
    }
    contender.handle_session(SESSION, Duration::from_secs(1), Uuid::from_random(7));
    let own = format!("{}0000000001", Scheme::Mutex.prefix(Uuid::from_random(7), SESSION));
    let created = Node { name: own.clone(), origin: Some(Origin { czxid: 1, session: SESSION }) };
    let children = vec!["_c_other-lock-0000000000".to_owned(), own.clone()];
    assert!(contender.poll_flight().is_some());
    contender.handle_replies(vec![Outcome::Created(vec![created]), Outcome::Children(children)], at(0), NOW);
    (contender, format!("/a/{own}"))
}

#[test]
fn a_try_leaves_a_watch_if_its_caller_has_tried_before() {
    let (mut contender, own) = behind_another(Patience::TriesOnce, true);
    assert_eq!(contender.poll_verdict(), Some(Verdict::Failed(Refusal::Busy)));
    let watch = Operation::Watch { path: "/a/_c_other-lock-0000000000".to_owned() };
    assert_eq!(contender.poll_flight(), Some(vec![Operation::Delete { path: own }, watch]));
    assert_eq!(contender.busy_since(), None);
    contender.handle_replies(vec![Outcome::Done; 2], at(3), NOW);
    assert_eq!((contender.is_gone(), contender.busy_since()), (true, Some(at(3))));
    // It remembers nothing if there is no watch.
    let (mut contender, _) = behind_another(Patience::TriesOnce, true);
    assert!(contender.poll_flight().is_some());
    contender.handle_replies(vec![Outcome::Done, Outcome::NoNode], at(3), NOW);
    assert_eq!((contender.is_gone(), contender.busy_since()), (true, None));

    let (mut contender, own) = behind_another(Patience::TriesOnce, false);
    assert_eq!(contender.poll_flight(), Some(vec![Operation::Delete { path: own }]));
    contender.handle_replies(vec![Outcome::Done], at(3), NOW);
    assert_eq!((contender.is_gone(), contender.busy_since()), (true, None));
}

#[test]
fn a_holder_that_asks_for_it_is_told_when_others_come() {
    let (mut contender, path) = holder();
    contender.handle_notice();
    let own = Operation::WatchOwn { path: path.clone() };
    let looks = vec![own.clone(), Operation::ListAndWatch { directory: "/a".into() }];
    assert_eq!(contender.poll_flight(), Some(looks.clone()));
    let name = path.rsplit('/').next().unwrap().to_owned();
    contender.handle_replies(vec![Outcome::Done, Outcome::Children(vec![name.clone()])], at(0), NOW);
    assert_eq!((contender.poll_verdict(), contender.poll_flight()), (None, None));
    contender.handle_watch(WatchEvent::Changed, NOW);
    assert_eq!(contender.poll_flight(), Some(looks));
    let children = vec![name, "_c_other-lock-0000000009".to_owned()];
    contender.handle_replies(vec![Outcome::Done, Outcome::Children(children)], at(0), NOW);
    assert_eq!((contender.poll_verdict(), contender.poll_flight()), (Some(Verdict::Wanted), None));
    // From now on only its own node matters.
    contender.handle_watch(WatchEvent::Changed, NOW);
    assert_eq!(contender.poll_flight(), Some(vec![own]));
    contender.handle_replies(vec![Outcome::Done], at(0), NOW);
    assert_eq!((contender.poll_verdict(), contender.poll_flight()), (None, None));
    contender.handle_watch(WatchEvent::Deleted, NOW);
    assert_eq!((contender.poll_verdict(), contender.poll_flight()), (Some(Verdict::Deleted), None));
}
