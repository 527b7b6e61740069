//! Servers that answer late, always by the same time or by times that differ.

use super::*;
use std::collections::VecDeque;

/// How late timers fire.
const TIMER: Duration = Duration::from_millis(10);

/// A keeper, and the beats that are on their way.
struct Late {
    keeper: Keeper,
    now: Moment,
    /// Each with the moment when its answer arrives.
    beats: VecDeque<(Proof, Moment)>,
    sent: u32,
}

impl Late {
    /// A session of which something has been held for long, without any delay. Its holders may learn of a loss this late.
    fn steady(loss_timeout: Duration) -> (Self, HoldId) {
        let mut keeper = keeper().telling_within(loss_timeout);
        let hold = keeper.handle_grant(node("/a"), at(0));
        let mut late = Self { keeper, now: at(0), beats: VecDeque::new(), sent: 0 };
        assert!(late.keeps(hold, T * 3, |_| Duration::from_millis(1)));
        (late, hold)
    }

    /// Goes on for this long. Returns whether the hold can be relied on all the time.
    fn keeps(&mut self, hold: HoldId, span: Duration, lateness: impl Fn(u32) -> Duration) -> bool {
        let is_valid = |keeper: &mut Keeper, now| {
            keeper.poll_lost(now).is_none() && !keeper.valid_for(hold, now).is_zero()
        };
        self.goes_on(span, lateness, is_valid)
    }

    /// Goes on for this long, and as long as things are as they should be.
    fn goes_on(
        &mut self,
        span: Duration,
        lateness: impl Fn(u32) -> Duration,
        is_right: impl Fn(&mut Keeper, Moment) -> bool,
    ) -> bool {
        let end = self.now + span;
        while self.now < end {
            if !is_right(&mut self.keeper, self.now) {
                return false;
            }
            let watched = self.keeper.poll_watch(self.now, true);
            if !watched.is_empty() {
                let seen: Vec<_> = watched.iter().map(|asked| (asked.hold, Seen::There)).collect();
                self.keeper.handle_seen(&seen, self.now);
            }
            if let Some(proof) = self.keeper.poll_beat(self.now, true) {
                let arrives = self.now + lateness(self.sent);
                // One connection keeps the order of the answers.
                let arrives = self.beats.back().map_or(arrives, |(_, last)| arrives.max(*last));
                self.beats.push_back((proof, arrives));
                self.sent += 1;
            }
            let wake = self.keeper.poll_timeout(self.now, true).expect("something is held") + TIMER;
            match self.beats.front().filter(|(_, arrives)| *arrives <= wake) {
                Some((_, arrives)) => {
                    let arrives = *arrives;
                    // It must be right until the answer comes.
                    let before = arrives.before(Duration::from_nanos(1)).max(self.now);
                    if !is_right(&mut self.keeper, before) {
                        return false;
                    }
                    self.now = arrives;
                    let (proof, _) = self.beats.pop_front().expect("it is there");
                    self.keeper.handle_proof(&proof, &all_there(), arrives);
                }
                None => self.now = wake,
            }
        }
        true
    }
}

/// Acquires a free lock in a session that has been idle for this long, with writes one after the other. Returns how long that
/// took, if it took no longer than two timeouts, and whether the hold can be relied on from then on.
fn acquires(late: Duration, idle: Duration, loss_timeout: Duration) -> Option<(Duration, bool)> {
    let keeper = Keeper::new(T, at(0), at(1)).telling_within(loss_timeout);
    let start = at(1) + idle;
    let mut this = Late { keeper, now: start, beats: VecDeque::new(), sent: 0 };
    let mut sent = start;
    let mut is_awaiting = false;
    while this.now.since(start) < T * 2 {
        if let Some(proof) = this.keeper.poll_beat(this.now, true) {
            this.beats.push_back((proof, this.now + late));
        }
        if this.now >= sent + late {
            this.keeper.handle_write(sent, this.now);
            if std::mem::take(&mut is_awaiting) {
                this.keeper.handle_awaited();
            }
            let lease = this.keeper.lease_to_grant(late, this.now);
            if lease.since(this.now) >= T / 10 || this.now.since(start) > late * 5 && lease > this.now {
                let hold = this.keeper.handle_grant(node("/a"), sent);
                let took = this.now.since(start);
                return Some((took, this.keeps(hold, T * 5, |_| late)));
            }
            sent = this.now;
        } else if !is_awaiting && this.now >= sent + T / 24 {
            is_awaiting = true;
            this.keeper.handle_awaiting(sent);
        }
        if this.beats.front().is_some_and(|(_, arrives)| *arrives <= this.now) {
            let (proof, _) = this.beats.pop_front().expect("it is there");
            this.keeper.handle_proof(&proof, &all_there(), this.now);
        }
        this.now = this.now + TIMER;
    }
    None
}

/// Returns how long it takes to acquire a lock that can be kept, at the longest, with answers that are late by up to `within`.
fn acquires_within(within: Duration, loss_timeout: Duration) -> Duration {
    let idles = [0, 5, 100, 300, 500, 700, 900, 990, 1_100, 5_000].map(|thousandths| T * thousandths / 1_000);
    let delays = (10..=within.as_millis() as u64).step_by(130).map(Duration::from_millis);
    let took = delays.flat_map(|late| idles.map(|idle| (late, idle))).map(|(late, idle)| {
        match acquires(late, idle, loss_timeout) {
            Some((took, true)) => took,
            other => panic!("{loss_timeout:?}, late by {late:?} after {idle:?}: {other:?}"),
        }
    });
    took.max().unwrap()
}

#[test]
fn what_is_granted_can_be_kept_however_late_the_answers_are_up_to_a_fifth_of_the_timeout() {
    let longest = acquires_within(times::BEARABLE.of(T), Duration::ZERO);
    assert!(longest < T * 3 / 2, "{longest:?}");
}

#[test]
fn what_is_granted_can_be_kept_with_rare_beats_if_answers_are_late_by_an_eighth_of_the_timeout() {
    for loss_timeout in [T / 5, T / 4, T / 3] {
        let longest = acquires_within(T / 8, loss_timeout);
        assert!(longest < T, "{loss_timeout:?}: {longest:?}");
    }
}

#[test]
fn a_grant_waits_for_beats_if_answers_are_later_than_a_twentieth_of_the_timeout() {
    let mut keeper = Keeper::new(T, at(0), at(0));
    // Far enough apart that what the last one proves may be over before more is known.
    let writes = [1_000, 1_030, 1_085].map(|hundredths| Moment::at(T * hundredths / 100));
    writes.into_iter().for_each(|sent| keeper.handle_write(sent, sent));
    let now = writes[2];
    assert!(keeper.lease_to_grant(T / 20, now) > now);
    assert_eq!(keeper.lease_to_grant(T / 20 + Duration::from_nanos(1), now), now);
}

/// Whether a hold survives answers that are late by this much, from one moment on and for ten timeouts.
fn survives(loss_timeout: Duration, lateness: impl Fn(u32) -> Duration) -> bool {
    let (mut late, hold) = Late::steady(loss_timeout);
    late.keeps(hold, T * 10, lateness)
}

/// Whether it survives answers that are all as late as this, and ones that are sooner or later but never later than this.
fn survives_all_up_to(within: Duration, loss_timeout: Duration) {
    for millis in (0..=within.as_millis()).step_by(25) {
        let late = Duration::from_millis(millis as u64);
        assert!(survives(loss_timeout, |_| late), "late by {late:?}");
    }
    // Now one, now the other. The steps have no common divisor with the number of different answers.
    for step in [7, 31, 57, 91] {
        assert!(survives(loss_timeout, |number| within * (number * step % 101) / 100), "in steps of {step}");
    }
    // In no order, and every third as late as it may be.
    for seed in 1..=100_u32 {
        let any = |number: u32| {
            (number + seed * 1_000).wrapping_mul(0x9e37_79b1).rotate_left(16).wrapping_mul(0x85eb_ca6b) >> 8
        };
        let lateness = |number| if number % 3 == 0 { within } else { within * (any(number) % 101) / 100 };
        assert!(survives(loss_timeout, lateness), "{loss_timeout:?}, seed {seed}");
    }
}

/// How many beats there are in ten timeouts whose answers are late by this much.
fn beats(loss_timeout: Duration, lateness: Duration) -> u32 {
    let (mut late, hold) = Late::steady(loss_timeout);
    let before = late.sent;
    assert!(late.keeps(hold, T * 10, |_| lateness));
    late.sent - before
}

#[test]
fn a_hold_survives_answers_that_are_late_by_a_fifth_of_the_timeout() {
    survives_all_up_to(times::BEARABLE.of(T), Duration::ZERO);
    // The lease does not claim more than it proves.
    assert!(!survives(Duration::ZERO, |_| T / 4));
}

#[test]
fn answers_that_come_within_a_beat_cost_no_more_beats_and_later_ones_twice_as_many_at_most() {
    let beats = |late| beats(Duration::ZERO, late);
    let usual = beats(Duration::from_millis(1));
    assert!((115..=120).contains(&usual), "{usual}");
    for late in [T / 48, T / 24, T / 13] {
        assert!(beats(late) <= usual, "late by {late:?}");
    }
    assert!(beats(T / 5) <= usual * 2);
}

#[test]
fn a_client_that_may_learn_later_has_fewer_beats_and_a_third_at_the_least() {
    let usual = beats(Duration::ZERO, Duration::from_millis(1));
    for (loss_timeout, part) in [(T / 5, 2), (T / 4, 2), (T / 3, 3), (T, 3)] {
        for late in [Duration::from_millis(1), T / 40] {
            assert!(beats(loss_timeout, late) <= usual / part, "{loss_timeout:?}, late by {late:?}");
        }
        assert!(beats(loss_timeout, T / 16) <= usual, "{loss_timeout:?}");
    }
}

#[test]
fn with_rare_beats_a_hold_survives_answers_that_are_late_by_an_eighth_of_the_timeout() {
    for loss_timeout in [T / 5, T / 4, T / 3] {
        survives_all_up_to(T / 8, loss_timeout);
    }
}

#[test]
fn with_rare_beats_later_answers_put_a_hold_at_risk_and_cost_it_no_more() {
    for loss_timeout in [T / 5, T / 4, T / 3] {
        for late in [T / 7, T / 6] {
            let (mut this, hold) = Late::steady(loss_timeout);
            // Answers are suddenly late: it may be at risk for a while. It is not lost, so it can be relied on in the end.
            let is_not_lost = this.goes_on(T * 2, |_| late, |keeper, now| keeper.poll_lost(now).is_none());
            assert!(is_not_lost, "{loss_timeout:?}, late by {late:?}");
            assert!(this.keeps(hold, T * 5, |_| late), "{loss_timeout:?}, late by {late:?}");
        }
    }
}

/// Whether a hold that was acquired at once, in a session that had been idle, is not lost if answers are late by this much, after
/// so many that were not.
fn outlives(loss_timeout: Duration, quick: u32, late: Duration) -> bool {
    let (at_once, now) = (Duration::from_millis(2), at(1) + T * 5);
    let keeper = Keeper::new(T, at(0), at(1)).telling_within(loss_timeout);
    let mut this = Late { keeper, now: now + at_once * 2, beats: VecDeque::new(), sent: 0 };
    for sent in [now, now + at_once] {
        this.keeper.handle_write(sent, sent + at_once);
    }
    this.keeper.handle_grant(node("/a"), now + at_once);
    let lateness = |number| if number < quick { at_once } else { late };
    this.goes_on(T * 3, lateness, |keeper, now| keeper.poll_lost(now).is_none())
}

#[test]
fn a_young_hold_of_a_session_that_was_idle_survives_answers_that_are_suddenly_late_by_a_twelfth_of_the_timeout()
 {
    for loss_timeout in [Duration::ZERO, T / 5, T / 4, T / 3] {
        for quick in 0..10 {
            for part in [12, 16, 20, 24, 40] {
                assert!(
                    outlives(loss_timeout, quick, T / part),
                    "{loss_timeout:?}, {quick} and then T/{part}"
                );
            }
        }
    }
    // One write proves little, and until there are others, no beats could help.
    assert!(!outlives(Duration::ZERO, 0, T / 10));
    assert!(outlives(Duration::ZERO, 8, T / 5));
}

#[test]
fn some_beats_at_most_are_under_way_and_none_is_after_the_connection_has_ended() {
    let mut keeper = keeper();
    let hold = keeper.handle_grant(node("/a"), at(0));
    let mut under_way = Vec::new();
    for millis in (0..12_000).step_by(10) {
        under_way.extend(keeper.poll_beat(at(millis), true).map(|proof| (millis, proof)));
    }
    let sent: Vec<_> = under_way.iter().map(|(millis, _)| *millis).collect();
    assert_eq!(sent, [2_000, 4_000, 5_000, 6_000, 7_000, 8_000]);
    assert_eq!(keeper.poll_timeout(at(8_000), true), Some(keeper.lease().until()));
    for (_, proof) in under_way {
        keeper.handle_proof(&proof, &Check::Unknown, at(8_000));
    }
    assert!(!keeper.valid_for(hold, at(8_000)).is_zero());
    keeper.handle_asked();
    keeper.handle_granted(at(8_000), T, at(8_010));
    assert_eq!(beat(&mut keeper, at(8_600)).nodes, node("/a"));
    assert!(keeper.poll_beat(at(9_599), true).is_none());
}
