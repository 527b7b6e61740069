//! Tests of the judge: it finds contradictions, and nothing else.

mod handover;
mod jobs;
mod judge;

use handover::{Faults, HandOvers, Struck, Whom};
use jobs::{Between, Jobs, Outcome, Terms};
use judge::{Claim, Judge, Mode, Violation, What};

const PATH: &str = "/a";

/// A claim from one moment to another, at `/a`.
fn claim(judge: &mut Judge, worker: &str, mode: Mode, token: i64, from: u64, to: u64) {
    let turn = u64::try_from(token).unwrap();
    let (worker, node) = (worker.to_owned(), format!("{worker}-{token}"));
    judge.begins(PATH, Claim { worker: worker.clone(), turn, mode, token, node, begin: from, end: from });
    judge.goes_on(PATH, &worker, turn, to);
}

fn judged(claims: &[(&str, Mode, i64, u64, u64)]) -> Vec<Violation> {
    let mut judge = Judge::default();
    for (worker, mode, token, from, to) in claims {
        claim(&mut judge, worker, *mode, *token, *from, *to);
    }
    judge.violations
}

#[test]
fn holders_that_exclude_each_other_and_overlap_are_found_in_whatever_order_they_are_heard() {
    for modes in [(Mode::Alone, Mode::Alone), (Mode::Alone, Mode::Shared), (Mode::Shared, Mode::Alone)] {
        let (early, late) = (("a", modes.0, 1, 10, 20), ("b", modes.1, 2, 19, 30));
        for claims in [[early, late], [late, early]] {
            let found = judged(&claims);
            assert_eq!(found.len(), 1, "{found:?}");
            assert!(found[0].text.contains("at the same time"), "{found:?}");
            assert_eq!(found[0].workers.len(), 2);
        }
    }
    assert!(judged(&[("a", Mode::Alone, 1, 10, 20), ("b", Mode::Alone, 2, 20, 30)]).is_empty());
    assert!(judged(&[("a", Mode::Shared, 1, 10, 20), ("b", Mode::Shared, 2, 15, 30)]).is_empty());
}

#[test]
fn of_two_it_is_the_one_with_the_lower_token_that_claims_on_and_for_how_long_is_known() {
    for [one, other] in [[1, 2], [2, 1]] {
        let mut judge = Judge::default();
        claim(&mut judge, "a", Mode::Alone, one, 10, 20);
        claim(&mut judge, "b", Mode::Alone, other, 15, 30);
        judge.goes_on(PATH, "a", u64::try_from(one).unwrap(), 25);
        let [found] = judge.violations.as_slice() else { panic!("one violation") };
        assert_eq!((found.what, found.from, found.until), (What::Overlap, 15, 25));
        assert_eq!((found.stale == "a", found.is_by_operator), (one == 1, false));
    }
}

#[test]
fn without_tokens_it_is_the_one_with_the_lower_number_in_the_queue_that_claims_on() {
    for (node, stale) in [("/a/x-lock-0000000007", "peer"), ("/a/x-lock-0000000009", "a"), ("-", "a")] {
        let mut judge = Judge::default();
        for (worker, token, node, begin) in [("a", 5, "/a/y-lock-0000000008", 10), ("peer", 0, node, 15)] {
            let (worker, node) = (worker.to_owned(), node.to_owned());
            let claim =
                Claim { worker: worker.clone(), turn: 1, mode: Mode::Alone, token, node, begin, end: begin };
            judge.begins(PATH, claim);
            judge.goes_on(PATH, &worker, 1, 20);
        }
        assert_eq!(judge.violations[0].stale, stale, "{node}");
    }
}

#[test]
fn it_is_known_whether_an_operator_took_away_what_one_held_by() {
    for (deleted, is_by_operator) in [(5, false), (15, true)] {
        let mut judge = Judge::default();
        claim(&mut judge, "a", Mode::Alone, 1, 10, 20);
        judge.deletes("a-1".to_owned(), deleted, deleted);
        claim(&mut judge, "b", Mode::Alone, 2, 30, 2_000_000_000);
        judge.goes_on(PATH, "a", 1, 1_000_000_000);
        assert_eq!(judge.violations[0].is_by_operator, is_by_operator);
    }
}

#[test]
fn a_claim_that_is_not_confirmed_is_none() {
    let mut judge = Judge::default();
    claim(&mut judge, "a", Mode::Alone, 2, 10, 30);
    claim(&mut judge, "b", Mode::Alone, 1, 20, 20);
    assert!(judge.violations.is_empty());
    judge.goes_on(PATH, "b", 1, 21);
    assert_eq!(judge.violations.len(), 1);
    // It is only reported once.
    judge.goes_on(PATH, "b", 1, 22);
    assert_eq!((judge.violations.len(), &judge.confirmed["b"]), (1, &1));
}

#[test]
fn a_token_that_does_not_grow_is_found() {
    let (early, late) = (("a", Mode::Alone, 7, 10, 20), ("b", Mode::Alone, 6, 20, 30));
    for claims in [[early, late], [late, early]] {
        let found = judged(&claims);
        assert!(found.len() == 1 && found[0].text.contains("wrong order"), "{found:?}");
        assert_eq!((found[0].what, found[0].stale.as_str()), (What::Order, "b"));
    }
    assert_eq!(judged(&[early, ("b", Mode::Alone, 7, 20, 30)]).len(), 1);
    // Readers need no order among themselves.
    assert!(judged(&[("a", Mode::Shared, 7, 10, 20), ("b", Mode::Shared, 6, 20, 30)]).is_empty());
}

#[test]
fn a_node_that_is_passed_on_keeps_its_token() {
    let mut judge = Judge::default();
    for (turn, begin) in [(1, 10), (2, 20)] {
        let (worker, node) = ("a".to_owned(), "n".to_owned());
        judge.begins(PATH, Claim { worker, turn, mode: Mode::Alone, token: 5, node, begin, end: begin });
        judge.goes_on(PATH, "a", turn, begin + 5);
    }
    assert!(judge.violations.is_empty());
}

#[test]
fn one_whose_node_an_operator_deletes_may_not_know_it_for_a_while() {
    // A fault of another worker, a fault that was over before, and a fault that affects this worker.
    let another = (Some("b"), 0, 2_000_000_000);
    let before = (Some("a"), 0, 1_000_000_000);
    let own = (Some("a"), 0, 3_000_000_000);
    let of_all = (None, 1_800_000_000, u64::MAX);
    for (late, (who, from, until), is_found) in [
        (200_000_000, another, false),
        (700_000_000, another, true),
        (700_000_000, before, true),
        (700_000_000, own, false),
        (700_000_000, of_all, false),
        (1_100_000_000, own, true),
    ] {
        let mut judge = Judge::default();
        judge.cuts_off(who, from, until);
        judge.are_mended(1_900_000_000);
        let at = 2_000_000_000;
        judge.deletes("a-1".to_owned(), at - 100, at);
        claim(&mut judge, "a", Mode::Alone, 1, 5, at + late);
        claim(&mut judge, "b", Mode::Alone, 2, at + 20, at + late + 10);
        assert_eq!((judge.violations.len() == 1, judge.told_after), (is_found, late), "{who:?} {late}");
    }
}

#[test]
fn it_may_not_know_that_either_even_if_the_next_is_deleted_too() {
    let mut judge = Judge::default();
    judge.deletes("a-1".to_owned(), 90, 100);
    judge.deletes("b-2".to_owned(), 400, 410);
    claim(&mut judge, "a", Mode::Alone, 1, 5, 300);
    claim(&mut judge, "b", Mode::Alone, 2, 120, 310);
    assert!(judge.violations.is_empty());
}

#[test]
fn permits_are_counted_at_each_moment() {
    let two = Mode::Counted(2);
    let chain = [("a", two, 1, 10, 20), ("b", two, 2, 15, 30), ("c", two, 3, 20, 40)];
    assert!(judged(&chain).is_empty());
    let crowd = [("a", two, 1, 10, 21), ("b", two, 2, 15, 30), ("c", two, 3, 20, 40)];
    assert!(judged(&crowd)[0].text.contains("more permits"));
}

const SECOND: u64 = 1_000_000_000;

/// The number of unexplained gaps if a lock was free from second 10 on, with these faults.
fn unexplained(seconds: u64, faults: &[(Whom, u64, u64)]) -> usize {
    let struck = faults.iter().map(|(whom, begin, end)| Struck {
        name: "a fault",
        whom: whom.clone(),
        begin: begin * SECOND,
        end: end * SECOND,
    });
    let faults = Faults::new(struck);
    let (mut got, mut given_up) = (HandOvers::default(), HandOvers::default());
    for hand_overs in [&mut got, &mut given_up] {
        hand_overs.is_wanted(PATH, false);
        hand_overs.is_claimed(PATH, 9 * SECOND);
        hand_overs.is_claimed(PATH, 10 * SECOND);
    }
    got.is_got(PATH, 5 * SECOND, (10 + seconds) * SECOND);
    given_up.is_given_up(PATH, 5 * SECOND, (10 + seconds) * SECOND);
    let (got, given_up) = (got.unexplained(&faults), given_up.unexplained(&faults));
    assert_eq!(got, given_up);
    got.len()
}

#[test]
fn a_lock_is_not_free_for_long_while_one_waits_unless_a_fault_explains_it() {
    use Whom::{Machine, Servers};
    let clients = |begin, end| (Whom::Clients(Vec::new()), begin, end);
    for (seconds, faults, expected) in [
        (1, &[][..], 0),
        (2, &[], 1),
        // A client ahead may have been struck earlier: its session ends after 3 s at most.
        (4, &[clients(9, 9)], 0),
        (5, &[clients(9, 9)], 1),
        (4, &[clients(6, 6)], 1),
        (7, &[clients(9, 9), clients(12, 13)], 0),
        (8, &[clients(9, 9), clients(12, 13)], 1),
        // A fault after the gap explains nothing.
        (2, &[clients(12, 13)], 1),
        // While the servers are away nothing happens.
        (9, &[(Servers, 9, 15)], 0),
        (10, &[(Servers, 9, 15)], 1),
        (3, &[(Machine, 11, 13)], 0),
        (4, &[(Machine, 11, 13)], 1),
    ] {
        assert_eq!(unexplained(seconds, faults), expected, "{seconds} s, {faults:?}");
    }
}

#[test]
fn what_peers_wait_for_is_their_affair() {
    let mut hand_overs = HandOvers::default();
    hand_overs.is_wanted(PATH, false);
    hand_overs.is_wanted(PATH, true);
    hand_overs.is_claimed(PATH, 10 * SECOND);
    hand_overs.is_got(PATH, 5 * SECOND, 20 * SECOND);
    assert!(hand_overs.unexplained(&Faults::new([])).is_empty());
    assert_eq!(hand_overs.by_fault(&Faults::new([]))["none"], [10 * SECOND]);
}

#[test]
fn one_that_came_after_the_lock_was_free_has_not_waited_for_it() {
    let mut hand_overs = HandOvers::default();
    hand_overs.is_claimed(PATH, 10 * SECOND);
    assert_eq!(hand_overs.claimed_until(PATH), 10 * SECOND);
    hand_overs.is_got(PATH, 11 * SECOND, 20 * SECOND);
    assert!(hand_overs.gaps.is_empty());
    // The client gives up just as it had come: there was no gap before that.
    hand_overs.is_given_up(PATH, 19 * SECOND, 20 * SECOND);
    assert!(hand_overs.unexplained(&Faults::new([])).is_empty());
    hand_overs.is_given_up(PATH, 17 * SECOND, 20 * SECOND);
    assert_eq!(hand_overs.unexplained(&Faults::new([])).len(), 1);
}

/// A job with periods of 10 s. The judge's clock is 3 s behind the servers'.
fn ten_seconds(again: bool) -> (Jobs, Terms) {
    (Jobs::new(3 * SECOND), Terms { every: 10 * SECOND, again })
}

fn seconds(from: u64, to: u64) -> Between {
    Between(from * SECOND, to * SECOND)
}

/// What is found if a run and then another one begin in these seconds, and end like this.
fn two_runs(again: bool, runs: [(u64, u64, Outcome); 2]) -> Vec<String> {
    let (mut jobs, terms) = ten_seconds(again);
    for (token, (from, to, outcome)) in (1..).zip(runs) {
        jobs.begins(PATH, terms, "a", token, seconds(from, to));
        jobs.ends(PATH, token, outcome);
    }
    jobs.violations(u64::MAX)
}

#[test]
fn a_job_that_is_done_does_not_begin_again_in_the_same_period() {
    use Outcome::{Done, Failed, Perhaps};
    for (runs, is_found) in [
        ([(0, 1, Done), (2, 3, Done)], true),
        // However the second one ends.
        ([(0, 1, Done), (2, 3, Failed)], true),
        ([(0, 1, Failed), (2, 3, Done)], false),
        ([(0, 1, Perhaps), (2, 3, Done)], false),
        // The next period begins at second 7.
        ([(0, 6, Done), (7, 8, Done)], false),
        // Nobody knows in which period one of them has begun.
        ([(0, 7, Done), (7, 8, Done)], false),
        ([(0, 1, Done), (6, 7, Done)], false),
        ([(7, 8, Done), (16, 16, Done)], true),
    ] {
        assert_eq!(two_runs(true, runs).len(), usize::from(is_found), "{runs:?}");
    }
}

#[test]
fn a_job_that_runs_in_the_next_period_after_a_failure_does_not_begin_twice_in_one() {
    assert_eq!(two_runs(false, [(0, 1, Outcome::Failed), (2, 3, Outcome::Failed)]).len(), 1);
    assert_eq!(two_runs(false, [(0, 1, Outcome::Failed), (7, 8, Outcome::Failed)]).len(), 0);
}

#[test]
fn a_job_that_begins_again_is_found_behind_a_run_whose_period_is_not_known() {
    let (mut jobs, terms) = ten_seconds(true);
    for (token, began) in [(1, seconds(0, 1)), (2, seconds(1, 7)), (3, seconds(2, 3))] {
        jobs.begins(PATH, terms, "a", token, began);
    }
    jobs.ends(PATH, 1, Outcome::Done);
    assert_eq!(jobs.violations(u64::MAX).len(), 1);
}

#[test]
fn the_answer_that_nothing_is_left_to_do_needs_a_run_of_this_period_that_may_be_done() {
    use Outcome::{Done, Failed, Perhaps};
    // A run with token 1 has begun in period 1, and may have been done. An answer says that of period 1 or of another.
    for (again, outcome, at, (token, period), expected) in [
        (true, Done, seconds(8, 9), (1, 1), None),
        (true, Perhaps, seconds(8, 9), (1, 1), None),
        (true, Failed, seconds(8, 9), (1, 1), Some("Failed")),
        (false, Failed, seconds(8, 9), (1, 1), None),
        (true, Done, seconds(17, 18), (1, 1), Some("it was period 2 to 2")),
        (true, Done, seconds(16, 17), (1, 1), None),
        (true, Done, seconds(8, 9), (1, 2), Some("it was period 1 to 1")),
        (true, Done, seconds(17, 18), (1, 2), Some("which began between 7000000 and 8000000 µs")),
        (true, Done, seconds(8, 9), (2, 1), Some("nobody has had that run")),
        (false, Done, seconds(8, 9), (2, 1), None),
    ] {
        let (mut jobs, terms) = ten_seconds(again);
        jobs.begins(PATH, terms, "a", 1, seconds(7, 8));
        jobs.ends(PATH, 1, outcome);
        jobs.answers(PATH, terms, "b", at, (token, period));
        let found = jobs.violations(u64::MAX);
        let is_expected = |found: &[String]| match expected {
            None => found.is_empty(),
            Some(why) => found.len() == 1 && found[0].contains(why),
        };
        assert!(is_expected(&found), "{again} {outcome:?} {at:?} {token} {period}: {found:?}");
    }
}

#[test]
fn while_a_date_is_wrong_no_period_is_certain_and_afterwards_a_record_lies_no_more_than_a_period_ahead() {
    use Outcome::Done;
    let (mut jobs, terms) = ten_seconds(true);
    jobs.begins(PATH, terms, "a", 1, seconds(7, 8));
    jobs.ends(PATH, 1, Done);
    let found = |jobs: &Jobs, at, period| {
        let mut jobs = jobs.clone();
        jobs.answers(PATH, terms, "b", at, (1, period));
        jobs.violations(u64::MAX).len()
    };
    assert_eq!([1, 2, 3].map(|period| found(&jobs, seconds(10, 11), period)), [0, 1, 1]);
    jobs.date_is_wrong(seconds(8, 9));
    assert_eq!([0, 1, 1000].map(|period| found(&jobs, seconds(9, 10), period)), [0; 3]);
    assert_eq!([0, 1, 2, 3].map(|period| found(&jobs, seconds(10, 11), period)), [1, 0, 0, 1]);
}

#[test]
fn a_job_whose_record_is_deleted_may_begin_again() {
    for (deleted, expected) in
        [(seconds(0, 0), 1), (seconds(2, 2), 0), (seconds(3, 6), 0), (seconds(5, 6), 1)]
    {
        let (mut jobs, terms) = ten_seconds(true);
        for (token, began) in [(1, seconds(1, 1)), (2, seconds(3, 4))] {
            jobs.begins(PATH, terms, "a", token, began);
            jobs.ends(PATH, token, Outcome::Done);
        }
        jobs.is_forgotten(PATH, deleted);
        assert_eq!(jobs.violations(u64::MAX).len(), expected, "{deleted:?}");
    }
}

#[test]
fn what_an_answer_rests_on_may_be_heard_a_moment_later() {
    let (mut jobs, terms) = ten_seconds(true);
    jobs.answers(PATH, terms, "b", seconds(8, 9), (1, 1));
    assert!(jobs.violations(9 * SECOND).is_empty());
    assert_eq!(jobs.violations(10 * SECOND).len(), 1);
    jobs.begins(PATH, terms, "a", 1, seconds(7, 8));
    jobs.ends(PATH, 1, Outcome::Done);
    assert!(jobs.violations(10 * SECOND).is_empty());
}

#[test]
fn a_report_counts_the_periods_of_a_job() {
    let (mut jobs, terms) = ten_seconds(true);
    for (token, at, outcome) in [(1, 0, Outcome::Failed), (2, 1, Outcome::Done), (3, 30, Outcome::Failed)] {
        jobs.begins(PATH, terms, "a", token, seconds(at, at));
        jobs.ends(PATH, token, outcome);
    }
    jobs.answers(PATH, terms, "b", seconds(8, 9), (2, 1));
    let summary: Vec<_> = jobs.summary().collect();
    let expected = "/a: of 4 periods 3 had an answer and 1 a run that may be done; runs: 1 done, 0 perhaps, 2 not; nothing left to do: 1 times";
    assert_eq!(summary, [expected]);
}
