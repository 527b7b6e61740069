//! Messages for users, word for word as in the documentation.

use super::{anonymous, builder, intruder, known, strict, with};
use crate::support::texts::{are_documented, line};
use crate::support::{options, soon};
use std::fs::{read_to_string, write};
use std::time::Duration;
use tokio::task::JoinSet;
use zklock::further::{PassPhrase, Tls};
use zklock::{Client, ClientOptions};

/// Long enough for a busy machine to check all of them at once.
const PATIENCE: Duration = Duration::from_secs(10);
/// Another way to write 127.0.0.1, which is in no certificate.
const OTHER_NAME: &str = "0x7f000001";

/// Replaces the parts of a line that differ in each run.
fn general(line: &str, hosts: &str) -> String {
    let port = hosts.rsplit_once(':').map(|(_, port)| format!(":{port}")).unwrap();
    let folder = strict().certificates().authority();
    let folder = format!("{}/", folder.parent().unwrap().display());
    line.replace(&port, ":PORT")
        .replace("127.0.0.1:PORT", "HOST:PORT")
        .replace(OTHER_NAME, "HOST")
        .replace(&format!("{PATIENCE:?}"), "TIMEOUT")
        .replace(&folder, "/etc/zookeeper/")
}

/// The lines of these cases, which run at the same time.
async fn connecting(cases: Vec<(&'static str, String, ClientOptions)>) -> Vec<String> {
    let mut all = JoinSet::new();
    for (case, hosts, options) in cases {
        all.spawn(async move {
            let client = soon(Client::connect(options.connect_timeout(PATIENCE))).await;
            general(&line(case, client.map(drop)), &hosts)
        });
    }
    all.join_all().await
}

/// The lines of problems that are noticed before anything is sent.
fn giving() -> Vec<String> {
    let files = strict().certificates();
    let damaged = files.client().with_file_name("damaged.pem");
    let text = read_to_string(files.client()).unwrap();
    write(&damaged, &text[..text.len() / 2]).unwrap();
    let locked = files.encrypted_key("locked.key", &["pkey", "-aes256"], "correct horse");
    let old = files.encrypted_key("old.key", &["ec", "-aes256"], "correct horse");
    let pass_phrase = |text: &str| PassPhrase::new(text).unwrap();
    let tls = || Tls::from_file(files.authority()).unwrap();
    let cases = [
        ("damaged file", Tls::from_file(&damaged)),
        ("file missing", Tls::from_file(files.client().with_file_name("missing.pem"))),
        ("no PEM file of authorities", Tls::from_file(files.client_key())),
        ("key of another certificate", tls().identity_from_files(files.client(), files.intruder_key())),
        ("pass phrase missing", tls().identity_from_files(files.client(), &locked)),
        (
            "wrong pass phrase",
            tls().pass_phrase(pass_phrase("wrong")).identity_from_files(files.client(), &locked),
        ),
        (
            "key encrypted in the traditional form",
            tls().pass_phrase(pass_phrase("correct horse")).identity_from_files(files.client(), &old),
        ),
    ];
    let lines = cases.map(|(case, tls)| general(&line(case, tls.map(drop)), "HOST:PORT"));
    lines.to_vec()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_text_is_that_of_the_documentation() {
    let files = strict().certificates();
    let (hosts, plain) = (strict().tls_connect_string(), strict().connect_string());
    let stranger = Tls::from_file(files.stranger()).unwrap();
    let (certificate, key) = files.dated("expired", -72, -49);
    let expired = with(strict(), certificate, key);
    let misnamed = options(&hosts.replace("127.0.0.1", OTHER_NAME));
    let mut lines = connecting(vec![
        ("all is right", hosts.clone(), options(&hosts).tls(known(strict()))),
        ("host that is not in the server's certificate", hosts.clone(), misnamed.tls(known(strict()))),
        ("server's certificate of an unknown authority", hosts.clone(), options(&hosts).tls(stranger)),
        ("client certificate missing", hosts.clone(), options(&hosts).tls(anonymous(strict()))),
        ("client certificate of a foreign authority", hosts.clone(), options(&hosts).tls(intruder(strict()))),
        ("client certificate expired", hosts.clone(), options(&hosts).tls(expired)),
        ("client without TLS on a TLS port", hosts.clone(), options(&hosts)),
        ("client with TLS on a port without", plain.clone(), options(&plain).tls(known(strict()))),
    ])
    .await;
    lines.extend(giving());

    let server = builder().start();
    let (files, hosts) = (server.certificates(), server.tls_connect_string());
    for (case, from, until) in
        [("server's certificate expired", -72, -49), ("server's certificate not yet valid", 49, 72)]
    {
        let (certificate, key) = files.dated("other", from, until);
        files.serve(&certificate, &key);
        server.server(0).restart();
        lines.extend(connecting(vec![(case, hosts.clone(), options(&hosts).tls(known(&server)))]).await);
    }

    are_documented("TLS\n", lines);
}
