//! Places that are passed on within the process.

use super::super::{Action, Answer, ReleaseOutcome, Trust};
use super::{LINGERS, Scene, at, reentrant, tries, waits};
use crate::name::Scheme;
use crate::turns::Passing;

/// A mutex whose node lingers, and has been released.
fn idle() -> (Scene, super::PlaceId) {
    let mut scene = Scene::new(Scheme::Mutex, LINGERS);
    let (place, turn) = scene.acquires(waits(0));
    assert_eq!(scene.release(turn), ReleaseOutcome::PassedOn);
    (scene, place)
}

#[test]
fn a_node_that_has_lingered_is_given_up() {
    let (mut scene, place) = idle();
    assert_eq!(scene.callers.poll_timeout(), Some(at(61_000)));
    assert_eq!(scene.callers.next_wake(scene.now()), Some(at(61_000)));
    scene.clock = 60_999;
    scene.times_out();
    assert_eq!(scene.given_up, []);
    scene.clock = 61_000;
    scene.times_out();
    assert_eq!(scene.given_up, [place]);
    assert_eq!(scene.take(1), None);
    scene.goes(place);
    assert!(scene.callers.is_unused());
    assert_eq!(scene.callers.kept(), None);
}

#[test]
fn a_node_that_lingers_is_not_taken_after_a_close_or_by_one_whom_others_are_ahead_of() {
    let (mut scene, _) = idle();
    scene.callers.handle_closed();
    assert_eq!(scene.take(1), None);

    let (mut scene, _) = idle();
    scene.trust = Trust::Unproven;
    let _ = scene.join(waits(1));
    scene.trust = Trust::Known;
    assert_eq!(scene.take(2), None);
}

#[test]
fn a_node_that_is_held_need_not_be_confirmed_for_one_who_waits() {
    let (mut scene, place) = idle();
    let _ = scene.take(1).unwrap();
    scene.trust = Trust::Unproven;
    let _ = scene.join(waits(2));
    assert!(!scene.others.contains(&Action::Prove { place }));
}

#[test]
fn those_who_wait_pass_it_on_in_order_and_are_noticed() {
    let passing = Passing { turns: 2, ..Passing::default() };
    let mut scene = Scene::new(Scheme::Mutex, passing);
    let callers: Vec<_> = (0..5).map(|owner| scene.join(waits(owner))).collect();
    let place = scene.place(callers[0]);
    scene.enters(place);
    assert!(scene.others.contains(&Action::Wanted { place, is_wanted: true }), "one of this process waits");
    let mut turn = scene.turn(callers[0]);
    for caller in &callers[1..] {
        assert_eq!(scene.answer(*caller), None, "it is held");
        assert_eq!(scene.release(turn), ReleaseOutcome::PassedOn);
        turn = scene.turn(*caller);
    }
    assert!(scene.others.contains(&Action::Wanted { place, is_wanted: false }));
    assert_eq!(scene.release(turn), ReleaseOutcome::Released, "it does not linger");
    assert_eq!(scene.begun.len(), 1);
}

#[test]
fn while_others_wait_so_many_follow_one_another() {
    let mut scene = Scene::new(Scheme::Mutex, Passing { turns: 3, ..LINGERS });
    let callers: Vec<_> = (0..5).map(|owner| scene.join(waits(owner))).collect();
    let place = scene.place(callers[0]);
    scene.enters(place);
    scene.call(|callers, _, _| callers.handle_wanted(place));
    let mut turn = scene.turn(callers[0]);
    for caller in &callers[1..3] {
        assert_eq!(scene.release(turn), ReleaseOutcome::PassedOn);
        turn = scene.turn(*caller);
    }
    assert!(scene.has_begun(callers[3]), "for it no turn is left");
    assert_eq!(scene.release(turn), ReleaseOutcome::Released);
}

#[test]
fn one_who_tries_beside_readers_leaves_them_their_node() {
    let mut scene = Scene::new(Scheme::Read, LINGERS);
    let (waits, tries) = (scene.join(waits(1)), scene.join(tries(2)));
    let (kept, own) = (scene.place(waits), scene.place(tries));
    scene.enters(kept);
    scene.enters(own);
    let turn = scene.turn(tries);
    assert_eq!(scene.release(turn), ReleaseOutcome::Released);
    assert_eq!(scene.given_up, [own]);
    scene.goes(own);
    assert!(scene.take(3).is_some());
}

#[test]
fn a_node_that_is_not_known_is_confirmed_before_one_who_waits_takes_it() {
    let (mut scene, place) = idle();
    scene.trust = Trust::Unproven;
    assert_eq!(scene.take(1), None);
    let one = scene.join(waits(1));
    assert!(
        scene.others.contains(&Action::Prove { place })
            && scene.others.contains(&Action::Asks { caller: one })
    );
    let checks =
        |scene: &Scene| scene.others.iter().filter(|action| matches!(action, Action::Prove { .. })).count();
    let checked =
        |scene: &mut Scene| scene.call(|callers, trust, now| callers.handle_checked(place, trust, now));
    checked(&mut scene);
    assert_eq!(checks(&scene), 2, "a lapsed lease takes two");
    checked(&mut scene);
    assert_eq!(checks(&scene), 2, "after that there is a pause");
    assert_eq!(scene.callers.poll_timeout(), Some(at(1_010)));
    scene.clock = 1_010;
    scene.times_out();
    assert_eq!(checks(&scene), 3);
    scene.trust = Trust::Known;
    checked(&mut scene);
    assert!(matches!(scene.answer(one), Some(Answer::Held(_))));
    assert_eq!(scene.callers.poll_timeout(), None, "no pause is left");
}

#[test]
fn a_node_does_not_linger_for_a_client_that_nobody_has() {
    let (mut scene, place) = idle();
    scene.call(|callers, _, _| callers.handle_deserted());
    assert_eq!(scene.given_up, [place]);

    let mut scene = Scene::new(Scheme::Mutex, LINGERS);
    let (place, turn) = scene.acquires(waits(0));
    scene.call(|callers, _, _| callers.handle_deserted());
    assert_eq!(scene.given_up, [], "it is held");
    assert_eq!(scene.release(turn), ReleaseOutcome::Released);
    assert_eq!(scene.given_up, [place]);
}

#[test]
fn the_node_of_a_writer_with_a_reader_inside_is_not_passed_on() {
    let mut scene = Scene::new(Scheme::Write, LINGERS);
    let (place, turn) = scene.acquires(reentrant(1));
    let next = scene.join(waits(2));
    assert!(!scene.has_begun(next), "it is to take that node");
    assert!(scene.callers.end_passing(turn));
    scene.act();
    assert!(scene.has_begun(next), "it queues for another");
    assert_eq!(scene.release(turn), ReleaseOutcome::Released);
    assert_eq!(scene.given_up, [place]);
    assert!(!scene.callers.end_passing(turn), "it has ended");
}

#[test]
fn a_node_that_lingers_is_taken_again_and_again() {
    let (mut scene, place) = idle();
    for owner in 1..5 {
        let turn = scene.take(owner).expect("it lingers");
        assert_eq!(scene.callers.again(super::Task(owner)), None, "it did not ask for a reentrant hold");
        assert_eq!(scene.take(9), None, "it is held");
        assert_eq!(scene.release(turn), ReleaseOutcome::PassedOn);
    }
    assert_eq!(scene.begun.len(), 1);
    assert_eq!(scene.callers.kept(), Some(place));
}

#[test]
fn a_node_that_the_session_knows_to_be_lost_is_not_passed_on() {
    let (mut scene, place) = idle();
    let turn = scene.take(1).unwrap();
    scene.trust = Trust::Over;
    assert_eq!(scene.release(turn), ReleaseOutcome::Lost);
    assert_eq!(scene.given_up, [place]);
}

/// One of them may still rely on what it was told just before the loss.
#[test]
fn a_lost_node_of_several_readers_is_given_up_when_the_last_of_them_lets_go() {
    let mut scene = Scene::new(Scheme::Read, LINGERS);
    let (place, one) = scene.acquires(waits(1));
    let two = scene.take(2).unwrap();
    scene.callers.handle_lost(place);
    assert_eq!(scene.release(one), ReleaseOutcome::Lost);
    assert_eq!(scene.given_up, []);
    assert_eq!(scene.release(two), ReleaseOutcome::Lost);
    assert_eq!(scene.given_up, [place]);
}
