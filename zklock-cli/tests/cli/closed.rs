//! In a closed ensemble, with TLS, certificates of clients, and a login by SASL: the command says what is missing, and how to give it.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use ground::{Certificates, Ensemble, or_once_more};

use crate::support::{Folder, Output, Process, output, zklock};

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

/// `run` with these changes, with time for a server that has just started on a busy machine.
fn run(changes: &[(&'static str, PathBuf)]) -> Output {
    let mut command = but(changes);
    command.env("ZKLOCK_CONNECT_TIMEOUT", "100s");
    output(command.args(["run", "--mutex", "/right", "--", "echo", "ran"]))
}

#[test]
fn with_all_that_it_takes_a_command_runs() {
    run(&[]).is(0, "ran\n").is_quiet();
    output(but(&[]).args(["ls", "/right"])).is_quiet();
    let ended = output(but(&[]).args(["doctor", "/right"]));
    assert!(ended.out.contains("the servers' certificates are checked"), "{ended:?}");
    ended.is(0, &ended.out).is_quiet();
}

#[test]
fn a_file_says_all_that_it_takes() {
    let folder = Folder::new();
    let option = |name: &str| name.trim_start_matches("ZKLOCK_").to_lowercase();
    let lines: Vec<_> =
        right().iter().map(|(name, value)| format!("{} = {}\n", option(name), value.display())).collect();
    let file = folder.file("zklock.conf", lines.concat());
    let mut command = zklock();
    command.arg("--config").arg(file).args(["--connect-timeout", "100s"]);
    command.args(["run", "--mutex", "/file", "--", "echo", "ran"]);
    output(&mut command).is(0, "ran\n").is_quiet();
}

#[test]
fn an_encrypted_key_opens_with_its_pass_phrase() {
    let command = ["pkcs8", "-topk8", "-v2", "aes-256-cbc"];
    let key = certificates().encrypted_key("of-the-command", &command, "open sesame");
    let run =
        |phrase: &str| run(&[("ZKLOCK_KEY", key.clone()), ("ZKLOCK_PASS_PHRASE", phrase.to_owned().into())]);
    run("open sesame").is(0, "ran\n").is_quiet();
    let ended = run("open barley");
    ended.is(64, "").says("pass phrase");
    assert!(!ended.errors.contains("barley"), "{ended:?}");
}

#[test]
fn what_is_missing_or_wrong_is_named_with_the_option_that_gives_it() {
    let there = certificates();
    // Another way to write 127.0.0.1, which is in no certificate.
    let misnamed = closed().tls_connect_string().replace("127.0.0.1", "0x7f000001");
    let authority = ["from none of the given authorities: give the one that issued it", "--ca"];
    says(&[("ZKLOCK_CA", there.stranger())], 123, &authority);
    says(&[("ZKLOCK_CA", "".into()), ("ZKLOCK_TLS", "1".into())], 123, &authority);
    let parts = ["a certificate for another name", "localhost", "use a name that the certificate is for"];
    says(&[("ZKLOCK_HOSTS", misnamed.into())], 123, &parts);
    let wrong = "refuse the login by SASL for \"ann\": correct the user or the password";
    says(&[("ZKLOCK_SASL", "ann:wrong".into())], 125, &[wrong, "ZKLOCK_SASL", "--sasl-file"]);
    let missing = "only accept clients that log in: give the client credentials";
    says(&[("ZKLOCK_SASL", "".into())], 125, &[missing, "ZKLOCK_SASL", "--sasl-file"]);
    let missing = "does it want a client certificate? Then give one with its key";
    says(&[("ZKLOCK_CERT", "".into()), ("ZKLOCK_KEY", "".into())], 123, &[missing, "--cert", "--key"]);
    let strange = [("ZKLOCK_CERT", there.intruder()), ("ZKLOCK_KEY", there.intruder_key())];
    says(&strange, 123, &["does it trust the authority of the client certificate", "--cert", "--key"]);
    let parts = ["does not speak TLS: give the port that does (secureClientPort in zoo.cfg)"];
    says(&[("ZKLOCK_HOSTS", closed().connect_string().into())], 123, &parts);
    let plain = ["ZKLOCK_CA", "ZKLOCK_CERT", "ZKLOCK_KEY"].map(|name| (name, "".into()));
    says(&plain, 123, &["only speaks TLS: connect with TLS", "--tls", "--ca"]);
    // Before anything is sent.
    let ended = output(but(&[("ZKLOCK_KEY", there.intruder_key())]).args(["ls", "/a"]));
    ended.is(64, "").says("give the key that the client certificate was made with");
}
