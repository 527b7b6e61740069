//! The private key, which may be encrypted.

use super::pass_phrase::PassPhrase;
use super::source::{Source, invalid};
use crate::base::error::Error;
use pkcs8::der::pem::LineEnding;
use pkcs8::{EncryptedPrivateKeyInfoRef, SecretDocument};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;

const PLAIN: &str = "PRIVATE KEY";
const ENCRYPTED: &str = "ENCRYPTED PRIVATE KEY";
/// How keys were encrypted before PKCS#8, with a digest that is not fit for that.
const TRADITIONAL: &str = "Proc-Type: 4,ENCRYPTED";
/// Converts a key to the form that can be read here.
const CONVERT: &str = "openssl pkcs8 -topk8 -v2 aes-256-cbc -in FILE -out NEW";

/// Returns the key, and its PEM without a pass phrase, which is the only form that the client
/// library takes.
pub(super) fn read(
    source: &Source,
    what: &str,
    pass_phrase: Option<&PassPhrase>,
) -> Result<(PrivateKeyDer<'static>, String), Error> {
    let pem = source.read(what)?;
    if pem.contains(TRADITIONAL) {
        let problem = format!("is encrypted in a form that zklock cannot read: convert it, with: {CONVERT}");
        return Err(invalid(what, &problem));
    }
    let pem = if pem.contains(&begin(ENCRYPTED)) { decrypted(source, what, &pem, pass_phrase)? } else { pem };
    let key = first_key(source, what, &pem)?;
    Ok((key, pem))
}

fn first_key(source: &Source, what: &str, pem: &str) -> Result<PrivateKeyDer<'static>, Error> {
    match PrivateKeyDer::pem_slice_iter(pem.as_bytes()).next() {
        Some(Ok(key)) => Ok(key),
        Some(Err(_)) => Err(source.damaged(what)),
        None => Err(source.missing(what, pem, PLAIN)),
    }
}

fn decrypted(
    source: &Source,
    what: &str,
    pem: &str,
    pass_phrase: Option<&PassPhrase>,
) -> Result<String, Error> {
    let Some(pass_phrase) = pass_phrase else {
        return Err(invalid(what, "has a pass phrase: give it, before the key"));
    };
    let pass_phrase = pass_phrase.read()?;
    // The PEM reader knows only the plain label.
    let start = pem.find(&begin(ENCRYPTED)).unwrap_or_default();
    let relabelled = pem[start..].replace(ENCRYPTED, PLAIN);
    let sealed = first_key(source, what, &relabelled)?;
    let foreign = || {
        invalid(what, &format!("is encrypted in a way that zklock cannot read: convert it, with: {CONVERT}"))
    };
    let sealed = EncryptedPrivateKeyInfoRef::try_from(sealed.secret_der()).map_err(|_| foreign())?;
    let wrong = || invalid(what, "does not open with the pass phrase: give the right one");
    let key: SecretDocument = sealed.decrypt(pass_phrase.as_bytes()).map_err(|error| match error {
        pkcs8::Error::EncryptedPrivateKey(pkcs8::pkcs5::Error::UnsupportedAlgorithm { .. }) => foreign(),
        // One wrong pass phrase in a few hundred decrypts to something, but that is not a key.
        _ => wrong(),
    })?;
    let pem = key.to_pem(PLAIN, LineEnding::LF).map_err(|_| wrong())?;
    Ok(pem.to_string())
}

fn begin(label: &str) -> String {
    format!("-----BEGIN {label}-----")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::ErrorKind;

    fn error_of(text: &str, pass_phrase: Option<&PassPhrase>) -> Error {
        read(&Source::Text(text.into()), "the client key", pass_phrase).map(drop).unwrap_err()
    }

    #[test]
    fn what_is_no_key_is_told_apart() {
        let sealed = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
        let traditional =
            "-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nAAAA\n";
        for (text, says) in [
            ("", "is empty"),
            ("client.key", "not its name"),
            (sealed, "has a pass phrase"),
            (traditional, "openssl pkcs8 -topk8"),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "-----BEGIN PRIVATE KEY-----"),
            ("-----BEGIN PRIVATE KEY-----\nsecret!\n-----END PRIVATE KEY-----\n", "damaged"),
        ] {
            let error = error_of(text, None);
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.to_string().contains(says), "{text:?}: {error}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
        let given = PassPhrase::new("s3cret-of-the-test").unwrap();
        let error = error_of(sealed, Some(&given));
        assert!(error.to_string().contains("openssl pkcs8 -topk8"), "{error}");
        assert!(!format!("{error} {error:?} {given:?}").contains("s3cret"), "{error}");
    }
}
