//! Servers that speak ZooKeeper's protocol wrongly, on purpose or not: no session opens, or none that grants anything, and
//! neither memory nor requests grow with what the servers claim.

use crate::support::fake::{Fake, Over, Says, buffer, frame, greeting, panics, reply};
use crate::support::{SESSION, SOON, all_of, says, soon};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use zklock::further::Credentials;
use zklock::{Client, ClientOptions, ErrorKind};

/// How long each of them is tried.
const TRIED: Duration = Duration::from_millis(700);
/// How long connecting is tried: long enough for a server's answer, even on a busy machine.
const CONNECTING: Duration = Duration::from_secs(5);
/// The most connections in that time: one to see that a server listens and one to use it, with pauses in between.
const CONNECTIONS: usize = 50;
/// More than the kernels on both sides can buffer of an endless stream. A client that reads all of it reads several times
/// that.
const BYTES: usize = 16 << 20;

const TOO_LONG: &str = "a message is too long";
const TOO_SHORT: &str = "a message is shorter than it says";

fn options_of(fake: &Fake) -> ClientOptions {
    fake.options().connect_timeout(CONNECTING).server_version(3, 9)
}

/// Asserts that no session opens, the error says why, in time, and the client neither retries without a pause nor reads
/// without limit.
async fn none_comes_of(fake: &Fake, options: ClientOptions, name: &str, telling: &str) {
    let error = soon(Client::connect(options)).await.map(drop).expect_err(name);
    assert_eq!(error.kind(), ErrorKind::Unreachable, "{name}: {error}");
    assert!((1..=CONNECTIONS).contains(&fake.accepted()), "{name}: {} connections", fake.accepted());
    assert!(fake.sent() <= fake.accepted() * BYTES, "{name}: {} bytes", fake.sent());
    let telling = format!("{} {telling}", fake.connect_string());
    assert!(error.to_string().contains(&telling), "{name}: {error}");
}

/// The message if no violation of the protocol was seen.
const SILENT: &str = "accepts connections but opens no session: is it ZooKeeper";

/// The message if this violates the protocol.
fn broken(how: &str) -> String {
    format!("sends what is not ZooKeeper's protocol ({how})")
}

fn event(path: &[u8]) -> Vec<u8> {
    reply(-1, 0, &[&[0, 0, 0, 2, 0, 0, 0, 3], &buffer(path)[..]].concat())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_session_comes_of_a_server_that_breaks_the_protocol() {
    let huge = |length: u32| [&length.to_be_bytes()[..], &[0; 1 << 16]].concat();
    let table = [
        ("a length of 2 GiB", Says::Endlessly(huge(i32::MAX as u32)), TOO_LONG),
        ("a length that is negative", Says::Endlessly(huge(u32::MAX)), TOO_LONG),
        ("messages without anything", Says::Endlessly(vec![0; 4]), TOO_SHORT),
        ("half a header", Says::Once(frame(&[&[0xff; 9]])), TOO_SHORT),
        ("a number that nobody gave", Says::Once(reply(12345, 0, &[])), "a reply comes out of turn"),
        (
            "events that nobody waits for",
            Says::Endlessly(event(b"/a")),
            "an event comes that nobody waits for",
        ),
        ("events without a path", Says::Endlessly(event(b"")), "an event has no path"),
        ("an event that is not UTF-8", Says::Once(event(b"/\xff")), "an event comes that nobody waits for"),
        ("text", Says::Endlessly(b"HTTP/1.1 400 Bad Request\r\n".repeat(100)), TOO_LONG),
    ];
    all_of(table.map(|(name, says, how)| async move {
        let fake = Fake::start(Over::Tcp, &greeting(4000, 77), move |_| says.clone());
        none_comes_of(&fake, options_of(&fake), name, &broken(how)).await;
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_session_comes_of_an_absurd_greeting() {
    let table = [
        ("a timeout of nothing", greeting(0, 77), SILENT.to_owned()),
        ("a timeout below nothing", greeting(-1, 77), SILENT.to_owned()),
        ("a timeout of a moment", greeting(20, 77), SILENT.to_owned()),
        ("a timeout of weeks", greeting(i32::MAX, 77), SILENT.to_owned()),
        ("no session", greeting(4000, 0), SILENT.to_owned()),
        ("nothing", frame(&[]), broken(TOO_SHORT)),
        ("half of it", greeting(4000, 77)[4..14].to_vec(), broken(TOO_SHORT)),
        ("a password of 2 GiB", frame(&[&[0; 4], &[0, 0, 15, 160], &[7; 8], &[0x7f; 4]]), broken(TOO_SHORT)),
        ("2 GiB", vec![0x7f, 0xff, 0xff, 0xff], broken(TOO_LONG)),
    ];
    all_of(table.map(|(name, greeting, telling)| async move {
        let fake = Fake::start(Over::Tcp, &greeting, |request| Says::Once(reply(request.number, 0, &[])));
        none_comes_of(&fake, options_of(&fake), name, &telling).await;
    }))
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_endless_answer_about_the_version_is_not_read_to_its_end() {
    let fake = Fake::start(Over::Tcp, &[], |_| Says::Once(Vec::new()));
    none_comes_of(&fake, fake.options().connect_timeout(CONNECTING), "an endless answer", SILENT).await;
    assert!(fake.sent() > 0, "it was asked");
}

type Answer = fn(i32) -> Vec<u8>;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_answers_every_request_with_nonsense_grants_nothing() {
    let table: [(&str, Answer); 6] = [
        ("nothing", |number| reply(number, 0, &[])),
        ("an unknown error", |number| reply(number, -4242, &[])),
        ("a list of 2 billion", |number| reply(number, 0, &i32::MAX.to_be_bytes())),
        ("zeros", |number| reply(number, 0, &[0; 100])),
        ("ones", |number| reply(number, 0, &[0xff; 100])),
        ("another's reply", |number| reply(number + 1, 0, &[])),
    ];
    for (name, answer) in table {
        let panicked = panics();
        let fake = Fake::that_opens(Over::Tcp, move |request| Says::Once(answer(request.number)));
        let client = soon(Client::connect(options_of(&fake))).await.expect(name);
        for lock in [client.mutex("/a"), client.read_lock("/a"), client.semaphore("/a", 2)] {
            let error = soon(lock.unwrap().acquire_timeout(TRIED)).await.map(drop).expect_err(name);
            let kinds = [ErrorKind::Unreachable, ErrorKind::Timeout, ErrorKind::Refused];
            assert!(kinds.contains(&error.kind()), "{name}: {error}");
        }
        assert!(fake.accepted() <= 10 * CONNECTIONS, "{name}: {} connections", fake.accepted());
        assert_eq!(panics(), panicked, "{name}");
    }
}

/// The server answers everything else well. Without a guard the process would end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_that_lies_over_tls_ends_its_connection_alone() {
    const CREATES: [i32; 4] = [1, 15, 19, 21];
    const GET_CHILDREN: i32 = 8;
    let lists = Arc::<AtomicUsize>::default();
    let counted = lists.clone();
    let fake = Fake::that_opens(Over::Tls, move |request| {
        let body = match request.operation {
            GET_CHILDREN => {
                counted.fetch_add(1, Ordering::SeqCst);
                i32::MAX.to_be_bytes().to_vec()
            }
            operation if CREATES.contains(&operation) => {
                [&buffer(&[&request.path[..], b"0000000001"].concat())[..], &[0; 68]].concat()
            }
            _ => Vec::new(),
        };
        Says::Once(reply(request.number, 0, &body))
    });
    let client = soon(Client::connect(options_of(&fake))).await.unwrap();
    let error = soon(client.mutex("/a").unwrap().acquire_timeout(TRIED)).await.map(drop).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Unreachable | ErrorKind::Timeout), "{error}");
    assert!(lists.load(Ordering::SeqCst) > 0 && fake.accepted() > 2, "{} connections", fake.accepted());
}

const SASL: i32 = 102;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_session_comes_of_a_challenge_that_makes_no_sense() {
    let table = [
        // The library would cut it in the middle of a letter.
        ("realm=\"\\\u{e9}\"", broken("a login has an escape")),
        ("realm", SILENT.to_owned()),
        ("=", SILENT.to_owned()),
        ("charset=utf-8,algorithm=md5", SILENT.to_owned()),
        ("", SILENT.to_owned()),
    ];
    all_of(table.map(|(challenge, telling)| async move {
        let fake = Fake::that_opens(Over::Tcp, move |request| {
            Says::Once(match request.operation {
                SASL => reply(request.number, 0, &buffer(challenge.as_bytes())),
                _ => reply(request.number, 0, &[]),
            })
        });
        let options = options_of(&fake).credentials(Credentials::sasl("ann", "secret").unwrap());
        none_comes_of(&fake, options, challenge, &telling).await;
    }))
    .await;
}

/// The library would look for the end of this text for ever, on a thread that others need.
#[test]
fn no_session_comes_of_a_login_with_escapes() {
    let fake = Fake::that_opens(Over::Tcp, |request| {
        Says::Once(match request.operation {
            SASL => reply(request.number, 0, &buffer(br#"realm="a\xb\yc",nonce="n",charset=utf-8"#)),
            _ => reply(request.number, 0, &[]),
        })
    });
    let options = options_of(&fake).credentials(Credentials::sasl("ann", "secret").unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let telling = broken("a login has an escape");
    let tried = runtime.spawn(async move { none_comes_of(&fake, options, "escapes", &telling).await });
    let ended = ground::until(SOON, || tried.is_finished());
    let result = ended.then(|| runtime.block_on(tried));
    // Unlike a drop, this does not wait for a thread that never comes back.
    runtime.shutdown_background();
    result.expect("it takes for ever").unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_answers_nothing_else_than_pings_holds_nobody_up() {
    let fake = Fake::that_opens(Over::Tcp, |_| Says::Once(Vec::new()));
    let client = soon(Client::connect(options_of(&fake))).await.unwrap();
    assert_eq!(client.session_timeout(), Some(SESSION));
    let error = soon(client.mutex("/a").unwrap().acquire_timeout(TRIED)).await.map(drop).unwrap_err();
    says(&error, ErrorKind::Timeout, &["/a", "too short for an answer"]);
}
