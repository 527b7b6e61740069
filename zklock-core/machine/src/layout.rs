//! Layouts: a pattern, with the name of one lock filled in.
//!
//! A layout tells the contenders of its lock from all other children, and gives our own nodes their names. A pattern or a name
//! by which a child could be read in two ways is refused when the layout is made, because two contenders that do not agree on
//! who is whose rival would both hold.

use crate::name::{Chosen, Form, Name, Naming, Role, Scheme, Uuid, with_number};
use crate::pattern::{Part, Pattern};
use std::fmt;
use std::str::FromStr;

/// The names of the contenders of one custom lock.
///
/// ```
/// use zklock_machine::layout::Layout;
/// use zklock_machine::name::Naming;
///
/// let Naming::Pattern(pattern) = Naming::pattern("{name}_lock_{sequence}").unwrap() else { panic!() };
/// let layout = Layout::new(&pattern, "report").unwrap();
/// assert_eq!(layout.naming().to_string(), "{name}_lock_{sequence}");
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Layout {
    pattern: Pattern,
    /// One for each role.
    pub(crate) forms: Vec<Form>,
}

/// Why a text is no naming scheme. The message says what is wrong with it.
///
/// # Examples
///
/// ```
/// # use zklock_machine::name::Naming;
/// let error = Naming::pattern("{name}_lock_").unwrap_err();
/// assert!(error.to_string().contains("no {sequence}"), "{error}");
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InvalidPattern(String);

impl fmt::Display for InvalidPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidPattern {}

impl Naming {
    /// Makes the naming scheme of a custom lock from a pattern, so that contenders with such names and ours share one queue. All
    /// that its contenders do must be what ZooKeeper's recipe for locks says: each creates an ephemeral sequential node, and the
    /// lowest number holds.
    ///
    /// | part | stands for |
    /// |---|---|
    /// | `{sequence}` | the number that the server appends; always last |
    /// | `{name}` | the last component of the lock's path, for several locks under one node: contenders are then children of the node above it |
    /// | `{any}` | text that each contender chooses, such as its host: ours is 32 hexadecimal digits |
    /// | `{R\|W}` | the letters of readers and of writers, here `R` and `W`: the pattern is then for both sides of a read/write lock, and for nothing else |
    ///
    /// All other text stands for itself. Children whose names do not match are no contenders.
    ///
    /// # Errors
    ///
    /// If the text is not a pattern, if a name could be read in two ways with it, or if another naming scheme has such names. In
    /// functions that return zklock's own error, `?` turns this into one of the kind `InvalidInput`.
    ///
    /// # Examples
    ///
    /// ```
    /// # use zklock_machine::name::Naming;
    /// // Contenders such as `report_lock_0000000001` and `mail_lock_0000000002` under one node.
    /// assert!(Naming::pattern("{name}_lock_{sequence}").is_ok());
    /// // Readers such as `db7-R-0000000001`, writers such as `db7-W-0000000002`.
    /// assert!(Naming::pattern("{any}-{R|W}-{sequence}").is_ok());
    /// let error = Naming::pattern("{any}__lock__{sequence}").unwrap_err();
    /// assert!(error.to_string().contains("as the naming scheme kazoo does"), "{error}");
    /// ```
    pub fn pattern(text: &str) -> Result<Self, InvalidPattern> {
        let pattern = Pattern::parse(text);
        // A name that clashes with nothing stands for all of them.
        let checked =
            pattern.and_then(|pattern| Layout::new(&pattern, "\u{fffd}").map(|_| Self::Pattern(pattern)));
        checked.map_err(|problem| InvalidPattern(format!("the pattern {:?} {problem}", shortened(text))))
    }
}

/// Reads a naming scheme by its name, `curator`, `kazoo` or `writelock`, or as a [pattern](Naming::pattern).
impl FromStr for Naming {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<Self, InvalidPattern> {
        let known = || Self::ALL.iter().find(|naming| naming.to_string() == text);
        match known() {
            Some(naming) => Ok(naming.clone()),
            None if text.contains('{') => Self::pattern(text),
            None => Err(InvalidPattern(format!(
                "there is no naming scheme {:?}: use curator, kazoo, writelock, or a pattern such as \"{{name}}_lock_{{sequence}}\"",
                shortened(text)
            ))),
        }
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(200).collect()
}

impl Layout {
    /// Fills in the name of a lock, which does not matter if the pattern has none. The error says what is wrong.
    pub fn new(pattern: &Pattern, name: &str) -> Result<Self, String> {
        let roles: &[Role] =
            if pattern.has_sides() { &[Role::Read, Role::Write] } else { &[Role::Exclusive] };
        let forms = roles.iter().map(|role| form_of(pattern, *role, name)).collect();
        let layout = Self { pattern: pattern.clone(), forms };
        layout.check(name)?;
        Ok(layout)
    }

    /// Returns the naming scheme of its pattern.
    pub fn naming(&self) -> Naming {
        Naming::Pattern(self.pattern.clone())
    }

    /// Whether the names have room for a mark.
    pub fn has_mark(&self) -> bool {
        self.forms.iter().all(|form| form.chosen == Chosen::Any)
    }

    fn check(&self, name: &str) -> Result<(), String> {
        if let [one, other] = &self.forms[..] {
            if are_confused(one, other) {
                return Err("has letters of readers and writers that cannot be told from the text around them: choose \
                            other letters, or put other text between them and {any}"
                    .into());
            }
        }
        // All digits, since any of them may be in a mark.
        let mark = Uuid::from_random(0x0123_4567_89ab_cdef_fedc_ba98_7654_3210);
        // The larger one could be read as a negative number, if a hyphen comes before it.
        for own in self.forms.iter().flat_map(|form| {
            ["0000000001", "1234567890"].map(|number| format!("{}{number}", form.prefix(mark, 0)))
        }) {
            if let Some(other) = Name::parse(&own).or_else(|| Name::parse_lease(&own)) {
                let naming = other.scheme.naming().unwrap_or_default();
                return Err(format!(
                    "makes names such as {own}, as the naming scheme {naming} does: use that one instead"
                ));
            }
            let mut names = Vec::new();
            with_number(&own).for_each(|(front, _)| names_in(self.pattern.parts(), front, None, &mut names));
            if let Some(other) = names.iter().find(|other| **other != name) {
                return Err(format!(
                    "makes names such as {own} for a lock that is named {name:?}, and for one that is named {other:?} as well: \
                     give the lock another name"
                ));
            }
        }
        Ok(())
    }
}

fn form_of(pattern: &Pattern, role: Role, name: &str) -> Form {
    let mut form = Form::new(Scheme::Pattern(role), "", Chosen::Nothing, "");
    for part in pattern.parts() {
        let text = match part {
            Part::Any => {
                form.chosen = Chosen::Any;
                continue;
            }
            Part::Literal(text) => text,
            Part::Name => name,
            Part::Sides([read, _]) if role == Role::Read => read,
            Part::Sides([_, write]) => write,
        };
        let is_before = form.chosen == Chosen::Nothing;
        if is_before { &mut form.head } else { &mut form.tail }.to_mut().push_str(text);
    }
    form
}

/// Whether a text could be of both forms, whatever the contender chooses.
fn are_confused(one: &Form, other: &Form) -> bool {
    if one.chosen == Chosen::Nothing || other.chosen == Chosen::Nothing {
        return one.head == other.head;
    }
    let starts = |one: &Form, other: &Form| one.head.starts_with(&*other.head);
    let ends = |one: &Form, other: &Form| one.tail.ends_with(&*other.tail);
    (starts(one, other) || starts(other, one)) && (ends(one, other) || ends(other, one))
}

/// Adds, for each way in which a text can be read, the name of the lock that it then has. Without a name in the pattern there is
/// nothing to add.
fn names_in<'a>(parts: &[Part], text: &'a str, name: Option<&'a str>, names: &mut Vec<&'a str>) {
    let Some((part, others)) = parts.split_first() else {
        names.extend(name.filter(|_| text.is_empty()));
        return;
    };
    let mut go_on = |prefix: &str| {
        if let Some(rest) = text.strip_prefix(prefix) {
            names_in(others, rest, name, names);
        }
    };
    match part {
        Part::Literal(literal) => go_on(literal),
        Part::Sides(sides) => sides.iter().for_each(|side| go_on(side)),
        Part::Name | Part::Any => {
            let ends = text.char_indices().map(|(at, letter)| at + letter.len_utf8());
            for (chosen, rest) in ends.map(|end| text.split_at(end)) {
                let name = if *part == Part::Name { Some(chosen) } else { name };
                names_in(others, rest, name, names);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name::{Sequence, parse_in, prefix_in};

    fn layout(text: &str, name: &str) -> Layout {
        let Naming::Pattern(pattern) = Naming::pattern(text).unwrap() else { panic!("{text}") };
        Layout::new(&pattern, name).unwrap()
    }

    fn problem(text: &str, name: &str) -> String {
        match Naming::pattern(text) {
            Ok(Naming::Pattern(pattern)) => Layout::new(&pattern, name).unwrap_err(),
            refused => refused.unwrap_err().to_string(),
        }
    }

    #[test]
    fn each_of_the_well_known_layouts_is_read_and_written() {
        let (mark, hex) = (Uuid::from_random(7), "00000000000080008000000000000007");
        for (text, role, theirs, ours) in [
            ("{name}_lock_{sequence}", Role::Exclusive, "report_lock_", "report_lock_".to_owned()),
            ("{any}-{R|W}-{sequence}", Role::Read, "db-R-7-R-", format!("{hex}-R-")),
            ("{any}-{R|W}-{sequence}", Role::Write, "192.168.0.1-W-", format!("{hex}-W-")),
            (
                "{any}-lock-{sequence}",
                Role::Exclusive,
                "7ce1b6a0-1111-4222-8333-123456789abc-lock-",
                format!("{hex}-lock-"),
            ),
            ("lock-{sequence}", Role::Exclusive, "lock-", "lock-".to_owned()),
            ("lock-{any}{sequence}", Role::Exclusive, "lock-144115188075855872", format!("lock-{hex}")),
            (
                "{__r__|__w__}.{name}-{any}.{sequence}",
                Role::Write,
                "__w__.report-a b.",
                format!("__w__.report-{hex}."),
            ),
            ("{sequence}", Role::Exclusive, "", String::new()),
        ] {
            let layout = layout(text, "report");
            assert_eq!(prefix_in(&layout.forms, Scheme::Pattern(role), mark, 0), ours, "{text}");
            for prefix in [theirs, &ours] {
                for number in [0, 7, i32::MAX, -5, i32::MIN] {
                    let node = format!("{prefix}{}", Sequence::new(number));
                    let name = parse_in(&layout.forms, &node).unwrap();
                    assert_eq!((name.scheme.role(), name.sequence), (role, Sequence::new(number)), "{node}");
                    assert_eq!((name.scheme.naming(), layout.naming().to_string().as_str()), (None, text));
                    let has_mark = prefix == ours && layout.has_mark();
                    assert!(!has_mark || name.uuid() == Some(mark), "{node}");
                }
            }
            for other in
                ["other_lock_0000000001", "-R-0000000001", "-lock-0000000001", "lock-1", "report_lock_1"]
            {
                assert!(
                    parse_in(&layout.forms, other).is_none_or(|name| !name.chosen.is_empty()),
                    "{text}: {other}"
                );
            }
        }
        assert!(parse_in(&layout("{any}-lock-{sequence}", "").forms, "-lock-0000000001").is_none());
        assert!(
            parse_in(&layout("{name}_lock_{sequence}", "report").forms, "my_report_lock_0000000001")
                .is_none()
        );
    }

    #[test]
    fn a_pattern_with_the_names_of_a_known_naming_is_refused() {
        for (text, naming) in [
            ("_c_{any}-lock-{sequence}", "curator"),
            ("_c_{any}-{__READ__|__WRIT__}{sequence}", "curator"),
            ("_c_{any}-latch-{sequence}", "curator"),
            ("_c_{any}-lease-{sequence}", "curator"),
            ("_c_{name}-lock-{sequence}", "curator"),
            ("{any}__lock__{sequence}", "kazoo"),
            ("x-{any}-{sequence}", "writelock"),
        ] {
            let problem = problem(text, "a");
            assert!(problem.contains(&format!("as the naming scheme {naming} does")), "{text}: {problem}");
        }
        // With such a name alone.
        let problem = problem("{name}-{sequence}", "x-5");
        assert!(problem.contains("as the naming scheme writelock does"), "{problem}");
    }

    #[test]
    fn letters_that_could_be_a_part_of_the_text_beside_them_are_refused() {
        for text in ["{any}x{R|yxR}-{sequence}", "{R|RX}X{any}-{sequence}"] {
            let problem = problem(text, "a");
            assert!(problem.contains("cannot be told from the text around them"), "{text}: {problem}");
        }
        for text in [
            "{any}-{R|RR}-{sequence}",
            "{R|RR}-{any}-{sequence}",
            "{R|RR}-{sequence}",
            "{any}-{R|W}{sequence}",
        ] {
            layout(text, "a");
        }
    }

    #[test]
    fn a_name_by_which_a_node_could_be_of_another_lock_is_refused() {
        for (text, name, other) in [
            ("{any}-{name}-{sequence}", "x-report", "report"),
            ("{name}-{any}-{sequence}", "report-x", "report"),
            ("{any}-{R|W}-{name}.{sequence}", "x-R-report", "report"),
            ("{name}{sequence}", "report-", "report"),
        ] {
            let problem = problem(text, name);
            assert!(
                problem.contains(&format!("for one that is named {other:?} as well")),
                "{text}: {problem}"
            );
            layout(text, other);
        }
        layout("{name}_lock_{sequence}", "report_lock_");
        layout("{name}-{R|W}-{sequence}", "report-R");
    }

    #[test]
    fn a_naming_is_read_by_its_name_or_as_a_pattern() {
        for text in ["curator", "kazoo", "writelock", "lock-{sequence}"] {
            assert_eq!(text.parse::<Naming>().unwrap().to_string(), text);
        }
        let error = "Kazoo".parse::<Naming>().unwrap_err().to_string();
        assert!(
            error.contains("no naming scheme \"Kazoo\": use curator, kazoo, writelock, or a pattern"),
            "{error}"
        );
        assert!("{name}".parse::<Naming>().unwrap_err().to_string().contains("no {sequence}"));
    }
}
