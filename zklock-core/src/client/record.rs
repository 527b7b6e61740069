//! What is recorded of the last run of a job.

use crate::base::error::{Error, ErrorKind};
use crate::hold::token::Token;
use crate::zookeeper::ensemble::NodeData;
use std::fmt::{self, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The name of the node with the record, below the job's path. No library takes it for a contender, and it is persistent: a
/// container whose last contender leaves is deleted with its data, but not while it has a child.
pub(crate) const NAME: &str = "last-run";
/// The first line: the format, and its version.
const HEAD: &str = "zklock-job 1\n";
/// The most characters of a text that is kept in one line.
const CHARACTERS_AT_MOST: usize = 500;

/// How a run of a job ended.
///
/// # Examples
///
/// ```no_run
/// # async fn example(job: zklock::Job) -> Result<(), zklock::Error> {
/// use zklock::further::RunOutcome;
///
/// match job.last().await?.map(|record| record.outcome) {
///     Some(RunOutcome::Failed(why)) => println!("the last run failed: {why}"),
///     outcome => println!("{outcome:?}"),
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum RunOutcome {
    /// It has not ended, or nobody could say that it did: its host died, or lost the lock.
    Running,
    /// It did its work.
    Done,
    /// It failed, and this is what it said.
    Failed(String),
}

impl fmt::Display for RunOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed(_) => "failed",
        })
    }
}

/// What is recorded of the last run of a job. See [`Client::job`](crate::Client::job).
///
/// All times are those of the servers.
///
/// # Examples
///
/// ```no_run
/// # async fn example(job: zklock::Job) -> Result<(), zklock::Error> {
/// if let Some(record) = job.last().await? {
///     println!("{} by {} at {:?}", record.outcome, record.identity, record.began);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct Record {
    /// When it began.
    pub began: SystemTime,
    /// When it ended; `None` if it has not, or nobody could say that it did.
    pub ended: Option<SystemTime>,
    /// The length of a period, as the run took it.
    pub every: Duration,
    /// By how much periods begin later than those that are counted from 1970, as the run took it.
    pub offset: Duration,
    /// Whose run it was: the [identity](crate::ClientOptions::identity) of the client, in one line.
    pub identity: String,
    /// The token of the hold under which it ran.
    pub token: Token,
    /// How it ended.
    pub outcome: RunOutcome,
}

impl Record {
    /// Returns the number of the period in which it ran: the first one began at [`offset`](Self::offset) after
    /// 1970-01-01T00:00:00Z and has the number 0.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(record: &zklock::further::Record) {
    /// println!("the report of day {}", record.period());
    /// # }
    /// ```
    pub fn period(&self) -> i64 {
        period(self.began, self.every, self.offset)
    }

    /// Returns when the period ends in which it ran, and the next one begins.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # fn example(record: &zklock::further::Record) {
    /// println!("the next run is due at {:?}", record.next());
    /// # }
    /// ```
    pub fn next(&self) -> SystemTime {
        let begins = i128::from(self.period()) + 1;
        date(begins * i128::from(millis(self.every)) + i128::from(millis(self.offset)))
    }

    /// Whether the job did its work.
    pub(crate) fn is_done(&self) -> bool {
        self.outcome == RunOutcome::Done
    }

    /// Refuses the record if it is from the future by more than a period: nothing follows from it but that a clock is wrong. It is
    /// hidden, because only the command has another clock than the servers'.
    #[doc(hidden)]
    pub fn check(&self, path: &str, now: SystemTime) -> Result<(), Error> {
        let ahead = self.began.duration_since(now).unwrap_or_default();
        if ahead <= self.every {
            return Ok(());
        }
        let message = format!(
            "the last run of the job {path} is recorded as {:?} in the future, so a server's clock is wrong, or was: set it right, and \
             then delete the node {path}/{NAME} if the job may run now",
            Duration::from_secs(ahead.as_secs())
        );
        Err(Error::new(ErrorKind::Refused, message))
    }

    pub(crate) fn to_text(&self) -> String {
        let failure = if let RunOutcome::Failed(why) = &self.outcome { why } else { "" };
        let ended = self.ended.map_or(String::new(), |ended| since_1970(ended).to_string());
        let (began, every, offset) = (since_1970(self.began), millis(self.every), millis(self.offset));
        let Self { identity, token, outcome, .. } = self;
        let mut text = HEAD.to_owned();
        for (key, value) in [
            ("began", &began as &dyn fmt::Display),
            ("ended", &ended),
            ("every", &every),
            ("offset", &offset),
            ("token", token),
            ("by", &one_line(identity)),
            ("outcome", outcome),
            ("failure", &one_line(failure)),
        ] {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{key}={value}");
        }
        text
    }

    /// Reads what [`to_text`](Self::to_text) has written, and nothing else. `modified` is when that was written.
    fn parse(text: &str, modified: SystemTime) -> Option<Self> {
        let mut lines = text.strip_prefix(HEAD)?.lines();
        let mut value = |key: &str| lines.next()?.strip_prefix(key)?.strip_prefix('=');
        let began = date(value("began")?.parse::<i64>().ok()?.into());
        let ended = Some(value("ended")?).filter(|ended| !ended.is_empty());
        let ended = ended.map(str::parse::<i64>).transpose().ok()?.map(|ended| date(ended.into()));
        let every = Duration::from_millis(value("every")?.parse().ok()?);
        let offset = Duration::from_millis(value("offset")?.parse().ok()?);
        let token = Token::of(i64::from_ne_bytes(value("token")?.parse::<u64>().ok()?.to_ne_bytes()));
        let identity = value("by")?.to_owned();
        let (outcome, failure) = (value("outcome")?, value("failure")?.to_owned());
        let outcome = match outcome {
            "running" => RunOutcome::Running,
            "done" => RunOutcome::Done,
            "failed" => RunOutcome::Failed(failure),
            _ => return None,
        };
        let record = Self { began, ended, every, offset, identity, token, outcome };
        if every.is_zero() || record.to_text() != text {
            return None;
        }
        // The end was the last thing that was written, so its date is that of the node, until the next holder writes it down.
        let over = || (record.outcome != RunOutcome::Running).then_some(modified);
        Some(Self { ended: record.ended.or_else(over), ..record })
    }
}

/// Returns the text of a record before the first run.
pub(crate) fn empty() -> &'static str {
    HEAD
}

/// Reads the record from the data of its node; `None` if the job has not run yet.
pub(crate) fn read(path: &str, node: &NodeData) -> Result<Option<Record>, Error> {
    if node.data == HEAD.as_bytes() {
        return Ok(None);
    }
    let record = std::str::from_utf8(&node.data).ok().and_then(|text| Record::parse(text, node.modified));
    record.map(Some).ok_or_else(|| {
        let message = format!(
            "the record of the job {path} cannot be read, so nobody knows whether it has run: the data of the node {path}/{NAME} are \
             none of zklock's, or of a later version; upgrade zklock, or delete that node if the job may run now"
        );
        Error::new(ErrorKind::Refused, message)
    })
}

/// Whether the node has what was written as this text. The next holder may have added when the run ended.
pub(crate) fn is_of(node: &NodeData, text: &str) -> bool {
    let data = String::from_utf8_lossy(&node.data);
    let without_end = |line: &&str| !line.starts_with("ended=");
    data.lines().filter(without_end).eq(text.lines().filter(without_end))
}

/// Returns the number of the period in which a moment lies.
pub(crate) fn period(at: SystemTime, every: Duration, offset: Duration) -> i64 {
    since_1970(at).saturating_sub(millis(offset)).div_euclid(millis(every).max(1))
}

/// Puts a text into one line, and shortens it.
fn one_line(text: &str) -> String {
    text.chars().map(|one| if one.is_control() { ' ' } else { one }).take(CHARACTERS_AT_MOST).collect()
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

fn since_1970(at: SystemTime) -> i64 {
    millis(at.duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn date(since_1970: i128) -> SystemTime {
    let millis = u64::try_from(since_1970.clamp(0, i64::MAX.into())).unwrap_or_default();
    UNIX_EPOCH + Duration::from_millis(millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: u64 = 1_764_259_200_123;

    fn at(millis: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_millis(millis)
    }

    fn record(outcome: RunOutcome) -> Record {
        let (every, offset) = (Duration::from_secs(86_400), Duration::from_secs(43_200));
        let (identity, token) = ("db7/4711 ü=1".to_owned(), Token::of(-7));
        Record { began: at(AT), ended: None, every, offset, identity, token, outcome }
    }

    fn parsed(text: &str) -> Result<Option<Record>, Error> {
        read("/jobs/report", &NodeData { data: text.into(), version: 0, modified: at(AT + 5) })
    }

    #[test]
    fn texts_are_kept_in_one_line_and_shortened() {
        let long = Record {
            identity: "a\nb\rc".into(),
            ..record(RunOutcome::Failed("x\n".repeat(CHARACTERS_AT_MOST)))
        };
        let read = parsed(&long.to_text()).unwrap().unwrap();
        assert_eq!(read.identity, "a b c");
        assert_eq!(read.outcome, RunOutcome::Failed("x ".repeat(CHARACTERS_AT_MOST / 2)));
    }

    #[test]
    fn anything_else_is_refused_with_the_node_and_what_to_do() {
        let good = record(RunOutcome::Done).to_text();
        let line = |number: usize| good.split_inclusive('\n').nth(number).unwrap();
        let mut bad = vec![
            String::new(),
            "yesterday".into(),
            good.replace("zklock-job 1", "zklock-job 2"),
            format!("{good}\n"),
            format!("{good}more=1\n"),
            good.trim_end().to_owned(),
            good.replace("began=", "began=+"),
            good.replace("every=86400000", "every=0"),
            good.replace("outcome=done", "outcome=gone"),
            good.replace("outcome=done", "outcome=running").replace("ended=", "ended=x"),
            good.replace("failure=", "failure=why"),
            good.replace('\n', "\r\n"),
        ];
        bad.extend((0..good.lines().count()).map(|number| good.replace(line(number), "")));
        for text in bad {
            let error = parsed(&text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Refused);
            for part in ["/jobs/report/last-run", "upgrade zklock, or delete that node"] {
                assert!(error.to_string().contains(part), "{text:?}: {error}");
            }
        }
    }
}
