//! Creating the chroot.

use super::lists::have_list;
use crate::support::users::{ANN, BOB};
use crate::support::{comes, comes_to_fail, expire_session, held, operator, options, proxied, says, soon};
use ground::{Kind, Proxy, shared};
use zklock::further::Access;
use zklock::{Client, ErrorKind};
use zookeeper_client::Permission;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_is_created_with_the_nodes_above_it_and_stays() {
    let seer = ANN.operator().await;
    let proxy = Proxy::before(shared().server(0));
    proxy.record();
    let options = ANN.options(&proxy.connect_string(), Access::ReadOpen).create_chroot(true);
    let client = Client::connect(options.chroot("/chroot-made/deep/root")).await.unwrap();
    // Later no stat shows whether a node is a container.
    assert_eq!(proxy.counts().requests(Kind::CreateContainer), 0, "they are persistent, and no containers");
    assert!(proxy.counts().requests(Kind::Create) >= 3);
    soon(held(&client.mutex("/locks/a").unwrap()).await.release()).await.unwrap();
    client.close().await.unwrap();
    let nodes = ["/chroot-made", "/chroot-made/deep", "/chroot-made/deep/root"].map(str::to_owned);
    have_list(&seer, &nodes, &Access::ReadOpen).await;
    for node in &nodes {
        let stat = operator().stat(node).expect("it stays");
        assert_eq!(stat.ephemeral_owner, 0, "{node}");
    }
    // A chroot that exists is used as it is.
    let stranger = BOB.options(&shared().connect_string(), Access::Open).create_chroot(true);
    let client = Client::connect(stranger.chroot("/chroot-made/deep")).await.unwrap();
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
    let inside = Client::connect(options.clone().chroot("/chroot-closed")).await.unwrap();
    let error = soon(inside.ensemble_id()).await.unwrap_err();
    says(&error, ErrorKind::Refused, &["no identity in /zklock-ensemble", "CREATE"]);
    let error = soon(Client::connect(options.chroot("/chroot-closed/a/b"))).await.unwrap_err();
    let lack = "lacks the right CREATE in the access list of /chroot-closed";
    says(&error, ErrorKind::Refused, &["the chroot /chroot-closed/a/b cannot be created", lack]);
    assert!(seer.children("/chroot-closed").await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_is_missing_to_a_later_session_is_waited_for() {
    let (admin, path) = (operator(), "/chroot-back");
    admin.create(path, "");
    let (client, proxy) = proxied(|options| options.chroot(path)).await;
    let lock = client.mutex("/a").unwrap();
    soon(held(&lock).await.release()).await.unwrap();
    admin.delete_tree(path);
    expire_session(&proxy);
    // At first the old session may still report that the node does not exist.
    comes(async || lock.try_acquire().await.unwrap_err().kind() == ErrorKind::Unreachable).await;
    let error = comes_to_fail(&lock, "chroot").await;
    says(&error, ErrorKind::Unreachable, &["the chroot does not exist"]);
    admin.create(path, "");
    soon(held(&lock).await.release()).await.unwrap();
    assert_eq!(client.stats().sessions, 2);
}
