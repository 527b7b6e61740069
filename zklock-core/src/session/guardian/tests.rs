use super::*;
use crate::{Client, ClientOptions};
use std::fs;
use std::path::PathBuf;
use zklock_testkit::Server;

/// A server with a client.
async fn client() -> (Server, Client, ClientOptions) {
    let server = Server::start().unwrap();
    let options = ClientOptions::new(&server.connect_string()).checked().unwrap();
    let client = Client::connect(options.clone()).await.unwrap();
    (server, client, options)
}

/// A guardian that runs `script` for each line that it receives.
fn scripted(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("while read -r line; do {script}; done")]);
    command
}

/// A guardian that answers `answer` when it has everything that it needs.
fn answering(answer: &str) -> Command {
    scripted(&format!(r#"case $line in options*) echo "{answer}" >&0 ;; leave) exit 0 ;; esac"#))
}

fn file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("zklock-guardian-{name}-{}", std::process::id()))
}

async fn refusal(client: &Client, command: Command) -> Error {
    client.guard(command).await.unwrap_err()
}

#[tokio::test]
async fn a_guardian_is_told_the_key_of_each_session_and_when_to_leave() {
    let (_server, client, options) = client().await;
    let heard = file("told");
    let script = r#"echo "$line" >>"$0"; case $line in options*) echo watches >&0 ;; leave) exit 0 ;; esac"#;
    let mut command = scripted(script);
    command.arg(&heard);
    let guardian = client.guard(command).await.unwrap();
    let lines = || fs::read_to_string(&heard).unwrap_or_default();
    assert_eq!(lines().lines().count(), 3);
    let first = client.session_key().await.unwrap();
    first.end_session(&options, TO_END).await.unwrap();
    while lines().lines().count() < 4 {
        clock::sleep(BETWEEN_LOOKS).await;
    }
    let second = client.session_key().await.unwrap();
    guardian.dismiss().await;
    let key = |key: &crate::further::SessionKey| Message::new("session").bytes("key", &key.to_bytes());
    let connect = options.pass_on(Message::new("options"));
    let expected = [Message::new("watch"), key(&first), connect, key(&second), Message::new("leave")];
    let expected = String::from_utf8(expected.map(|message| message.to_line()).concat()).unwrap();
    let found = lines();
    let _ = fs::remove_file(&heard);
    assert_eq!(found, expected);
}

#[tokio::test]
async fn what_cannot_be_started_is_an_error_that_says_what_to_do() {
    let (_server, client, _) = client().await;
    let plain = file("plain");
    fs::write(&plain, "").unwrap();
    for (program, says) in [
        ("/nowhere/zklock", "there is no program \"/nowhere/zklock\""),
        ("zklock-of-nowhere", "in the directories of PATH (\"/"),
        (plain.to_str().unwrap(), "may not execute"),
    ] {
        let error = refusal(&client, command(Some(OsStr::new(program)))).await;
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains(says), "{error}");
        assert!(error.to_string().contains("install the command zklock"), "{error}");
    }
    fs::remove_file(&plain).unwrap();
    // None of them is still the client's guardian.
    client.guard(answering("watches")).await.unwrap().dismiss().await;
}

#[tokio::test]
async fn another_program_is_recognised_and_does_not_stay() {
    let (_server, client, _) = client().await;
    for (command, kind, says) in [
        (Command::new("true"), ErrorKind::InvalidInput, "it ended at once"),
        (answering("hello"), ErrorKind::InvalidInput, "it says \"hello\""),
        (scripted("head -c 10000 /dev/zero >&0"), ErrorKind::InvalidInput, "more than an answer"),
        (answering("fails why it%20has%20no%20Kerberos"), ErrorKind::Refused, "it has no Kerberos"),
    ] {
        let error = refusal(&client, command).await;
        assert_eq!(error.kind(), kind);
        assert!(error.to_string().contains(says), "{error}");
        assert!(!*client.pool().has_guardian.borrow(), "it is still there");
    }
}

#[tokio::test(start_paused = true)]
async fn a_program_that_says_nothing_is_not_waited_for_without_end() {
    let pool = Pool::of(Arc::new(Slot::of(crate::session::slot::SlotState::Next(None))));
    let error = Guardian::start(scripted(":"), &pool).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("it has not answered for 10s"), "{error}");
    assert!(!*pool.has_guardian.borrow(), "it is still there");
}

#[tokio::test]
async fn a_client_has_one_guardian_at_a_time() {
    let (_server, client, _) = client().await;
    let guardian = client.guard(answering("watches")).await.unwrap();
    let error = refusal(&client, answering("watches")).await;
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.to_string().contains("has a guardian already"), "{error}");
    guardian.dismiss().await;
    let guardian = client.guard(answering("watches")).await.unwrap();
    let mut has_guardian = client.pool().has_guardian.subscribe();
    drop(guardian);
    has_guardian.wait_for(|has_guardian| !has_guardian).await.unwrap();
    // A guardian that was killed makes way, too.
    client.guard(scripted("echo watches >&0; read line; exit 1")).await.unwrap().keep();
    has_guardian.wait_for(|has_guardian| !has_guardian).await.unwrap();
    client.guard(answering("watches")).await.unwrap().keep();
}

#[tokio::test]
async fn closing_the_client_ends_its_guardian_and_a_closed_one_gets_none() {
    let (_server, client, _) = client().await;
    client.guard(answering("watches")).await.unwrap().keep();
    client.close().await.unwrap();
    assert!(!*client.pool().has_guardian.borrow(), "it is still there");
    let error = refusal(&client, answering("watches")).await;
    assert_eq!(error.kind(), ErrorKind::Closed);
}

#[tokio::test]
async fn a_call_that_is_cancelled_leaves_no_guardian() {
    let (_server, client, _) = client().await;
    let begun = file("begun");
    let mut command = scripted(r#"echo >"$0"; [ "$line" != leave ] || exit 0"#);
    command.arg(&begun);
    tokio::select! {
        biased;
        guardian = client.guard(command) => panic!("{guardian:?}, and it has not answered"),
        () = async { while !begun.exists() { clock::sleep(BETWEEN_LOOKS).await; } } => {}
    }
    let mut has_guardian = client.pool().has_guardian.subscribe();
    has_guardian.wait_for(|has_guardian| !has_guardian).await.unwrap();
    fs::remove_file(&begun).unwrap();
}
