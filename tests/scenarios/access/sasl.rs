//! Logging in by SASL: each mistake, on either side, is reported at once, by one error that says what to do.

use crate::support::texts::{are_documented, line};
use crate::support::users::{ANN, BOB, NEW_ANN, User, file};
use crate::support::{comes_to_fail, held, options, says, soon};
use ground::{Action, Builder, Ensemble, Kind, Proxy, Server, Trigger};
use std::sync::OnceLock;
use std::time::Duration;
use tokio::task::block_in_place;
use zklock::further::{Access, Credentials};
use zklock::{Client, ClientOptions, ErrorKind, LossReason};

/// Longer than any test takes.
const AGES: Duration = Duration::from_secs(3600);
/// Longer than a server takes to start again.
const LONG: Duration = Duration::from_secs(60);
const REQUIRED: &str = "sessionRequireClientSASLAuth=true";

fn server(users: &[User]) -> Builder {
    let users: Vec<_> = users.iter().map(|user| (user.name, user.password)).collect();
    Ensemble::builder().tick(Duration::from_millis(200)).sasl(&users)
}

/// Servers that let in only Ann and Bob.
pub(super) fn closed() -> &'static Ensemble {
    static CLOSED: OnceLock<Ensemble> = OnceLock::new();
    CLOSED.get_or_init(|| server(&[ANN, BOB]).configure(REQUIRED).start())
}

fn as_user(hosts: &str, credentials: Credentials) -> ClientOptions {
    options(hosts).credentials(credentials).access(Access::CreatorAll).connect_timeout(AGES)
}

/// Asserts that connecting fails with an error that has these parts, and no secret.
async fn refused(options: ClientOptions, parts: &[&str]) {
    let error = soon(Client::connect(options)).await.unwrap_err();
    says(&error, ErrorKind::Refused, parts);
    for user in [ANN, NEW_ANN, BOB] {
        assert!(!error.to_string().contains(user.password), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_text_is_that_of_the_documentation() {
    let (closed, open) = (closed().connect_string(), ground::shared().connect_string());
    let file = file("sasl-texts", &NEW_ANN.line());
    let rotated = Credentials::sasl_from_file(&file).unwrap();
    let unknown = Credentials::sasl("eve", "s3cret").unwrap();
    let mut lines = Vec::new();
    for (case, options) in [
        ("all is right", as_user(&closed, ANN.sasl())),
        ("wrong password", as_user(&closed, NEW_ANN.sasl())),
        ("unknown user", as_user(&closed, unknown)),
        ("password changed on one side alone", as_user(&closed, rotated)),
        ("login by SASL required, none given", options(&closed)),
        ("login by SASL required, digest given", as_user(&closed, ANN.credentials())),
        ("server not set up for SASL", as_user(&open, ANN.sasl())),
    ] {
        let client = soon(Client::connect(options.connect_timeout(AGES))).await;
        let line = line(case, client.map(drop)).replace(&open, "HOST:PORT");
        lines.push(line.replace(file.to_str().unwrap(), "/run/secrets/zookeeper"));
    }
    std::fs::remove_file(&file).unwrap();
    are_documented("SASL\n", lines);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_lets_in_who_is_not_logged_in_is_named_at_once() {
    let named = ["lets it in without a user", "SASL for \"ann\"", "JAAS", "SASLAuthenticationProvider"];
    let hosts = ground::shared().connect_string();
    refused(as_user(&hosts, ANN.sasl()).credentials(ANN.credentials()), &named).await;
    // Nor does a wrong password end in a session, where no login is required or servers are lenient.
    let open = server(&[ANN]).start();
    let wrong = ["refuse the login by SASL for \"ann\"", "correct the user or the password"];
    refused(as_user(&open.connect_string(), NEW_ANN.sasl()), &wrong).await;
    let lenient = server(&[ANN]).property("zookeeper.allowSaslFailedClients=true").start();
    let hosts = lenient.connect_string();
    refused(as_user(&hosts, NEW_ANN.sasl()), &["allowSaslFailedClients", "lets it in without a user"]).await;
    assert!(Client::connect(as_user(&hosts, ANN.sasl())).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_that_is_changed_matters_to_the_next_connection() {
    let ensemble = server(&[ANN]).max_session_timeout(LONG).configure(REQUIRED).start();
    let set = |server: &Server, user: User| {
        block_in_place(|| server.set_sasl_users(&[(user.name, user.password)]));
    };
    let file = file("sasl-changed", &ANN.line());
    let of_file = Credentials::sasl_from_file(&file).unwrap();
    let options = as_user(&ensemble.connect_string(), of_file).session_timeout(LONG);
    let client = Client::connect(options).await.unwrap();
    let hold = held(&client.mutex("/sasl-changed").unwrap()).await;

    // On both sides: the session lives on.
    std::fs::write(&file, NEW_ANN.line()).unwrap();
    set(ensemble.server(0), NEW_ANN);
    soon(hold.guarded().create("/sasl-changed/written", b"").commit()).await.unwrap();
    assert_eq!(client.stats().sessions, 1);

    // Only on the servers: the session is over, and the error says why there is no other, until the file is right.
    let other = held(&client.mutex("/sasl-changed-other").unwrap()).await;
    block_in_place(|| ensemble.server(0).stop());
    let release = tokio::spawn(async move { other.release().await });
    set(ensemble.server(0), ANN);
    soon(hold.lost()).await.unwrap();
    let error = soon(release).await.unwrap().unwrap_err();
    let says_when =
        ["the release of /sasl-changed-other cannot be confirmed", "refuse the login", "free when"];
    says(&error, ErrorKind::Unreachable, &says_when);
    let why = comes_to_fail(&client.mutex("/sasl-fails").unwrap(), "refuse the login").await;
    says(&why, ErrorKind::Unreachable, &[file.to_str().unwrap(), "correct the user or the password"]);
    std::fs::write(&file, ANN.line()).unwrap();
    // Not the same lock: the servers keep the old session until it times out.
    soon(held(&client.mutex("/sasl-changed-again").unwrap()).await.release()).await.unwrap();
    assert_eq!(client.stats().sessions, 2);
    std::fs::remove_file(&file).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_would_go_on_with_it_as_nobody_is_named_and_the_session_is_over() {
    let lenient = server(&[ANN]).property("zookeeper.allowSaslFailedClients=true");
    let ensemble = lenient.max_session_timeout(LONG).start();
    let options = as_user(&ensemble.connect_string(), ANN.sasl()).session_timeout(LONG);
    let client = Client::connect(options).await.unwrap();
    let hold = held(&client.mutex("/sasl-nobody").unwrap()).await;
    block_in_place(|| ensemble.server(0).set_sasl_users(&[(ANN.name, NEW_ANN.password)]));
    assert_eq!(soon(hold.lost()).await, Ok(Some(LossReason::SessionExpired)));
    let why = comes_to_fail(&client.mutex("/sasl-fails").unwrap(), "without a user").await;
    says(&why, ErrorKind::Unreachable, &["SASL for \"ann\"", "allowSaslFailedClients"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_lives_on_as_long_as_one_server_knows_the_password() {
    let ensemble = server(&[ANN]).servers(3).max_session_timeout(LONG).configure(REQUIRED).start();
    let options = as_user(&ensemble.connect_string(), ANN.sasl()).session_timeout(LONG);
    let client = Client::connect(options).await.unwrap();
    let hold = held(&client.mutex("/sasl-rolling").unwrap()).await;
    for at in [0, 1] {
        block_in_place(|| {
            ensemble.server(at).set_sasl_users(&[(ANN.name, NEW_ANN.password)]);
            ensemble.wait_until_whole(crate::support::SOON);
        });
    }
    assert_eq!(soon(hold.read("/sasl-rolling")).await.unwrap().map(|node| node.data), Some(Vec::new()));
    soon(hold.release()).await.unwrap();
    assert_eq!(client.stats().sessions, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_slow_to_answer_has_its_say_beside_one_that_refuses() {
    let refuses = server(&[NEW_ANN]).configure(REQUIRED).start();
    let hangs_up = Proxy::before(closed().server(0));
    for nth in [1, 2] {
        hangs_up.on(Trigger::request(Kind::Connect).then(Action::DropAndReset).nth(nth));
    }
    let hosts = format!("{},{}", refuses.connect_string(), hangs_up.connect_string());
    assert!(soon(Client::connect(as_user(&hosts, ANN.sasl()))).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_servers_log_in_too() {
    let ensemble = server(&[ANN]).version("3.4.14").max_session_timeout(LONG).start();
    let hosts = ensemble.connect_string();
    // They hang up, and do not say why.
    refused(as_user(&hosts, NEW_ANN.sasl()), &["refuse the login by SASL"]).await;
    let options = as_user(&hosts, ANN.sasl()).session_timeout(LONG);
    let client = Client::connect(options).await.unwrap();
    let hold = held(&client.mutex("/sasl-old").unwrap()).await;
    assert_eq!(ANN.operator_by_sasl(&hosts).await.acl("/sasl-old").await, [ANN.may_all_by_sasl()]);
    block_in_place(|| ensemble.server(0).restart());
    soon(hold.release()).await.unwrap();
    assert_eq!(client.stats().sessions, 1);
}
