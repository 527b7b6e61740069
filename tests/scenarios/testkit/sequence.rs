//! The numbers of sequential nodes: they stay at the largest, as in ZooKeeper since 3.6, and begin again if the parent does.

use crate::ground_itself::sequence::sticks_at_the_largest;
use crate::support::embedded::{Raw, creation, manual, operation, transaction};

const SEQUENTIAL: i32 = 2;

/// Creates one more child, and returns its number.
fn next(raw: &mut Raw, parent: &str) -> String {
    let start = format!("{parent}/n-");
    let answer = raw.ask(1, operation::CREATE, &creation(&start, SEQUENTIAL));
    assert_eq!(answer.error, 0);
    answer.text().split_off(start.len())
}

/// Creates children in one transaction, one with each prefix, and returns their numbers.
fn next_together(raw: &mut Raw, parent: &str, prefixes: &[&str]) -> Vec<String> {
    let creations = prefixes
        .iter()
        .map(|prefix| (operation::CREATE, creation(&format!("{parent}/{prefix}"), SEQUENTIAL)));
    let answer = raw.ask(1, operation::MULTI, &transaction(&creations.collect::<Vec<_>>()));
    assert_eq!(answer.error, 0);
    let mut rest = &answer.body[..];
    prefixes
        .iter()
        .map(|prefix| {
            let start = format!("{parent}/{prefix}");
            let length = i32::from_be_bytes(rest[9..13].try_into().unwrap()) as usize;
            let path = String::from_utf8(rest[13..13 + length].to_vec()).unwrap();
            rest = &rest[13 + length..];
            path[start.len()..].to_owned()
        })
        .collect()
}

#[test]
fn numbers_stick_at_the_largest_and_begin_again_with_the_parent() {
    let server = manual();
    sticks_at_the_largest(server.address(), |path, number| assert!(server.set_sequence(path, number)));
    assert!(server.delete("/locks/report"));
    server.put("/locks/report", "").unwrap();
    assert_eq!(next(&mut Raw::open(&server), "/locks/report"), "0000000000");
    assert!(!server.set_sequence("/not-there", 1));
}

#[test]
fn numbers_turn_negative_within_a_transaction_that_passes_the_largest() {
    let server = manual();
    let mut raw = Raw::open(&server);
    server.put("/p", "").unwrap();
    assert!(server.set_sequence("/p", i32::MAX - 1));
    let together = next_together(&mut raw, "/p", &["a-", "b-", "c-", "d-"]);
    assert_eq!(together, ["2147483646", "2147483647", "-2147483648", "-2147483647"]);
    assert_eq!(next(&mut raw, "/p"), "2147483647", "the tree has not heeded the negative ones");
}

#[test]
fn negative_numbers_of_a_directory_that_an_older_server_has_wrapped_go_on() {
    let server = manual();
    let mut raw = Raw::open(&server);
    server.put("/p", "").unwrap();
    assert!(server.set_sequence("/p", i32::MIN));
    assert_eq!([next(&mut raw, "/p"), next(&mut raw, "/p")], ["-2147483648", "-2147483647"]);
    assert!(server.set_sequence("/p", -2));
    assert_eq!([0, 1, 2].map(|_| next(&mut raw, "/p")), ["-000000002", "-000000001", "0000000000"]);
}
