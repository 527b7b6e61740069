//! A chroot that is created.

use super::lists::have_list;
use crate::support::queue::held;
use crate::support::users::{ANN, BOB};
use crate::support::{operator, options, says, soon};
use ground::shared;
use zklock_core::{Access, Client, ErrorKind};
use zookeeper_client::Permission;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_is_created_with_the_nodes_above_it_and_stays() {
    let seer = ANN.operator().await;
    let options = ANN.options(&shared().connect_string(), Access::ReadOpen).create_chroot(true);
    let client = Client::connect(options.clone().chroot("/chroot-made/deep/root").unwrap()).await.unwrap();
    soon(held(&client.mutex("/locks/a").unwrap()).await.release()).await.unwrap();
    client.close().await;
    let nodes = ["/chroot-made", "/chroot-made/deep", "/chroot-made/deep/root"].map(str::to_owned);
    have_list(&seer, &nodes, &Access::ReadOpen).await;
    for node in &nodes {
        let stat = operator().stat(node).expect("it stays");
        assert_eq!(stat.ephemeral_owner, 0, "{node} is persistent, and no container");
    }
    // One that is there is used as it is.
    let stranger = BOB.options(&shared().connect_string(), Access::Open).create_chroot(true);
    let client = Client::connect(stranger.chroot("/chroot-made/deep").unwrap()).await.unwrap();
    assert_eq!(soon(client.mutex("/root").unwrap().contenders()).await.unwrap().len(), 0);
    have_list(&seer, &nodes, &Access::ReadOpen).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_may_create_it_at_once() {
    let connecting: Vec<_> = (0..8)
        .map(|_| {
            let options = options(&format!("{}/chroot-raced/a/b", shared().connect_string()));
            tokio::spawn(Client::connect(options.create_chroot(true)))
        })
        .collect();
    for client in connecting {
        let client = soon(client).await.unwrap().unwrap();
        soon(held(&client.mutex("/locks/a").unwrap()).await.release()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_right_that_is_missing_above_it_is_named() {
    let seer = ANN.operator().await;
    seer.create("/chroot-closed", &[ANN.may_all(), BOB.may(Permission::READ)]).await;
    let options = BOB.options(&shared().connect_string(), Access::CreatorAll).create_chroot(true);
    let error = soon(Client::connect(options.chroot("/chroot-closed/a/b").unwrap())).await.unwrap_err();
    let lack = "lacks the right CREATE in the access list of /chroot-closed";
    says(&error, ErrorKind::Refused, &["the chroot /chroot-closed/a/b cannot be created", lack]);
    assert!(seer.children("/chroot-closed").await.is_empty());
}
