//! The tests stand on the ground, so every fault that it promises is proved here, against real servers.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{SESSION, SOON};
use ground::wire::{Admin, Connection, Failure, Mode, expire};
use ground::{
    Action, Direction, Ensemble, Gate, Kind, Proxy, Side, Trigger, not_later, one_flight, shared, until,
};

/// A separate path on the shared server, a proxy in front of the server, and an operator that does not use the proxy.
fn place(name: &str) -> (String, Proxy, Admin) {
    let server = shared().server(0);
    let admin = Admin::connect(server.address());
    let path = format!("/ground-{name}");
    admin.create(&path, "");
    (path, Proxy::before(server), admin)
}

fn session_through(proxy: &Proxy) -> Connection {
    let mut connection = Connection::open(proxy.address(), SESSION).expect("the proxy is open");
    connection.set_patience(SOON);
    connection
}

/// The way in which a connection ended for its client.
fn end_of(result: Result<(), Failure>) -> ErrorKind {
    match result {
        Err(Failure::Link(error)) => error.kind(),
        other => panic!("the connection should have failed, not {other:?}"),
    }
}

#[test]
fn the_operator_sees_and_changes_the_tree() {
    let (path, _, admin) = place("operator");
    let child = format!("{path}/child");
    admin.create(&child, "data");
    assert_eq!(admin.data(&child), b"data");
    assert_eq!(admin.children(&path), ["child"]);
    assert_eq!(admin.children_or_empty("/nothing"), [""; 0]);
    assert_eq!(admin.set(&child, "more").version, 1);
    let stat = admin.stat(&child).expect("the node is there");
    assert!(stat.mzxid > stat.czxid && stat.data_length == 4 && stat.ephemeral_owner == 0);
    let own = admin.create_mode(&format!("{path}/own-"), "", Mode::EphemeralSequential);
    assert_eq!(own, format!("{path}/own-0000000001"));
    assert_eq!(admin.stat(&own).expect("the node is there").ephemeral_owner, admin.session());
    admin.create_all(&format!("{path}/a/b/c"), "deep");
    admin.create_mode(&format!("{path}/box"), "", Mode::Container);
    admin.sync(&path);
    assert_eq!(admin.tree(&path).len(), 7);
    assert!(matches!(admin.create_raw(b"/\xff\xfe", ""), Err(Failure::Server(-8))), "no UTF-8, no node");
    admin.delete(&child);
    assert!(admin.stat(&child).is_none());
    admin.delete_tree(&path);
    assert!(admin.stat(&path).is_none());
}

#[test]
fn the_operator_waits_for_children_and_outlives_its_idle_time() {
    let (path, _, admin) = place("waiting");
    thread::scope(|scope| {
        scope.spawn(|| {
            let other = Admin::connect(admin.address());
            for name in ["a", "b"] {
                thread::sleep(Duration::from_millis(50));
                other.create(&format!("{path}/{name}"), "");
            }
        });
        assert_eq!(admin.wait_for_children(&path, 2, SOON), ["a", "b"]);
    });
    let few = admin.try_wait_for_children(&path, 3, Duration::from_millis(50)).expect("the server answers");
    assert_eq!(few, ["a", "b"]);
    // Longer than its session, which the server has cut to 4 s.
    let before = admin.session();
    thread::sleep(SESSION + Duration::from_millis(500));
    assert_eq!(admin.children(&path).len(), 2);
    assert_eq!(admin.session(), before);
}

#[test]
fn a_server_dies_sleeps_and_comes_back() {
    let ensemble = Ensemble::builder().tick(Duration::from_millis(200)).start();
    let server = ensemble.server(0);
    let admin = Admin::connect(server.address());
    admin.create("/kept", "yes");
    assert_eq!(server.mode().as_deref(), Some("standalone"));
    assert!(server.mntr()["zk_version"].starts_with("3."));
    assert_eq!(ensemble.leader().number(), 1);

    server.pause();
    assert_eq!(server.word("ruok").expect_err("a paused server is silent").kind(), ErrorKind::TimedOut);
    server.resume();
    server.wait_until_serving(SOON);
    assert_eq!(admin.data("/kept"), b"yes");

    let (pid, home) = (server.pid(), server.home().to_owned());
    server.kill();
    assert!(!server.is_serving() && server.pid().is_none());
    assert_eq!(server.word("ruok").expect_err("nobody is there").kind(), ErrorKind::ConnectionRefused);
    server.restart();
    assert!(server.pid().is_some() && server.pid() != pid);
    assert_eq!(admin.data("/kept"), b"yes", "the data is kept, and the operator finds its way back");

    server.stop();
    assert!(server.pid().is_none());
    drop(ensemble);
    assert!(!home.exists(), "{} should be gone", home.display());
}

#[test]
fn connections_are_cut_and_reset() {
    let (path, proxy, _) = place("cut");
    let mut client = session_through(&proxy);
    assert!(client.exists(&path, false).expect("an answer").is_some());
    proxy.cut();
    assert_eq!(
        end_of(client.event(Instant::now() + SOON).map(drop).map_err(Failure::from)),
        ErrorKind::UnexpectedEof
    );
    let mut client = session_through(&proxy);
    proxy.reset();
    assert_eq!(
        end_of(client.event(Instant::now() + SOON).map(drop).map_err(Failure::from)),
        ErrorKind::ConnectionReset
    );
    assert!(client.ping().is_err());
    assert_eq!((proxy.connections(), proxy.accepted()), (0, 2));
}

#[test]
fn a_refusing_proxy_resets_newcomers_only() {
    let (path, proxy, _) = place("refuse");
    let mut client = session_through(&proxy);
    proxy.refuse(true);
    assert!(Connection::open(proxy.address(), SESSION).is_err());
    assert!(client.exists(&path, false).is_ok());
    proxy.refuse(false);
    session_through(&proxy);
}

#[test]
fn a_dead_server_resets_the_client_of_its_proxy() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr());
    let proxy = Proxy::start(nobody.expect("a free port"));
    let error = Connection::open(proxy.address(), SESSION).expect_err("nobody is there");
    assert!(
        [ErrorKind::ConnectionReset, ErrorKind::UnexpectedEof, ErrorKind::BrokenPipe].contains(&error.kind())
    );
}

#[test]
fn each_direction_freezes_and_thaws() {
    let (path, proxy, admin) = place("freeze");
    let mut client = session_through(&proxy);
    client.set_patience(Duration::from_millis(200));
    proxy.freeze(Direction::ToServer);
    let lost = client.create(format!("{path}/held").as_bytes(), b"", Mode::Persistent);
    assert_eq!(end_of(lost.map(drop)), ErrorKind::TimedOut);
    assert!(admin.children(&path).is_empty(), "the request is held");
    proxy.thaw();
    admin.wait_for_children(&path, 1, SOON);

    proxy.freeze(Direction::ToClient);
    let lost = client.create(format!("{path}/done").as_bytes(), b"", Mode::Persistent);
    assert_eq!(end_of(lost.map(drop)), ErrorKind::TimedOut);
    admin.wait_for_children(&path, 2, SOON);
    proxy.thaw();
    client.set_patience(SOON);
    assert!(client.exists(&path, false).is_ok(), "the connection has survived");
}

#[test]
fn a_frozen_proxy_holds_newcomers_and_forgets_those_that_leave() {
    let (path, proxy, _) = place("held");
    proxy.freeze(Direction::Both);
    let received = || shared().server(0).mntr()["zk_num_alive_connections"].clone();
    let gone = TcpStream::connect(proxy.address()).expect("it accepts");
    assert!(until(SOON, || proxy.connections() == 1));
    drop(gone);
    assert!(until(SOON, || proxy.connections() == 0), "given up before it reached the server");
    thread::scope(|scope| {
        let client = scope.spawn(|| session_through(&proxy).exists(&path, false).is_ok());
        assert!(until(SOON, || proxy.connections() == 1));
        thread::sleep(Duration::from_millis(100));
        assert!(!client.is_finished(), "held; the server has {} connections", received());
        proxy.thaw();
        assert!(client.join().expect("no panic"));
    });
}

#[test]
fn a_delay_is_added_each_way_and_to_every_message_alike() {
    let (path, proxy, _) = place("delay");
    let mut client = session_through(&proxy);
    proxy.delay(Duration::from_millis(60));
    let start = Instant::now();
    client.exists(&path, false).expect("an answer");
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(120) && took < SOON, "{took:?}");
    proxy.delay(Duration::ZERO);
    let start = Instant::now();
    client.exists(&path, false).expect("an answer");
    not_later(start.elapsed(), Duration::from_millis(100));
}

#[test]
fn a_half_open_connection_swallows_and_says_nothing() {
    let (path, proxy, admin) = place("half");
    let mut client =
        Connection::open(proxy.address(), Duration::from_millis(500)).expect("the proxy is open");
    client.create(format!("{path}/own").as_bytes(), b"", Mode::Ephemeral).expect("created");
    client.set_patience(Duration::from_millis(200));
    proxy.half_open();
    assert_eq!(end_of(client.ping()), ErrorKind::TimedOut);
    assert_eq!(proxy.connections(), 1);
    admin.wait_for_children(&path, 0, SOON);
    drop(client);
    assert!(until(SOON, || proxy.connections() == 0));
}

#[test]
fn a_chosen_reply_is_swallowed_after_the_server_has_acted() {
    let (path, proxy, admin) = place("drop-reply");
    for trigger in [Trigger::reply(Kind::Create), Trigger::request(Kind::Create)] {
        let mut client = session_through(&proxy);
        let hook = proxy.on(trigger.nth(2).path(&path).then(Action::DropReplyAndReset));
        client.create(format!("{path}/1").as_bytes(), b"", Mode::Persistent).expect("the first passes");
        assert!(!hook.fired());
        let lost = client.create(format!("{path}/2").as_bytes(), b"", Mode::Persistent);
        assert_eq!(end_of(lost.map(drop)), ErrorKind::ConnectionReset);
        assert!(hook.wait(SOON));
        let message = hook.message().expect("it has fired");
        assert_eq!(
            (message.kind, message.side, message.path),
            (Kind::Create, Side::Reply, format!("{path}/2"))
        );
        assert_eq!(admin.children(&path), ["1", "2"], "both were executed");
        admin.delete(&format!("{path}/1"));
        admin.delete(&format!("{path}/2"));
    }
}

#[test]
fn a_chosen_request_never_arrives() {
    let (path, proxy, admin) = place("drop-request");
    let mut client = session_through(&proxy);
    let hook = proxy.on(Trigger::request(Kind::Create).then(Action::DropAndReset));
    let never = proxy.on(Trigger::request(Kind::Delete).then(Action::Cut));
    never.cancel();
    let lost = client.create(format!("{path}/x").as_bytes(), b"", Mode::Persistent);
    assert_eq!(end_of(lost.map(drop)), ErrorKind::ConnectionReset);
    assert!(hook.fired() && !never.wait(Duration::from_millis(10)));
    assert!(admin.children(&path).is_empty());
    let mut client = session_through(&proxy);
    client.create(format!("{path}/x").as_bytes(), b"", Mode::Persistent).expect("the hook is spent");
    client.delete(&format!("{path}/x")).expect("the other is cancelled");
}

#[test]
fn a_chosen_message_cuts_freezes_or_vanishes() {
    let (path, proxy, admin) = place("strike");
    let mut client = session_through(&proxy);
    let hook = proxy.on(Trigger::request(Kind::GetData).then(Action::Cut));
    assert_eq!(end_of(client.data(&path, false).map(drop)), ErrorKind::UnexpectedEof);
    assert!(hook.fired());

    let mut client = session_through(&proxy);
    client.set_patience(Duration::from_millis(200));
    let hook = proxy.on(Trigger::request(Kind::Create).then(Action::Freeze(Direction::ToClient)));
    let lost = client.create(format!("{path}/x").as_bytes(), b"", Mode::Persistent);
    assert_eq!(end_of(lost.map(drop)), ErrorKind::TimedOut);
    assert!(hook.fired());
    admin.wait_for_children(&path, 1, SOON);
    proxy.thaw();

    let mut client = session_through(&proxy);
    client.set_patience(Duration::from_millis(200));
    let hook = proxy.on(Trigger::reply(Kind::Delete).then(Action::Swallow));
    assert_eq!(end_of(client.delete(&format!("{path}/x"))), ErrorKind::TimedOut);
    assert!(hook.fired() && admin.children(&path).is_empty());
    client.exists(&path, false).expect("the connection goes on");
}

/// Two requests by hand, the second sent without waiting for the reply to the first or after it.
fn create_and_list(address: SocketAddr, path: &str, together: bool) {
    let frame = |body: &[u8]| [&u32::try_from(body.len()).expect("short").to_be_bytes(), body].concat();
    let text = |text: &str| frame(text.as_bytes());
    let mut hello = [&[0; 12][..], &4000_i32.to_be_bytes(), &[0; 8]].concat();
    hello.extend(frame(&[0; 16]));
    hello.push(0);
    let acl = [&1_i32.to_be_bytes()[..], &31_i32.to_be_bytes(), &text("world"), &text("anyone")].concat();
    let head = |xid: i32, operation: i32| [xid.to_be_bytes(), operation.to_be_bytes()].concat();
    let create = frame(
        &[head(1, 1), text(&format!("{path}/n-")), frame(&[]), acl, 3_i32.to_be_bytes().to_vec()].concat(),
    );
    let list = frame(&[head(2, 8), text(path), vec![0]].concat());

    let mut stream = TcpStream::connect(address).expect("the proxy is open");
    let mut sender = TcpStream::try_clone(&stream).expect("a second handle");
    let mut answer = || {
        let mut length = [0; 4];
        stream.read_exact(&mut length).expect("an answer");
        let mut body = vec![0; u32::from_be_bytes(length) as usize];
        stream.read_exact(&mut body).expect("an answer");
    };
    sender.write_all(&frame(&hello)).expect("sent");
    answer();
    if together {
        sender.write_all(&[create, list].concat()).expect("sent");
        answer();
        answer();
    } else {
        for request in [create, list] {
            sender.write_all(&request).expect("sent");
            answer();
        }
    }
}

#[test]
fn a_record_tells_one_flight_from_two() {
    let (path, proxy, _) = place("flight");
    for together in [true, false] {
        // The reply is held until the list request has passed, so that the answer does not depend on luck.
        let gate = Gate::new();
        let held = proxy.on(Trigger::reply(Kind::Create).then(Action::Pause(gate.clone())));
        let listed = proxy.on(Trigger::request(Kind::GetChildren));
        proxy.record();
        thread::scope(|scope| {
            let client = scope.spawn(|| create_and_list(proxy.address(), &path, together));
            assert!(held.wait(SOON));
            assert_eq!(listed.wait(Duration::from_millis(if together { 5000 } else { 100 })), together);
            gate.open();
            client.join().expect("no panic");
        });
        let counts = proxy.counts();
        assert_eq!(counts.asked, [Kind::Connect, Kind::Create, Kind::GetChildren]);
        assert_eq!(counts.client_reads, if together { 2 } else { 3 });
        assert_eq!((counts.requests(Kind::Any), counts.replies(Kind::Create)), (3, 1));
        let record = proxy.take_record();
        assert_eq!(one_flight(&record, Kind::Create, Kind::GetChildren), together);
        assert!(record.iter().all(|message| message.passed.is_some() && message.error == 0));
        assert!(proxy.take_record().is_empty());
    }
}

#[test]
fn a_reply_is_rewritten_on_its_way() {
    let (path, proxy, admin) = place("rewrite");
    admin.create(&format!("{path}/name"), "");
    let mut client = session_through(&proxy);
    let hook = proxy.on(Trigger::reply(Kind::GetChildren).then(Action::Rewrite(Box::new(|body| {
        *body.last_mut().expect("a list") = 0xff;
    }))));
    assert_eq!(client.children(&path, false).expect("a list"), ["nam\u{fffd}"]);
    assert!(hook.fired());
    let _hook = proxy.on(Trigger::reply(Kind::GetChildren).then(Action::Corrupt));
    assert!(client.children(&path, false).map_or(true, |names| names != ["name"]));
    assert_eq!(client.children(&path, false).expect("a list"), ["name"]);
}

#[test]
fn a_watch_event_is_a_message_too() {
    let (path, proxy, admin) = place("event");
    let mut client = session_through(&proxy);
    client.children(&path, true).expect("a list");
    proxy.record();
    let gate = Gate::new();
    let hook = proxy.on(Trigger::reply(Kind::Event).path(&path).then(Action::Pause(gate.clone())));
    admin.create(&format!("{path}/x"), "");
    assert!(hook.wait(SOON));
    assert!(client.event(Instant::now() + Duration::from_millis(50)).expect("no failure").is_none());
    gate.open();
    let event = client.event(Instant::now() + SOON).expect("no failure").expect("the event");
    assert_eq!((event.kind, event.path), (4, path));
    assert_eq!(proxy.counts().replies(Kind::Event), 1);
}

#[test]
fn a_session_is_ended_from_outside() {
    let (path, proxy, admin) = place("expire");
    let mut client = session_through(&proxy);
    client.create(format!("{path}/own").as_bytes(), b"", Mode::Ephemeral).expect("created");
    let (id, password, timeout) = proxy.session().pop().expect("a session");
    assert_eq!((id, timeout), (client.session(), SESSION));
    assert!(expire(shared().server(0).address(), id, &password));
    assert!(admin.children(&path).is_empty());
    assert!(client.ping().is_err(), "the server has hung up");
    let back = Connection::attach(proxy.address(), id, &password, SESSION);
    assert_eq!(back.expect_err("it is gone").kind(), ErrorKind::NotFound);
    assert!(!expire(shared().server(0).address(), id, &password), "it was gone already");
}

#[test]
fn four_letter_words_pass_a_proxy() {
    let proxy = Proxy::before(shared().server(0));
    let mut stream = TcpStream::connect(proxy.address()).expect("the proxy is open");
    stream.write_all(b"ruok").expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert_eq!(answer, "imok");
}

#[test]
fn an_ensemble_has_its_links_cut_one_by_one() {
    let ensemble =
        Ensemble::builder().servers(3).tick(Duration::from_millis(200)).quorum_proxies(true).start();
    let talk = ensemble.keep_talking();
    let leader = ensemble.leader();
    let [near, far] = ensemble.followers()[..] else { panic!("two follow") };
    let link = ensemble.quorum_link(far, leader);
    assert_eq!(link.connections(), 1, "the follower leads its data through the proxy");
    assert_eq!(ensemble.quorum_link(leader, far).connections(), 0);

    // A write commits without the frozen follower, which does not see it.
    let operators = [leader, near, far].map(|server| Admin::connect(server.address()));
    link.freeze(Direction::Both);
    operators[0].create("/x", "");
    operators[1].sync("/x");
    assert!(operators[1].stat("/x").is_some());
    assert!(operators[2].stat("/x").is_none());
    link.thaw();
    operators[2].wait_for_node("/x", true, SOON);

    // A follower that is cut off comes back.
    link.cut();
    assert!(until(SOON, || link.accepted() >= 2));
    ensemble.wait_until_whole(Duration::from_secs(20));
    operators[2].sync("/x");

    // Another one leads when the leader dies.
    leader.kill();
    let next = ensemble.leader();
    assert_ne!(next.number(), leader.number());
    Admin::connect(next.address()).create("/y", "");
    leader.restart();
    ensemble.wait_until_whole(Duration::from_secs(20));
    let back = Admin::connect(leader.address());
    back.sync("/y");
    assert!(back.stat("/y").is_some());
    // The talkers have found all three servers again: on each there is one of theirs and our operator.
    let talked = || {
        ensemble.servers().iter().all(|server| server.word("cons").is_ok_and(|all| all.contains("lop=EXIS")))
    };
    assert!(until(SOON, talked));
    drop(talk);
}
