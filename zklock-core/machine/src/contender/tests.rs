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

const NOW: Now = Now { moment: Moment::at(Duration::ZERO), lease_until: Moment::at(Duration::from_secs(5)) };

const OTHER: &str = "_c_other-lock-0000000000";

fn at(millis: u64) -> Moment {
    Moment::at(Duration::from_millis(millis))
}

fn mutex() -> Vec<Claim> {
    vec![Claim::new("/a", Scheme::Mutex)]
}

fn begun(claims: Vec<Claim>, patience: Patience) -> Contender {
    let mut contender = Contender::new(claims, patience);
    contender.handle_session(SESSION, Duration::from_secs(1), Uuid::from_random(7));
    contender
}

/// An attempt with its node of this number behind these others.
fn queued(claims: Vec<Claim>, patience: Patience, others: &[&str], number: u32) -> Contender {
    let mut contender = begun(claims, patience);
    answer(&mut contender, vec![created(number), children(&[others, &[&own(number)]].concat())]);
    contender
}

/// Answers the next flight with these outcomes, and returns it.
fn answer(contender: &mut Contender, outcomes: Vec<Outcome>) -> Vec<Operation> {
    answer_now(contender, outcomes, NOW)
}

fn answer_now(contender: &mut Contender, outcomes: Vec<Outcome>, now: Now) -> Vec<Operation> {
    let flight = contender.poll_flight().unwrap();
    assert_eq!(flight.len(), outcomes.len(), "{flight:?}");
    contender.handle_replies(outcomes, at(0), now);
    flight
}

/// The next flight.
fn next(contender: &Contender) -> Vec<Operation> {
    contender.clone().poll_flight().unwrap_or_default()
}

fn is_granted(contender: &mut Contender) -> bool {
    matches!(contender.poll_verdict(), Some(Verdict::Granted { .. }))
}

fn failed(refusal: Refusal) -> Option<Verdict> {
    Some(Verdict::Failed(refusal))
}

fn own(number: u32) -> String {
    format!("{}{number:010}", Scheme::Mutex.prefix(Uuid::from_random(7), SESSION))
}

/// The permit with this number.
fn permit(number: u32) -> String {
    format!("{}{number:010}", Scheme::Lease.prefix(Uuid::from_random(7), SESSION))
}

fn node(name: String, czxid: i64, session: i64) -> Node {
    Node { name, origin: Some(Origin { czxid, session }) }
}

/// The own node with this number was created.
fn created(number: u32) -> Outcome {
    Outcome::Created(vec![node(own(number), i64::from(number) + 1, SESSION)])
}

fn children(names: &[&str]) -> Outcome {
    Outcome::Children(names.iter().map(|name| (*name).to_owned()).collect())
}

fn denied() -> Outcome {
    Outcome::Refused(Refusal::Denied)
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
        let mut contender = Contender::new(mutex(), Patience::Waits);
        contender.handle_session(SESSION, lease.heartbeat(), Uuid::from_random(7));
        Self { contender, lease, clock: 100_000 }
    }

    /// Sends the next flight; the answer takes this long. `None` if there is nothing to send.
    fn exchange(&mut self, takes: u64) -> Option<Vec<Operation>> {
        let flight = self.contender.poll_flight()?;
        let sent = at(self.clock);
        self.clock += takes;
        self.lease.acknowledge(sent, at(self.clock));
        self.reply(&flight, sent, self.lease.until());
        Some(flight)
    }

    fn reply(&mut self, flight: &[Operation], sent: Moment, lease_until: Moment) {
        let outcome = |operation: &Operation| match operation {
            Operation::Create(_) => created(0),
            Operation::List { .. } => children(&[&own(0)]),
            _ => Outcome::Done,
        };
        let now = Now { moment: at(self.clock), lease_until };
        self.contender.handle_replies(flight.iter().map(outcome).collect(), sent, now);
    }

    /// Lets the attempt's pause pass, if it makes one, and returns how long it is.
    fn pause(&mut self) -> u64 {
        let Some(until) = self.contender.poll_timeout() else { return 0 };
        let pause = u64::try_from(until.since(at(self.clock)).as_millis()).unwrap();
        self.clock += pause;
        self.contender.handle_timeout(until);
        pause
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
    let flight = scene.contender.poll_flight().unwrap();
    scene.reply(&flight, at(99_999), scene.lease.until());
    assert_eq!(scene.contender.poll_verdict(), None);
    scene.lease.acknowledge(at(99_999), at(100_000));
    let flight = scene.exchange(1).unwrap();
    assert!(matches!(flight[..], [Operation::Check { .. }]), "{flight:?}");
    assert!(is_granted(&mut scene.contender));
    assert!(scene.lease.until().since(at(scene.clock)) >= Duration::from_secs(1));
}

#[test]
fn a_lease_that_is_always_short_is_taken_after_a_few_checks() {
    let mut scene = Scene::new(10_000);
    let mut checks = 0;
    let verdict = loop {
        let flight = scene.contender.poll_flight().unwrap();
        let sent = at(scene.clock);
        scene.clock += 10;
        scene.reply(&flight, sent, at(scene.clock + 5));
        checks += usize::from(matches!(flight[..], [Operation::Check { .. }]));
        if let Some(verdict) = scene.contender.poll_verdict() {
            break verdict;
        }
    };
    assert!(matches!(verdict, Verdict::Granted { .. }));
    assert!((2..=8).contains(&checks), "{checks} checks");
}

#[test]
fn a_directory_that_vanishes_once_in_each_of_many_sessions_is_made_again() {
    let mut contender = Contender::new(vec![Claim::new("/election", Scheme::Latch)], Patience::Waits);
    for session in 1..=50 {
        let moment = at(session * 86_400_000);
        let now = Now { moment, lease_until: moment + Duration::from_secs(4) };
        let session = i64::try_from(session).unwrap();
        contender.handle_session(session, Duration::from_secs(1), Uuid::from_random(7));
        let own = format!("{}0000000001", Scheme::Latch.prefix(Uuid::from_random(7), 0));
        let mut was_there = false;
        while let Some(flight) = contender.poll_flight() {
            let outcome = |operation: &Operation| match operation {
                Operation::Create(_) | Operation::List { .. } if !was_there => Outcome::NoNode,
                Operation::Create(_) => Outcome::Created(vec![node(own.clone(), 9, session)]),
                Operation::List { .. } => children(&["_c_other-latch-0000000000", &own]),
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

/// An attempt whose turn it is to take two permits.
fn after_two_permits() -> Contender {
    let (directory, data) = ("/s/leases".into(), b"a permit"[..].into());
    let permits = Permits { directory, count: 2, limit: 5, limit_at: None, data };
    let claim = Claim { permits: Some(permits), ..Claim::new("/s/locks", Scheme::Mutex) };
    queued(vec![claim], Patience::Waits, &[], 1)
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
    let flight = next(&after_two_permits());
    assert!(flight.iter().any(|operation| said(operation) == ["a permit"; 2]), "{flight:?}");

    let claim =
        |directory, data: &str| Claim { data: data.as_bytes().into(), ..Claim::new(directory, Scheme::Read) };
    let creation = |claims| next(&begun(claims, Patience::Waits)).remove(0);
    assert_eq!(said(&creation(vec![claim("/a", "one")])), ["one"]);
    assert_eq!(said(&creation(vec![claim("/a", "one"), claim("/b", "two")])), ["one", "two"]);
    let within = Some("_c_w-__WRIT__0000000007".to_owned());
    let inside = creation(vec![Claim { within, ..claim("/a", "inside") }]);
    let prefix = Scheme::Read.prefix(Uuid::from_random(7), SESSION);
    let (path, guard) = (format!("/a/{prefix}0000000007"), "/a/_c_w-__WRIT__0000000007".to_owned());
    assert_eq!(inside, Operation::CreateWithin { path, guard, data: b"inside"[..].into() });
}

#[test]
fn several_permits_of_one_name_are_refused() {
    let mut contender = after_two_permits();
    answer(&mut contender, vec![Outcome::NodeExists; 4]);
    assert_eq!(contender.poll_verdict(), failed(Refusal::UsedUp("/s/leases".to_owned())));
}

/// A directory that has given out its numbers while one contender has held all the time.
fn with_an_old_holder(patience: Patience) -> (Contender, Vec<u64>) {
    let mut contender = begun(mutex(), patience);
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
                Outcome::Created(vec![node(format!("{}2147483000", new.prefix), 9, SESSION)])
            }
            Operation::DeleteDirectory { .. } => Outcome::NotEmpty,
            Operation::Delete { .. } => Outcome::Done,
            _ => children(&["_c_other-lock-0000000005"]),
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
    assert_eq!(contender.poll_verdict(), failed(Refusal::Busy));
    assert_eq!(pauses, []);
}

#[test]
fn one_that_has_no_session_is_idle_and_nothing_else_is() {
    assert!(Contender::new(mutex(), Patience::Waits).is_idle());
    let mut contender = begun(mutex(), Patience::Waits);
    assert!(!contender.is_idle());
    contender.handle_session_over();
    assert!(contender.is_idle());
}

#[test]
fn permits_of_which_nobody_knows_whether_they_were_taken_are_looked_for_before_one_leaves() {
    let mut contender = after_two_permits();
    assert!(matches!(contender.poll_flight().unwrap()[0], Operation::CreateAll(_)));
    contender.handle_end();
    contender.handle_replies(vec![Outcome::Unknown; 4], at(0), NOW);
    let looks = Operation::List { directory: "/s/leases".into() };
    assert_eq!(next(&contender).last(), Some(&looks));
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
    let leaves = Operation::Delete { path: format!("/s/locks/{}", own(1)) };
    let permits = children(&[&permit(2), &permit(3)]);
    let mut contender = after_two_permits();
    let taken = Outcome::Created([2, 3].map(|number| node(permit(number), 2, SESSION)).to_vec());
    let found = Outcome::Found(node(own(1), 2, SESSION));
    answer(&mut contender, vec![taken, children(&[]), permits.clone(), found]);
    assert!(is_granted(&mut contender));
    assert_eq!(answer(&mut contender, vec![denied()]), std::slice::from_ref(&leaves));
    assert_eq!((contender.poll_verdict(), &next(&contender)[..]), (None, &[leaves.clone()][..]));

    // An operator has deleted its permits before it has found them.
    let mut contender = after_two_permits();
    answer(&mut contender, vec![Outcome::Unknown; 4]);
    let looks = answer(&mut contender, vec![Outcome::Done, permits]);
    assert!(matches!(looks[0], Operation::Barrier { .. }));
    let inspects = answer(&mut contender, vec![Outcome::NoNode; 2]);
    assert!(matches!(inspects[0], Operation::Inspect { .. }));
    let departure = next(&contender);
    assert!(departure.contains(&leaves));
    answer(&mut contender, vec![denied(); departure.len()]);
    assert_eq!(contender.poll_verdict(), failed(Refusal::Denied));
}

/// A try that comes while another has the lock, and has looked around.
fn behind_another(has_tried: bool) -> Contender {
    let mut contender = begun(mutex(), Patience::TriesOnce);
    if has_tried {
        contender.handle_tried_before();
    }
    answer(&mut contender, vec![created(1), children(&[OTHER, &own(1)])]);
    assert_eq!(contender.poll_verdict(), failed(Refusal::Busy));
    contender
}

#[test]
fn a_try_leaves_a_watch_if_its_caller_has_tried_before() {
    let leaves = Operation::Delete { path: format!("/a/{}", own(1)) };
    let watch = Operation::Watch { path: format!("/a/{OTHER}") };
    for (has_tried, flight, outcomes, since) in [
        (true, vec![leaves.clone(), watch.clone()], vec![Outcome::Done; 2], Some(at(3))),
        // It remembers nothing if there is no watch.
        (true, vec![leaves.clone(), watch], vec![Outcome::Done, Outcome::NoNode], None),
        (false, vec![leaves], vec![Outcome::Done], None),
    ] {
        let mut contender = behind_another(has_tried);
        assert_eq!(contender.poll_flight(), Some(flight));
        assert_eq!(contender.busy_since(), None);
        contender.handle_replies(outcomes, at(3), NOW);
        assert_eq!((contender.is_gone(), contender.busy_since()), (true, since));
    }
}

#[test]
fn a_holder_that_asks_for_it_is_told_when_others_come() {
    let (mut contender, path) = holder();
    contender.handle_notice();
    let own = Operation::WatchOwn { path: path.clone() };
    let looks = vec![own.clone(), Operation::ListAndWatch { directory: "/a".into() }];
    let name = path.rsplit('/').next().unwrap();
    assert_eq!(answer(&mut contender, vec![Outcome::Done, children(&[name])]), looks);
    assert_eq!((contender.poll_verdict(), contender.poll_flight()), (None, None));
    contender.handle_watch(WatchEvent::Changed, NOW);
    let listed = children(&[name, "_c_other-lock-0000000009"]);
    assert_eq!(answer(&mut contender, vec![Outcome::Done, listed]), looks);
    assert_eq!((contender.poll_verdict(), contender.poll_flight()), (Some(Verdict::Wanted), None));
    // From now on only its own node matters.
    contender.handle_watch(WatchEvent::Changed, NOW);
    assert_eq!(answer(&mut contender, vec![Outcome::Done]), [own]);
    assert_eq!((contender.poll_verdict(), contender.poll_flight()), (None, None));
    contender.handle_watch(WatchEvent::Deleted, NOW);
    assert_eq!((contender.poll_verdict(), contender.poll_flight()), (Some(Verdict::Deleted), None));
}
