//! Keys that are encrypted.

use super::{anonymous, strict};
use crate::support::{options, says, soon};
use std::fs::{read_to_string, write};
use zklock::further::{PassPhrase, Tls};
use zklock::{Client, ErrorKind};

const PASS_PHRASE: &str = "s3cret of the k\u{e9}y";

/// The ciphers with which OpenSSL can encrypt keys and which zklock can read.
const COMMANDS: [(&str, &[&str]); 4] = [
    ("genpkey-256.key", &["pkey", "-aes256"]),
    ("aes-128.key", &["pkcs8", "-topk8", "-v2", "aes-128-cbc"]),
    ("aes-256.key", &["pkcs8", "-topk8", "-v2", "aes-256-cbc", "-v2prf", "hmacWithSHA512"]),
    ("scrypt.key", &["pkcs8", "-topk8", "-scrypt", "-scrypt_N", "1024"]),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_opens_with_its_pass_phrase() {
    let (files, hosts) = (strict().certificates(), strict().tls_connect_string());
    let certificate = read_to_string(files.client()).unwrap();
    let pass_phrase = || PassPhrase::new(PASS_PHRASE).unwrap();
    for (name, command) in COMMANDS {
        let key = read_to_string(files.encrypted_key(name, command, PASS_PHRASE)).unwrap();
        assert!(key.starts_with("-----BEGIN ENCRYPTED PRIVATE KEY-----"), "{key}");
        // With the certificate in the same text, as is usual.
        let both = certificate.clone() + &key;
        let tls = anonymous(strict()).pass_phrase(pass_phrase()).identity(&both, &both).unwrap();
        let client = soon(Client::connect(options(&hosts).tls(tls.clone()))).await.unwrap();
        soon(client.close()).await.unwrap();
        assert!(!format!("{tls:?} {:?}", pass_phrase()).contains("s3cret"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pass_phrase_may_be_in_a_file_which_is_read_anew() {
    let files = strict().certificates();
    let key = files.encrypted_key("in-file.key", COMMANDS[0].1, PASS_PHRASE);
    let file = key.with_extension("pass");
    write(&file, format!("{PASS_PHRASE}\nmore\n")).unwrap();
    let tls = Tls::from_file(files.authority()).unwrap();
    let tls = tls.pass_phrase(PassPhrase::from_file(&file).unwrap());
    let tls = tls.identity_from_files(files.client(), &key).unwrap();
    let options = options(&strict().tls_connect_string()).tls(tls);
    let client = soon(Client::connect(options.clone())).await.unwrap();
    soon(client.close()).await.unwrap();

    write(&file, "n0t-this-one\n").unwrap();
    let error = soon(Client::connect(options)).await.map(drop).unwrap_err();
    says(&error, ErrorKind::Refused, &[key.to_str().unwrap(), "does not open with the pass phrase"]);
    assert!(!format!("{error} {error:?}").contains("n0t"), "{error:?}");
    write(&file, "").unwrap();
    let error = PassPhrase::from_file(&file).unwrap_err();
    says(&error, ErrorKind::InvalidInput, &[file.to_str().unwrap(), "is empty"]);
    let error = PassPhrase::from_env("ZKLOCK_TEST_NOT_SET").unwrap_err();
    says(&error, ErrorKind::InvalidInput, &["ZKLOCK_TEST_NOT_SET", "not set"]);
}
