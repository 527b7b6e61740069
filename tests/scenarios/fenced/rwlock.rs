//! Promise 2: tokens grow from writer to writer, from a writer to the readers after it, and from readers to the next
//! writer. Among readers, any order is allowed.

use crate::support::{expire_session, operator, proxied_client, soon};
use zklock::{Hold, Lock, LossReason};

async fn granted(lock: &Lock) -> (u64, Hold) {
    let hold = soon(lock.acquire()).await.unwrap();
    (hold.token().value(), hold)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_grow_over_both_sides_over_sessions_and_over_the_deletion_of_the_directory() {
    let (client, proxy) = proxied_client().await;
    let (operator, path) = (operator(), "/rwlock/tokens");
    let (read, write) = (client.read_lock(path).unwrap(), client.write_lock(path).unwrap());
    let mut tokens = Vec::new();
    for round in 0..3 {
        for lock in [&read, &write, &write, &read] {
            let (token, hold) = granted(lock).await;
            let stat = operator.stat(hold.node()).unwrap();
            assert_eq!(token, u64::try_from(stat.czxid).unwrap());
            soon(hold.release()).await.unwrap();
            tokens.push(token);
        }
        let (token, stale) = granted(if round == 1 { &write } else { &read }).await;
        tokens.push(token);
        if round == 2 {
            expire_session(&proxy);
            assert_eq!(soon(stale.lost()).await, Ok(Some(LossReason::SessionExpired)));
        } else {
            operator.delete_tree(path);
            assert_eq!(soon(stale.lost()).await, Ok(Some(LossReason::NodeDeleted)));
        }
    }
    tokens.push(granted(&write).await.0);
    assert!(tokens.is_sorted_by(|one, next| one < next), "{tokens:x?}");
}
