//! Over TLS everything works as it does without. If no session can be opened, the error says why, in time.

mod files;
mod keys;
mod texts;

use crate::support::{SOON, comes, options, says, settled, soon};
use ground::wire::Admin;
use ground::{Builder, Ensemble, not_later, shared, until};
use std::fs::read_to_string;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use zklock::further::Tls;
use zklock::{Client, ClientOptions, ErrorKind, HoldState};

/// Longer than the first handshake of a server takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(3);

/// Longer than any test takes.
const AGES: Duration = Duration::from_secs(3600);

/// A server with TLS that tests can share if they do not disturb it.
fn builder() -> Builder {
    Ensemble::builder().tick(Duration::from_millis(200)).tls(true)
}

/// A server that lets nobody in without a certificate.
fn strict() -> &'static Ensemble {
    static STRICT: OnceLock<Ensemble> = OnceLock::new();
    STRICT.get_or_init(|| builder().start())
}

/// With TLS 1.3, where a server judges a client only after the client has sent its last message.
fn modern() -> &'static Ensemble {
    static MODERN: OnceLock<Ensemble> = OnceLock::new();
    MODERN.get_or_init(|| {
        let builder = builder().configure("ssl.protocol=TLSv1.3").configure("ssl.enabledProtocols=TLSv1.3");
        builder.configure("ssl.ciphersuites=TLS_AES_128_GCM_SHA256").start()
    })
}

fn anonymous(ensemble: &Ensemble) -> Tls {
    Tls::new(&read_to_string(ensemble.certificates().authority()).unwrap()).unwrap()
}

fn known(ensemble: &Ensemble) -> Tls {
    let files = ensemble.certificates();
    with(ensemble, files.client(), files.client_key())
}

/// A client's certificate that the server has no reason to trust.
fn intruder(ensemble: &Ensemble) -> Tls {
    let files = ensemble.certificates();
    with(ensemble, files.intruder(), files.intruder_key())
}

fn with(ensemble: &Ensemble, certificate: PathBuf, key: PathBuf) -> Tls {
    let [certificate, key] = [certificate, key].map(|file| read_to_string(file).unwrap());
    anonymous(ensemble).identity(&certificate, &key).unwrap()
}

/// Asserts that no session can be opened with these options, and the error has these parts.
async fn is_told(options: ClientOptions, parts: &[&str]) {
    // A busy server may take that long for a handshake, and then the error names its silence: not each time.
    for is_last in [false, false, false, false, true] {
        let start = Instant::now();
        let options = options.clone().connect_timeout(PATIENCE);
        let error = soon(Client::connect(options)).await.map(drop).unwrap_err();
        let took = start.elapsed();
        println!("after {took:?}: {error}");
        not_later(took, PATIENCE + Duration::from_secs(1));
        let is_told = parts.iter().all(|part| error.to_string().contains(part));
        if is_told || is_last || !error.to_string().contains("does not answer the TLS handshake") {
            return says(&error, ErrorKind::Unreachable, parts);
        }
    }
}

/// Hands a lock over from one client to the next, as in any queue.
async fn hand_over(hosts: &str, tls: Tls, path: &str) {
    let client = soon(Client::connect(options(hosts).tls(tls.clone()))).await.unwrap();
    let other = soon(Client::connect(options(hosts).tls(tls))).await.unwrap();
    let first = soon(client.mutex(path).unwrap().acquire()).await.unwrap();
    assert!(!first.valid_for().is_zero());
    let lock = other.mutex(path).unwrap();
    assert_eq!(soon(lock.try_acquire()).await.unwrap().map(drop), None);
    let waiting = tokio::spawn(async move { lock.acquire_timeout(SOON).await });
    comes(async || client.mutex(path).unwrap().contenders().await.unwrap().len() == 2).await;
    soon(first.release()).await.unwrap();
    let second = soon(waiting).await.unwrap().unwrap();
    assert!(second.token() > first.token() && second.state() == HoldState::Held);
    soon(second.release()).await.unwrap();
    settled(&other).await;
    soon(client.close()).await.unwrap();
    soon(other.close()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_goes_from_one_to_the_next_over_tls() {
    for ensemble in [strict(), modern()] {
        hand_over(&ensemble.tls_connect_string(), known(ensemble), "/tls-hand-over").await;
        let admin = Admin::connect(ensemble.server(0).address());
        admin.wait_for_children("/tls-hand-over", 0, SOON);
    }
    let lenient = builder().servers(3).configure("ssl.clientAuth=want").start();
    let _talk = lenient.keep_talking();
    let hosts = lenient.tls_connect_string();
    hand_over(&hosts.replace("127.0.0.1", "localhost"), anonymous(&lenient), "/tls-want").await;
}

/// A TLS record has 16 KiB at most.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_of_many_records_is_read_whole() {
    // Not lost on a busy machine.
    let options = options(&strict().tls_connect_string()).session_timeout(Duration::from_secs(30));
    let client = soon(Client::connect(options.tls(known(strict())))).await;
    let (client, path) = (client.unwrap(), "/tls-long");
    let admin = Admin::connect(strict().server(0).address());
    admin.create(path, "");
    for number in 0..1000 {
        admin.create(&format!("{path}/no-contender-{number:0100}"), "");
    }
    let lock = client.mutex(path).unwrap();
    for _ in 0..10 {
        let hold = soon(lock.acquire()).await.unwrap();
        assert_eq!(soon(lock.contenders()).await.unwrap().len(), 1);
        soon(hold.release()).await.unwrap();
    }
}

/// Asserts that no session is possible with these options, and the error comes at once.
async fn is_told_at_once(options: ClientOptions, parts: &[&str]) {
    let error = soon(Client::connect(options.connect_timeout(AGES))).await.map(drop).unwrap_err();
    says(&error, ErrorKind::Unreachable, parts);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_side_that_speaks_tls_alone_is_told() {
    // A port without TLS: Netty's, and that of a server that has no TLS at all.
    for ensemble in [strict(), shared()] {
        let hosts = ensemble.connect_string();
        let telling = [hosts.as_str(), "does not speak TLS", "secureClientPort"];
        is_told_at_once(options(&hosts).tls(known(strict())), &telling).await;
    }
    for ensemble in [strict(), modern()] {
        let hosts = ensemble.tls_connect_string();
        let telling = [hosts.as_str(), "only speaks TLS", "connect with TLS"];
        is_told_at_once(options(&hosts), &telling).await;
    }
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let hosts = silent.local_addr().unwrap().to_string();
    is_told(options(&hosts).tls(known(strict())), &["does not answer the TLS handshake"]).await;
    // As long as one of the servers may be the right one, the client waits for it.
    let hosts = format!("{hosts},{}", strict().tls_connect_string());
    is_told(options(&hosts), &["opens no session", "does the port expect TLS"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_port_that_speaks_both_is_right_for_both() {
    let builder = Ensemble::builder().tls(true).property("zookeeper.client.portUnification=true");
    let ensemble = builder.start();
    let hosts = ensemble.connect_string();
    let secure = soon(Client::connect(options(&hosts).tls(known(&ensemble)))).await.unwrap();
    let plain = soon(Client::connect(options(&hosts))).await.unwrap();
    soon(secure.close()).await.unwrap();
    soon(plain.close()).await.unwrap();
    // A client that has no session there for another reason is not told that the port is wrong.
    is_told(options(&hosts).tls(anonymous(&ensemble)), &["refuses the TLS handshake"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_does_not_trust_us_is_named_with_tls_1_3_too() {
    let hosts = modern().tls_connect_string();
    let telling = [hosts.as_str(), "refuses the TLS handshake", "does it want a client certificate?"];
    is_told(options(&hosts).tls(anonymous(modern())), &telling).await;
    let telling = [hosts.as_str(), "refuses the TLS handshake", "trust the authority of the client"];
    is_told(options(&hosts).tls(intruder(modern())), &telling).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_a_quorum_is_told_from_one_that_refuses() {
    let three = builder().servers(3).start();
    three.server(1).stop();
    three.server(2).stop();
    assert!(until(SOON, || !three.server(0).is_serving()));
    let options = options(&three.server(0).tls_address().to_string()).tls(known(&three));
    is_told(options, &["shakes hands over TLS but opens no session", "has the ensemble a leader?"]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_tls_cannot_use_is_refused_before_anything_is_sent() {
    let files = strict().certificates();
    let [authority, certificate, key] =
        [files.authority(), files.client(), files.client_key()].map(|file| read_to_string(file).unwrap());
    // Both in one text is usual, and the order does not matter.
    let both = key.clone() + &certificate;
    let tls = Tls::new(&authority).unwrap().identity(&both, &both).unwrap();

    let shown = format!("{:?} {:?}", tls, options("zk:2281").tls(tls.clone()));
    assert!(key.lines().all(|line| line.is_empty() || !shown.contains(line)), "{shown}");

    for host in ["-zk", "zk..example", "zk\u{e4}"] {
        let options = options(&format!("zk1:2281,{host}:2281")).tls(tls.clone());
        let error = soon(Client::connect(options)).await.map(drop).unwrap_err();
        says(&error, ErrorKind::InvalidInput, &["cannot be named in a certificate", &format!("{host:?}")]);
    }
}
