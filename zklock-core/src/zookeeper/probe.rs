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
/// accepts both is right for both, and so may be one that is slow to answer.
pub(crate) async fn is_for_others(is_tls: bool, host: &str, port: u16) -> bool {
    let speaks_tls = || answers(host, port, &HELLO, is_tls_record);
    let speaks_plainly = || answers(host, port, b"srvr", is_plain);
    if is_tls {
        return is_plain_alone(speaks_tls(), speaks_plainly()).await;
    }
    is_tls_alone([(speaks_tls(), speaks_plainly()), (speaks_tls(), speaks_plainly())]).await
}

async fn is_plain_alone(
    speaks_tls: impl Future<Output = Option<bool>>,
    speaks_plainly: impl Future<Output = Option<bool>>,
) -> bool {
    speaks_tls.await == Some(false) && speaks_plainly.await == Some(true)
}

/// A port with TLS waits for more than the four bytes of a question in plain text. Its silence must be told from that of
/// a server that pauses, so a second silence is needed, and answers before and between.
async fn is_tls_alone(
    rounds: [(impl Future<Output = Option<bool>>, impl Future<Output = Option<bool>>); 2],
) -> bool {
    for (speaks_tls, speaks_plainly) in rounds {
        if speaks_tls.await != Some(true) || speaks_plainly.await == Some(true) {
            return false;
        }
    }
    true
}

/// Whether the answer is of that kind. `None` means that there was none, which says nothing about a server that is busy.
async fn answers(host: &str, port: u16, question: &[u8], is_so: fn(&[u8]) -> Option<bool>) -> Option<bool> {
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
    // A server that cannot read the question breaks the connection off, and does not always close it first.
    timeout(ANSWER, answer).await.ok().map(|answer: io::Result<bool>| answer.unwrap_or(false))
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
    use std::future::ready;
    use tokio::net::TcpListener;

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

    #[tokio::test]
    async fn a_port_is_for_plain_text_alone_only_if_it_refuses_tls() {
        let judge = |speaks_tls, speaks_plainly| is_plain_alone(ready(speaks_tls), ready(speaks_plainly));
        assert!(judge(Some(false), Some(true)).await);
        // The server may be busy.
        assert!(!judge(None, Some(true)).await);
        assert!(!judge(Some(true), Some(true)).await);
        assert!(!judge(Some(false), Some(false)).await);
        assert!(!judge(Some(false), None).await);
    }

    #[tokio::test]
    async fn a_port_is_for_tls_alone_only_if_it_answers_between_two_silences() {
        let judge = |rounds: [(Option<bool>, Option<bool>); 2]| {
            is_tls_alone(
                rounds.map(|(speaks_tls, speaks_plainly)| (ready(speaks_tls), ready(speaks_plainly))),
            )
        };
        assert!(judge([(Some(true), None), (Some(true), None)]).await);
        assert!(judge([(Some(true), Some(false)), (Some(true), Some(false))]).await);
        // Its pause is over after the first question.
        assert!(!judge([(Some(true), None), (Some(true), Some(true))]).await);
        assert!(!judge([(Some(true), None), (None, None)]).await);
        assert!(!judge([(Some(false), None), (Some(true), None)]).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_port_that_accepts_a_question_and_is_silent_has_not_answered_it() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(answers("127.0.0.1", port, b"srvr", is_plain).await, None);
    }
}
