//! Credentials for another process of the same user, with their passwords.

use super::{Credentials, Login, Scheme, Source, invalid};
use crate::base::error::Error;
use crate::base::parts::Parts;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

const DIGEST: u8 = b'd';
const SASL: u8 = b's';
const KERBEROS: u8 = b'k';

impl Credentials {
    pub(crate) fn pass_on(&self, parts: &mut Parts) {
        match &self.0 {
            Source::Given(scheme, login) => parts.text(letter(*scheme), login.as_bytes()),
            Source::File(scheme, file, _) => parts.file(letter(*scheme), file),
            #[cfg(feature = "kerberos")]
            Source::Kerberos(kerberos) => parts.text(KERBEROS, kerberos.service_and_host().as_bytes()),
        }
    }

    /// Reads the credentials of a part; `None` if the part contains something else.
    pub(crate) fn passed_on(letter: u8, text: &[u8]) -> Option<Result<Self, Error>> {
        let scheme = match letter.to_ascii_lowercase() {
            DIGEST => Scheme::Digest,
            SASL => Scheme::Sasl,
            KERBEROS => return Some(of_kerberos(text)),
            _ => return None,
        };
        if letter.is_ascii_uppercase() {
            return Some(Self::of_file(scheme, Path::new(OsStr::from_bytes(text))));
        }
        let login = std::str::from_utf8(text).map_err(|_| "they are not UTF-8");
        let login = login.and_then(|text| Login::parse(scheme, text));
        let login = login.map_err(|problem| invalid("the credentials", problem));
        Some(login.map(|login| Self(Source::Given(scheme, Arc::new(login)))))
    }
}

fn letter(scheme: Scheme) -> u8 {
    match scheme {
        Scheme::Digest => DIGEST,
        Scheme::Sasl => SASL,
    }
}

fn of_kerberos(text: &[u8]) -> Result<Credentials, Error> {
    let text = String::from_utf8_lossy(text);
    let (service, host) =
        text.split_once('/').map_or((&*text, None), |(service, host)| (service, Some(host)));
    Credentials::kerberos(service, host)
}
