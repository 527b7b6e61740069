//! The rounds of a double barrier: its members begin together, end together, and leave nothing.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use ground::Dice;
use tokio::time::{sleep, timeout};
use zklock::further::Member;
use zklock::{Client, ErrorKind, LossReason};

use crate::actors::{PATIENCE, Stage};
use crate::plan::{SESSION, millis};

pub(crate) const BARRIER: &str = "/round";
/// How many members open it. As many clients take part, so that none comes late to a round that ends, unless one died.
pub(crate) const MEMBERS: usize = 2;
const READY: &str = "ready";

/// What the quorum has committed.
#[derive(Default)]
pub(crate) struct Rounds {
    /// The children of the barrier, with the transactions that last wrote them.
    there: BTreeMap<String, i64>,
    /// The transaction that opened the barrier for each member.
    opened: BTreeMap<String, i64>,
}

impl Rounds {
    /// Looks at the barrier after one commit. Returns what is wrong.
    pub(crate) fn see(&mut self, there: BTreeMap<String, i64>) -> Option<String> {
        let before = std::mem::replace(&mut self.there, there).remove(READY);
        let ready = *self.there.get(READY).filter(|ready| before != Some(**ready))?;
        let members = || self.there.keys().filter(|name| *name != READY);
        let (count, goes_on) = (members().count(), members().any(|name| self.is_within(name)));
        let outside: Vec<_> = members().filter(|name| !self.is_within(name)).cloned().collect();
        self.opened.extend(outside.into_iter().map(|name| (name, ready)));
        (count < MEMBERS && !goes_on).then(|| format!("{BARRIER} is opened for {count}"))
    }

    /// Whether the barrier has been opened for a member. If an operator deletes a node before its owner knows that it exists, its
    /// owner makes it again, of the same name: the barrier is not open for that one.
    fn is_within(&self, name: &str) -> bool {
        self.opened.get(name).is_some_and(|opened| self.there.get(name).is_some_and(|made| made < opened))
    }

    /// The members that must leave before this one has left.
    fn company(&self, own: &str) -> Vec<String> {
        let opened = |name: &str| self.opened.get(name).copied().unwrap_or(i64::MAX);
        let counts = |name: &&String| **name != own && self.is_within(name) && opened(name) <= opened(own);
        self.there.keys().filter(counts).cloned().collect()
    }
}

/// One task that goes through round after round until the run is over.
pub(crate) async fn act(stage: Rc<Stage>, client: Client, name: String, mut dice: Dice) {
    let barrier = client.double_barrier(BARRIER, MEMBERS as u32).expect("a barrier");
    while !stage.is_over.get() {
        let entered = match if stage.is_calm.get() { 9 } else { dice.below(10) } {
            0 => barrier.enter_timeout(Duration::ZERO).await.map(Some),
            1..3 => {
                let tried = timeout(millis(&mut dice, 0, 300), barrier.enter()).await;
                tried.map_or(Ok(None), |entered| entered.map(Some))
            }
            // The other member comes, too, sooner or later. If each waits for the other, this never ends.
            _ => tokio::select! {
                entered = barrier.enter() => entered.map(Some),
                () = async { while !stage.is_over.get() { sleep(SESSION).await; } } => Ok(None),
            },
        };
        let done = match entered {
            Ok(Some(member)) => keep(&stage, member, &name, &mut dice).await,
            other => other.map(drop),
        };
        match done.map_err(|error| (error.kind(), error)) {
            // One that enters goes on in its next session.
            Ok(()) | Err((ErrorKind::Timeout | ErrorKind::Unreachable, _)) => {}
            Err((_, error)) => stage.trouble(&format!("{name}: {error}")),
        }
        sleep(millis(&mut dice, 1, 150)).await;
    }
}

/// Stays within for a time, and leaves.
async fn keep(stage: &Stage, member: Member, name: &str, dice: &mut Dice) -> Result<(), zklock::Error> {
    let own = member.node().rsplit('/').next().unwrap_or_default().to_owned();
    if !stage.rounds.borrow().opened.contains_key(&own) {
        stage.trouble(&format!("{name}: {own} is within before the barrier was opened"));
    }
    let longest = if dice.chance(12) && !stage.is_calm.get() { 3 * SESSION.as_millis() } else { 30 };
    sleep(millis(dice, 0, longest as usize)).await;
    let company = stage.rounds.borrow().company(&own);
    let left = match if stage.is_calm.get() { 9 } else { dice.below(8) } {
        0 => {
            drop(member);
            return Ok(());
        }
        1 => member.leave_timeout(Duration::ZERO).await,
        _ => match timeout(6 * PATIENCE, member.leave()).await {
            Ok(left) => left,
            Err(_) => {
                stage.trouble(&format!("{name}: {own} does not end to leave"));
                return Ok(());
            }
        },
    };
    match left.as_ref().map_err(zklock::Error::kind) {
        Ok(()) => {
            let still = stage.rounds.borrow().company(&own);
            if let Some(other) = company.iter().find(|other| still.contains(other)) {
                stage.trouble(&format!("{name}: {own} has left, and {other} has not"));
            }
            if stage.is_calm.get() {
                stage.served.borrow_mut().push(name.to_owned());
            }
        }
        Err(ErrorKind::Lost(LossReason::NodeDeleted))
            if !stage.claims.borrow().is_deleted(&format!("{BARRIER}/{own}")) =>
        {
            stage.trouble(&format!("{name}: {own} is told that it was deleted, which nobody did"));
        }
        Err(ErrorKind::Lost(_)) => return Ok(()),
        Err(_) => {}
    }
    left
}
