//! Tests of the judge: it finds contradictions, and nothing else.

mod handover;
mod jobs;
mod judge;

use handover::{Faults, HandOvers, Struck, Whom};
use jobs::{Between, Jobs, Outcome, Terms};
use judge::{Claim, Judge, Mode, What};

const PATH: &str = "/a";
const SECOND: u64 = 1_000_000_000;

/// What is found of claims at `/a`, and how late a holder has learnt of an operator. Times are in milliseconds, and each event is one of
///
/// - `a x 7 10-20`: the worker `a` claims it from 10 to 20, with the token 7, alone (`x`), with others (`r`) or as one of so many.
///   Its node is `a-7`, unless that is after an `@`
/// - `a on 7 25`: it goes on until 25
/// - `a-7 deleted 5-6`: an operator has deleted that node meanwhile
/// - `a cut 5-6`, `all cut 5-6`: a fault cuts it off, or all. `over 6`: faults without an end are over
fn judged(history: &str) -> Vec<String> {
    let mut judge = Judge::default();
    let number = |text: &str| text.parse::<u64>().unwrap();
    let time = |text: &str| if text.is_empty() { u64::MAX } else { number(text) * SECOND / 1000 };
    let times = |text: &str| text.split_once('-').map(|(from, to)| (time(from), time(to))).unwrap();
    for event in history.split(", ") {
        match *event.split(' ').collect::<Vec<_>>() {
            [node, "deleted", meanwhile] => {
                judge.deletes(node.to_owned(), times(meanwhile).0, times(meanwhile).1);
            }
            [who, "cut", meanwhile] => {
                judge.cuts_off((who != "all").then_some(who), times(meanwhile).0, times(meanwhile).1);
            }
            ["over", at] => judge.are_mended(time(at)),
            [worker, "on", turn, until] => judge.goes_on(PATH, worker, number(turn), time(until)),
            [worker, mode, token, meanwhile] => {
                let mode = match mode {
                    "x" => Mode::Alone,
                    "r" => Mode::Shared,
                    limit => Mode::Counted(limit.parse().unwrap()),
                };
                let own = format!("{worker}-{token}");
                let (turn, node) = token.split_once('@').unwrap_or((token, &own));
                let (turn, token, node) = (number(turn), turn.parse().unwrap(), node.to_owned());
                let (begin, end) = times(meanwhile);
                judge.begins(
                    PATH,
                    Claim { worker: worker.to_owned(), turn, mode, token, node, begin, end: begin },
                );
                judge.goes_on(PATH, worker, turn, end);
            }
            _ => panic!("{event}"),
        }
    }
    let found = judge.violations.iter().map(|found| {
        let why = found.text.rsplit(" µs ").next().unwrap();
        let when = match found.what {
            What::Overlap => format!(" {}-{}", found.from / 1_000_000, found.until / 1_000_000),
            What::Order => String::new(),
        };
        let operator = if found.is_by_operator { " after an operator" } else { "" };
        format!("{}{when}{operator}: {} {why}", found.stale, found.workers.len())
    });
    let late = (judge.told_after > 0).then(|| format!("late by {}", judge.told_after / 1_000_000));
    found.chain(late).collect()
}

#[test]
fn what_cannot_all_be_true_is_found_and_nothing_else() {
    let none = "";
    for (history, expected) in [
        // Some exclude each other, in whatever order they are heard. The one with the lower token claims on.
        ("a x 1 10-20, b x 2 19-30", "a 19-20: 2 hold at the same time"),
        ("b x 2 19-30, a x 1 10-20", "a 19-20: 2 hold at the same time"),
        ("a x 1 10-20, b r 2 19-30", "a 19-20: 2 hold at the same time"),
        ("b r 2 19-30, a x 1 10-20", "a 19-20: 2 hold at the same time"),
        ("a r 1 10-20, b x 2 19-30", "a 19-20: 2 hold at the same time"),
        ("b x 2 19-30, a r 1 10-20", "a 19-20: 2 hold at the same time"),
        ("a x 1 10-20, b x 2 15-30, a on 1 25", "a 15-25: 2 hold at the same time"),
        ("a x 2 10-20, b x 1 15-30, a on 2 25", "b 15-25: 2 hold at the same time"),
        ("a x 1 10-20, b x 2 20-30", none),
        ("a r 1 10-20, b r 2 15-30", none),
        // Without tokens it is the one with the lower number in the queue, or else the first.
        (
            "a x 5@y-lock-0000000008 10-20, peer x 0@x-lock-0000000007 15-20",
            "peer 15-20: 2 hold at the same time",
        ),
        (
            "a x 5@y-lock-0000000008 10-20, peer x 0@x-lock-0000000009 15-20",
            "a 15-20: 2 hold at the same time",
        ),
        ("a x 5@y-lock-0000000008 10-20, peer x 0@- 15-20", "a 15-20: 2 hold at the same time"),
        // A claim that is not confirmed is none, and a violation is only reported once.
        ("a x 2 10-30, b x 1 20-20", none),
        ("a x 2 10-30, b x 1 20-20, b on 1 21", "b 20-21: 2 hold at the same time"),
        ("a x 2 10-30, b x 1 20-20, b on 1 21, b on 1 22", "b 20-22: 2 hold at the same time"),
        // Tokens grow, but readers need no order among themselves, and a node that is passed on keeps its token.
        ("a x 7 10-20, b x 6 20-30", "b: 2 have tokens in the wrong order"),
        ("b x 6 20-30, a x 7 10-20", "b: 2 have tokens in the wrong order"),
        ("a x 7 10-20, b x 7 20-30", "a: 2 have tokens in the wrong order"),
        ("a r 7 10-20, b r 6 20-30", none),
        ("a x 5 10-15, a x 5 20-25", none),
        // Permits are counted at each moment.
        ("a 2 1 10-20, b 2 2 15-30, c 2 3 20-40", none),
        ("a 2 1 10-21, b 2 2 15-30, c 2 3 20-40", "a 20-21: 3 hold more permits than there are"),
    ] {
        assert_eq!(judged(history).join("; "), expected, "{history}");
    }
}

#[test]
fn each_claim_is_counted_once() {
    let mut judge = Judge::default();
    let (worker, node) = ("a".to_owned(), "a-1".to_owned());
    judge.begins(PATH, Claim { worker, turn: 1, mode: Mode::Alone, token: 1, node, begin: 10, end: 10 });
    assert!(judge.confirmed.is_empty());
    judge.goes_on(PATH, "a", 1, 21);
    judge.goes_on(PATH, "a", 1, 22);
    assert_eq!(judge.confirmed["a"], 1);
}

#[test]
fn one_whose_node_an_operator_deletes_may_not_know_it_for_a_while() {
    let overlap = |until: u64| format!("a 2001-{until} after an operator: 2 hold at the same time; ");
    for (cut, late, is_found) in [
        ("b cut 0-2000", 200, false),
        ("b cut 0-2000", 700, true),
        // It was over before.
        ("a cut 0-1000", 700, true),
        ("a cut 0-3000", 700, false),
        ("all cut 1800-, over 1900", 700, false),
        ("a cut 0-3000", 1100, true),
    ] {
        let end = 2000 + late;
        let history = format!("{cut}, a-1 deleted 1999-2000, a x 1 1-{end}, b x 2 2001-{}", end + 1);
        let expected = if is_found { overlap(end) } else { String::new() };
        assert_eq!(judged(&history).join("; "), format!("{expected}late by {late}"), "{history}");
    }
    // Even if the next is deleted, too.
    assert_eq!(
        judged("a-1 deleted 90-100, b-2 deleted 400-410, a x 1 5-300, b x 2 120-310"),
        ["late by 200"]
    );
    // The operator was there before the claim.
    let found = judged("a x 1 10-20, a-1 deleted 5-5, b x 2 30-2000, a on 1 1000");
    assert_eq!(found, ["a 30-1000: 2 hold at the same time", "late by 995"]);
}

#[test]
fn a_lock_is_not_free_for_long_while_one_waits_unless_a_fault_explains_it() {
    use Whom::{Machine, Servers};
    let clients = || Whom::Clients(Vec::new());
    // It is free from second 10 on for so many seconds, and then the one that waits gets it or gives up.
    for (seconds, faults, is_explained) in [
        (1, vec![], true),
        (2, vec![], false),
        // A client ahead may have been struck earlier: its session ends after 3 s at most.
        (4, vec![(clients(), 9, 9)], true),
        (5, vec![(clients(), 9, 9)], false),
        (4, vec![(clients(), 6, 6)], false),
        (7, vec![(clients(), 9, 9), (clients(), 12, 13)], true),
        (8, vec![(clients(), 9, 9), (clients(), 12, 13)], false),
        // A fault after the gap explains nothing.
        (2, vec![(clients(), 12, 13)], false),
        // While the servers are away nothing happens.
        (9, vec![(Servers, 9, 15)], true),
        (10, vec![(Servers, 9, 15)], false),
        (3, vec![(Machine, 11, 13)], true),
        (4, vec![(Machine, 11, 13)], false),
    ] {
        let case = format!("{seconds} s, {faults:?}");
        let struck = faults.into_iter().map(|(whom, begin, end)| {
            let (begin, end) = (begin * SECOND, end * SECOND);
            Struck { name: "a fault", whom, begin, end }
        });
        let faults = Faults::new(struck);
        for ends in [HandOvers::is_got, HandOvers::is_given_up] {
            let mut hand_overs = HandOvers::default();
            hand_overs.is_wanted(PATH, false);
            hand_overs.is_claimed(PATH, 9 * SECOND);
            hand_overs.is_claimed(PATH, 10 * SECOND);
            ends(&mut hand_overs, PATH, 5 * SECOND, (10 + seconds) * SECOND);
            assert_eq!(hand_overs.unexplained(&faults).is_empty(), is_explained, "{case}");
        }
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
    hand_overs.is_got(PATH, 11 * SECOND, 20 * SECOND);
    assert!(hand_overs.gaps.is_empty());
    // The client gives up just as it had come: there was no gap before that.
    hand_overs.is_given_up(PATH, 19 * SECOND, 20 * SECOND);
    assert!(hand_overs.unexplained(&Faults::new([])).is_empty());
    hand_overs.is_given_up(PATH, 17 * SECOND, 20 * SECOND);
    assert_eq!(hand_overs.unexplained(&Faults::new([])).len(), 1);
}

/// A job with periods of 10 s after some events. Times are in seconds, and each event is one of
///
/// - `run 7 1-2 done`: the run with the token 7 has begun between 1 and 2, and ended like this
/// - `over 7 1 8-9`: the answer, between 8 and 9, that nothing is left to do, after the run 7 in period 1
/// - `wrong 1-2`, `forgotten 1-2`: a date was wrong meanwhile, or the record was deleted
fn job(again: bool, history: &str) -> Jobs {
    // This clock is behind the servers', so that the second period begins at second 7.
    let (mut jobs, terms) = (Jobs::new(3 * SECOND), Terms { every: 10 * SECOND, again });
    for event in history.split(", ") {
        let words: Vec<_> = event.split(' ').collect();
        let number = |text: &str| text.parse::<u64>().unwrap();
        let times = |text: &str| {
            let (from, to) = text.split_once('-').unwrap();
            Between(number(from) * SECOND, number(to) * SECOND)
        };
        match *words {
            ["run", token, began, outcome] => {
                let token = token.parse().unwrap();
                jobs.begins(PATH, terms, "a", token, times(began));
                let outcomes = [Outcome::Done, Outcome::Failed, Outcome::Perhaps];
                let is_it = |known: &Outcome| format!("{known:?}").to_lowercase() == outcome;
                jobs.ends(PATH, token, outcomes.into_iter().find(is_it).unwrap());
            }
            ["over", token, period, at] => {
                jobs.answers(PATH, terms, "b", times(at), (token.parse().unwrap(), number(period)));
            }
            ["wrong", meanwhile] => jobs.date_is_wrong(times(meanwhile)),
            ["forgotten", meanwhile] => jobs.is_forgotten(PATH, times(meanwhile)),
            _ => panic!("{event}"),
        }
    }
    jobs
}

#[test]
fn a_job_that_runs_too_often_is_found_and_an_answer_without_its_run() {
    let (again, next, none) = (true, false, "");
    for (terms, history, expected) in [
        // One that is done does not begin again in its period, however the second run ends.
        (again, "run 1 0-1 done, run 2 2-3 done", "period 0 had its run"),
        (again, "run 1 0-1 done, run 2 2-3 failed", "period 0 had its run"),
        (again, "run 1 0-1 failed, run 2 2-3 done", none),
        (again, "run 1 0-1 perhaps, run 2 2-3 done", none),
        (again, "run 1 0-6 done, run 2 7-8 done", none),
        (again, "run 1 7-8 done, run 2 16-16 done", "period 1 had its run"),
        // Nobody knows in which period one of them has begun.
        (again, "run 1 0-7 done, run 2 7-8 done", none),
        (again, "run 1 0-1 done, run 2 6-7 done", none),
        (again, "run 1 0-1 done, run 2 1-7 failed, run 3 2-3 failed", "(token 3, Failed)"),
        // One that runs in the next period after a failure does not begin twice in one.
        (next, "run 1 0-1 failed, run 2 2-3 failed", "period 0 had its run"),
        (next, "run 1 0-1 failed, run 2 7-8 failed", none),
        // If its record is deleted between, it may.
        (again, "run 1 1-1 done, run 2 3-4 done, forgotten 0-0", "period 0 had its run"),
        (again, "run 1 1-1 done, run 2 3-4 done, forgotten 2-2", none),
        (again, "run 1 1-1 done, run 2 3-4 done, forgotten 3-6", none),
        (again, "run 1 1-1 done, run 2 3-4 done, forgotten 5-6", "period 0 had its run"),
        // The answer that nothing is left to do needs a run of this period that may be done.
        (again, "run 1 7-8 done, over 1 1 8-9", none),
        (again, "run 1 7-8 perhaps, over 1 1 8-9", none),
        (again, "run 1 7-8 failed, over 1 1 8-9", "Failed"),
        (next, "run 1 7-8 failed, over 1 1 8-9", none),
        (again, "run 1 7-8 done, over 1 1 17-18", "it was period 2 to 2"),
        (again, "run 1 7-8 done, over 1 1 16-17", none),
        (again, "run 1 7-8 done, over 1 2 8-9", "it was period 1 to 1"),
        (again, "run 1 7-8 done, over 1 2 17-18", "which began between 7000000 and 8000000 µs"),
        (again, "run 1 7-8 done, over 2 1 8-9", "nobody has had that run"),
        (next, "run 1 7-8 done, over 2 1 8-9", none),
        // While a date is wrong no period is certain, and afterwards a record lies no more than a period ahead.
        (again, "run 1 7-8 done, over 1 1 10-11", none),
        (again, "run 1 7-8 done, over 1 2 10-11", "it was period 1 to 1"),
        (again, "run 1 7-8 done, over 1 3 10-11", "it was period 1 to 1"),
        (again, "run 1 7-8 done, wrong 8-9, over 1 0 9-10", none),
        (again, "run 1 7-8 done, wrong 8-9, over 1 1 9-10", none),
        (again, "run 1 7-8 done, wrong 8-9, over 1 1000 9-10", none),
        (again, "run 1 7-8 done, wrong 8-9, over 1 0 10-11", "it was period 1 to 1"),
        (again, "run 1 7-8 done, wrong 8-9, over 1 1 10-11", none),
        (again, "run 1 7-8 done, wrong 8-9, over 1 2 10-11", none),
        (again, "run 1 7-8 done, wrong 8-9, over 1 3 10-11", "it was period 1 to 1"),
    ] {
        let found = job(terms, history).violations(u64::MAX);
        let is_expected =
            found.len() == usize::from(expected != none) && found.iter().all(|text| text.contains(expected));
        assert!(is_expected, "{history}: {found:?}");
    }
}

#[test]
fn what_an_answer_rests_on_may_be_heard_a_moment_later() {
    let jobs = job(true, "over 1 1 8-9");
    assert!(jobs.violations(9 * SECOND).is_empty());
    assert_eq!(jobs.violations(10 * SECOND).len(), 1);
    assert!(job(true, "over 1 1 8-9, run 1 7-8 done").violations(10 * SECOND).is_empty());
}

#[test]
fn a_report_counts_the_periods_of_a_job() {
    let jobs = job(true, "run 1 0-0 failed, run 2 1-1 done, run 3 30-30 failed, over 2 1 8-9");
    let summary: Vec<_> = jobs.summary().collect();
    let expected = "/a: of 4 periods 3 had an answer and 1 a run that may be done; runs: 1 done, 0 perhaps, 2 not; nothing left to do: 1 times";
    assert_eq!(summary, [expected]);
}
