//! Promise 2 ends with the ensemble: a fence tells ensembles apart by their identity.

use crate::support::{expire_session, operator, options, proxied, says, soon};
use ground::{Direction, shared};
use std::time::Duration;
use zklock::{Client, ErrorKind, LossReason};

const NODE: &str = "/zklock-ensemble";

/// A new chroot. Each is an ensemble of its own to its clients.
fn ensemble(name: &str) -> String {
    let chroot = format!("/ensemble-{name}");
    operator().create(&chroot, "");
    chroot
}

async fn client_in(chroot: &str) -> Client {
    soon(Client::connect(options(&shared().connect_string()).chroot(chroot))).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_clients_of_an_ensemble_find_one_identity_and_another_ensemble_has_another() {
    let chroot = ensemble("one");
    let new = || client_in(&chroot);
    let clients = [new().await, new().await, new().await];
    let hold = soon(clients[0].mutex("/a").unwrap().acquire()).await.unwrap();
    let ids = soon(async {
        tokio::join!(
            clients[0].ensemble_id(),
            clients[1].ensemble_id(),
            clients[2].ensemble_id(),
            hold.ensemble_id()
        )
    });
    let (first, second, third, of_hold) = ids.await;
    let id = first.unwrap();
    assert_eq!([second.unwrap(), third.unwrap(), of_hold.unwrap()], [id.clone(), id.clone(), id.clone()]);
    assert_eq!(operator().data(&format!("{chroot}{NODE}")), id.as_bytes());

    let other = client_in(&ensemble("other")).await;
    assert_ne!(soon(other.ensemble_id()).await.unwrap(), id);

    // A session asks once, for it stays in its ensemble. The next one finds what is there then, and the hold of the old one
    // keeps to what it was given by.
    let (client, proxy) = proxied(|options| options.chroot(&chroot)).await;
    let hold = soon(client.mutex("/b").unwrap().acquire()).await.unwrap();
    assert_eq!(soon(hold.ensemble_id()).await.unwrap(), id);
    operator().delete(&format!("{chroot}{NODE}"));
    assert_eq!(soon(client.ensemble_id()).await.unwrap(), id);
    expire_session(&proxy);
    soon(hold.lost()).await.unwrap();
    assert_ne!(soon(client.ensemble_id()).await.unwrap(), id);
    assert_eq!(soon(hold.ensemble_id()).await.unwrap(), id);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_hold_is_not_given_the_identity_of_an_ensemble_that_came_after() {
    let (client, proxy) = proxied(|options| options.chroot(&ensemble("after"))).await;
    let hold = soon(client.mutex("/a").unwrap().acquire()).await.unwrap();
    expire_session(&proxy);
    soon(hold.lost()).await.unwrap();
    soon(client.ensemble_id()).await.unwrap();
    let error = soon(hold.ensemble_id()).await.unwrap_err();
    says(&error, ErrorKind::Lost(LossReason::SessionExpired), &["/a"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_identity_that_cannot_be_had_is_named_and_never_made_up() {
    let chroot = ensemble("strange");
    let node = format!("{chroot}{NODE}");
    for strange in ["", "two words", "\u{e9}", &"x".repeat(65)] {
        operator().create(&node, strange);
        let error = soon(client_in(&chroot).await.ensemble_id()).await.unwrap_err();
        says(&error, ErrorKind::Refused, &[NODE, "delete the node"]);
        operator().delete(&node);
    }

    let patience = Duration::from_millis(500);
    let (client, proxy) = proxied(|options| options.chroot(&chroot).connect_timeout(patience)).await;
    let hold = soon(client.mutex("/a").unwrap().acquire()).await.unwrap();
    proxy.freeze(Direction::Both);
    says(&soon(client.ensemble_id()).await.unwrap_err(), ErrorKind::Unreachable, &[NODE]);
    let error = soon(hold.ensemble_id()).await.unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Unreachable | ErrorKind::Lost(_)), "{error}");
    proxy.thaw();
    soon(async { while client.ensemble_id().await.is_err() {} }).await;
}
