//! A session of 24 seconds. Its heartbeat is 2.4 s, and a beat is due 2 s after the last proof.

use super::*;

mod late;

const T: Duration = Duration::from_secs(24);

fn at(millis: u64) -> Moment {
    Moment::at(Duration::from_millis(millis))
}

fn node(path: &str) -> Vec<HeldNode> {
    vec![HeldNode { path: path.into(), origin: None }]
}

fn keeper() -> Keeper {
    Keeper::new(T, at(0), at(0))
}

fn all_there() -> Check {
    Check::Answered { missing: Vec::new() }
}

/// The next beat, which is due `now`.
fn beat(keeper: &mut Keeper, now: Moment) -> Proof {
    assert_eq!(keeper.poll_lost(now), None);
    keeper.poll_beat(now, true).unwrap_or_else(|| panic!("no beat is due at {now:?}"))
}

/// The same, and its answer, which finds everything.
fn prove(keeper: &mut Keeper, sent: Moment, answered: Moment) -> Proof {
    let proof = beat(keeper, sent);
    keeper.handle_proof(&proof, &all_there(), answered);
    proof
}

#[test]
fn beats_come_twice_as_often_while_less_than_a_quarter_of_the_timeout_is_left() {
    // Of a lease that ends at 11.52 s, a quarter of the timeout is left at 5.52 s.
    for (proven, due) in [(3_520, 5_520), (4_000, 5_520), (4_500, 5_520), (4_600, 5_600), (9_000, 10_000)] {
        let mut keeper = keeper();
        keeper.handle_grant(node("/a"), at(proven));
        assert_eq!(keeper.poll_timeout(at(proven), true), Some(at(due)), "proven at {proven}");
    }
}

#[test]
fn a_holder_learns_later_if_that_is_asked_for_and_never_later_than_a_third_of_the_timeout() {
    for (asked, loss_timeout) in [(0, 2_400), (1_000, 2_400), (6_000, 6_000), (8_000, 8_000), (60_000, 8_000)]
    {
        let mut keeper = keeper().telling_within(Duration::from_millis(asked));
        assert_eq!(keeper.loss_timeout(), Duration::from_millis(loss_timeout));
        let hold = keeper.handle_grant(node("/a"), at(0));
        let beat = at(0) + Duration::from_millis(loss_timeout) * 5 / 6;
        assert!(keeper.clone().poll_beat(beat.before(Duration::from_millis(1)), true).is_none());
        assert!(keeper.clone().poll_beat(beat, true).is_some());
        // A watch is set when the first beat would usually be due.
        let is_watched = loss_timeout > 2_400;
        assert_eq!(keeper.poll_timeout(at(0), true), Some(if is_watched { at(2_000) } else { beat }));
        assert_eq!(keeper.clone().poll_watch(at(2_000), true).len(), usize::from(is_watched));
        let until = keeper.lease().until();
        let lost = until + Duration::from_millis(loss_timeout);
        assert_eq!(keeper.poll_lost(until), None);
        assert_eq!(keeper.poll_timeout(until, false), Some(lost));
        assert_eq!(keeper.poll_lost(lost), Some((hold, LossReason::LeaseLapsed)));
        // The limits are those of the timeout that is granted now.
        keeper.handle_granted(at(0), T / 2, at(0));
        assert_eq!(keeper.loss_timeout(), Duration::from_millis(asked.clamp(1_200, 4_000)));
    }
}

#[test]
fn a_check_that_found_nothing_but_missing_nodes_proves_nothing() {
    let mut keeper = keeper();
    keeper.handle_grant(node("/a"), at(0));
    let until = keeper.lease().until();
    let proof = beat(&mut keeper, at(2_000));
    keeper.handle_proof(&proof, &Check::Answered { missing: vec![0] }, at(2_100));
    assert_eq!(keeper.lease().until(), until);
}

#[test]
fn the_holds_that_were_proven_longest_ago_come_first_in_a_request() {
    let mut keeper = keeper();
    let long = "x".repeat(BYTES_AT_MOST / 2);
    let late = keeper.handle_grant(node(&format!("/late/{long}")), at(2));
    let early = keeper.handle_grant(node(&format!("/early/{long}")), at(1));
    let small = keeper.handle_grant(node("/small"), at(0));
    let beats = |keeper: &mut Keeper, now| {
        prove(keeper, now, now).holds.iter().map(|(hold, _)| *hold).collect::<Vec<_>>()
    };
    assert_eq!(beats(&mut keeper, at(2_010)), [small, early]);
    assert_eq!(beats(&mut keeper, at(2_010)), [late]);
    assert!(keeper.poll_beat(at(2_010), true).is_none());
}

/// A keeper that names one hold in a check, with three holds that were granted at 0.
fn crowded() -> (Keeper, [HoldId; 3]) {
    let mut keeper = keeper().naming_at_most(1);
    let holds = ["/a", "/b", "/c"].map(|path| keeper.handle_grant(node(path), at(0)));
    (keeper, holds)
}

/// The holds that should be watched `now`.
fn to_watch(keeper: &mut Keeper, now: Moment) -> Vec<HoldId> {
    keeper.poll_watch(now, true).iter().map(|to_watch| to_watch.hold).collect()
}

#[test]
fn a_watch_is_proven_soon_by_a_check_that_was_sent_after_it_was_left() {
    let (mut keeper, holds) = crowded();
    to_watch(&mut keeper, at(2_000));
    let before = beat(&mut keeper, at(2_000));
    keeper.handle_seen(&holds.map(|hold| (hold, Seen::There))[..2], at(2_010));
    keeper.handle_proof(&before, &all_there(), at(2_020));
    assert!(keeper.is_late(holds[0], at(4_801)), "it is proven by its creation only");
    // Half the usual pause.
    assert_eq!(keeper.poll_timeout(at(2_020), true), Some(at(3_000)));
    prove(&mut keeper, at(3_000), at(3_010));
    assert!(!keeper.is_late(holds[0], at(7_800)));
    assert_eq!(keeper.poll_timeout(at(3_010), true), Some(at(5_000)));
}

#[test]
fn a_hold_that_is_granted_without_a_lease_is_lost_after_a_heartbeat() {
    let mut keeper = keeper();
    assert_eq!(keeper.poll_lost(at(60_000)), None);
    let hold = keeper.handle_grant(node("/a"), at(60_000));
    assert_eq!(keeper.poll_lost(at(60_000)), None);
    assert_eq!(keeper.poll_timeout(at(60_000), false), Some(at(62_400)));
    assert_eq!(keeper.poll_lost(at(62_400)), Some((hold, LossReason::LeaseLapsed)));
}

#[test]
fn without_a_heartbeat_a_hold_is_watched_and_never_checked_and_lapses_without_being_lost() {
    let mut keeper = keeper().without_heartbeat();
    let hold = keeper.handle_grant(node("/a"), at(0));
    assert_eq!(keeper.poll_timeout(at(0), true), Some(at(2_000)));
    assert_eq!(to_watch(&mut keeper, at(2_000)), [hold]);
    keeper.handle_seen(&[(hold, Seen::There)], at(2_010));
    for now in [4_000, 20_000, 60_000] {
        assert_eq!(keeper.poll_lost(at(now)), None);
        assert!(keeper.poll_beat(at(now), true).is_none());
        assert!(!keeper.is_late(hold, at(now)));
    }
    assert_eq!(keeper.poll_timeout(at(60_000), true), None);
    assert!(keeper.valid_for(hold, at(60_000)).is_zero(), "nothing has proven it");
    for sent in [60_010, 60_020] {
        let proof = keeper.prove(hold, at(sent)).expect("it is kept");
        keeper.handle_proof(&proof, &all_there(), at(sent + 1));
    }
    assert!(!keeper.valid_for(hold, at(60_021)).is_zero(), "its holder has checked it twice");
    keeper.handle_event(hold, false);
    assert_eq!(keeper.poll_timeout(at(60_030), true), Some(at(62_020)));
    assert_eq!(to_watch(&mut keeper, at(62_020)), [hold]);
    keeper.handle_seen(&[(hold, Seen::Gone)], at(62_030));
    assert_eq!(keeper.poll_lost(at(62_030)), Some((hold, LossReason::NodeDeleted)));
}

#[test]
fn a_session_with_very_many_holds_takes_no_longer_to_grant_the_next() {
    // Not timed. It would take minutes if each step looked at all of them.
    let mut keeper = keeper();
    for number in 0..100_000 {
        keeper.handle_grant(node("/a"), at(number));
        assert_eq!(keeper.poll_lost(at(0)), None);
        assert!(keeper.poll_timeout(at(0), true).is_some());
    }
}

#[test]
fn those_that_wait_for_their_watches_for_more_than_a_heartbeat_are_named() {
    for (now, named) in [(2_400, 1), (2_401, 3)] {
        let (mut keeper, holds) = crowded();
        to_watch(&mut keeper, at(2_000));
        // The connection has been away.
        keeper.handle_seen(&holds.map(|hold| (hold, Seen::Unknown))[..2], at(2_010));
        assert_eq!(beat(&mut keeper, at(now)).nodes.len(), named);
    }
}

#[test]
fn it_says_whether_it_makes_beats() {
    assert!(keeper().has_heartbeat());
    assert!(!keeper().without_heartbeat().has_heartbeat());
}

#[test]
fn a_server_that_grants_less_than_half_loses_all_holds_and_their_nodes_stay_as_long_as_was_promised() {
    for (granted, is_lost) in [(T / 2, false), (T / 3, true)] {
        let mut keeper = keeper();
        let hold = keeper.handle_grant(node("/a"), at(0));
        let until = keeper.lease().until();
        keeper.handle_asked();
        assert_eq!(keeper.lease().until(), until, "nobody has granted less yet");
        keeper.handle_granted(at(1_000), granted, at(1_010));
        assert_eq!(keeper.valid_for(hold, at(1_010)).is_zero(), is_lost);
        let loss = is_lost.then_some((hold, LossReason::LeaseLapsed));
        assert_eq!(keeper.poll_lost(at(1_010)), loss);
        assert_eq!(keeper.promised(), if is_lost { until } else { Moment::default() });
    }
}

#[test]
fn what_was_promised_ends_with_the_lease_of_the_hold() {
    let mut keeper = keeper();
    let hold = keeper.handle_grant(node("/a"), at(0));
    let until = keeper.lease().until();
    keeper.handle_loss(hold);
    assert_eq!((keeper.promised(), keeper.poll_lost(at(10))), (until, None));
    // A released hold promises nothing any more, nor does one whose lease has lapsed.
    let released = keeper.handle_grant(node("/b"), at(20));
    keeper.handle_write(at(20), at(21));
    keeper.handle_release(released);
    keeper.handle_grant(node("/c"), at(30));
    let lapses = keeper.lease().until();
    keeper.handle_write(lapses, lapses);
    assert!(keeper.lease().until() > lapses);
    keeper.handle_over(LossReason::SessionExpired);
    assert_eq!(keeper.promised(), until);
}

#[test]
fn what_cannot_be_proven_yet_makes_no_beat_due() {
    let (mut keeper, holds) = crowded();
    to_watch(&mut keeper, at(2_000));
    keeper.handle_release(holds[2]);
    let until = keeper.lease().until();
    assert_eq!(keeper.poll_lost(until), None);
    prove(&mut keeper, until, until);
    // Both have lapsed, but it is not known whether they are watched.
    assert!(holds[..2].iter().all(|hold| keeper.valid_for(*hold, until).is_zero()));
    assert!(keeper.poll_beat(until, true).is_none());
}

#[test]
fn watched_holds_that_have_lapsed_are_restored_by_the_checks_that_were_sent_after_their_watches() {
    let (mut keeper, holds) = crowded();
    let [first, second, _] = holds;
    assert_eq!(to_watch(&mut keeper, at(2_000)), [first, second]);
    keeper.handle_seen(&[(first, Seen::There), (second, Seen::Unknown)], at(2_010));
    assert_eq!(to_watch(&mut keeper, at(2_610)), [second]);
    // Everything sleeps until all have lapsed.
    let before = beat(&mut keeper, at(60_000));
    assert_eq!(before.nodes, node("/c"));
    keeper.handle_seen(&[(second, Seen::There)], at(60_005));
    keeper.handle_proof(&before, &all_there(), at(60_010));
    let valid = |keeper: &Keeper, now| holds.map(|hold| !keeper.valid_for(hold, at(now)).is_zero());
    for (sent, expected) in [(60_100, [true, false, true]), (60_200, [true, true, true])] {
        prove(&mut keeper, at(sent), at(sent + 10));
        assert_eq!(valid(&keeper, sent + 10), expected, "after the check at {sent}");
    }
}

#[test]
fn as_many_as_a_check_names_are_not_watched() {
    let mut keeper = keeper().naming_at_most(3);
    let holds = ["/a", "/b", "/c"].map(|path| keeper.handle_grant(node(path), at(0)));
    assert_eq!(to_watch(&mut keeper, at(2_000)), []);
    // It does not wake for that either while they are checked.
    let mut checking = keeper.clone();
    beat(&mut checking, at(2_000));
    assert_eq!(checking.poll_timeout(at(2_500), true), Some(at(4_000)));
    keeper.handle_grant(node("/d"), at(0));
    assert_eq!(keeper.poll_watch(at(2_000), false), []);
    assert_eq!(to_watch(&mut keeper, at(2_000)), holds[..1]);
}

#[test]
fn they_are_asked_about_in_one_flight_at_a_time_and_not_while_some_have_no_lease() {
    let (mut keeper, holds) = crowded();
    assert_eq!(to_watch(&mut keeper, at(2_000)), holds[..2]);
    keeper.handle_grant(node("/d"), at(0));
    assert_eq!(to_watch(&mut keeper, at(2_000)), [], "some are being asked about");
    keeper.handle_seen(&holds.map(|hold| (hold, Seen::There))[..2], at(2_010));
    assert_eq!(to_watch(&mut keeper, at(2_010)), holds[2..]);

    let (mut keeper, _) = crowded();
    assert_eq!(keeper.poll_lost(at(60_000)), None);
    assert_eq!(to_watch(&mut keeper, at(60_000)), [], "they are named");
}

#[test]
fn the_hold_is_lost_whose_node_is_the_first_after_those_of_another() {
    let mut keeper = keeper();
    let [_, second] = ["/a", "/b"].map(|path| keeper.handle_grant(node(path), at(0)));
    let proof = beat(&mut keeper, at(2_000));
    keeper.handle_proof(&proof, &Check::Answered { missing: vec![1] }, at(2_010));
    assert_eq!(keeper.poll_lost(at(2_010)), Some((second, LossReason::NodeDeleted)));
    assert_eq!(keeper.poll_lost(at(2_010)), None);
}
