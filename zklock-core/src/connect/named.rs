//! Options by name: what the command line, the configuration file, C and the guardian say in words. An option is described
//! once, in the table of what it is an option of.

use crate::base::duration::parse_duration;
use crate::base::error::{Error, ErrorKind};
use std::time::Duration;

/// An option of a `T`, as it is known in all languages.
#[derive(Debug)]
pub struct Named<T: 'static> {
    /// Such as `session-timeout`.
    pub name: &'static str,
    /// What its value is.
    pub value: Value,
    /// What it is if it is not set, in words. Empty if it is then nothing.
    pub default: &'static str,
    /// What the option is for.
    pub about: &'static str,
    set: fn(T, &str) -> Result<T, Error>,
}

/// What an option's value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the first ones say it all")]
pub enum Value {
    Duration,
    YesNo,
    Count,
    File,
    /// No error quotes it, and no command line has it.
    Secret(&'static str),
    /// Anything else, with a word for it.
    Text(&'static str),
}

impl Value {
    /// Returns the word that stands for it in help.
    pub fn word(self) -> &'static str {
        match self {
            Self::Duration => "DURATION",
            Self::YesNo => "YES|NO",
            Self::Count => "N",
            Self::File => "FILE",
            Self::Secret(word) | Self::Text(word) => word,
        }
    }
}

/// Makes a row of a table.
pub(crate) const fn named<T>(
    name: &'static str,
    value: Value,
    default: &'static str,
    about: &'static str,
    set: fn(T, &str) -> Result<T, Error>,
) -> Named<T> {
    Named { name, value, default, about, set }
}

/// Sets the option of this name.
pub(crate) fn set<T>(all: &[Named<T>], subject: T, name: &str, value: &str) -> Result<T, Error> {
    let Some(option) = all.iter().find(|option| option.name == name) else {
        return Err(unknown(name, all.iter().map(|option| option.name)));
    };
    (option.set)(subject, value).map_err(|error| error.within(name))
}

/// Returns the error about a name that is none of these. It names the nearest of them, or all.
pub fn unknown<'a>(name: &str, all: impl Iterator<Item = &'a str>) -> Error {
    let all: Vec<_> = all.collect();
    // Anything else may be a value that stands in the wrong place, even a password.
    let is_name =
        name.len() < 64 && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    let shown = if is_name { format!("option {name:?}") } else { "such option".to_owned() };
    let near = all.iter().filter(|_| is_name).map(|other| (distance(name, other), other)).min();
    let instead = match near {
        Some((distance, other)) if distance * 3 <= other.len() => format!("did you mean {other}?"),
        _ => format!("there are {}", all.join(", ")),
    };
    invalid(&format!("there is no {shown}; {instead}"))
}

/// Returns how many letters are to be changed, added or left out to make one word of the other.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<_> = (0..=other.len()).collect();
    for (at, letter) in one.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (below, found) in other.bytes().enumerate() {
            let changed = diagonal + usize::from(letter != found);
            diagonal = row[below + 1];
            row[below + 1] = changed.min(diagonal + 1).min(row[below] + 1);
        }
    }
    row[other.len()]
}

pub(crate) fn duration(text: &str) -> Result<Duration, Error> {
    parse_duration(text).map_err(|problem| invalid(&problem))
}

pub(crate) fn yes_or_no(text: &str) -> Result<bool, Error> {
    match text {
        "yes" | "true" | "on" | "1" => Ok(true),
        "no" | "false" | "off" | "0" => Ok(false),
        _ => Err(invalid(&format!("{text:?} is neither yes nor no"))),
    }
}

pub(crate) fn count(text: &str) -> Result<u32, Error> {
    text.parse().map_err(|_| invalid(&format!("{text:?} is not a count: write it as 3")))
}

pub(crate) fn invalid(problem: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_name_is_told_the_nearest_right_one_or_all_of_them() {
        let said = |name| unknown(name, ["session-timeout", "tls", "ca"].into_iter()).to_string();
        for near in ["sessiontimeout", "session_timeout", "session-time-out", "Session-Timeout"] {
            assert_eq!(said(near), format!("there is no option {near:?}; did you mean session-timeout?"));
        }
        assert_eq!(said("tsl2"), "there is no option \"tsl2\"; there are session-timeout, tls, ca");
        assert_eq!(said("ann:secret"), "there is no such option; there are session-timeout, tls, ca");
    }
}
