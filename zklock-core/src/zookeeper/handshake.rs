//! Why no session could be opened over TLS. The client library does not say why a handshake failed.

use crate::connect::tls::Tls;
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, CertificateError, ClientConnection, ProtocolVersion};
use std::io;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

/// Does a handshake with a server that has accepted the connection, and returns what happened.
pub(crate) async fn look(tls: &Tls, host: &str, stream: TcpStream, deadline: Instant) -> String {
    let loaded = match timeout_at(deadline, tls.current()).await {
        Ok(Ok(loaded)) => loaded,
        Ok(Err(problem)) => return format!("was not asked: {problem}"),
        Err(_) => return "was not asked: TLS: the files could not be read in time".to_owned(),
    };
    let connection = match ServerName::try_from(host) {
        Ok(name) => ClientConnection::new(loaded.config.clone(), name.to_owned()),
        Err(_) => return "cannot be named in a certificate".to_owned(),
    };
    let mut connection = match connection {
        Ok(connection) => connection,
        Err(error) => return error.to_string(),
    };
    match timeout_at(deadline, shake(&mut connection, &stream)).await {
        Ok(Err(error)) => match error.downcast() {
            Ok(error) => explained(&error, loaded.identity_pem.is_some()),
            Err(error) => format!("breaks off the TLS handshake ({error}): is this a port without TLS?"),
        },
        Err(_) if connection.is_handshaking() => {
            "accepts connections but does not answer the TLS handshake: is this a port without TLS?"
                .to_owned()
        }
        Ok(Ok(())) | Err(_) => {
            "shakes hands over TLS but opens no session: is it ZooKeeper, and has the ensemble a leader?"
                .to_owned()
        }
    }
}

/// Waits until the server has accepted us, as far as it tells. If TLS itself gives a reason, the error contains it as a
/// [`rustls::Error`].
async fn shake(connection: &mut ClientConnection, stream: &TcpStream) -> io::Result<()> {
    let mut chunk = [0; 4096];
    loop {
        let mut out = Vec::new();
        while connection.wants_write() {
            connection.write_tls(&mut out)?;
        }
        send(stream, &out).await?;
        // In TLS 1.3 the server judges our certificate after we are done, so wait for it to send
        // something more.
        let last_word = connection.protocol_version() == Some(ProtocolVersion::TLSv1_3);
        let was_handshaking = connection.is_handshaking();
        if !was_handshaking && !last_word {
            return Ok(());
        }
        stream.readable().await?;
        match stream.try_read(&mut chunk) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                let mut rest = &chunk[..count];
                while !rest.is_empty() {
                    connection.read_tls(&mut rest)?;
                    connection.process_new_packets().map_err(io::Error::other)?;
                }
                if !was_handshaking {
                    return Ok(());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

async fn send(stream: &TcpStream, mut rest: &[u8]) -> io::Result<()> {
    while !rest.is_empty() {
        stream.writable().await?;
        match stream.try_write(rest) {
            Ok(count) => rest = &rest[count..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn explained(error: &rustls::Error, has_identity: bool) -> String {
    use rustls::Error::{AlertReceived, InvalidCertificate, InvalidMessage, PeerIncompatible};
    match error {
        InvalidCertificate(problem) => mistrusted(problem),
        AlertReceived(alert) => refused(*alert, has_identity),
        InvalidMessage(_) => "answers, but not in TLS: is this a port without TLS?".to_owned(),
        PeerIncompatible(problem) => {
            format!("cannot agree with us on how to speak TLS: {problem:?}")
        }
        error => format!("fails the TLS handshake: {error}"),
    }
}

/// Describes what is wrong with the server's certificate.
fn mistrusted(problem: &CertificateError) -> String {
    const REMEDY: &str = "renew it, or set this machine's clock right";
    match problem {
        CertificateError::UnknownIssuer => {
            "has a certificate that comes from none of the given authorities: give the one that issued it"
                .to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("has a certificate for another name ({problem}): use a name that the certificate is for")
        }
        CertificateError::ExpiredContext { time, not_after } => {
            let ago = span(time.as_secs().saturating_sub(not_after.as_secs()));
            format!("has a certificate that expired {ago} ago: {REMEDY}")
        }
        CertificateError::NotValidYetContext { time, not_before } => {
            let until = span(not_before.as_secs().saturating_sub(time.as_secs()));
            format!("has a certificate that is not valid for another {until}: {REMEDY}")
        }
        CertificateError::Revoked => "has a certificate that was revoked: renew it".to_owned(),
        problem => format!("has a certificate that is refused: {problem}"),
    }
}

/// Returns why the server may have refused us.
fn refused(alert: AlertDescription, has_identity: bool) -> String {
    let advice = match alert {
        AlertDescription::ProtocolVersion | AlertDescription::InsufficientSecurity => {
            "does it speak TLS 1.2 or later?"
        }
        _ if !has_identity => "does it want a client certificate? Then give one with its key",
        AlertDescription::CertificateExpired => "the client certificate has expired: renew it",
        _ => {
            "does it trust the authority of the client certificate, and is that certificate valid now? Give one that is, \
             or have its authority added to the server's"
        }
    };
    format!("refuses the TLS handshake ({alert:?}): {advice}")
}

/// This many seconds, in the largest unit that fits.
fn span(seconds: u64) -> String {
    let units = [(86_400, "days"), (3600, "hours"), (60, "minutes")];
    let (length, unit) =
        units.into_iter().find(|(length, _)| seconds >= 2 * length).unwrap_or((1, "seconds"));
    format!("{} {unit}", seconds / length)
}
