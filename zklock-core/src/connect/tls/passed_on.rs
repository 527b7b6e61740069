//! The TLS settings for another process of the same user, with the key and its pass phrase.

use super::pass_phrase::{Origin, PassPhrase};
use super::source::Source;
use super::{Sources, Tls, invalid};
use crate::base::error::Error;
use crate::base::parts::Parts;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const AUTHORITIES: u8 = b'a';
const CERTIFICATE: u8 = b'c';
const KEY: u8 = b'y';
const PASS_PHRASE: u8 = b'p';

/// The parts that the settings consist of.
#[derive(Default)]
pub(crate) struct PassedOn {
    authorities: Option<Source>,
    certificate: Option<Source>,
    key: Option<Source>,
    pass_phrase: Option<PassPhrase>,
}

impl Tls {
    pub(crate) fn pass_on(&self, parts: &mut Parts) {
        let Sources { authorities, identity, pass_phrase } = &*self.sources;
        pass_on(AUTHORITIES, authorities, parts);
        if let Some((certificate, key)) = identity {
            pass_on(CERTIFICATE, certificate, parts);
            pass_on(KEY, key, parts);
        }
        match pass_phrase.as_ref().map(|pass_phrase| &pass_phrase.0) {
            Some(Origin::Given(text)) => parts.text(PASS_PHRASE, text.as_bytes()),
            Some(Origin::File(file)) => parts.file(PASS_PHRASE, file),
            None => {}
        }
    }
}

fn pass_on(letter: u8, source: &Source, parts: &mut Parts) {
    match source {
        Source::Text(text) => parts.text(letter, text.as_bytes()),
        Source::File(file) => parts.file(letter, file),
    }
}

impl PassedOn {
    /// Takes a part; `false` if it contains something else.
    pub(crate) fn take(&mut self, letter: u8, text: &[u8]) -> Result<bool, Error> {
        let source = || match letter.is_ascii_uppercase() {
            true => Source::File(Path::new(OsStr::from_bytes(text)).into()),
            false => Source::Text(String::from_utf8_lossy(text).into()),
        };
        match letter.to_ascii_lowercase() {
            AUTHORITIES => self.authorities = Some(source()),
            CERTIFICATE => self.certificate = Some(source()),
            KEY => self.key = Some(source()),
            PASS_PHRASE => {
                self.pass_phrase = Some(match source() {
                    Source::Text(text) => PassPhrase::new(&text)?,
                    Source::File(file) => PassPhrase::from_file(file)?,
                });
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Puts all parts together; `None` if the client connects without TLS.
    pub(crate) fn tls(self) -> Result<Option<Tls>, Error> {
        let Some(authorities) = self.authorities else { return Ok(None) };
        let identity = match (self.certificate, self.key) {
            (None, None) => None,
            (Some(certificate), Some(key)) => Some((certificate, key)),
            _ => return Err(invalid("the client certificate", "or its key is missing: give both")),
        };
        Tls::checked(Sources { authorities, identity, pass_phrase: self.pass_phrase }).map(Some)
    }
}
