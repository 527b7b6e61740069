//! Clients of the library as it ships, which take locks in turn.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use ground::Dice;
use tokio::time::{sleep, timeout};
use zklock::{Client, ClientOptions, ErrorKind, Hold, LockSpec};

use crate::claims::{Claims, Mode};
use crate::faults::{self, Faults};
use crate::network::{Shared, hosts};
use crate::plan::{SESSION, millis};
use crate::rounds::{BARRIER, Rounds};
use crate::writes::Writes;

const LINGER: Duration = Duration::from_secs(1);
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// The locks that clients take: a kind, and a path with few rivals.
const KINDS: &[(&str, &str, Mode)] = &[
    ("mutex", "/mutex", Mode::Alone),
    ("lingering", "/mutex", Mode::Alone),
    ("passed on", "/mutex", Mode::Alone),
    ("read", "/sides", Mode::Shared),
    ("lingering read", "/sides", Mode::Shared),
    ("write", "/sides", Mode::Alone),
    ("semaphore", "/permits", Mode::Counted(2)),
    ("exclusive", "/exclusive", Mode::Alone),
];

/// How many kinds there are.
pub(crate) const LOCKS: usize = KINDS.len();

fn spec(kind: &str, path: &str) -> Result<LockSpec, zklock::Error> {
    Ok(match kind {
        "lingering" => LockSpec::mutex(path)?.linger(LINGER),
        "passed on" => LockSpec::mutex(path)?.max_local_handoffs(2),
        "read" => LockSpec::read_lock(path)?,
        "lingering read" => LockSpec::read_lock(path)?.linger(LINGER),
        "write" => LockSpec::write_lock(path)?,
        "semaphore" => LockSpec::semaphore(path, 2)?,
        "exclusive" => LockSpec::single_node(path)?,
        _ => LockSpec::mutex(path)?,
    })
}

/// The state that all clients of a run share.
pub(crate) struct Stage {
    pub(crate) network: Shared,
    pub(crate) faults: RefCell<Faults>,
    pub(crate) claims: RefCell<Claims>,
    /// Whether the faults are over, so that each task must get a lock: see [`Stage::served`].
    pub(crate) is_calm: Cell<bool>,
    pub(crate) is_over: Cell<bool>,
    pub(crate) troubles: RefCell<Vec<String>>,
    /// The tasks that have had a lock since the faults are over.
    pub(crate) served: RefCell<Vec<String>>,
    pub(crate) lost: Cell<u64>,
    pub(crate) writes: Writes,
    pub(crate) rounds: RefCell<Rounds>,
    pub(crate) has_rounds: bool,
    /// The kinds that are taken, by index.
    pub(crate) locks: Vec<usize>,
    /// The numbers of the living clients.
    pub(crate) numbers: RefCell<Vec<usize>>,
}

impl Stage {
    pub(crate) fn now(&self) -> Duration {
        self.network.borrow().now()
    }

    pub(crate) async fn sleep_until(&self, time: Duration) {
        sleep(time.saturating_sub(self.now())).await;
    }

    /// When [`step`](Self::step) must be called next, at the latest.
    pub(crate) fn next(&self) -> Duration {
        self.network.borrow().next().min(self.faults.borrow().next())
    }

    /// Time has passed: does the work that is due, and checks whether all clients' claims can be true.
    pub(crate) fn step(&self) {
        faults::step(self, self.now());
        self.network.borrow_mut().step();
        let commits = std::mem::take(&mut self.network.borrow_mut().replicas.rounds);
        for there in commits {
            if let Some(problem) = self.rounds.borrow_mut().see(there) {
                self.trouble(&problem);
            }
        }
        self.look();
    }

    fn look(&self) {
        let now = self.now();
        self.claims.borrow_mut().look(now);
    }

    pub(crate) fn trouble(&self, text: &str) {
        let now = self.now();
        self.troubles.borrow_mut().push(format!("at {now:?} {text}"));
    }
}

/// Whether it is a node of a holder or waiter.
pub(crate) fn is_of_lock(path: &str) -> bool {
    is_contender(path) || path.ends_with("-of-lock") || is_member(path)
}

/// Whether it is a node of a member of the double barrier.
pub(crate) fn is_member(path: &str) -> bool {
    path.strip_prefix(BARRIER).is_some_and(|name| name.len() > "/ready".len())
}

/// Whether an operator would take it for a contender.
pub(crate) fn is_contender(path: &str) -> bool {
    // In the names of readers and writers no hyphen precedes the number.
    path.ends_with("/lock") || path.bytes().rev().take_while(u8::is_ascii_digit).count() >= 10
}

pub(crate) fn options(number: usize) -> Result<ClientOptions, zklock::Error> {
    let options = ClientOptions::new(&hosts(number))
        .session_timeout(SESSION)
        .identity(&format!("client {number}"))
        .server_version(3, 8);
    // Some have as few heartbeats as can be.
    Ok(if number % 3 == 2 { options.loss_timeout(SESSION / 3) } else { options })
}

/// One task of a client, which takes turns until the run is over.
pub(crate) async fn act(stage: Rc<Stage>, client: Client, number: usize, name: String, mut dice: Dice) {
    while !stage.is_over.get() {
        let (kind, path, mode) = KINDS[dice.pick(&stage.locks)];
        let lock = match spec(kind, path).and_then(|spec| client.lock(&spec)) {
            Ok(lock) => lock,
            Err(error) => return stage.trouble(&format!("{name}: {error}")),
        };
        let outcome = match dice.below(10) {
            0..3 => lock.try_acquire().await,
            // A call that is dropped must leave nothing.
            3 => match timeout(millis(&mut dice, 0, 300), lock.acquire()).await {
                Ok(outcome) => outcome.map(Some),
                Err(_) => Ok(None),
            },
            _ => lock.acquire_timeout(PATIENCE).await.map(Some),
        };
        match outcome {
            Ok(Some(hold)) => {
                if stage.is_calm.get() {
                    stage.served.borrow_mut().push(name.clone());
                }
                let stays = lock.spec().is_passed_on();
                let held =
                    Held { hold: Rc::new(hold), path, mode, stays, client: (number, client.session_id()) };
                keep(&stage, held, &name, &mut dice).await;
            }
            Ok(None) => {}
            Err(error) => {
                let is_expected =
                    matches!(error.kind(), ErrorKind::Timeout | ErrorKind::Unreachable | ErrorKind::Lost(_));
                if !is_expected {
                    stage.trouble(&format!("{name}, {kind}: {:?}: {error}", error.kind()));
                }
            }
        }
        sleep(millis(&mut dice, 1, 150)).await;
    }
}

struct Held {
    hold: Rc<Hold>,
    path: &'static str,
    mode: Mode,
    /// Whether its node may linger.
    stays: bool,
    client: (usize, Option<i64>),
}

/// Holds for a time, or until the hold is lost, and releases.
async fn keep(stage: &Rc<Stage>, held: Held, name: &str, dice: &mut Dice) {
    let Held { hold, path, mode, stays, client } = held;
    let claim = stage.claims.borrow_mut().begin(path, mode, client, hold.clone(), stage.now());
    // Check the claims before anybody else learns of this grant.
    stage.look();
    // When the faults are over everybody must get a turn, even if the lock has no queue.
    let longest = if dice.chance(12) && !stage.is_calm.get() { 3 * SESSION.as_millis() } else { 30 };
    let time = millis(dice, 0, usize::try_from(longest).unwrap_or(0));
    if dice.chance(20) {
        if let Some(problem) = stage.writes.write(&hold).await {
            stage.trouble(&format!("{name}: {problem}"));
        }
    }
    let lost = timeout(time, hold.lost()).await;
    if lost.is_ok() {
        stage.lost.set(stage.lost.get() + 1);
        if !hold.valid_for().is_zero() {
            stage.trouble(&format!("{name}: {} is lost and valid", hold.node()));
        }
        // Some look only once, and then rely on the answer to its end.
        let named = stage.claims.borrow().named(claim);
        if dice.chance(50) {
            sleep(named.saturating_sub(stage.now())).await;
        }
    }
    stage.claims.borrow_mut().end(claim);
    let (node, token) = (hold.node().to_owned(), hold.token().value());
    match dice.below(4) {
        // A drop releases in the background.
        0 => drop(hold),
        _ => {
            let created = || {
                stage.network.borrow().replicas.created(&node).and_then(|created| u64::try_from(created).ok())
            };
            match timeout(6 * PATIENCE, hold.release()).await {
                Ok(Ok(())) if !stays && created() == Some(token) => {
                    stage.trouble(&format!("{name}: {node} is released and there"));
                }
                Ok(_) => {}
                Err(_) => stage.trouble(&format!("{name}: the release of {node} does not end")),
            }
        }
    }
}
