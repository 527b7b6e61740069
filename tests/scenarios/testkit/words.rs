//! The words of four letters that operators type.

use std::io::{Read, Write};
use std::net::TcpStream;

use crate::common::{Raw, SOON, creation, manual, operation, reading};
use zklock_testkit::Server;

/// Types something, and gives all that comes back.
pub(crate) fn ask(server: &Server, typed: &[u8]) -> String {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream.write_all(typed).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// The value in a line that begins so.
#[track_caller]
fn figure(text: &str, name: &str) -> String {
    let value = text.lines().find_map(|line| line.strip_prefix(name));
    value.unwrap_or_else(|| panic!("no {name:?} in {text:?}")).to_owned()
}

#[test]
fn a_server_says_that_it_is_well_however_it_is_typed() {
    let server = manual();
    for _ in 0..20 {
        for typed in ["ruok", "ruok\n", "ruok\r\n"] {
            assert_eq!(ask(&server, typed.as_bytes()), "imok", "{typed:?}");
        }
    }
    // Letter by letter.
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_nodelay(true).unwrap();
    for letter in b"ruok" {
        stream.write_all(&[*letter]).unwrap();
        Raw::open(&server).is_served();
    }
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "imok");
}

#[test]
fn the_figures_are_those_of_the_tree_and_its_watches() {
    let server = manual();
    let (empty, one) = (ask(&server, b"mntr"), Raw::open(&server));
    let mut one = one;
    assert_eq!(one.ask(1, operation::CREATE, &creation("/mine", 1)).error, 0);
    assert_eq!(one.ask(2, operation::EXISTS, &reading("/mine", true)).error, 0);
    let full = ask(&server, b"mntr");
    let grown = |name: &str| {
        let number = |text: &str| figure(text, &format!("zk_{name}\t")).parse::<i64>().unwrap();
        number(&full) - number(&empty)
    };
    let names =
        ["znode_count", "ephemerals_count", "watch_count", "global_sessions", "num_alive_connections"];
    assert_eq!(names.map(grown), [1, 1, 1, 1, 1]);
    assert_eq!(figure(&full, "zk_server_state\t"), "standalone");
    assert!(figure(&full, "zk_version\t").contains("zklock-testkit"), "nobody takes it for a real one");

    let before = ask(&server, b"srvr");
    assert_eq!(figure(&before, "Mode: "), "standalone");
    let hexadecimal = |text: &str| i64::from_str_radix(&figure(text, "Zxid: 0x"), 16).unwrap();
    server.put("/more", "").unwrap();
    let after = ask(&server, b"srvr");
    assert!(hexadecimal(&after) > hexadecimal(&before));
    let nodes = |text: &str| figure(text, "Node count: ").parse::<u64>().unwrap();
    assert_eq!(nodes(&after), nodes(&before) + 1);
    assert!(ask(&server, b"wchs").contains("Total watches:1"));
}

#[test]
fn a_word_that_is_not_answered_is_said_to_be_so() {
    let server = manual();
    for word in ["conf", "dump", "wchc"] {
        assert_eq!(
            ask(&server, word.as_bytes()),
            format!("{word} is not executed because it is not in the whitelist.\n")
        );
    }
}

#[test]
fn letters_are_no_word_where_a_session_has_begun() {
    let server = manual();
    let mut raw = Raw::open(&server);
    raw.stream.write_all(b"ruok").unwrap();
    assert!(raw.is_closed(SOON), "a length that is beyond any");
    assert_eq!(server.sessions().len(), 1);
}
