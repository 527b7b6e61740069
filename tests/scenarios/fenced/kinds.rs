//! Promise 2, as every kind keeps it: a write guarded by a hold is refused with any of its nodes gone. (The single-node lock, whose
//! node the next holder has again: `single_node`.)

use crate::support::kinds::{ELECTION, LockKind, MUTEX, PERMITS, READER, SET, WRITER};
use crate::support::{client, operator, soon};
use zklock::{ErrorKind, LossReason};

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
