//! The findings of the doctor, and what to do about them.

use std::fmt::Display;

use serde::Serialize;

use crate::output::{columns, harmless};

#[derive(Debug, Serialize)]
pub(super) struct Finding {
    about: &'static str,
    verdict: Verdict,
    finding: String,
    advice: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Good,
    Warning,
    Bad,
}

impl Finding {
    pub(super) fn good(about: &'static str, finding: impl Display) -> Self {
        Self { about, verdict: Verdict::Good, finding: finding.to_string(), advice: None }
    }

    pub(super) fn warning(about: &'static str, finding: impl Display, advice: impl Display) -> Self {
        let advice = Some(advice.to_string());
        Self { about, verdict: Verdict::Warning, finding: finding.to_string(), advice }
    }

    pub(super) fn bad(about: &'static str, finding: impl Display, advice: impl Display) -> Self {
        let advice = Some(advice.to_string());
        Self { about, verdict: Verdict::Bad, finding: finding.to_string(), advice }
    }

    pub(super) fn is_bad(&self) -> bool {
        self.verdict == Verdict::Bad
    }
}

#[derive(Debug, Default)]
pub(super) struct Findings(Vec<Finding>);

impl Findings {
    pub(super) fn add(&mut self, finding: Finding) {
        self.0.push(finding);
    }

    pub(super) fn extend(&mut self, findings: Vec<Finding>) {
        self.0.extend(findings);
    }

    pub(super) fn all(&self) -> &[Finding] {
        &self.0
    }

    pub(super) fn is_well(&self) -> bool {
        !self.0.iter().any(Finding::is_bad)
    }

    /// Writes a line, and a line below it that says what to do.
    pub(super) fn text(&self) -> String {
        let mut rows = Vec::new();
        for finding in &self.0 {
            let mark = match finding.verdict {
                Verdict::Good => "ok",
                Verdict::Warning => "warning",
                Verdict::Bad => "BAD",
            };
            rows.push(vec![mark.to_owned(), finding.about.to_owned(), harmless(&finding.finding)]);
            if let Some(advice) = &finding.advice {
                rows.push(vec![String::new(), String::new(), format!("-> {advice}")]);
            }
        }
        columns(&rows)
    }
}
