//! Output as it is compared: what differs from run to run has a word in its place.

/// Sessions, nodes' names, ages, times and tokens are replaced, and columns are one space apart.
pub(crate) fn plain(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let words: Vec<_> = line.split_whitespace().map(masked).collect();
        lines.push(words.join(" "));
    }
    lines.join("\n")
}

fn masked(word: &str) -> String {
    let bare = word.trim_matches(|c| "(),;:?".contains(c));
    let mask = if bare.starts_with("0x") {
        "SESSION"
    } else if bare.starts_with("_c_") {
        "NAME"
    } else if is_time(bare) {
        "TIME"
    } else if bare.len() < 10 && !bare.is_empty() && bare.bytes().all(|byte| byte.is_ascii_digit()) {
        "NUMBER"
    } else {
        return word.to_owned();
    };
    word.replace(bare, mask)
}

/// Such as `4.2s`, `830ms` or `12µs`.
fn is_time(word: &str) -> bool {
    let number = word.trim_end_matches(['s', 'm', 'µ', 'n']);
    number.len() < word.len() && number.parse::<f64>().is_ok()
}
