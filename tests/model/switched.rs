//! A source file with many planted bugs, of which a number chooses one while the program runs.
//!
//! A copy of the machine for each bug would take minutes to compile. Most bugs are in the bodies of functions, so
//! such a function gets a body for each of its bugs.

use super::seeds::Edit;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;

#[derive(Debug)]
pub(crate) struct Source {
    text: String,
    functions: Vec<Function>,
    /// Expressions, and what they are replaced by.
    chosen: Vec<(String, String)>,
}

#[derive(Debug)]
struct Function {
    body: Range<usize>,
    /// Its body with each of its bugs, by the number of the bug.
    planted: BTreeMap<usize, String>,
}

impl Source {
    pub(crate) fn new(text: String) -> Self {
        let functions = bodies(&text).map(|body| Function { body, planted: BTreeMap::new() }).collect();
        Self { text, functions, chosen: Vec::new() }
    }

    /// Adds this part of the bug with this number. If there is no room for it in a body, it must be an expression.
    pub(crate) fn plant(&mut self, number: usize, edit: &Edit) {
        let Some(at) = self.function_of(edit) else {
            let Edit { text, replacement, .. } = edit;
            let chosen = format!("(if crate::planted() == {number} {{ {replacement} }} else {{ {text} }})");
            return self.chosen.push((text.clone(), chosen));
        };
        let function = &mut self.functions[at];
        let body = &self.text[function.body.clone()];
        let planted = function.planted.entry(number).or_insert_with(|| body.to_owned());
        *planted = planted.replace(&edit.text, &edit.replacement);
    }

    fn function_of(&self, edit: &Edit) -> Option<usize> {
        let begin = self.text.find(&edit.text)?;
        let end = begin + edit.text.len();
        self.functions.iter().position(|Function { body, .. }| body.start <= begin && end <= body.end)
    }

    /// The file.
    pub(crate) fn written(&self) -> String {
        let mut written = String::new();
        let mut end = 0;
        for Function { body, planted } in
            self.functions.iter().filter(|function| !function.planted.is_empty())
        {
            let (before, head) = self.text[end..body.start].rsplit_once("fn ").unwrap_or_default();
            // What is chosen while the program runs is not constant.
            let before = before.strip_suffix("const ").unwrap_or(before);
            let _ = write!(written, "{before}fn {head}\nmatch crate::planted() {{\n");
            for (number, planted) in planted {
                let _ = writeln!(written, "{number} => {{{planted}}}");
            }
            let _ = writeln!(written, "_ => {{{}}}\n}}", &self.text[body.clone()]);
            end = body.end;
        }
        written.push_str(&self.text[end..]);
        self.chosen.iter().fold(written, |written, (text, chosen)| written.replace(text, chosen))
    }
}

/// The bodies of the functions in a formatted source, except of those whose bodies have to agree on a type that has no name.
fn bodies(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut lines = text.split_inclusive('\n').scan(0, |end, line| {
        let begin = *end;
        *end += line.len();
        Some((begin, line.trim_end()))
    });
    std::iter::from_fn(move || {
        loop {
            let (begin, first) = lines.by_ref().find(|(_, line)| is_function(line))?;
            let indent = &first[..first.len() - first.trim_start().len()];
            let ends = |line: &str| line.ends_with(['{', ';', '}']);
            let (at, last) =
                if ends(first) { (begin, first) } else { lines.by_ref().find(|(_, line)| ends(line))? };
            if !last.ends_with('{') {
                continue;
            }
            let body = at + last.len();
            let (end, _) = lines.by_ref().find(|(_, line)| line.strip_prefix(indent) == Some("}"))?;
            let returned = text[begin..body].split_once("->").map_or("", |(_, returned)| returned);
            if !returned.contains("impl ") {
                return Some(body..end);
            }
        }
    })
}

fn is_function(line: &str) -> bool {
    let visible = ["pub(crate) ", "pub(super) ", "pub "];
    let line = line.trim_start();
    let line = visible.iter().find_map(|visible| line.strip_prefix(visible)).unwrap_or(line);
    line.starts_with("fn ") || line.starts_with("const fn ")
}
