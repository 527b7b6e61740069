//! Records the cases that were tried: each operation with each answer that it can get.

use std::collections::BTreeSet;

use crate::side::Transcript;

/// The codes that each operation gave, or `none` or `closed` instead of an answer.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    seen: BTreeSet<(i32, String)>,
}

/// The cases that a run must have seen: the number of an operation, its name if it has one, and the codes.
const EXPECTED: &[(i32, &str, &str)] = &[
    (-11, "closeSession", "0"),
    (-2, "", "-6"),
    (-1, "", "-6"),
    (0, "", "-6 closed"),
    (1, "create", "-101 -102 -108 -110 -114 -5 -6 -8 0"),
    (2, "delete", "-101 -102 -103 -111 -5 -8 0"),
    (3, "exists", "-101 -5 0"),
    (4, "getData", "-101 -5 0"),
    (5, "setData", "-101 -102 -103 -5 -8 0"),
    (6, "getACL", "-101 0"),
    (7, "setACL", "-101 -103 -114 -8 0"),
    (8, "getChildren", "-101 -5 0"),
    (9, "sync", "0"),
    (10, "", "-6"),
    (11, "ping", "0"),
    (12, "getChildren2", "-101 0"),
    (13, "check", "-101 -103 -5 -8 0"),
    (14, "multi", "-101 -102 -103 -108 -110 -111 -114 -2 -5 -6 -8 0"),
    (15, "create2", "-101 -102 -108 -110 -114 -5 -6 -8 0"),
    (16, "", "-5"),
    (17, "checkWatches", "-121 -5 0"),
    (18, "removeWatches", "-121 -5 0"),
    (19, "createContainer", "-101 -102 -108 -110 -114 -5 -8 0"),
    (20, "", "-8"),
    (21, "createTTL", "-6 -8"),
    (22, "multiRead", "-101 -102 -5 0"),
    (23, "", "-6"),
    (99, "", "-6"),
    (100, "auth", "-115 0"),
    (101, "setWatches", "0"),
    (102, "sasl", "0"),
    (103, "getEphemerals", "0"),
    (104, "getAllChildrenNumber", "-101 -5 0"),
    (105, "setWatches2", "-5 0"),
    (106, "addWatch", "-5 0"),
    (107, "whoAmI", "0"),
    (108, "", "-6"),
    (1000, "", "-6"),
];

impl Coverage {
    pub(crate) fn note(&mut self, transcript: &Transcript) {
        for line in transcript.iter().flatten() {
            let Some((_, line)) = line.split_once("] ") else { continue };
            let Some((opcode, answer)) = line.split_once(": ") else { continue };
            let Ok(opcode) = opcode.parse() else { continue };
            let code = match answer {
                "no answer" => "none",
                "closed instead" => "closed",
                _ => answer.strip_prefix("error ").and_then(|rest| rest.split(' ').next()).unwrap_or("0"),
            };
            self.seen.insert((opcode, code.to_owned()));
            // The results inside of transactions.
            for part in answer.split(" | -1 ").skip(1) {
                let code = part.split_once("error ").and_then(|(_, code)| code.split(' ').next());
                self.seen.insert((opcode, code.unwrap_or("0").to_owned()));
            }
        }
    }

    /// Expected cases that did not come up.
    pub(crate) fn missing(&self) -> Vec<String> {
        let mut missing = Vec::new();
        for (opcode, name, codes) in EXPECTED {
            let codes = codes.split(' ').filter(|code| !self.seen.contains(&(*opcode, (*code).to_owned())));
            missing.extend(codes.map(|code| format!("{opcode} {name} with {code}")));
        }
        missing
    }
}
