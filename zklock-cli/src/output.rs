//! Output to stdout. A pipe that nobody reads any more ends the command quietly, where `println` would panic.

use std::io::{self, Write};

use serde::Serialize;

use crate::failure::Failure;

/// Writes the text now.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut output = io::stdout().lock();
    output.write_all(text.as_bytes())?;
    output.flush()?;
    Ok(())
}

/// Writes a line of JSON.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let mut text = serde_json::to_string(value).map_err(io::Error::from)?;
    text.push('\n');
    print(&text)
}

/// Writes rows below their heads, if they have any, in columns of equal width; the last column is as wide as its text.
pub(crate) fn columns(heads: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let heads = Some(heads.iter().map(|head| (*head).to_owned()).collect()).filter(|_| !heads.is_empty());
    let rows: Vec<Vec<String>> = heads.into_iter().chain(rows).collect();
    let count = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        rows.iter().filter_map(|row| Some(row.get(column)?.chars().count())).max().unwrap_or_default()
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let cells: Vec<_> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        text += cells.join("  ").trim_end();
        text.push('\n');
    }
    text
}

/// Returns a text that others have written, without anything that a terminal would take for an order.
pub(crate) fn harmless(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows =
            [vec!["a".to_owned(), "bcd".to_owned(), "e".to_owned()], vec!["fgh".to_owned(), "i".to_owned()]];
        assert_eq!(columns(&["", "X"], rows), "     X\na    bcd  e\nfgh  i\n");
    }

    #[test]
    fn a_terminal_gets_no_orders_from_a_name() {
        assert_eq!(harmless("db7\x1b[2J/é\n"), "db7\u{fffd}[2J/é\u{fffd}");
    }
}
