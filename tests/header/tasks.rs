//! The order of the header's functions, by task, and the index at its head.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Chapters, tasks, and the functions for each.
const TASKS: &str = include_str!("tasks.txt");
const WIDTH: usize = 100;

enum Entry {
    Chapter(&'static str),
    Task(&'static str, Vec<&'static str>),
}

fn entries() -> impl Iterator<Item = Entry> {
    TASKS.lines().filter(|line| !line.is_empty()).map(|line| match line.strip_prefix("# ") {
        Some(chapter) => Entry::Chapter(chapter),
        None => {
            let (task, functions) = line.split_once(": ").expect("a task and its functions");
            Entry::Task(task, functions.split(' ').collect())
        }
    })
}

/// A list of the functions by task, as lines of a comment.
pub(crate) fn index() -> String {
    let mut index = String::new();
    for entry in entries() {
        match entry {
            Entry::Chapter(chapter) => {
                let gap = if index.is_empty() { "" } else { " *\n" };
                write!(index, "{gap} * {chapter}\n *\n").unwrap();
            }
            Entry::Task(task, functions) => {
                index += &item(&format!("To {task}, see {}.", functions.join(", ")));
            }
        }
    }
    index.trim_end().to_owned()
}

/// The item of a list, as lines of a comment.
pub(crate) fn item(text: &str) -> String {
    let (mut item, mut line) = (String::new(), " * -".to_owned());
    for word in text.split(' ') {
        if line.len() + word.len() + 1 > WIDTH {
            writeln!(item, "{line}").unwrap();
            " *  ".clone_into(&mut line);
        }
        write!(line, " {word}").unwrap();
    }
    item + &line + "\n"
}

/// The same functions, chapter by chapter.
///
/// # Panics
///
/// If a function belongs to no task or to two, or a task names one that does not exist.
pub(crate) fn in_order(functions: &str) -> String {
    let (before, rest) = functions.split_at(functions.find("/**").expect("a comment"));
    let (rest, after) = rest.split_at(rest.rfind("#ifdef __cplusplus").expect("the end of extern"));
    let blocks = rest.split("\n\n").map(str::trim).filter(|block| !block.is_empty());
    let mut blocks: BTreeMap<_, _> = blocks.map(|block| (name(block), block)).collect();
    let mut ordered = before.to_owned();
    for entry in entries() {
        match entry {
            Entry::Chapter(chapter) => write!(ordered, "/* ==== {chapter} ==== */\n\n").unwrap(),
            Entry::Task(task, functions) => {
                for function in functions {
                    let block = blocks.remove(function);
                    let block =
                        block.unwrap_or_else(|| panic!("{task}: {function} is missing or named twice"));
                    write!(ordered, "{block}\n\n").unwrap();
                }
            }
        }
    }
    assert!(blocks.is_empty(), "tests/header/tasks.txt does not name {:?}", blocks.keys());
    ordered + after
}

/// The name of the function that a comment and a prototype declare.
fn name(block: &str) -> &str {
    let prototype = block.rsplit("*/").next().unwrap_or(block);
    let before = prototype.split('(').next().unwrap_or(prototype);
    before.rsplit([' ', '*', '\n']).next().unwrap_or(before)
}
