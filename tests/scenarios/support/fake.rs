//! A server that opens sessions, and then gives any answer that a test wants, however wrong.

use ground::wire::codec::{Reader, Writer};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Once};
use std::thread;
use zklock::ClientOptions;
use zklock::further::Tls;

const PING: i32 = -2;
const LONGEST: usize = 1 << 20;

/// These bytes with their length in front.
pub(crate) fn buffer(bytes: &[u8]) -> Vec<u8> {
    Writer(bytes.to_vec()).framed()
}

/// A frame with this in it.
pub(crate) fn frame(parts: &[&[u8]]) -> Vec<u8> {
    buffer(&parts.concat())
}

/// The greeting for a new session.
pub(crate) fn greeting(timeout: i32, session: i64) -> Vec<u8> {
    frame(&[&[0; 4], &timeout.to_be_bytes(), &session.to_be_bytes(), &[0, 0, 0, 16], &[7; 16], &[0]])
}

/// A reply, or with the number -1 an event.
pub(crate) fn reply(number: i32, error: i32, body: &[u8]) -> Vec<u8> {
    frame(&[&number.to_be_bytes(), &9_i64.to_be_bytes(), &error.to_be_bytes(), body])
}

/// The parts of a request that matter here.
#[derive(Debug, Default)]
pub(crate) struct Request {
    pub(crate) number: i32,
    pub(crate) operation: i32,
    /// Its path, if it has exactly one.
    pub(crate) path: Vec<u8>,
}

impl Request {
    fn read(request: &[u8]) -> Self {
        let mut reader = Reader(request);
        let (number, operation) = (reader.int().unwrap_or(0), reader.int().unwrap_or(0));
        Self { number, operation, path: reader.buffer().unwrap_or_default().to_vec() }
    }
}

/// The server's answer.
#[derive(Clone)]
pub(crate) enum Says {
    Once(Vec<u8>),
    /// Again and again, as long as anybody listens.
    Endlessly(Vec<u8>),
}

/// The transport by which clients reach it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Over {
    Tcp,
    Tls,
}

/// The server. Its threads end with their connections, and it listens until it is dropped.
pub(crate) struct Fake {
    over: Over,
    address: SocketAddr,
    has_ended: Arc<AtomicBool>,
    accepted: Arc<AtomicUsize>,
    sent: Arc<AtomicUsize>,
}

impl Fake {
    /// A server with this greeting, which answers each request.
    pub(crate) fn start(
        over: Over,
        greeting: &[u8],
        answer: impl Fn(&Request) -> Says + Send + Sync + Clone + 'static,
    ) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (accepted, sent) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let has_ended = Arc::<AtomicBool>::default();
        let fake = Self {
            over,
            address,
            has_ended: has_ended.clone(),
            accepted: accepted.clone(),
            sent: sent.clone(),
        };
        let greeting = greeting.to_vec();
        thread::spawn(move || {
            let goes_on = |_: &TcpStream| !has_ended.load(Ordering::SeqCst);
            for stream in listener.incoming().map_while(Result::ok).take_while(goes_on) {
                accepted.fetch_add(1, Ordering::SeqCst);
                let (greeting, answer, sent) = (greeting.clone(), answer.clone(), sent.clone());
                thread::spawn(move || match over {
                    Over::Tcp => serve(stream, &greeting, &answer, &sent),
                    Over::Tls => {
                        let tls = ServerConnection::new(IDENTITY.server.clone()).map_err(io::Error::other)?;
                        serve(StreamOwned::new(tls, stream), &greeting, &answer, &sent)
                    }
                });
            }
        });
        fake
    }

    /// A server that behaves well until something is requested.
    pub(crate) fn that_opens(
        over: Over,
        answer: impl Fn(&Request) -> Says + Send + Sync + Clone + 'static,
    ) -> Self {
        Self::start(over, &greeting(4000, 77), move |request| match request.number {
            PING => Says::Once(reply(PING, 0, &[])),
            _ => answer(request),
        })
    }

    pub(crate) fn connect_string(&self) -> String {
        self.address.to_string()
    }

    /// The options for its clients.
    pub(crate) fn options(&self) -> ClientOptions {
        let options = super::options(&self.connect_string());
        match self.over {
            Over::Tcp => options,
            Over::Tls => options.tls(Tls::new(&IDENTITY.certificate).unwrap()),
        }
    }

    /// How many connections there have been.
    pub(crate) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    /// How many bytes its clients have taken.
    pub(crate) fn sent(&self) -> usize {
        self.sent.load(Ordering::SeqCst)
    }
}

/// A self-signed certificate and its key, in PEM, made by OpenSSL.
pub(crate) fn certificate() -> (String, String) {
    let mut command = Command::new("openssl");
    command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
    command.args(["-subj", "/CN=fake", "-addext", "basicConstraints=CA:FALSE"]);
    let made = command.args(["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "-", "-out", "-"]).output();
    let text = String::from_utf8(made.unwrap().stdout).unwrap();
    let (key, certificate) = text.split_at(text.find("-----BEGIN CERTIFICATE").unwrap());
    (certificate.to_owned(), key.to_owned())
}

/// The identity of all of them over TLS.
struct Identity {
    certificate: String,
    server: Arc<ServerConfig>,
}

static IDENTITY: LazyLock<Identity> = LazyLock::new(|| {
    let (certificate, key) = certificate();
    let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let server = ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key).unwrap();
    Identity { certificate, server: server.into() }
});

impl Drop for Fake {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::SeqCst);
        // The thread that listens only ends after another connection.
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(
    mut stream: impl Read + Write,
    greeting: &[u8],
    answer: &impl Fn(&Request) -> Says,
    sent: &AtomicUsize,
) -> io::Result<()> {
    let mut is_first = true;
    loop {
        let mut length = [0; 4];
        stream.read_exact(&mut length)?;
        let says = if &length == b"srvr" {
            Says::Endlessly(vec![b'x'; 4096])
        } else {
            // No client sends more than this at once.
            let length = usize::try_from(i32::from_be_bytes(length)).ok().filter(|length| *length < LONGEST);
            let mut request = vec![0; length.ok_or(io::ErrorKind::InvalidData)?];
            stream.read_exact(&mut request)?;
            if is_first { Says::Once(greeting.to_vec()) } else { answer(&Request::read(&request)) }
        };
        is_first = false;
        match says {
            Says::Once(bytes) => write(&mut stream, &bytes, sent)?,
            Says::Endlessly(bytes) => loop {
                write(&mut stream, &bytes, sent)?;
            },
        }
    }
}

fn write(stream: &mut impl Write, bytes: &[u8], sent: &AtomicUsize) -> io::Result<()> {
    stream.write_all(bytes)?;
    sent.fetch_add(bytes.len(), Ordering::SeqCst);
    Ok(())
}

/// How often our code or the client library has panicked in this process since the first call of this. Otherwise a panic in a
/// task would go unnoticed.
pub(crate) fn panics() -> usize {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    static COUNTING: Once = Once::new();
    COUNTING.call_once(|| {
        let others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let place = info.location().map_or("", |location| location.file());
            if ["zookeeper-client-", "zklock-core/", "stand-ins/"].iter().any(|part| place.contains(part)) {
                COUNT.fetch_add(1, Ordering::SeqCst);
            }
            others(info);
        }));
    });
    COUNT.load(Ordering::SeqCst)
}
