//! Promise 2, as every kind keeps it: tokens of one path grow with every grant, and a write guarded by a hold is refused with any of
//! its nodes gone. (The single-node lock, whose node the next holder has again: `single_node`.)

use crate::support::kinds::{ELECTION, LockKind, MUTEX, PERMITS, READER, SET, WRITER};
use crate::support::loss::Blow;
use crate::support::{client, held, operator, proxied_client, soon};
use zklock::{ErrorKind, LossReason};

/// From a writer to the next and to the readers after it, and from readers to the next writer. Among readers, any order is allowed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tokens_grow_from_grant_to_grant_over_sessions_and_over_the_deletion_of_the_directory() {
    let ((client, proxy), operator) = (proxied_client().await, operator());
    let mutex = [client.mutex("/tokens/mutex").unwrap()];
    let [read, write] = [client.read_lock("/tokens/sides"), client.write_lock("/tokens/sides")];
    let (read, write) = (read.unwrap(), write.unwrap());
    for locks in [&mutex[..], &[read.clone(), write.clone(), write, read]] {
        let mut tokens = Vec::new();
        for (blow, lost) in Blow::ALL.into_iter().zip(locks.iter().cycle()) {
            for lock in locks {
                let hold = held(lock).await;
                tokens.push(hold.token().value());
                let stat = operator.stat(hold.node()).unwrap();
                assert_eq!(
                    (stat.czxid, Some(stat.ephemeral_owner)),
                    (tokens[tokens.len() - 1] as i64, client.session_id())
                );
                soon(hold.release()).await.unwrap();
            }
            let stale = held(lost).await;
            tokens.push(stale.token().value());
            blow.strike(&proxy, &operator, lost.path(), stale.node());
            assert_eq!(soon(stale.lost()).await, Ok(Some(blow.reason())));
        }
        tokens.push(held(locks.iter().nth_back(1).unwrap_or(&locks[0])).await.token().value());
        assert!(tokens.is_sorted_by(|one, next| one < next), "not growing: {tokens:x?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guarded_write_is_refused_when_an_operator_has_deleted_any_of_the_nodes() {
    let (client, operator) = (client().await, operator());
    for LockKind { name: kind, lock, .. } in [MUTEX, READER, WRITER, ELECTION, PERMITS, SET] {
        let (path, state) = (format!("/fenced-kinds/{kind}"), format!("/fenced-kinds-state/{kind}"));
        operator.create_all(&state, "0");
        for at in 0.. {
            let hold = soon(lock(&client, &path).acquire()).await.unwrap();
            let Some(node) = hold.nodes().nth(at).map(str::to_owned) else { break };
            soon(hold.guarded().set_data(&state, b"1", None).commit()).await.unwrap();
            operator.delete(&node);
            for _ in 0..2 {
                let refused = soon(hold.guarded().set_data(&state, b"2", None).commit()).await.unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::Lost(LossReason::NodeDeleted), "{kind}: {refused}");
                assert!(hold.valid_for().is_zero(), "{kind}");
            }
            operator.sync(&state);
            assert_eq!(operator.data(&state), b"1", "{kind}, without {node}");
        }
    }
}
