//! Whether a port uses TLS, if that is certain. A client that expects the other kind can wait for ever.

use crate::base::sockets;
use std::io;
use std::time::Duration;
use tokio::time::timeout;

/// How long a port may take to answer one question.
const ANSWER: Duration = Duration::from_millis(700);
/// The beginnings of ZooKeeper's answers. It answers even if it does not allow the command, or has no quorum.
const PLAIN_ANSWERS: [&[u8]; 4] = [
    b"Zookeeper version",
    b"ClickHouse Keeper version",
    b"srvr is not executed",
    b"This ZooKeeper instance is not",
];
const LONGEST_PLAIN_ANSWER: usize = 30;
/// The kinds of record that a TLS answer begins with: an alert, a handshake.
const TLS_RECORDS: [u8; 2] = [0x15, 0x16];
/// The first bytes of a TLS handshake, so that the question can be asked without the feature `tls`: a record with a TLS
/// 1.2 `ClientHello` without extensions. Whatever a server thinks of it, it answers in TLS.
const HELLO: [u8; 56] = {
    let mut hello = [0; 56];
    let head = [0x16, 3, 1, 0, 51, 1, 0, 0, 47, 3, 3];
    let mut at = 0;
    while at < head.len() {
        hello[at] = head[at];
        at += 1;
    }
    // First 32 bytes that would be random in a real handshake, and no session to resume. Then four cipher suites, of which
    // every server knows one, and no compression.
    let tail = [0, 8, 0xc0, 0x2f, 0xc0, 0x2b, 0, 0x9c, 0, 0x2f, 1, 0];
    at = 0;
    while at < tail.len() {
        hello[44 + at] = tail[at];
        at += 1;
    }
    hello
};

/// Whether this port is certain to refuse every client with TLS (if `is_tls`), or every client without. A port that
/// accepts both is right for both.
pub(crate) async fn is_for_others(is_tls: bool, host: &str, port: u16) -> bool {
    let speaks_tls = answers(host, port, &HELLO, is_tls_record).await;
    // If this is already certain, do not ask in plain text: a port that expects TLS could take its time to answer.
    if speaks_tls == is_tls {
        return false;
    }
    let speaks_plainly = answers(host, port, b"srvr", is_plain).await;
    speaks_plainly == is_tls
}

/// Whether the answer is certainly of that kind.
async fn answers(host: &str, port: u16, question: &[u8], is_so: fn(&[u8]) -> Option<bool>) -> bool {
    let answer = async {
        let stream = sockets::connect((host, port)).await?;
        stream.writable().await?;
        // The buffer of a new connection has room for it.
        stream.try_write(question)?;
        let mut answer = Vec::new();
        loop {
            stream.readable().await?;
            let mut chunk = [0; LONGEST_PLAIN_ANSWER];
            match stream.try_read(&mut chunk) {
                Ok(0) => return Ok(false),
                Ok(count) => answer.extend_from_slice(&chunk[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            if let Some(is_so) = is_so(&answer) {
                return Ok(is_so);
            }
        }
    };
    matches!(timeout(ANSWER, answer).await, Ok(Ok::<_, io::Error>(true)))
}

/// `None` means that more must be read.
fn is_tls_record(answer: &[u8]) -> Option<bool> {
    let [kind, major, ..] = answer else { return None };
    Some(TLS_RECORDS.contains(kind) && *major == 3)
}

fn is_plain(answer: &[u8]) -> Option<bool> {
    if PLAIN_ANSWERS.iter().any(|plain| answer.starts_with(plain)) {
        return Some(true);
    }
    (answer.len() >= LONGEST_PLAIN_ANSWER).then_some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_told_by_its_first_bytes() {
        assert_eq!(is_tls_record(&[0x16]), None);
        assert_eq!(is_tls_record(&[0x15, 3, 3]), Some(true));
        assert_eq!(is_tls_record(b"Zookeeper"), Some(false));
        assert_eq!(is_plain(b"Zookeeper versio"), None);
        assert_eq!(is_plain(b"Zookeeper version: 3.9"), Some(true));
        assert_eq!(is_plain(&[0x15; LONGEST_PLAIN_ANSWER]), Some(false));
    }

    /// The lengths in it are right, and nothing follows.
    #[test]
    fn the_hello_is_whole() {
        assert_eq!(usize::from(HELLO[4]), HELLO.len() - 5);
        assert_eq!(usize::from(HELLO[8]), HELLO.len() - 9);
        assert_eq!(HELLO[44..46], [0, 8]);
        assert_eq!(HELLO[54..], [1, 0]);
    }
}
