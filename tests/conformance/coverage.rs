//! Records the cases that were tried: each operation with each answer that it can get.

use std::collections::BTreeMap;

use crate::side::Transcript;

/// How often each operation gave each code, or `none` or `closed` instead of an answer.
#[derive(Debug, Default)]
pub(crate) struct Coverage {
    seen: BTreeMap<(i32, String), usize>,
    events: BTreeMap<String, usize>,
}

/// The cases that a run must have seen.
const EXPECTED: &[(i32, &str)] = &[
    (-11, "0"),
    (-2, "-6"),
    (-1, "-6"),
    (0, "-6 closed"),
    (1, "-101 -102 -108 -110 -114 -5 -6 -8 0"),
    (2, "-101 -102 -103 -111 -5 -8 0"),
    (3, "-101 -5 0"),
    (4, "-101 -5 0"),
    (5, "-101 -102 -103 -5 -8 0"),
    (6, "-101 0"),
    (7, "-101 -103 -114 -8 0"),
    (8, "-101 -5 0"),
    (9, "0"),
    (10, "-6"),
    (11, "0"),
    (12, "-101 0"),
    (13, "-101 -103 -5 -8 0"),
    (14, "-101 -102 -103 -108 -110 -111 -114 -2 -5 -6 -8 0"),
    (15, "-101 -102 -108 -110 -114 -5 -6 -8 0"),
    (16, "-5"),
    (17, "-121 -5 0"),
    (18, "-121 -5 0"),
    (19, "-101 -102 -108 -110 -114 -5 -8 0"),
    (20, "-8"),
    (21, "-6 -8"),
    (22, "-101 -102 -5 0"),
    (23, "-6"),
    (99, "-6"),
    (100, "-115 0"),
    (101, "0"),
    (102, "0"),
    (103, "0"),
    (104, "-101 -5 0"),
    (105, "-5 0"),
    (106, "-5 0"),
    (107, "0"),
    (108, "-6"),
    (1000, "-6"),
];

impl Coverage {
    pub(crate) fn note(&mut self, transcript: &Transcript) {
        for line in transcript.iter().flatten() {
            let Some((_, line)) = line.split_once("] ") else { continue };
            if let Some(event) = line.strip_prefix("event: ") {
                let kind = event.split_once(' ').map_or("", |(_, kind)| kind);
                *self.events.entry(kind.to_owned()).or_default() += 1;
                continue;
            }
            let Some((opcode, answer)) = line.split_once(": ") else { continue };
            let Ok(opcode) = opcode.parse() else { continue };
            let code = match answer {
                "no answer" => "none",
                "closed instead" => "closed",
                _ => answer.strip_prefix("error ").and_then(|rest| rest.split(' ').next()).unwrap_or("0"),
            };
            *self.seen.entry((opcode, code.to_owned())).or_default() += 1;
            // The results inside of transactions.
            for part in answer.split(" | -1 ").skip(1) {
                let code = part.split_once("error ").and_then(|(_, code)| code.split(' ').next());
                *self.seen.entry((opcode, code.unwrap_or("0").to_owned())).or_default() += 1;
            }
        }
    }

    pub(crate) fn print(&self) {
        println!("{:<22} {:>7} {:>8}", "operation", "code", "count");
        for ((opcode, code), count) in &self.seen {
            println!("{:<22} {code:>7} {count:>8}", name(*opcode));
        }
        for (kind, count) in &self.events {
            println!("event: {kind:<22} {count:>8}");
        }
    }

    /// Expected cases that did not come up.
    pub(crate) fn missing(&self) -> Vec<String> {
        let expected = EXPECTED
            .iter()
            .flat_map(|(opcode, codes)| codes.split(' ').map(|code| (*opcode, code.to_owned())));
        let missing = expected.filter(|pair| !self.seen.contains_key(pair));
        missing.map(|(opcode, code)| format!("{} with {code}", name(opcode))).collect()
    }
}

fn name(opcode: i32) -> String {
    let name = match opcode {
        1 => "create",
        2 => "delete",
        3 => "exists",
        4 => "getData",
        5 => "setData",
        6 => "getACL",
        7 => "setACL",
        8 => "getChildren",
        9 => "sync",
        11 => "ping",
        12 => "getChildren2",
        13 => "check",
        14 => "multi",
        15 => "create2",
        17 => "checkWatches",
        18 => "removeWatches",
        19 => "createContainer",
        21 => "createTTL",
        22 => "multiRead",
        100 => "auth",
        101 => "setWatches",
        102 => "sasl",
        103 => "getEphemerals",
        104 => "getAllChildrenNumber",
        105 => "setWatches2",
        106 => "addWatch",
        107 => "whoAmI",
        -11 => "closeSession",
        other => return format!("opcode {other}"),
    };
    name.to_owned()
}
