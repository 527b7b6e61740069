//! Collects what workers say of jobs that run once in each period, and finds what cannot all be true.
//!
//! Like the judge of claims it knows nothing of ZooKeeper. The servers have the machine's clock, but for the times in which a
//! fault makes one's date wrong. So the moment that the servers gave to a call lies between the call and its answer, or anywhere if
//! that was such a time, and a worker's own clock does not matter.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What a worker's word for a job says of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    /// The length of a period, in nanoseconds.
    pub(crate) every: u64,
    /// Whether it may run again in the period in which it has failed.
    pub(crate) again: bool,
}

/// How a run has ended, as far as anybody knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// Nobody has said that it is done, or it was said to be not recorded as done.
    Failed,
    /// Its worker was about to record that it is done.
    Perhaps,
    Done,
}

/// A moment of the servers' clock that is known by two of the machine's monotonic clock, before it and after it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Between(pub(crate) u64, pub(crate) u64);

impl Between {
    fn meets(self, other: Self) -> bool {
        self.0 <= other.1 && other.0 <= self.1
    }
}

impl fmt::Display for Between {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "between {} and {} µs", self.0 / 1_000, self.1 / 1_000)
    }
}

#[derive(Clone, Debug)]
struct Run {
    worker: String,
    began: Between,
    outcome: Outcome,
}

impl Run {
    fn text(&self, token: i64) -> String {
        format!("that of {} (token {token}, {:?}), which began {}", self.worker, self.outcome, self.began)
    }
}

/// A worker's answer was that nothing is left to do.
#[derive(Clone, Debug)]
struct Answer {
    worker: String,
    at: Between,
    /// The last run, by its record.
    token: i64,
    period: u64,
}

#[derive(Clone, Debug)]
struct Job {
    terms: Terms,
    /// By token, so that each run has begun later than the one before.
    runs: BTreeMap<i64, Run>,
    answers: Vec<Answer>,
    /// When an operator deleted its record.
    forgotten: Vec<Between>,
}

/// The jobs of all paths.
#[derive(Clone, Debug, Default)]
pub(crate) struct Jobs {
    /// What the machine's monotonic clock is behind the time since 1970.
    since_1970: u64,
    /// When a server's date was wrong, by when that began.
    wrong: BTreeMap<u64, u64>,
    jobs: BTreeMap<String, Job>,
}

impl Jobs {
    pub(crate) fn new(since_1970: u64) -> Self {
        Self { since_1970, ..Self::default() }
    }

    /// Notes that a server's date was wrong for this time, of which the end may not be known yet.
    pub(crate) fn date_is_wrong(&mut self, Between(begin, end): Between) {
        self.wrong.insert(begin, end);
    }

    /// Notes that an operator has deleted a job's record.
    pub(crate) fn is_forgotten(&mut self, path: &str, at: Between) {
        self.jobs.entry(path.to_owned()).and_modify(|job| job.forgotten.push(at));
    }

    fn job(&mut self, path: &str, terms: Terms) -> &mut Job {
        let new = || Job { terms, runs: BTreeMap::new(), answers: Vec::new(), forgotten: Vec::new() };
        self.jobs.entry(path.to_owned()).or_insert_with(new)
    }

    /// Notes that a run has begun.
    pub(crate) fn begins(&mut self, path: &str, terms: Terms, worker: &str, token: i64, began: Between) {
        let run = Run { worker: worker.to_owned(), began, outcome: Outcome::Failed };
        self.job(path, terms).runs.insert(token, run);
    }

    /// Notes how the run with this token ends.
    pub(crate) fn ends(&mut self, path: &str, token: i64, outcome: Outcome) {
        let run = self.jobs.get_mut(path).and_then(|job| job.runs.get_mut(&token));
        run.into_iter().for_each(|run| run.outcome = outcome);
    }

    /// Notes the answer to a worker that nothing is left to do after the run with this token, in this period.
    pub(crate) fn answers(
        &mut self,
        path: &str,
        terms: Terms,
        worker: &str,
        at: Between,
        (token, period): (i64, u64),
    ) {
        self.job(path, terms).answers.push(Answer { worker: worker.to_owned(), at, token, period });
    }

    /// The first and the last period in which the moment may lie.
    fn periods(&self, every: u64, at: Between) -> (u64, u64) {
        if self.wrong.iter().any(|(begin, end)| at.meets(Between(*begin, *end))) {
            return (0, u64::MAX);
        }
        let period = |time| (self.since_1970 + time) / every;
        (period(at.0), period(at.1))
    }

    /// The period in which the moment lies, if it can be no other.
    fn period(&self, every: u64, at: Between) -> Option<u64> {
        let (first, last) = self.periods(every, at);
        (first == last).then_some(first)
    }

    /// Everything that cannot be true. Answers after `heard` do not count yet: what they rest on may not have been heard.
    pub(crate) fn violations(&self, heard: u64) -> Vec<String> {
        let each = self.jobs.iter().flat_map(|(path, job)| {
            let answers = job.answers.iter().filter(|answer| answer.at.1 < heard);
            self.begun_again(path, job)
                .into_iter()
                .chain(answers.filter_map(|answer| self.is_wrong(path, job, answer)))
        });
        each.collect()
    }

    /// Runs that began in a period which had its run.
    fn begun_again(&self, path: &str, job: &Job) -> Vec<String> {
        let Terms { every, again } = job.terms;
        let mut found = Vec::new();
        for (token, run) in job.runs.iter().filter(|(_, run)| !again || run.outcome == Outcome::Done) {
            let Some(period) = self.period(every, run.began) else { continue };
            // Those after the first that certainly began later have begun later, too.
            let later = job.runs.range(token + 1..);
            let later = later.take_while(|(_, later)| self.periods(every, later.began).0 <= period);
            let later = later.filter(|(_, later)| {
                let between = Between(run.began.0, later.began.1);
                let is_forgotten = job.forgotten.iter().any(|at| at.meets(between));
                self.period(every, later.began) == Some(period) && !is_forgotten
            });
            for (later, again) in later {
                let [first, second] = [run.text(*token), again.text(*later)];
                found.push(format!("{path}: period {period} had its run, {first}, and then {second}"));
            }
        }
        found
    }

    /// Why the answer that nothing is left to do cannot be true.
    fn is_wrong(&self, path: &str, job: &Job, answer: &Answer) -> Option<String> {
        let Answer { worker, at, token, period } = answer;
        let Terms { every, again } = job.terms;
        let (first, last) = self.periods(every, *at);
        // Once a date was wrong, the record of a run may lie ahead, but not by more than a period.
        let ahead = u64::from(!self.wrong.is_empty());
        let may_lie = |at| {
            let (first, last) = self.periods(every, at);
            (first..=last.saturating_add(ahead)).contains(period)
        };
        let why = match job.runs.get(token) {
            _ if !may_lie(*at) => format!("it was period {first} to {last}"),
            None if again => "nobody has had that run".to_owned(),
            // Its worker was killed before it could say that it has begun.
            None => return None,
            Some(run) if !may_lie(run.began) => format!("it had {}", run.text(*token)),
            Some(run) if again && run.outcome == Outcome::Failed => format!("it had {}", run.text(*token)),
            Some(_) => return None,
        };
        let answer =
            format!("{worker} got the answer {at} that period {period} had its run, with token {token}");
        Some(format!("{path}: {answer}, but {why}"))
    }

    /// A line for each job.
    pub(crate) fn summary(&self) -> impl Iterator<Item = String> {
        self.jobs.iter().map(|(path, job)| {
            let count = |outcome| job.runs.values().filter(|run| run.outcome == outcome).count();
            let period = |at: Between| Some(self.periods(job.terms.every, at).1).filter(|period| *period < u64::MAX);
            let done = job.runs.values().filter(|run| run.outcome != Outcome::Failed);
            let done: BTreeSet<_> = done.filter_map(|run| period(run.began)).collect();
            let answered = job.answers.iter().filter_map(|answer| period(answer.at));
            let answered: BTreeSet<_> = answered.chain(job.runs.values().filter_map(|run| period(run.began))).collect();
            let all = answered.last().zip(answered.first()).map_or(0, |(last, first)| last - first + 1);
            format!(
                "{path}: of {all} periods {} had an answer and {} a run that may be done; runs: {} done, {} perhaps, {} not; nothing left to do: {} times",
                answered.len(),
                done.len(),
                count(Outcome::Done),
                count(Outcome::Perhaps),
                count(Outcome::Failed),
                job.answers.len()
            )
        })
    }
}
