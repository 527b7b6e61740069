//! The findings of the doctor, and what to do about them.

use std::fmt::Display;

use serde::Serialize;

use crate::output::{columns, harmless};

#[derive(Debug, Serialize)]
pub(super) struct Finding {
    about: &'static str,
    verdict: &'static str,
    finding: String,
    advice: Option<String>,
}

impl Finding {
    pub(super) fn good(about: &'static str, finding: impl Display) -> Self {
        Self { about, verdict: "good", finding: finding.to_string(), advice: None }
    }

    pub(super) fn warning(about: &'static str, finding: impl Display, advice: impl Into<String>) -> Self {
        Self { verdict: "warning", advice: Some(advice.into()), ..Self::good(about, finding) }
    }

    pub(super) fn bad(about: &'static str, finding: impl Display, advice: impl Into<String>) -> Self {
        Self { verdict: "bad", ..Self::warning(about, finding, advice) }
    }

    pub(super) fn is_bad(&self) -> bool {
        self.verdict == "bad"
    }
}

/// Writes a line for each, and a line below it that says what to do.
pub(super) fn text(findings: &[Finding]) -> String {
    let mut rows = Vec::new();
    for Finding { about, verdict, finding, advice } in findings {
        let mark = match *verdict {
            "good" => "ok",
            "bad" => "BAD",
            other => other,
        };
        rows.push(vec![mark.to_owned(), (*about).to_owned(), harmless(finding)]);
        rows.extend(advice.iter().map(|advice| vec![String::new(), String::new(), format!("-> {advice}")]));
    }
    columns(&[], rows)
}
