//! Logging in, on every connection.

use crate::support::users::{ANN, BOB, NEW_ANN, file};
use crate::support::{comes_to_fail, expire_session, held, options, proxied, says, soon};
use ground::Ensemble;
use std::time::Duration;
use zklock::further::{Access, Credentials};
use zklock::{Client, ErrorKind};

/// Longer than any test takes.
const AGES: Duration = Duration::from_secs(3600);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_is_attached_is_logged_in() {
    let (client, proxy) = ANN.proxied(Access::CreatorAll).await;
    let hold = held(&client.mutex("/access-attached").unwrap()).await;
    for _ in 0..2 {
        proxy.reset();
        // Only a client that is logged in can read and write here. Reading waits for the next connection.
        assert!(soon(hold.read("/access-attached")).await.unwrap().is_some());
        soon(hold.guarded().create("/access-attached/written", b"").commit()).await.unwrap();
        soon(hold.guarded().delete("/access-attached/written", None).commit()).await.unwrap();
    }
    soon(hold.release()).await.unwrap();
    assert_eq!(client.stats().sessions, 1);
    assert_eq!(ANN.operator().await.children("/access-attached").await, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_is_read_anew_for_each_connection() {
    let (operator, file) = (ANN.operator().await, file("rotated", &ANN.line()));
    let of_file = Credentials::from_file(&file).unwrap();
    let (client, proxy) = proxied(|options| options.credentials(of_file).access(Access::CreatorAll)).await;
    soon(held(&client.mutex("/access-rotated/one").unwrap()).await.release()).await.unwrap();
    assert_eq!(operator.acl("/access-rotated").await, [ANN.may_all()]);

    // Both passwords, so that she may still use the nodes that she has created.
    std::fs::write(&file, ANN.line() + &NEW_ANN.line()).unwrap();
    expire_session(&proxy);
    soon(held(&client.mutex("/access-rotated/two").unwrap()).await.release()).await.unwrap();
    assert_eq!(client.stats().sessions, 2);
    let list = operator.acl("/access-rotated/two").await;
    assert!(list.len() == 2 && list.contains(&NEW_ANN.may_all()), "{list:?}");

    // As long as the file cannot be read, no session opens; afterwards one does.
    std::fs::remove_file(&file).unwrap();
    expire_session(&proxy);
    let lock = client.mutex("/access-rotated/two").unwrap();
    let error = comes_to_fail(&lock, "credentials").await;
    says(&error, ErrorKind::Unreachable, &[file.to_str().unwrap(), "cannot be read"]);
    std::fs::write(&file, NEW_ANN.line()).unwrap();
    soon(held(&lock).await.release()).await.unwrap();
    std::fs::remove_file(&file).unwrap();
}

/// Servers that let in only those who log in with this scheme.
fn closed(scheme: &str) -> Ensemble {
    let builder = Ensemble::builder().configure("enforce.auth.enabled=true");
    let builder = builder.configure(&format!("enforce.auth.schemes={scheme}"));
    let sasl = "zookeeper.authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider";
    builder.property(sasl).start()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_let_in_only_users_or_want_something_else_say_so_at_once() {
    let ensemble = closed("digest");
    let hosts = ensemble.connect_string();
    let error = soon(Client::connect(options(&hosts).connect_timeout(AGES))).await.unwrap_err();
    says(&error, ErrorKind::Refused, &["only accept clients that log in", "give the client credentials"]);
    let client = Client::connect(BOB.options(&hosts, Access::CreatorAll)).await.unwrap();
    soon(held(&client.mutex("/access-enforced").unwrap()).await.release()).await.unwrap();
    client.close().await.unwrap();

    let ensemble = closed("sasl");
    let known = BOB.options(&ensemble.connect_string(), Access::Open).connect_timeout(AGES);
    let error = soon(Client::connect(known)).await.unwrap_err();
    says(&error, ErrorKind::Refused, &["do not accept the client's credentials", "enforce.auth.schemes"]);
    assert!(!error.to_string().contains(BOB.password));
}
