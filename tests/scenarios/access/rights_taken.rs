//! An operator who changes the access list of a node that stands for a hold.

use crate::support::users::{ANN, BOB};
use crate::support::{SESSION, held, operator, settled, soon};
use zklock::further::Access;
use zklock::{HoldState, LossReason};

/// The server refuses a check of such a node, and so shows that the node exists.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_its_holder_may_not_read_any_more_is_held_and_ends_no_other_hold() {
    let (ann, bob) = (ANN.operator().await, BOB.client(Access::Open).await);
    let lock = |name: &str| bob.mutex(&format!("/rights-taken/{name}")).unwrap();
    let single = bob.single_node("/rights-taken/single").unwrap();
    let (first, secret) = (held(&lock("first")).await, held(&lock("secret")).await);
    let (single, last) = (held(&single).await, held(&lock("last")).await);
    for hold in [&secret, &single] {
        ann.set_acl(hold.node(), &[ANN.may_all()]).await;
    }
    // Longer than any lease.
    tokio::time::sleep(SESSION * 3 / 4).await;
    for hold in [&first, &secret, &last] {
        assert_eq!(hold.state(), HoldState::Held, "{}", hold.path());
        assert!(!soon(hold.confirm()).await.unwrap().is_zero());
    }
    // Newer servers do not say whether this node is still the same one, and its name does not show it either.
    let is_told = [HoldState::Held, HoldState::Lost(LossReason::NodeDeleted)].contains(&single.state());
    assert!(is_told, "{:?}", single.state());
    // A deletion is still reported.
    for gone in [last, secret] {
        operator().delete(gone.node());
        assert_eq!(soon(gone.lost()).await, Ok(Some(LossReason::NodeDeleted)));
    }
    assert_eq!(first.state(), HoldState::Held);
    soon(first.release()).await.unwrap();
    // Newer servers do not let the client see who owns this node, but list the nodes of its session.
    drop(single);
    settled(&bob).await;
    assert_eq!(ann.children("/rights-taken/single").await, [""; 0]);
    soon(bob.close()).await.unwrap();
    assert_eq!(ann.children("/rights-taken/secret").await, [""; 0]);
}
