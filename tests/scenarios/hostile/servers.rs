//! Servers that speak ZooKeeper's protocol wrongly, on purpose or not: no session comes of it, or none that grants anything,
//! and neither memory nor requests grow with what they claim.

use crate::support::fake::{Fake, Says, frame, greeting, panics, reply};
use crate::support::{SESSION, options, says, soon};
use std::time::Duration;
use zklock_core::{Client, ClientOptions, ErrorKind};

/// How long each of them is tried.
const TRIED: Duration = Duration::from_millis(700);
/// In that time: the connection that shows that somebody is there and the one that is used, with the pauses in between.
const CONNECTIONS: usize = 20;
/// What the kernels on both sides may hold of an endless stream, and more. A client that reads all of it reads several times that.
const BYTES: usize = 16 << 20;

fn options_of(fake: &Fake) -> ClientOptions {
    options(&fake.connect_string()).connect_timeout(TRIED).server_version(3, 9).unwrap()
}

/// No session comes of it, in time, and not by trying all the time or reading all there is.
async fn none_comes_of(fake: &Fake, options: ClientOptions, name: &str) {
    let error = soon(Client::connect(options)).await.map(drop).expect_err(name);
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{name}: {error}");
    assert!((1..=CONNECTIONS).contains(&fake.accepted()), "{name}: {} connections", fake.accepted());
    assert!(fake.sent() <= fake.accepted() * BYTES, "{name}: {} bytes", fake.sent());
    assert!(error.to_string().contains("opens no session: is it ZooKeeper"), "{name}: {error}");
}

fn event(path: &[u8]) -> Vec<u8> {
    let length = (path.len() as u32).to_be_bytes();
    reply(-1, 0, &[&[0, 0, 0, 2, 0, 0, 0, 3], &length[..], path].concat())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_session_comes_of_a_server_that_breaks_the_protocol() {
    let huge = |length: u32| [&length.to_be_bytes()[..], &[0; 1 << 16]].concat();
    let table = [
        ("a length of 2 GiB", Says::Endlessly(huge(i32::MAX as u32))),
        ("a length that is negative", Says::Endlessly(huge(u32::MAX))),
        ("messages without anything", Says::Endlessly(vec![0; 4])),
        ("half a header", Says::Once(frame(&[&[0xff; 9]]))),
        ("a number that nobody gave", Says::Once(reply(12345, 0, &[]))),
        ("events that nobody waits for", Says::Endlessly(event(b"/a"))),
        ("events without a path", Says::Endlessly(event(b""))),
        ("an event whose path is not UTF-8", Says::Once(event(b"/\xff"))),
        ("text", Says::Endlessly(b"HTTP/1.1 400 Bad Request\r\n".repeat(100))),
    ];
    for (name, says) in table {
        let fake = Fake::start(&greeting(4000, 77), move |_| says.clone());
        none_comes_of(&fake, options_of(&fake), name).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_session_comes_of_an_absurd_greeting() {
    let table = [
        ("a timeout of nothing", greeting(0, 77)),
        ("a timeout below nothing", greeting(-1, 77)),
        ("a timeout of a moment", greeting(20, 77)),
        ("a timeout of weeks", greeting(i32::MAX, 77)),
        ("no session", greeting(4000, 0)),
        ("nothing", frame(&[])),
        ("half of it", greeting(4000, 77)[4..14].to_vec()),
        ("a password of 2 GiB", frame(&[&[0; 4], &[0, 0, 15, 160], &[7; 8], &[0x7f; 4]])),
        ("2 GiB", vec![0x7f, 0xff, 0xff, 0xff]),
    ];
    for (name, greeting) in table {
        let fake = Fake::start(&greeting, |request| Says::Once(reply(request.number, 0, &[])));
        none_comes_of(&fake, options_of(&fake), name).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endless_answer_about_the_version_is_not_read_to_its_end() {
    let fake = Fake::start(&[], |_| Says::Once(Vec::new()));
    let options = options(&fake.connect_string()).connect_timeout(TRIED);
    none_comes_of(&fake, options, "an endless answer").await;
    assert!(fake.sent() > 0, "it was asked");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_answers_every_request_with_nonsense_grants_nothing() {
    type Answer = fn(i32) -> Vec<u8>;
    let table: [(&str, Answer); 6] = [
        ("nothing", |number| reply(number, 0, &[])),
        ("an unknown error", |number| reply(number, -4242, &[])),
        ("a list of 2 billion", |number| reply(number, 0, &i32::MAX.to_be_bytes())),
        ("zeros", |number| reply(number, 0, &[0; 100])),
        ("ones", |number| reply(number, 0, &[0xff; 100])),
        ("another's reply", |number| reply(number + 1, 0, &[])),
    ];
    let panicked = panics();
    for (name, answer) in table {
        let fake = Fake::that_opens(move |request| Says::Once(answer(request.number)));
        let client = soon(Client::connect(options_of(&fake))).await.expect(name);
        for lock in
            [client.mutex("/a").unwrap(), client.read("/a").unwrap(), client.semaphore("/a", 2).unwrap()]
        {
            let error = soon(lock.acquire_timeout(TRIED)).await.map(drop).expect_err(name);
            let kind = error.kind();
            assert!(
                matches!(kind, ErrorKind::Unreachable | ErrorKind::Timeout | ErrorKind::Refused),
                "{name}: {error}"
            );
        }
        assert!(fake.accepted() <= 10 * CONNECTIONS, "{name}: {} connections", fake.accepted());
        assert_eq!(panics(), panicked, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_answers_nothing_else_than_pings_holds_nobody_up() {
    let fake = Fake::that_opens(|_| Says::Once(Vec::new()));
    let client = soon(Client::connect(options_of(&fake))).await.unwrap();
    assert_eq!(client.session_timeout(), Some(SESSION));
    let error = soon(client.mutex("/a").unwrap().acquire_timeout(TRIED)).await.map(drop).unwrap_err();
    says(&error, ErrorKind::Timeout, &["/a", "no server answers"]);
}
