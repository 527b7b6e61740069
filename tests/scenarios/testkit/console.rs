//! The orders of the console, and every mistake in one.

use std::io::Cursor;
use std::time::Duration;

use crate::support::embedded::{Raw, SESSION, SOON, creation, manual, operation, text};
use crate::testkit::words::ask;
use zklock_testkit::Server;
use zklock_testkit::console::{self, Console};

/// The server's answer to one order.
fn order(server: &Server, order: &str) -> String {
    let mut answers = Vec::new();
    assert!(!Console::default().run(server, Cursor::new(format!("{order}\n")), &mut answers).unwrap());
    String::from_utf8(answers).unwrap()
}

#[track_caller]
fn orders(server: &Server, cases: &[(&str, &str)]) {
    for (typed, answer) in cases {
        assert_eq!(order(server, typed), format!("{answer}\n"), "{typed}");
    }
}

#[test]
fn orders_for_the_tree() {
    let server = manual();
    orders(
        &server,
        &[
            ("put /a/b some data", "ok"),
            ("put /a/c", "ok"),
            ("children /a", "ok b c"),
            ("children /a/b", "ok"),
            ("data /a/b", "ok some data"),
            ("data /a/c", "ok"),
            ("wait /a 2 1", "ok b c"),
            ("wait /nowhere 0 0", "ok"),
            ("dump /a", "/a\n/a/b \"some data\"\n/a/c\nok"),
            ("delete /a", "ok"),
            ("dump /a", "ok"),
            ("children /a", "error there is no such node"),
            ("data /a", "error there is no such node"),
            ("delete /a", "error there is no such node"),
        ],
    );
    assert!(order(&server, "dump").starts_with("/\n/zookeeper\n"));
    assert_eq!(order(&server, ""), "", "an empty line is not an order");
    assert_eq!(order(&server, "wait /a 1 0.01"), "error there are 0\n");
}

#[test]
fn orders_for_what_an_ensemble_comes_to_in_years() {
    let server = manual();
    orders(
        &server,
        &[
            ("put /a/b some data", "ok"),
            ("delete /a", "ok"),
            ("bring-back /a", "ok"),
            ("bring-back /a/b", "ok"),
            ("data /a/b", "ok some data"),
            ("bring-back /a/b", "error no node can come back there"),
            ("sequence /a 2147483647", "ok"),
            ("sequence /a 2147483648", "error \"2147483648\" is not a number"),
            ("sequence /b 1", "error there is no such node"),
        ],
    );
}

#[test]
fn orders_for_sessions() {
    let server = manual();
    let (mut one, mut other) = (Raw::open(&server), Raw::open(&server));
    assert_eq!(one.ask(1, operation::CREATE, &creation("/mine", 1)).error, 0);
    let (id, decimal) = (format!("{:#x}", one.session), other.session);
    let told = format!(
        "{id} connected, timeout 4s, 1 nodes\n{:#x} connected, timeout 4s, 0 nodes\nok\n",
        other.session
    );
    assert_eq!(order(&server, "sessions"), told);
    assert_eq!(order(&server, "owner /mine"), format!("ok {id}\n"));
    assert_eq!(order(&server, &format!("cut {id}")), "ok\n");
    assert!(one.is_closed(SOON));
    other.is_served();
    assert!(order(&server, "sessions").starts_with(&format!("{id} not connected")));
    assert_eq!(order(&server, &format!("expire {id}")), "ok\n");
    assert_eq!(server.children("/mine"), None);
    orders(
        &server,
        &[
            (&format!("expire {id}"), "error there is no such session"),
            (&format!("cut {id}"), "error there is no such session"),
        ],
    );
    assert_eq!(order(&server, "cut"), "ok\n");
    assert!(other.is_closed(SOON));
    assert_eq!(server.sessions().len(), 1, "its session lives on");
    assert_eq!(order(&server, &format!("expire {decimal}")), "ok\n");
    assert_eq!(order(&server, "sessions"), "ok\n");
    let mut all = [Raw::open(&server), Raw::open(&server)];
    assert_eq!(order(&server, "expire all"), "ok\n");
    assert!(all.iter_mut().all(|raw| raw.is_closed(SOON)));
    assert_eq!(server.sessions(), []);
}

#[test]
fn orders_for_time_and_silence() {
    let server = manual();
    let mut raw = Raw::open(&server);
    let frozen = |raw: &mut Raw| {
        raw.send(-2, operation::PING, &[]);
        assert_eq!(raw.answer_within(Duration::from_millis(50)), None);
        assert_eq!(order(&server, "thaw"), "ok\n");
        assert_eq!(raw.answer().error, 0);
    };
    assert_eq!(order(&server, "freeze"), "ok\n");
    frozen(&mut raw);
    assert_eq!(order(&server, &format!("freeze {:#x}", raw.session)), "ok\n");
    Raw::open(&server).is_served();
    frozen(&mut raw);

    assert_eq!(order(&server, "refuse on"), "ok\n");
    assert!(Raw::silent(server.address()).is_closed(SOON));
    raw.is_served();
    assert_eq!(order(&server, "refuse off"), "ok\n");
    Raw::open(&server).is_served();

    server.cut();
    assert_eq!(order(&server, &format!("advance {}", SESSION.as_secs_f64() + 2.5)), "ok\n");
    assert_eq!(server.sessions(), []);
}

#[test]
fn orders_for_faults() {
    let server = manual();
    let ping = |raw: &mut Raw| raw.send(-2, operation::PING, &[]);
    for what in ["lose-request", "cut-before-reply", "cut-after-reply", "expire"] {
        // Each console numbers its faults from 1.
        let mut raw = Raw::open(&server);
        assert_eq!(order(&server, &format!("fault {what} ping")), "ok 1\n");
        ping(&mut raw);
        if what == "cut-after-reply" {
            assert_eq!(raw.answer().error, 0);
        }
        assert!(raw.is_closed(SOON), "{what}");
    }
    for (what, remedy) in [("drop-reply", "thaw"), ("delay-reply=1.5", "advance 1.5"), ("freeze", "thaw")] {
        let mut raw = Raw::open(&server);
        assert_eq!(order(&server, &format!("fault {what} ping")), "ok 1\n");
        ping(&mut raw);
        assert_eq!(raw.answer_within(Duration::from_millis(50)), None, "{what}");
        assert_eq!(order(&server, remedy), "ok\n");
        let bound = if what == "drop-reply" { Duration::from_millis(50) } else { SOON };
        assert_eq!(raw.answer_within(bound).is_none(), what == "drop-reply", "{what}");
    }
    let mut raw = Raw::open(&server);
    server.put("/back", "").unwrap();
    assert_eq!(order(&server, "fault bring-back delete below=/back"), "ok 1\n");
    assert_eq!(raw.ask(1, operation::DELETE, &[text("/back"), vec![255; 4]].concat()).error, 0);
    assert_eq!(order(&server, "data /back"), "ok\n");
    // The ways to choose the message at which a fault strikes.
    let (mut one, mut other) = (Raw::open(&server), Raw::open(&server));
    let aimed = format!("fault drop-reply create nth=2 times=1 below=/a session={:#x}", one.session);
    assert_eq!(order(&server, &aimed), "ok 1\n");
    server.put("/a", "").unwrap();
    assert_eq!(other.ask(1, operation::CREATE, &creation("/a/x", 0)).error, 0);
    assert_eq!(one.ask(1, operation::CREATE, &creation("/a/y", 0)).error, 0);
    one.send(2, operation::CREATE, &creation("/a/z", 0));
    one.is_served();
    assert_eq!(server.children("/a").unwrap().len(), 3);
    assert_eq!(order(&server, "fault drop-reply get_data"), "ok 1\n");
    assert_eq!(order(&server, "fault lose-request ping times=9"), "ok 1\n");
    assert_eq!(order(&server, "clear"), "ok\n");
    one.is_served();
}

#[test]
fn what_is_no_order_is_said_to_be_none_and_the_next_is_obeyed() {
    let server = manual();
    let cases = [
        ("nonsense", "no such order: nonsense; 'help'"),
        ("QUIT", "no such order: QUIT"),
        ("quit now", "no such order: quit now"),
        ("sessions all", "no such order"),
        ("expire", "no such order"),
        ("expire me", "\"me\" is not the number of a session"),
        ("expire 0xzz", "\"0xzz\" is not the number of a session"),
        ("expire 0x1ffffffffffffffff", "is not the number of a session"),
        ("cut me", "is not the number of a session"),
        ("cut 1 2", "no such order"),
        ("freeze me", "is not the number of a session"),
        ("thaw me", "no such order"),
        ("refuse", "no such order"),
        ("refuse maybe", "no such order"),
        ("advance", "no such order"),
        ("advance soon", "\"soon\" is not a number"),
        ("advance -1", "\"-1\" is not a number of seconds"),
        ("advance nan", "\"nan\" is not a number of seconds"),
        ("advance inf", "\"inf\" is not a number of seconds"),
        ("date today", "\"today\" is not a number"),
        ("fault", "no such order"),
        ("fault drop-reply", "no such order"),
        (
            "fault drop-reply creation",
            "there is no kind of message that is called \"creation\": known are connect, create",
        ),
        ("fault explode create", "no such fault: explode; 'help' tells which there are"),
        ("fault drop_reply ping", "no such fault: drop_reply"),
        ("fault drop-reply=1 create", "no such fault"),
        ("fault delay-reply create", "is not a number"),
        ("fault delay-reply=-1 create", "is not a number of seconds"),
        ("fault drop-reply create nth=x", "\"x\" is not a number"),
        ("fault drop-reply create times=-1", "\"-1\" is not a number"),
        ("fault drop-reply create session=x", "is not the number of a session"),
        ("fault drop-reply create twice", "twice is not nth=N, times=N, below=PATH or session=ID"),
        ("children", "no such order"),
        ("data", "no such order"),
        ("owner", "no such order"),
        ("owner /zookeeper", "error"),
        ("owner /not-there", "error"),
        ("put", "no such order"),
        ("put a", "\"a\" is not a path of a node"),
        ("strikes 0", "there is no such fault"),
        ("strikes 99", "there is no such fault"),
        ("strikes x", "\"x\" is not a number"),
        ("freeze 0x1", "there is no such session"),
        ("delete", "no such order"),
        ("wait /a", "no such order"),
        ("wait /a x 1", "\"x\" is not a number"),
        ("wait /a 1 x", "\"x\" is not a number"),
        ("wait /a -1 1", "\"-1\" is not a number"),
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
fn every_order_is_in_the_help() {
    for order in [
        "sessions", "expire", "owner", "advance", "date", "cut", "freeze", "thaw", "refuse", "fault",
        "clear", "children", "data", "put", "delete", "wait", "dump", "quit",
    ] {
        let is_told = |line: &str| line.split([' ', '/']).any(|word| word == order);
        assert!(console::USAGE.lines().any(is_told), "{order}");
    }
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
