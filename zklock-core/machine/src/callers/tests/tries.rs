//! Tries, and what they remember.

use super::super::{Action, Answer, Call, CallerId, Open, Remembered};
use super::{NEVER, Scene, Task, at, tries, waits};
use crate::lease::Lease;
use crate::name::Scheme;
use std::time::Duration;

/// A call in this session.
fn join_in(scene: &mut Scene, call: Call<Task>, session: i64, lease: &Lease) -> CallerId {
    let open = Some(Open { session, lease });
    scene.call(|callers, trust, now| callers.join(call, open, trust, now))
}

fn try_in(scene: &mut Scene, session: i64, lease: &Lease) -> CallerId {
    join_in(scene, tries(1), session, lease)
}

/// A mutex that another process has: a try has found that, and has left a watch.
fn remembers() -> (Scene, Lease) {
    let mut scene = Scene::new(Scheme::Mutex, NEVER);
    let lease = Lease::new(Duration::from_secs(10), at(0));
    for _ in 0..2 {
        let caller = try_in(&mut scene, 7, &lease);
        let place = scene.place(caller);
        scene.callers.handle_busy(place);
        let remembered = (scene.begun.len() > 1).then(|| Remembered::new(7, at(1_000)));
        scene.call(|callers, _, _| callers.handle_ended(place, remembered, at(1_000)));
        assert_eq!(scene.answer(caller), Some(Answer::Busy));
    }
    let tried_before = scene.others.iter().filter_map(|action| match action {
        Action::Begin { tried_before, .. } => Some(*tried_before),
        _ => None,
    });
    assert_eq!(tried_before.collect::<Vec<_>>(), [false, true]);
    (scene, lease)
}

#[test]
fn a_try_is_told_at_once_that_the_lock_is_held_or_that_others_wait() {
    let mut scene = Scene::new(Scheme::Mutex, NEVER);
    let one = scene.join(waits(1));
    let busy = scene.join(tries(2));
    assert_eq!(scene.answer(busy), Some(Answer::Busy), "one is on its way in");
    let place = scene.place(one);
    scene.enters(place);
    let turn = scene.turn(one);
    let busy = scene.join(tries(2));
    assert_eq!(scene.answer(busy), Some(Answer::Busy));
    scene.release(turn);
    let try_it = scene.join(tries(2));
    assert!(scene.has_begun(try_it), "it waits for the release by itself");
}

#[test]
fn tries_ask_no_more_until_what_they_know_may_have_changed() {
    let (mut scene, lease) = remembers();
    for _ in 0..9 {
        let caller = try_in(&mut scene, 7, &lease);
        assert_eq!(scene.answer(caller), Some(Answer::Busy));
    }
    assert_eq!(scene.begun.len(), 2);
    // One that waits is not told so.
    let waits = join_in(&mut scene, waits(5), 7, &lease);
    assert!(scene.has_begun(waits));
}

#[test]
fn what_a_try_remembers_ends_with_its_session_its_watch_and_its_time() {
    let stops = |scene: &Scene| scene.others.contains(&Action::StopWatching);
    let (mut scene, lease) = remembers();
    let caller = try_in(&mut scene, 8, &lease);
    assert!(scene.has_begun(caller) && stops(&scene), "another session");

    let (mut scene, lease) = remembers();
    scene.call(|callers, _, _| callers.handle_watch());
    assert!(stops(&scene));
    let caller = try_in(&mut scene, 7, &lease);
    assert!(scene.has_begun(caller), "it was told");

    let (mut scene, lease) = remembers();
    scene.clock = 2_000;
    let caller = try_in(&mut scene, 7, &lease);
    assert!(scene.has_begun(caller), "a heartbeat later");

    let (mut scene, _) = remembers();
    let caller = scene.join(tries(1));
    assert!(scene.has_begun(caller), "there is no connection");
}

#[test]
fn a_try_at_the_front_lets_nobody_get_ahead_of_it() {
    let mut scene = Scene::new(Scheme::Single, NEVER);
    let (place, turn) = scene.acquires(waits(1));
    scene.release(turn);
    let (try_it, next) = (scene.join(tries(2)), scene.join(waits(3)));
    scene.ends(place);
    assert!(scene.has_begun(try_it) && !scene.has_begun(next));
    let own = scene.place(try_it);
    scene.gone(try_it);
    assert_eq!(scene.given_up.pop(), Some(own), "a try has no heir");

    let mut scene = Scene::new(Scheme::Mutex, NEVER);
    let (first, turn) = scene.acquires(waits(1));
    scene.release(turn);
    let two = scene.join(waits(2));
    let place = scene.place(two);
    scene.gone(two);
    let try_it = scene.join(tries(3));
    let three = scene.join(waits(4));
    assert_eq!(scene.given_up, [first, place]);
    assert_eq!(scene.answer(try_it), None, "nobody holds it or waits");
    scene.leaves(place);
    assert!(!scene.has_begun(three));
}
