//! The identity of an ensemble: tokens of two ensembles cannot be compared, and a fence can only tell them apart by it.

use crate::base::failure::Failure;
use crate::base::platform;
use crate::session::ask::while_refused;
use crate::session::session::Session;
use crate::zookeeper::ensemble::Write;
use std::sync::Arc;

/// The node that has it, below the client's chroot.
const NODE: &str = "/zklock-ensemble";
const LONGEST: usize = 64;
/// How many times the node is created if others create or delete it meanwhile.
const ROUNDS_AT_MOST: u32 = 3;

/// Says that it cannot be had.
pub(crate) fn problem() -> String {
    format!("the ensemble has no identity in {NODE}")
}

/// Asks for it, once for each session: no session lives on in another ensemble, but a client does.
pub(crate) async fn of(session: &Arc<Session>) -> Result<Arc<str>, Failure> {
    if let Some(id) = session.ensemble_id.get() {
        return Ok(id.clone());
    }
    let id = read_or_create(session).await?;
    Ok(session.ensemble_id.get_or_init(|| id).clone())
}

async fn read_or_create(session: &Arc<Session>) -> Result<Arc<str>, Failure> {
    while_refused(ROUNDS_AT_MOST, || async {
        if let Some(node) = session.read(NODE.into()).await? {
            let id = String::from_utf8(node.data).ok().filter(|id| is_valid(id));
            let refusal = || Failure::Refused("its data is not from zklock: delete the node".to_owned());
            return id.map(|id| Ok(id.into())).ok_or_else(refusal);
        }
        let id = platform::uuid().to_string();
        let create = Write::Create { path: NODE.to_owned(), data: id.clone().into_bytes() };
        match session.commit(Vec::new(), vec![create]).await {
            Ok(_) => Ok(Ok(id.into())),
            // Most likely, another client has created it.
            Err(Failure::Conflict { problem, .. }) => Ok(Err(problem)),
            Err(failure) => Err(failure),
        }
    })
    .await
}

fn is_valid(id: &str) -> bool {
    (1..=LONGEST).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic())
}
