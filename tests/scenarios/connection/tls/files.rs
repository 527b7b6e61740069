//! Certificates that are renewed while a client runs, and settings from the environment, for example the authorities that the
//! system trusts.

use super::{AGES, strict};
use crate::support::child::{self, Process, say};
use crate::support::users::ANN;
use crate::support::{SESSION, SOON, comes_to_fail, options, says, soon};
use ground::{Certificates, Ensemble};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use zklock::further::{Access, Credentials, PassPhrase, Tls};
use zklock::{Client, ErrorKind, HoldState};

/// Long enough to outlast a restart of the server.
const LONG_SESSION: Duration = Duration::from_secs(30);

/// A client's files, which tests replace while it runs.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("zklock-tls-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Replaces each file in one step, as administrators do.
    fn take(&self, certificates: &Certificates) {
        let from = [certificates.authority(), certificates.client(), certificates.client_key()];
        for (from, to) in from.iter().zip(["ca.pem", "client.pem", "client.key"]) {
            fs::copy(from, self.file("new")).unwrap();
            fs::rename(self.file("new"), self.file(to)).unwrap();
        }
    }

    fn tls(&self) -> Tls {
        let tls = Tls::from_file(self.file("ca.pem")).unwrap();
        tls.identity_from_files(self.file("client.pem"), self.file("client.key")).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn renewed_certificates_are_used_for_the_next_connection_and_no_others() {
    let ensemble = Ensemble::builder().tls(true).start();
    let (files, folder) = (ensemble.certificates(), Folder::new("renewed"));
    folder.take(files);
    let options = options(&ensemble.tls_connect_string()).session_timeout(LONG_SESSION);
    let client = soon(Client::connect(options.clone().tls(folder.tls()))).await.unwrap();
    let hold = soon(client.mutex("/tls-renewed").unwrap().acquire()).await.unwrap();
    let session = client.session_id();

    // From now on neither side accepts the other's old certificate.
    ensemble.server(0).stop();
    files.renew();
    ensemble.server(0).start();
    ensemble.server(0).wait_until_serving(SOON);

    // With only half of the new files, the client neither connects nor uses the old ones.
    fs::copy(files.client(), folder.file("client.pem")).unwrap();
    let other = client.mutex("/tls-renewed/other").unwrap();
    let error = comes_to_fail(&other, folder.file("client.key").to_str().unwrap()).await;
    says(&error, ErrorKind::Unreachable, &["belongs to another certificate"]);
    fs::remove_file(folder.file("ca.pem")).unwrap();
    let error = comes_to_fail(&other, folder.file("ca.pem").to_str().unwrap()).await;
    says(&error, ErrorKind::Unreachable, &["the list of authorities", "No such file"]);

    folder.take(files);
    // A confirmation waits for a second at most, and the client has to connect first.
    soon(async { while hold.confirm().await.is_err() {} }).await;
    assert_eq!((hold.state(), client.session_id()), (HoldState::Held, session));
    assert_eq!(client.stats().sessions, 1);
    soon(hold.release()).await.unwrap();
    soon(client.close()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pipe_in_the_place_of_a_file_is_refused_and_not_waited_for() {
    let folder = Folder::new("pipe");
    folder.take(strict().certificates());
    let (authority, passwords) = (folder.file("ca.pem"), folder.file("passwords"));
    fs::write(&passwords, ANN.line()).unwrap();
    let by_tls = options(&strict().tls_connect_string()).tls(folder.tls());
    let by_password =
        options(&strict().connect_string()).credentials(Credentials::from_file(&passwords).unwrap());
    for (options, file) in [(by_tls, authority), (by_password, passwords)] {
        fs::remove_file(&file).unwrap();
        assert!(Command::new("mkfifo").arg(&file).status().unwrap().success());
        // If the client read the pipe nevertheless, it would block for as long as this test runs.
        let _writer = fs::OpenOptions::new().read(true).write(true).open(&file).unwrap();
        let error = soon(Client::connect(options.connect_timeout(AGES))).await.map(drop).unwrap_err();
        says(&error, ErrorKind::Refused, &[file.to_str().unwrap(), "not a regular file"]);
    }
}

const PASS_PHRASE: &str = "ZKLOCK_TEST_TLS_PASS_PHRASE";
const PASSWORD: &str = "ZKLOCK_TEST_TLS_PASSWORD";

/// The child. Its path is that of its folder.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "the child of the test below"]
async fn uses_its_environment() {
    let Some((options, folder)) = child::orders() else { return };
    let folder = PathBuf::from(folder);
    let (authority, stranger) = (folder.join("ca.pem"), folder.join("stranger.pem"));
    let tls = Tls::system().unwrap().pass_phrase(PassPhrase::from_env(PASS_PHRASE).unwrap());
    let tls = tls.identity_from_files(folder.join("client.pem"), folder.join("client.key")).unwrap();
    let options = options.tls(tls).credentials(Credentials::from_env(PASSWORD).unwrap());
    let client = soon(Client::connect(options.clone().access(Access::CreatorAll))).await.unwrap();
    soon(soon(client.mutex("/tls-environment").unwrap().acquire()).await.unwrap().release()).await.unwrap();
    soon(client.close()).await.unwrap();
    say("has locked");

    // The file with the system's authorities is read again, like any other.
    fs::rename(stranger, &authority).unwrap();
    // If the tests are not optimised, opening a key takes a while, and it is opened again and again here.
    let patient = options.clone().connect_timeout(Duration::from_secs(10));
    let error = soon(Client::connect(patient)).await.map(drop).unwrap_err();
    says(&error, ErrorKind::Unreachable, &["from none of the given authorities"]);
    fs::remove_file(&authority).unwrap();
    let error = soon(Client::connect(options.connect_timeout(AGES))).await.map(drop).unwrap_err();
    says(&error, ErrorKind::Refused, &[authority.to_str().unwrap(), "No such file"]);
    let error = Tls::system().unwrap_err();
    says(&error, ErrorKind::InvalidInput, &[authority.to_str().unwrap(), "No such file"]);
    say("is told");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_systems_authorities_and_what_is_secret_may_come_from_the_environment() {
    let (files, folder) = (strict().certificates(), Folder::new("environment"));
    folder.take(files);
    fs::copy(files.stranger(), folder.file("stranger.pem")).unwrap();
    let key = files.encrypted_key("environment.key", &["pkey", "-aes256"], "s3cret of the environment");
    fs::copy(key, folder.file("client.key")).unwrap();
    let (authority, password) = (folder.file("ca.pem"), ANN.line());
    let environment = [
        ("SSL_CERT_FILE", authority.to_str().unwrap()),
        (PASSWORD, password.trim_end()),
        (PASS_PHRASE, "s3cret of the environment"),
    ];
    let (test, path) = (concat!(module_path!(), "::uses_its_environment"), folder.0.to_str().unwrap());
    let child = Process::start_with(test, &strict().tls_connect_string(), path, SESSION, &environment);
    for says in ["has locked", "is told"] {
        assert_eq!(tokio::task::block_in_place(|| child.line()), says);
    }
    let list = ANN.operator_at(&strict().connect_string()).await.acl("/tls-environment").await;
    assert!(list.contains(&ANN.may_all()), "{list:?}");
    // `creator-all` gives each of the client's users all rights, and its certificate is one.
    let of_certificate = list.iter().filter(|acl| acl.scheme() == "x509");
    assert_eq!((of_certificate.count(), list.len()), (1, 2), "{list:?}");
}
