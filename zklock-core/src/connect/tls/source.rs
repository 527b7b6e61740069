//! Where PEM comes from, and what can be wrong with it.

use crate::base::error::{Error, ErrorKind};
use crate::base::files;
use crate::base::message::{Given, Message};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::path::Path;
use std::sync::Arc;

/// Larger than any bundle of authorities with their lists of revoked certificates.
const LONGEST_FILE: u64 = 16 * 1024 * 1024;
/// The variable that names another file than the system's.
const SYSTEM_VARIABLE: &str = "SSL_CERT_FILE";
/// Where distributions keep the authorities that they trust: Debian, Arch and Alpine; Fedora and Red Hat; SUSE; others.
const SYSTEM_FILES: &[&str] = &[
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// One of the inputs of TLS.
#[derive(Clone)]
pub(super) enum Source {
    Text(Arc<str>),
    /// Read again for each connection.
    File(Arc<Path>),
}

impl Source {
    pub(super) fn of_the_system() -> Result<Self, Error> {
        if let Some(file) = std::env::var_os(SYSTEM_VARIABLE).filter(|file| !file.is_empty()) {
            return Ok(Self::File(Path::new(&file).into()));
        }
        let file = SYSTEM_FILES.iter().map(Path::new).find(|file| file.is_file());
        file.map(|file| Self::File(file.into())).ok_or_else(|| {
            let problem = format!(
                "are in none of the usual files ({}): install ca-certificates, or let {SYSTEM_VARIABLE} name a PEM file",
                SYSTEM_FILES.join(", ")
            );
            invalid("the list of the system's authorities", &problem)
        })
    }

    /// Adds the file's name, so that an error says which file it is about.
    pub(super) fn named(&self, what: &str) -> String {
        match self {
            Self::Text(_) => what.to_owned(),
            Self::File(file) => format!("{what} in the file {file:?}"),
        }
    }

    pub(super) fn read(&self, what: &str) -> Result<String, Error> {
        match self {
            Self::Text(text) => Ok(text.as_ref().to_owned()),
            Self::File(file) => files::text(file, LONGEST_FILE).map_err(|problem| invalid(what, &problem)),
        }
    }

    pub(super) fn pass_on(&self, key: &str, message: Message) -> Message {
        match self {
            Self::Text(text) => message.and(key, text),
            Self::File(file) => message.file(key, file),
        }
    }

    pub(super) fn given(given: &Given<'_>) -> Result<Self, Error> {
        match *given {
            Given::Text(text) => Ok(Self::Text(text.into())),
            Given::File(file) => Ok(Self::File(file.into())),
            Given::Variable(_) => Err(Message::strange()),
        }
    }

    /// Returns the error if there is no part with this label.
    pub(super) fn missing(&self, what: &str, pem: &str, label: &str) -> Error {
        let problem = match self {
            _ if pem.contains("-----BEGIN ") => {
                format!("has no part that begins with -----BEGIN {label}-----: is it the right file?")
            }
            Self::Text(_) if pem.trim().is_empty() => "is empty: pass the content of a PEM file".to_owned(),
            Self::Text(_) => "is not PEM: pass the content of the file, not its name".to_owned(),
            Self::File(_) if pem.trim().is_empty() => "is empty: name a PEM file".to_owned(),
            Self::File(_) => {
                let tool = if label == "CERTIFICATE" { "x509" } else { "pkey" };
                format!("is not PEM: convert it, such as with: openssl {tool} -inform der -in FILE")
            }
        };
        invalid(what, &problem)
    }

    /// The reader's own error is left out, because it may contain parts of a key.
    pub(super) fn damaged(&self, what: &str) -> Error {
        match self {
            Self::Text(_) => invalid(what, "is damaged PEM: pass the content of the PEM file unchanged"),
            Self::File(_) => invalid(what, "is damaged PEM: restore the file, or have it issued again"),
        }
    }
}

pub(super) fn read_certificates(
    source: &Source,
    what: &str,
    pem: &str,
) -> Result<Vec<CertificateDer<'static>>, Error> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match read {
        Ok(certificates) if certificates.is_empty() => Err(source.missing(what, pem, "CERTIFICATE")),
        Ok(certificates) => Ok(certificates),
        Err(_) => Err(source.damaged(what)),
    }
}

pub(super) fn invalid(what: &str, problem: &str) -> Error {
    Error::new(ErrorKind::InvalidInput, format!("TLS: {what} {problem}"))
}

#[cfg(test)]
mod tests {
    use super::super::Tls;
    use crate::base::error::ErrorKind;

    #[test]
    fn what_is_no_certificate_is_told_apart() {
        for (text, says) in [
            ("", "is empty"),
            (" \n", "is empty"),
            ("/etc/ssl/ca.pem", "not its name"),
            ("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "-----BEGIN CERTIFICATE-----"),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n", "damaged"),
            ("-----BEGIN CERTIFICATE-----\n=$!\n-----END CERTIFICATE-----\n", "damaged"),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "cannot be used"),
        ] {
            let error = Tls::new(text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains(says), "{text:?}: {error}");
            assert!(error.to_string().contains("the list of authorities"), "{error}");
        }
    }

    #[test]
    fn a_file_that_will_not_do_is_named() {
        let file = std::env::temp_dir().join(format!("zklock-tls-source-{}", std::process::id()));
        for (text, says) in [("", "is empty"), ("\u{30}\u{82}", "openssl x509 -inform der")] {
            std::fs::write(&file, text).unwrap();
            let error = Tls::from_file(&file).unwrap_err();
            let said = error.to_string();
            assert!(said.contains(says) && said.contains(file.to_str().unwrap()), "{said}");
        }
        std::fs::remove_file(&file).unwrap();
        for (file, says) in [(file.as_path(), "No such file"), (&std::env::temp_dir(), "directory")] {
            let error = Tls::from_file(file).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains(says), "{error}");
        }
    }
}
