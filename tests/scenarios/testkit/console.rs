//! The orders of the console, and every mistake in one.

use std::io::Cursor;
use std::time::Duration;

use crate::support::embedded::{Raw, creation, manual, operation};
use crate::testkit::words::ask;
use zklock_testkit::Server;
use zklock_testkit::console::{self, Console};

/// The server's answer to one order, of a console that numbers its faults from 1.
pub(super) fn order(server: &Server, order: &str) -> String {
    let mut answers = Vec::new();
    assert!(!Console::default().run(server, Cursor::new(format!("{order}\n")), &mut answers).unwrap());
    String::from_utf8(answers).unwrap()
}

#[test]
fn each_order_is_carried_out() {
    let server = manual();
    let mut raw = Raw::open(&server);
    assert_eq!(raw.ask(1, operation::CREATE, &creation("/mine", 1)).error, 0);
    let id = &format!("{:#x}", raw.session);
    for (typed, answer) in [
        ("put /a/b some data", "ok"),
        ("put /a/c", "ok"),
        ("children /a", "ok b c"),
        ("children /a/b", "ok"),
        ("data /a/b", "ok some data"),
        ("data /a/c", "ok"),
        ("wait /a 2 1", "ok b c"),
        ("wait /a 1 0.01", "error there are 2"),
        ("dump /a", "/a\n/a/b \"some data\"\n/a/c\nok"),
        ("sequence /a 2147483647", "ok"),
        ("delete /a", "ok"),
        ("children /a", "error there is no such node"),
        ("data /a", "error there is no such node"),
        ("delete /a", "error there is no such node"),
        ("sequence /a 1", "error there is no such node"),
        ("bring-back /a", "ok"),
        ("bring-back /a/b", "ok"),
        ("data /a/b", "ok some data"),
        ("bring-back /a/b", "error no node can come back there"),
        ("owner /mine", "ok ID"),
        ("sessions", "ID connected, timeout 4s, 1 nodes\nok"),
        ("freeze", "ok"),
        ("thaw", "ok"),
        ("freeze ID", "ok"),
        ("thaw", "ok"),
        ("refuse on", "ok"),
        ("refuse off", "ok"),
        ("date 1000", "ok"),
        ("advance 1", "ok"),
        ("fault bring-back delete nth=2 times=1 below=/a session=ID", "ok 1"),
        ("fault delay-reply=1e19 create", "ok 1"),
        ("clear", "ok"),
        ("cut ID", "ok"),
        // It has no connection any more.
        ("cut ID", "error there is no such session"),
        ("expire ID", "ok"),
        ("expire ID", "error there is no such session"),
        ("cut ID", "error there is no such session"),
        ("freeze ID", "error there is no such session"),
        ("cut", "ok"),
        ("expire all", "ok"),
        ("sessions", "ok"),
        // A leap beyond all time.
        ("advance 1e19", "ok"),
        ("advance 1e19", "ok"),
    ] {
        let (typed, answer) = (typed.replace("ID", id), answer.replace("ID", id));
        assert_eq!(order(&server, &typed), format!("{answer}\n"), "{typed}");
    }
    assert_eq!(server.children("/"), Some(vec!["a".to_owned(), "zookeeper".to_owned()]));
    assert_eq!(order(&server, ""), "", "an empty line is not an order");
}

#[test]
fn what_is_no_order_is_said_to_be_none_and_the_next_is_obeyed() {
    let server = manual();
    let cases = [
        ("nonsense", "no such order: nonsense; 'help'"),
        ("QUIT", "no such order: QUIT"),
        ("expire", "no such order"),
        ("expire me", "\"me\" is not the number of a session"),
        ("expire 0x1ffffffffffffffff", "is not the number of a session"),
        ("refuse maybe", "no such order"),
        ("advance soon", "\"soon\" is not a number"),
        ("advance -1", "\"-1\" is not a number of seconds"),
        ("advance nan", "\"nan\" is not a number of seconds"),
        (
            "fault drop-reply creation",
            "there is no kind of message that is called \"creation\": known are connect, create",
        ),
        ("fault explode create", "there is no fault that is called \"explode\": known are lose-request,"),
        ("fault drop-reply=1 create", "has no delay"),
        ("fault delay-reply create", "needs a delay, in seconds"),
        ("fault delay-reply=-1 create", "is not a number of seconds"),
        ("fault drop-reply create nth=x", "\"x\" is not a number"),
        ("fault drop-reply create session=x", "is not the number of a session"),
        ("fault drop-reply create twice", "twice is not nth=N, times=N, below=PATH or session=ID"),
        ("owner /zookeeper", "error"),
        ("owner /not-there", "error"),
        ("put a", "\"a\" is not a path of a node"),
        ("strikes 0", "there is no such fault"),
        ("freeze 0x1", "there is no such session"),
        ("wait /a", "no such order"),
        ("wait /a 1 x", "\"x\" is not a number"),
    ];
    for (typed, says) in cases {
        let answer = order(&server, typed);
        assert!(answer.starts_with("error ") && answer.contains(says), "{typed}: {answer}");
        assert_eq!(answer.lines().count(), 1, "an answer is one line");
    }
    // None of these orders has had an effect.
    Raw::open(&server).is_served();
    assert_eq!(server.dump("/").lines().count(), 4, "{}", server.dump("/"));
}

#[test]
fn orders_end_with_quit_and_with_the_input() {
    let server = manual();
    let run = |orders: &str| {
        let mut answers = Vec::new();
        let has_quit = Console::default().run(&server, Cursor::new(orders.to_owned()), &mut answers).unwrap();
        (has_quit, String::from_utf8(answers).unwrap())
    };
    assert_eq!(run("put /a\n  quit \nput /b\n"), (true, "ok\nok\n".to_owned()));
    assert_eq!(server.children("/b"), None);
    assert_eq!(run("thaw\nthaw"), (false, "ok\nok\n".to_owned()));
    let (has_quit, help) = run("help\n");
    assert!(!has_quit);
    assert_eq!(help, format!("{}ok\n", console::USAGE));
}

#[test]
fn options_that_make_no_sense_are_named() {
    let settings = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        console::settings(&words)
    };
    for (words, says) in [
        (&["--listen"][..], "--listen needs a value"),
        (&["--tick"], "--tick needs a value"),
        (&["--tick", "x"], "\"x\" is not a number"),
        (&["--tick", "-1"], "is not a number of seconds"),
        (&["--port", "1"], "there is no option \"--port\""),
        (&["--like", "2.0"], "known are 3.8, 3.4, keeper-25"),
        (&["2181"], "there is no option \"2181\""),
    ] {
        let error = settings(words).unwrap_err().to_string();
        assert!(error.contains(says), "{words:?}: {error}");
    }
    assert!(settings(&["--tick", "1", "--help"]).unwrap().is_none());
    let server = settings(&["--listen", "127.0.0.1:0", "--tick", "0.5", "--manual-clock"]).unwrap().unwrap();
    let server = server.start().unwrap();
    let raw = Raw::open_for(&server, Duration::ZERO);
    assert_eq!(raw.timeout, Duration::from_secs(1));
    let server = settings(&["--local-sessions"]).unwrap().unwrap().start().unwrap();
    let refused = Raw::open(&server).ask(1, operation::CREATE, &creation("/mine", 1));
    assert_eq!(refused.error, -120);
    let server = settings(&["--like", "3.4"]).unwrap().unwrap().start().unwrap();
    assert!(ask(&server, b"srvr").starts_with("Zookeeper version: 3.4.14"));
    let server = settings(&["--words", "ruok"]).unwrap().unwrap().start().unwrap();
    assert_eq!(ask(&server, b"ruok"), "imok");
    assert!(ask(&server, b"srvr").contains("whitelist"));
}
