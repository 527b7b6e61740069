//! Questions to the ensemble that are repeated until there is an answer: within the connect timeout, within another
//! time, or as long as it takes. Also writes that are tried again while others write the same nodes.

use crate::base::clock;
use crate::base::error::{Error, ErrorKind, LossReason};
use crate::base::failure::Failure;
use crate::machine::protocol::{Operation, Outcome};
use crate::session::pool::Pool;
use crate::session::session::Session;
use crate::session::slot::{Slot, SlotState};
use crate::zookeeper::ensemble::{Landing, text_of};
use std::sync::Arc;
use std::time::Duration;

/// How long it takes to notice that a connection broke.
pub(crate) const MOMENT: Duration = Duration::from_millis(10);

/// Asks for an answer, within the connect timeout. `problem` says what could not be done if there is none.
pub(crate) async fn ask<T, F>(
    pool: &Pool,
    problem: impl Fn() -> String,
    call: impl Fn(Arc<Session>) -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<T, Failure>>,
{
    let slot = pool.slot();
    ask_within(pool.options().connect_timeout, slot, || slot.session(), problem, call).await
}

/// Like [`ask`], for no longer than `patience`. `session` finds the session to ask, and `slot` knows why there is no answer.
pub(crate) async fn ask_within<T, S, F>(
    patience: Duration,
    slot: &Slot,
    session: impl Fn() -> S,
    problem: impl Fn() -> String,
    call: impl Fn(Arc<Session>) -> F,
) -> Result<T, Error>
where
    S: Future<Output = Result<Arc<Session>, Error>>,
    F: Future<Output = Result<T, Failure>>,
{
    clock::timeout(patience, ask_for_ever(session, &problem, call)).await.unwrap_or_else(|_| {
        Err(Error::new(ErrorKind::Unreachable, format!("{}: {}", problem(), silence(slot))))
    })
}

/// Like [`ask_within`], but waits as long as it takes.
pub(crate) async fn ask_for_ever<T, S, F>(
    session: impl Fn() -> S,
    problem: impl Fn() -> String,
    call: impl Fn(Arc<Session>) -> F,
) -> Result<T, Error>
where
    S: Future<Output = Result<Arc<Session>, Error>>,
    F: Future<Output = Result<T, Failure>>,
{
    loop {
        let session = session().await?;
        match call(session.clone()).await {
            Ok(answer) => return Ok(answer),
            // Or the next try may find it open, and ask it again.
            Err(Failure::SessionOver) => session.end(LossReason::SessionExpired),
            // Another connection may bring the answer.
            Err(Failure::Unknown | Failure::TryAgain(_) | Failure::NotZooKeeper { .. }) => {}
            Err(why) => return Err(Error::new(ErrorKind::Refused, format!("{}: {why}", problem()))),
        }
        clock::sleep(MOMENT).await;
    }
}

/// Tries a write again if the server did not do it, at most `times` times. The inner error says why. Most likely, others
/// create or delete the same nodes at the same time.
pub(crate) async fn while_refused<T, F>(times: u32, mut write: impl FnMut() -> F) -> Result<T, Failure>
where
    F: Future<Output = Result<Result<T, String>, Failure>>,
{
    let mut refusals = 0;
    loop {
        match write().await? {
            Ok(done) => return Ok(done),
            Err(problem) if refusals == times => return Err(Failure::Refused(problem)),
            Err(_) => refusals += 1,
        }
    }
}

/// Makes sure that the next read is as new as anything that the caller may know of. A server that lags behind, or that
/// no longer leads and has not noticed, would answer from what it has.
pub(crate) async fn catch_up(session: &Arc<Session>, directory: &Arc<str>) -> Result<(), Failure> {
    request(session, Operation::Barrier { directory: directory.clone() }).await.map(|_| ())
}

/// Sends one request. If it sets a watch, the watch is in the landing.
pub(crate) async fn request(
    session: &Arc<Session>,
    operation: Operation,
) -> Result<(Outcome, Landing), Failure> {
    let mut landing = session.clone().send(vec![operation]).await;
    match landing.outcomes.pop() {
        None | Some(Outcome::Unknown) => Err(Failure::Unknown),
        Some(Outcome::SessionOver) => Err(Failure::SessionOver),
        Some(Outcome::Refused(refusal)) => Err(Failure::Refused(text_of(&refusal))),
        Some(outcome) => Ok((outcome, landing)),
    }
}

/// Returns why there is no answer yet, although the ensemble does answer.
pub(crate) fn too_short(slot: &Slot) -> String {
    let SlotState::Open(session) = slot.state() else { return silence(slot) };
    let lateness = session.lateness().map(|lateness| lateness.to_string());
    lateness.unwrap_or_else(|| "the time was too short for an answer: wait longer".to_owned())
}

/// Returns why the ensemble does not answer, or not in time.
pub(crate) fn silence(slot: &Slot) -> String {
    let (what, problem) = match slot.state() {
        SlotState::First(problem) | SlotState::Next(problem) if problem.is_some() => {
            ("no session could be opened", problem)
        }
        SlotState::Open(session) => match session.lateness() {
            Some(lateness) => return lateness.to_string(),
            None => ("no server answers", session.trouble().map(Into::into)),
        },
        _ => ("no server answers", None),
    };
    let problem = problem.map(|problem| format!(" ({problem})")).unwrap_or_default();
    format!("{what}{problem}: check hosts and network")
}
