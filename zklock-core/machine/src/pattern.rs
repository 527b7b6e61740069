//! Patterns: how the contenders of a home-made lock are named.
//!
//! Programs have long had locks of their own making. Each has a layout for the names of its nodes, and a pattern describes
//! one: literal text, and up to four parts in braces. `{sequence}` is the number that the server appends. `{name}` is the
//! name of one of several locks under one node. `{any}` is text that each contender chooses. `{R|W}` has the letters of
//! readers and of writers.

use std::fmt;
use std::sync::Arc;

/// The longest pattern, in bytes. It becomes a part of each node's name.
const LONGEST: usize = 200;

/// A pattern for the names of contenders. It is cheap to clone.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Pattern(Arc<Parsed>);

#[derive(PartialEq, Eq, Hash)]
struct Parsed {
    text: String,
    /// All but the number, which comes last.
    parts: Vec<Part>,
}

#[derive(PartialEq, Eq, Hash)]
pub(crate) enum Part {
    Literal(String),
    /// The name of one of several locks under one node.
    Name,
    /// Text that the contender chooses, of one character at least.
    Any,
    /// The letters of readers and of writers.
    Sides([String; 2]),
}

impl Pattern {
    /// Reads a pattern. The error says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.len() > LONGEST {
            return Err(format!("is longer than {LONGEST} bytes: shorten it"));
        }
        Ok(Self(Arc::new(Parsed { text: text.to_owned(), parts: parts_of(text)? })))
    }

    /// Returns the text of the pattern.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// Whether it is for one of several locks under one node.
    pub fn has_name(&self) -> bool {
        self.0.parts.contains(&Part::Name)
    }

    /// Whether it is for the sides of a read/write lock.
    pub fn has_sides(&self) -> bool {
        self.0.parts.iter().any(|part| matches!(part, Part::Sides(_)))
    }

    /// Returns all but the number, which comes last.
    pub(crate) fn parts(&self) -> &[Part] {
        &self.0.parts
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0.text)
    }
}

fn parts_of(text: &str) -> Result<Vec<Part>, String> {
    if text.contains(|it: char| it == '/' || it.is_control()) {
        return Err(
            "has a slash or a control character: it is the name of one node, so leave that out".into()
        );
    }
    let mut parts = Vec::new();
    let mut rest = text;
    loop {
        let Some((literal, after)) = rest.split_once('{') else {
            return Err("has no {sequence}: write that last, for the number that the server appends".into());
        };
        if literal.contains('}') {
            return Err("has a } without its {: leave it out".into());
        }
        if !literal.is_empty() {
            parts.push(Part::Literal(literal.to_owned()));
        }
        let Some((word, after)) = after.split_once('}') else {
            return Err("has a { without its }: add it".into());
        };
        if word == "sequence" {
            if !after.is_empty() {
                return Err(format!(
                    "has {after:?} after {{sequence}}: the server appends the number, so it comes last"
                ));
            }
            break;
        }
        let part = part_of(word)?;
        if parts.iter().any(|other| std::mem::discriminant(other) == std::mem::discriminant(&part)) {
            return Err(format!("has {{{word}}}, but already a part of that kind: leave one out"));
        }
        if literal.is_empty() && !parts.is_empty() {
            return Err(format!(
                "has {{{word}}} right after another part, so it could be read in two ways: put text between"
            ));
        }
        parts.push(part);
        rest = after;
    }
    match parts.last() {
        Some(Part::Literal(last)) if last.ends_with(|it: char| it.is_ascii_digit()) => {
            Err("has a digit right before {sequence}, which could be taken for a part of the number: put other text between".into())
        }
        _ => Ok(parts),
    }
}

fn part_of(word: &str) -> Result<Part, String> {
    let is_word =
        |side: &str| !side.is_empty() && side.chars().all(|it| it.is_ascii_alphabetic() || it == '_');
    match (word, word.split_once('|')) {
        ("name", _) => Ok(Part::Name),
        ("any", _) => Ok(Part::Any),
        (_, Some((read, write))) if is_word(read) && is_word(write) => {
            if read == write {
                return Err(format!(
                    "has {{{word}}}, which gives readers and writers the same letters: let them differ"
                ));
            }
            Ok(Part::Sides([read.to_owned(), write.to_owned()]))
        }
        _ => Err(format!(
            "has {{{word}}}: there are {{name}}, {{any}}, {{sequence}}, and the letters of readers and writers, such as {{R|W}}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_in_a_pattern_is_said() {
        for (text, problem) in [
            ("", "no {sequence}"),
            ("lock-", "no {sequence}"),
            ("lock-{sequence", "{ without its }"),
            ("lock}-{sequence}", "} without its {"),
            ("{sequence}-lock", "\"-lock\" after {sequence}"),
            ("{sequence}{sequence}", "\"{sequence}\" after {sequence}"),
            ("{host}-{sequence}", "{host}: there are {name}, {any}"),
            ("{}-{sequence}", "{}: there are"),
            ("{any}-{any}-{sequence}", "already a part of that kind"),
            ("{name}-{name}-{sequence}", "already a part of that kind"),
            ("{R|W}-{S|X}-{sequence}", "already a part of that kind"),
            ("{any}{name}-{sequence}", "put text between"),
            ("{any}{R|W}-{sequence}", "put text between"),
            ("{R|W}{name}-{sequence}", "put text between"),
            ("{R|R}-{sequence}", "the same letters"),
            ("{R|}-{sequence}", "{R|}: there are"),
            ("{R1|W1}-{sequence}", "{R1|W1}: there are"),
            ("{R|W|X}-{sequence}", "{R|W|X}: there are"),
            ("lock-2{sequence}", "a digit right before {sequence}"),
            ("locks/{sequence}", "a slash"),
            ("lock\n{sequence}", "a control character"),
            (&format!("{}{{sequence}}", "x".repeat(LONGEST)), "longer than 200 bytes"),
        ] {
            let error = Pattern::parse(text).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
        let longest = format!("{}{{sequence}}", "x".repeat(LONGEST - "{sequence}".len()));
        assert!(Pattern::parse(&longest).is_ok());
    }

    #[test]
    fn equal_texts_make_equal_patterns_and_nothing_of_them_stays() {
        let parse = |text| Pattern::parse(text).unwrap();
        let one = parse("{name}_lock_{sequence}");
        assert_eq!(one, parse("{name}_lock_{sequence}"));
        assert_ne!(one, parse("{name}-lock-{sequence}"));
        assert!(one.has_name() && !one.has_sides());
        let other = parse("{any}-{R|W}-{sequence}");
        assert!(other.has_sides() && !other.has_name());
        assert_eq!(format!("{one:?}"), "\"{name}_lock_{sequence}\"");
        let parsed = Arc::downgrade(&one.0);
        drop(one);
        assert!(parsed.upgrade().is_none());
    }
}
