//! Access lists on a server of 3.4, where every node is created by other requests than on later servers.

use super::old;
use crate::support::users::ANN;
use crate::support::{held, soon};
use zklock::Client;
use zklock::further::Access;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_that_is_created_there_has_the_list() {
    let (hosts, root) = (old().connect_string(), "/old-lists");
    let client = Client::connect(ANN.options(&hosts, Access::CreatorAll)).await.unwrap();
    let hold = held(&client.mutex(&format!("{root}/lock")).unwrap()).await;
    let (limit, barrier) = (format!("{root}/limit"), format!("{root}/barrier"));
    soon(client.set_limit(&limit, 2)).await.unwrap();
    assert!(soon(client.barrier(&barrier).unwrap().set()).await.unwrap());
    let operator = ANN.operator_at(&hosts).await;
    for node in [root, &format!("{root}/lock"), hold.node(), &limit, &barrier] {
        assert_eq!(operator.acl(node).await, [ANN.may_all()], "{node}");
    }
    soon(hold.release()).await.unwrap();
}
