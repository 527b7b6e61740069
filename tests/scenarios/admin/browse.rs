//! Listing the nodes.

use crate::support::{client, operator, soon};
use ground::wire::Mode;
use zklock::ErrorKind;

#[tokio::test]
async fn the_nodes_below_a_node_are_listed_in_order() {
    let (client, operator) = (client().await, operator());
    operator.create_all("/browse/b/c", "");
    operator.create_mode("/browse/a", "", Mode::Ephemeral);
    assert_eq!(soon(client.children("/browse")).await.unwrap(), ["a", "b"]);
    assert_eq!(soon(client.children("/browse/b/c")).await.unwrap(), [""; 0]);
    assert!(soon(client.children("/")).await.unwrap().contains(&"browse".to_owned()));
    assert_eq!(soon(client.children("/browse/nothing")).await.unwrap(), [""; 0], "it does not exist");
}

#[tokio::test]
async fn a_bad_path_is_no_node() {
    let client = client().await;
    for path in ["", "browse", "/browse/"] {
        let error = soon(client.children(path)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{path:?}");
    }
}
