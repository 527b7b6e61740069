//! Keeps the lease of a session running while there are holds, and ends holds whose lease has not
//! been renewed: as the session's [`Keeper`](crate::machine::keeper::Keeper) says.

use crate::ensemble::Check;
use crate::platform;
use crate::session::Session;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;

type Beat = Pin<Box<dyn Future<Output = Check> + Send>>;

/// Runs for as long as it is polled.
pub(crate) async fn run(session: Arc<Session>) -> Infallible {
    let mut beat: Option<Beat> = None;
    let mut link = session.link();
    loop {
        let (proof, wake) = session.look_after();
        if let Some(proof) = proof {
            beat = Some(Box::pin(session.clone().check(proof)));
        }
        let Some(wake) = wake else {
            session.registered().await;
            continue;
        };
        tokio::select! {
            _ = poll(&mut beat) => beat = None,
            () = tokio::time::sleep(wake.since(platform::now())) => {}
            () = session.registered() => {}
            _ = link.changed() => {}
        }
    }
}

async fn poll(beat: &mut Option<Beat>) -> Check {
    match beat {
        Some(beat) => beat.await,
        None => std::future::pending().await,
    }
}
