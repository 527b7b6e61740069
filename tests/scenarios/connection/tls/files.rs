//! Certificates that are renewed while a client runs, and those that the system trusts.

use super::{AGES, strict};
use crate::support::{SOON, options, says, soon};
use ground::{Certificates, Ensemble};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;
use zklock_core::{Client, ErrorKind, HoldState, Tls};

/// It outlasts a server that starts again.
const LONG_SESSION: Duration = Duration::from_secs(30);

/// A client's files, which somebody else replaces.
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

    /// As administrators do it: in one step for each file.
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

/// What is wrong, as soon as a try says that much.
async fn named(client: &Client, file: &Path) -> zklock_core::Error {
    let lock = client.mutex("/tls-renewed/other").unwrap();
    let name = file.to_str().unwrap();
    soon(async {
        loop {
            // At first it is still the server that is missing.
            let error = lock.try_acquire().await.unwrap_err();
            if error.to_string().contains(name) {
                break error;
            }
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn renewed_certificates_are_used_for_the_next_connection_and_no_others() {
    let ensemble = Ensemble::builder().tls(true).start();
    let (files, folder) = (ensemble.certificates(), Folder::new("renewed"));
    folder.take(files);
    let options = options(&ensemble.tls_connect_string()).session_timeout(LONG_SESSION).unwrap();
    let client = soon(Client::connect(options.clone().tls(folder.tls()))).await.unwrap();
    let hold = soon(client.mutex("/tls-renewed").unwrap().acquire()).await.unwrap();
    let session = client.session_id();

    // From now on neither side can do anything with what the other had.
    ensemble.server(0).stop();
    files.renew();
    ensemble.server(0).start();
    ensemble.server(0).wait_until_serving(SOON);

    // With half of it no connection is made, and the old is not used either.
    fs::copy(files.client(), folder.file("client.pem")).unwrap();
    let error = named(&client, &folder.file("client.key")).await;
    says(&error, ErrorKind::Unreachable, &["belongs to another certificate"]);
    fs::remove_file(folder.file("ca.pem")).unwrap();
    let error = named(&client, &folder.file("ca.pem")).await;
    says(&error, ErrorKind::Unreachable, &["the list of authorities", "No such file"]);

    folder.take(files);
    soon(hold.confirm()).await.unwrap();
    assert_eq!((hold.state(), client.session_id()), (HoldState::Held, session));
    assert_eq!(client.stats().sessions, 1);
    soon(hold.release()).await.unwrap();
    soon(client.close()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_gone_when_the_client_connects_is_named_at_once() {
    let folder = Folder::new("gone");
    folder.take(strict().certificates());
    let options = options(&strict().tls_connect_string()).connect_timeout(AGES).tls(folder.tls());
    fs::write(folder.file("client.pem"), "-----BEGIN CERTIFICATE-----\nAA").unwrap();
    let error = soon(Client::connect(options)).await.unwrap_err();
    let file = folder.file("client.pem");
    says(&error, ErrorKind::Refused, &["the client certificate", file.to_str().unwrap(), "damaged"]);
}
