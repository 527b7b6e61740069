//! In a closed ensemble, with TLS, certificates of clients, and a login by SASL: the command says what is missing, and how to give it.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use ground::{Certificates, Ensemble, or_once_more};

use crate::support::{Folder, Process, zklock};

fn closed() -> &'static Ensemble {
    static SHARED: OnceLock<Ensemble> = OnceLock::new();
    SHARED.get_or_init(|| {
        let builder = Ensemble::builder().tls(true).sasl(&[("ann", "secret")]);
        builder.configure("enforce.auth.enabled=true").configure("enforce.auth.schemes=sasl").start()
    })
}

fn certificates() -> &'static Certificates {
    closed().certificates()
}

/// All that it takes.
fn right() -> Vec<(&'static str, PathBuf)> {
    vec![
        ("ZKLOCK_HOSTS", closed().tls_connect_string().into()),
        ("ZKLOCK_SASL", "ann:secret".into()),
        ("ZKLOCK_CA", certificates().authority()),
        ("ZKLOCK_CERT", certificates().client()),
        ("ZKLOCK_KEY", certificates().client_key()),
    ]
}

/// The same, except for these. An empty one is left out.
fn but(changes: &[(&'static str, PathBuf)]) -> Command {
    let mut command = zklock();
    // For a session on a busy machine; where none can be had, it is waited for.
    command.env("ZKLOCK_CONNECT_TIMEOUT", "5s");
    for (name, value) in right().iter().chain(changes) {
        match value.as_os_str().is_empty() {
            true => command.env_remove(name),
            false => command.env(name, value),
        };
    }
    command
}

/// `ls`, `run` and `doctor` end with this, and say so.
fn says(changes: &[(&'static str, PathBuf)], code: i32, parts: &[&str]) {
    let words: [&[&str]; 3] =
        [&["ls", "/a"], &["run", "--mutex", "/a", "--", "echo", "ran"], &["doctor", "/d"]];
    let [ls, run, doctor] = words.map(|words| Process::start(but(changes).args(words))).map(Process::output);
    for (name, ended) in [("ls", &ls), ("run", &run)] {
        assert_eq!((ended.code, &*ended.out), (Some(code), ""), "{name}: {ended:?}");
        // The library looks for the reason for a second at most.
        let is_told = parts.iter().all(|part| ended.errors.contains(part));
        or_once_more(is_told, &format!("{name}, {parts:?}: {}", ended.errors));
    }
    assert_eq!((doctor.code, &*doctor.errors), (Some(1), ""), "{doctor:?}");
    let bad: String = doctor.out.lines().skip_while(|line| !line.starts_with("BAD")).collect();
    let is_told = parts.iter().all(|part| bad.contains(part));
    or_once_more(is_told, &format!("doctor, {parts:?}: {}", doctor.out));
}

#[test]
fn with_all_that_it_takes_a_command_runs() {
    let ended = Process::start(but(&[]).args(["run", "--mutex", "/right", "--", "echo", "ran"])).output();
    assert_eq!((ended.code, &*ended.out, &*ended.errors), (Some(0), "ran\n", ""));
    let ended = Process::start(but(&[]).args(["ls", "/right"])).output();
    assert_eq!((ended.code, &*ended.errors), (Some(0), ""));
    let ended = Process::start(but(&[]).args(["doctor", "/right"])).output();
    assert_eq!((ended.code, &*ended.errors), (Some(0), ""));
    assert!(ended.out.contains("the servers' certificates are checked"), "{}", ended.out);
}

#[test]
fn a_file_says_all_that_it_takes() {
    let folder = Folder::new();
    let option = |name: &str| name.trim_start_matches("ZKLOCK_").to_lowercase();
    let lines: Vec<_> =
        right().iter().map(|(name, value)| format!("{} = {}\n", option(name), value.display())).collect();
    let file = folder.file("zklock.conf", lines.concat());
    let mut command = zklock();
    command.arg("--config").arg(file).args(["run", "--mutex", "/file", "--", "echo", "ran"]);
    let ended = Process::start(&mut command).output();
    assert_eq!((ended.code, &*ended.out, &*ended.errors), (Some(0), "ran\n", ""));
}

#[test]
fn an_encrypted_key_opens_with_its_pass_phrase() {
    let command = ["pkcs8", "-topk8", "-v2", "aes-256-cbc"];
    let key = certificates().encrypted_key("of-the-command", &command, "open sesame");
    let run = |pass_phrase: &str| {
        let changes = [("ZKLOCK_KEY", key.clone()), ("ZKLOCK_PASS_PHRASE", pass_phrase.into())];
        Process::start(but(&changes).args(["run", "--mutex", "/key", "--", "echo", "ran"])).output()
    };
    let ended = run("open sesame");
    assert_eq!((ended.code, &*ended.out, &*ended.errors), (Some(0), "ran\n", ""));
    let ended = run("open barley");
    assert_eq!((ended.code, &*ended.out), (Some(64), ""), "{ended:?}");
    assert!(ended.errors.contains("pass phrase") && !ended.errors.contains("barley"), "{ended:?}");
}

#[test]
fn a_wrong_authority_is_named() {
    let parts = ["from none of the given authorities: give the one that issued it", "--ca"];
    says(&[("ZKLOCK_CA", certificates().stranger())], 123, &parts);
    says(&[("ZKLOCK_CA", "".into()), ("ZKLOCK_TLS", "1".into())], 123, &parts);
}

#[test]
fn a_wrong_name_of_a_host_is_named() {
    // Another way to write 127.0.0.1, which is in no certificate.
    let hosts = closed().tls_connect_string().replace("127.0.0.1", "0x7f000001");
    let parts = ["a certificate for another name", "localhost", "use a name that the certificate is for"];
    says(&[("ZKLOCK_HOSTS", hosts.into())], 123, &parts);
}

#[test]
fn a_wrong_password_is_named() {
    let parts = [
        "refuse the login by SASL for \"ann\": correct the user or the password",
        "ZKLOCK_SASL",
        "--sasl-file",
    ];
    says(&[("ZKLOCK_SASL", "ann:wrong".into())], 125, &parts);
}

#[test]
fn a_login_that_is_missing_is_named() {
    let parts =
        ["only accept clients that log in: give the client credentials", "ZKLOCK_SASL", "--sasl-file"];
    says(&[("ZKLOCK_SASL", "".into())], 125, &parts);
}

#[test]
fn a_certificate_of_the_client_that_is_missing_is_named() {
    let parts = ["does it want a client certificate? Then give one with its key", "--cert", "--key"];
    says(&[("ZKLOCK_CERT", "".into()), ("ZKLOCK_KEY", "".into())], 123, &parts);
}

#[test]
fn a_certificate_of_the_client_that_the_server_does_not_trust_is_named() {
    let (certificate, key) = (certificates().intruder(), certificates().intruder_key());
    let parts = ["does it trust the authority of the client certificate", "--cert", "--key"];
    says(&[("ZKLOCK_CERT", certificate), ("ZKLOCK_KEY", key)], 123, &parts);
}

#[test]
fn a_port_that_is_for_the_other_kind_of_connection_is_named() {
    let parts = ["does not speak TLS: give the port that does (secureClientPort in zoo.cfg)"];
    says(&[("ZKLOCK_HOSTS", closed().connect_string().into())], 123, &parts);
    let plain = ["ZKLOCK_CA", "ZKLOCK_CERT", "ZKLOCK_KEY"].map(|name| (name, "".into()));
    says(&plain, 123, &["only speaks TLS: connect with TLS", "--tls", "--ca"]);
}

#[test]
fn a_key_of_another_certificate_is_named_before_anything_is_sent() {
    let changes = [("ZKLOCK_KEY", certificates().intruder_key())];
    let ended = Process::start(but(&changes).args(["ls", "/a"])).output();
    assert_eq!((ended.code, &*ended.out), (Some(64), ""));
    assert!(ended.errors.contains("give the key that the client certificate was made with"), "{ended:?}");
}
