//! Messages for users, and the page that has each of them word for word.

use zklock::Error;

const PAGE: &str = include_str!("texts.md");

/// One line of a table.
pub(crate) fn line(case: &str, outcome: Result<(), Error>) -> String {
    match outcome {
        Ok(()) => format!("| {case} | | connected |"),
        Err(error) => format!("| {case} | `{:?}` | `{error}` |", error.kind()),
    }
}

/// Asserts that the table of this section has exactly these lines, in any order.
#[track_caller]
pub(crate) fn are_documented(section: &str, mut lines: Vec<String>) {
    let sections = PAGE.split("\n## ").find_map(|text| text.strip_prefix(section));
    let is_case = |line: &&str| line.starts_with("| ") && !line.starts_with("| case ");
    let mut documented: Vec<_> = sections.expect("the section is there").lines().filter(is_case).collect();
    documented.sort_unstable();
    lines.sort_unstable();
    assert_eq!(lines, documented, "the lines should be:\n{}", lines.join("\n"));
}
