//! The configuration file: which one is read, what beats it, and the message about a wrong line.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use crate::support::{Folder, Output, Process, operator, output, path, servers, zklock};

const NOWHERE: &str = "127.0.0.1:1";

/// With this file in place of the empty one.
fn zklock_with(file: &Path) -> Command {
    let mut command = zklock();
    command.env("ZKLOCK_CONFIG", file);
    command
}

/// The identity of what `zklock run` holds.
fn holder(command: &mut Command) -> String {
    let path = path();
    let script = format!("'{}' ls --json $ZKLOCK_LOCK", env!("CARGO_BIN_EXE_zklock"));
    command.args(["run", "--mutex", &path, "--", "sh", "-c", &script]);
    let ended = output(command.env("ZKLOCK_HOSTS", servers().connect_string()));
    let found: serde_json::Value = serde_json::from_str(&ended.out).unwrap_or_else(|_| panic!("{ended:?}"));
    found[0]["identity"].as_str().expect("a name").to_owned()
}

/// It is refused with this sentence.
fn fails(file: &Path, part: &str) -> Output {
    let ended = output(zklock_with(file).args(["ls", "/a"]));
    ended.is(64, "").says(part);
    ended
}

/// The code of `ls`.
fn ls(command: &mut Command) -> Option<i32> {
    output(command.args(["ls", "/cli/nobody"])).code
}

#[test]
fn a_file_says_how_to_connect() {
    let folder = Folder::new();
    let hosts = servers().connect_string();
    let text = format!("\n# How to connect.\n  hosts = {hosts}  \r\nsession-timeout=4s\ntls = no\n");
    let file = folder.file("zklock.conf", text);
    let ended = output(zklock_with(&file).args(["doctor", "--json", &path()]));
    let found = ended.json();
    assert_eq!(found[0]["finding"], format!("the file {} was read", file.display()));
    let session = found.as_array().unwrap().iter().find(|finding| finding["about"] == "session").unwrap();
    assert_eq!(session["finding"], "timeout 4.0s, as asked for");
    // An empty variable names no hosts.
    assert_eq!(ls(zklock_with(&file).env("ZKLOCK_HOSTS", "")), Some(0));
    output(zklock().env("ZKLOCK_HOSTS", "").args(["ls", "/a"])).is(64, "").says("no servers are given");
}

#[test]
fn an_option_beats_a_variable_which_beats_the_file() {
    let folder = Folder::new();
    let file = folder.file("a.conf", "identity = file\n");
    assert_eq!(holder(&mut zklock_with(&file)), "file");
    assert_eq!(holder(zklock_with(&file).env("ZKLOCK_IDENTITY", "variable")), "variable");
    let mut command = zklock_with(&file);
    command.env("ZKLOCK_IDENTITY", "variable").args(["--identity", "option"]);
    assert_eq!(holder(&mut command), "option");
    // The option may stand after the command's name as well.
    let file = folder.file("b.conf", format!("hosts = {NOWHERE}\n"));
    let words = ["ls", "/cli/nobody", "--hosts", &servers().connect_string()];
    assert_eq!(output(zklock_with(&file).args(words)).code, Some(0));
}

#[test]
fn a_variable_can_switch_off_what_the_file_switches_on() {
    let folder = Folder::new();
    let file = folder.file("a.conf", format!("hosts = {}\ntls = yes\n", servers().connect_string()));
    assert_eq!(ls(&mut zklock_with(&file)), Some(123));
    assert_eq!(ls(zklock_with(&file).env("ZKLOCK_TLS", "0")), Some(0));
}

#[test]
fn the_first_file_of_those_in_the_usual_places_is_read() {
    let folder = Folder::new();
    let usual = || {
        let mut command = zklock();
        command.env_remove("ZKLOCK_CONFIG").env_remove("XDG_CONFIG_HOME").env("HOME", folder.path());
        command
    };
    fs::create_dir(folder.path().join(".config")).unwrap();
    folder.file(".config/zklock.conf", "identity = home\n");
    folder.file("zklock.conf", "identity = xdg\n");
    assert_eq!(holder(&mut usual()), "home");
    assert_eq!(holder(usual().env("XDG_CONFIG_HOME", folder.path())), "xdg");
    // A relative one is none, by the specification of these variables.
    assert_eq!(holder(usual().env("XDG_CONFIG_HOME", ".")), "home");
    let named = folder.file("named.conf", "identity = named\n");
    assert_eq!(holder(usual().arg("--config").arg(&named)), "named");
    let option = folder.file("option.conf", "identity = option\n");
    assert_eq!(holder(usual().env("ZKLOCK_CONFIG", &named).arg("--config").arg(&option)), "option");
    // None of them has to be there.
    assert_ne!(holder(usual().env("HOME", "/nowhere")), "home");
}

#[test]
fn a_file_that_was_named_must_be_there() {
    let folder = Folder::new();
    fails(&folder.path().join("missing.conf"), "missing.conf cannot be read: No such file");
    fails(folder.path(), "cannot be read: Is a directory");
    fails(&folder.file("long.conf", "#".repeat(70_000)), "long.conf: too long");
}

#[test]
fn a_line_that_is_wrong_is_named() {
    let folder = Folder::new();
    let cases: [(&[u8], &str); 14] = [
        (b"# fine\n\nhosts zk1:2181\n", ":3: this line has no =: write name = value"),
        (b"host = zk1\n", ":1: there is no option \"host\"; did you mean hosts?\n"),
        (b"config = zk1\n", ":1: there is no option \"config\"; there are hosts, session-timeout, "),
        (b"hosts = \n", ":1: hosts has no value"),
        (b"hosts = a\nidentity = b\nhosts = a\n", ":3: hosts has a line already"),
        (b"auth = a:b\nauth = a:b\n", ":2: auth has a line already"),
        (b"identity = \xff\n", ":1: this line is not in UTF-8"),
        (b"hosts = zk1:port\n", ":1: hosts: the hosts \"zk1:port\""),
        (b"session-timeout = soon\n", ":1: session-timeout: \"soon\" is not a duration: write it as 90"),
        (b"session-timeout = 1ms\n", ":1: session-timeout: a session timeout of 1ms is not possible"),
        (b"access = all\n", ":1: access: the access is \"open\" or"),
        (b"tls = maybe\n", ":1: tls: \"maybe\" is neither yes nor no"),
        (b"auth = hidden\n", ":1: auth: the credentials: the text is not of the form user:password"),
        (b"sasl = a\"b:hidden\n", ":1: sasl: "),
    ];
    for (text, problem) in cases {
        let file = folder.file("a.conf", text);
        let ended = fails(&file, &format!("zklock: {}{problem}", file.display()));
        assert!(!ended.errors.contains("hidden"), "a password is shown: {}", ended.errors);
    }
    // What needs no servers works all the same.
    let file = folder.file("a.conf", "nonsense\n");
    assert_eq!(output(zklock_with(&file).args(["completions", "bash"])).code, Some(0));
}

#[test]
fn a_certificate_and_its_key_may_come_from_different_places() {
    let folder = Folder::new();
    let file = folder.file("a.conf", "hosts = zk1:2181\ntls = yes\nkey = client.key\n");
    fails(&file, "a certificate needs its key, and a key its certificate: give both or none");
    // Both are known, so one is looked for; a path in the file is relative to its folder.
    let ended = output(zklock_with(&file).args(["--cert", "/nowhere.pem", "ls", "/a"]));
    ended.is(64, "").says("/nowhere.pem");
    let file = folder.file("b.conf", "hosts = zk1:2181\nca = ca.pem\n");
    fails(&file, &format!("{}/ca.pem", folder.path().display()));
    output(zklock().args(["--hosts", "zk1", "--ca", "ca.pem", "--cert", "a.pem", "ls", "/a"])).is(64, "");
}

#[test]
fn a_password_that_others_can_read_is_refused() {
    let folder = Folder::new();
    let file = folder.file("a.conf", format!("hosts = {}\nauth = ann:secret\n", servers().connect_string()));
    let with_mode = |file: &Path, mode| fs::set_permissions(file, Permissions::from_mode(mode)).unwrap();
    for mode in [0o644, 0o604, 0o602] {
        with_mode(&file, mode);
        let expected = format!(
            "zklock: {file}:2: auth is a secret, and other users may use this file (its mode is {mode:o}): run `chmod 600 {file}`\n",
            file = file.display()
        );
        fails(&file, &expected);
    }
    with_mode(&file, 0o400);
    assert_eq!(ls(&mut zklock_with(&file)), Some(0));
    // The group may read it in a file of root's alone.
    with_mode(&file, 0o640);
    let expected = if fs::metadata(&file).unwrap().uid() == 0 { 0 } else { 64 };
    assert_eq!(ls(&mut zklock_with(&file)), Some(expected));
    // Without a password everybody may read it.
    let file = folder.file("b.conf", format!("hosts = {}\n", servers().connect_string()));
    with_mode(&file, 0o644);
    assert_eq!(ls(&mut zklock_with(&file)), Some(0));
}

#[test]
fn a_password_of_the_file_logs_in_and_is_hidden_from_the_command() {
    let folder = Folder::new();
    operator().create_all("/cli", "");
    let hosts = servers().connect_string();
    let text = format!("hosts = {hosts}\nauth = ann:secret\naccess = creator-all\n");
    let file = folder.file("a.conf", text);
    let path = path();
    let mut command = zklock_with(&file);
    command.args(["run", "--mutex", &path, "--", "sh", "-c", "env | grep -c secret; echo held; read _"]);
    let process = Process::start(&mut command);
    assert_eq!((&*process.line(), &*process.line()), ("0\n", "held\n"));
    let code = |command: &mut Command| output(command.args(["ls", &path])).code;
    assert_eq!(code(&mut zklock_with(&file)), Some(0));
    assert_eq!(code(zklock().args(["--hosts", &hosts])), Some(125), "only this user may look");
    let wrong = code(zklock_with(&file).env("ZKLOCK_AUTH", "ann:wrong"));
    assert_eq!(wrong, Some(125), "the variable beats the file");
    process.lets_go();
}
