//! zklock's Rust face under chaos: see ../README.md for its arguments and its lines.

mod common;

use std::thread::sleep;
use std::time::{Duration, Instant};

use common::{Line, Outcome, PATIENCE, millis, now, time};
use ground::Dice;
use zklock_core::blocking::{Client, Hold, Lock};
use zklock_core::{ClientOptions, ErrorKind, HoldState, LockSpec, LossReason};

const LINGER: Duration = Duration::from_secs(2);

/// The lock of a word such as `semaphore=2:/a`.
fn lock(client: &Client, word: &str) -> Outcome<Lock> {
    let (kind, path) = word.split_once(':').ok_or("KIND:PATH")?;
    let spec = match kind.split_once('=') {
        Some(("semaphore", count)) => LockSpec::semaphore(path, count.parse()?)?,
        None if kind == "mutex" => LockSpec::mutex(path)?,
        None if kind == "lingering" => LockSpec::mutex(path)?.linger(LINGER),
        None if kind == "read" => LockSpec::read(path)?,
        None if kind == "write" => LockSpec::write(path)?,
        None if kind == "exclusive" => LockSpec::exclusive(path)?,
        _ => return Err(format!("no kind: {kind}").into()),
    };
    Ok(client.lock(&spec)?)
}

/// Reports that the worker does not get the lock in this turn, and why.
fn gave(line: &mut Line, turn: u64, reason: &str) -> Outcome<()> {
    line.say(&format!("gave {turn} {} {reason}", now()))?;
    if !matches!(reason, "busy" | "timeout") {
        sleep(Duration::from_millis(100));
    }
    Ok(())
}

fn take(
    line: &mut Line,
    dice: &mut Dice,
    turn: u64,
    word: &str,
    lock: &Lock,
    times: (Duration, Duration),
) -> Outcome<()> {
    line.say(&format!("want {turn} {word} {}", now()))?;
    let got = if dice.chance(20) { lock.try_acquire() } else { lock.acquire_timeout(PATIENCE).map(Some) };
    let hold = match got {
        Ok(Some(hold)) => hold,
        Ok(None) => return gave(line, turn, "busy"),
        Err(error) if error.kind() == ErrorKind::Timeout => return gave(line, turn, "timeout"),
        Err(error) => return gave(line, turn, &format!("{:?}", error.kind())),
    };
    if hold.valid_for().is_zero() {
        return let_go(line, turn, &hold);
    }
    line.say(&format!("have {turn} {} {} {}", hold.token().value(), hold.node(), now()))?;
    let (end, step) = (Instant::now() + times.0, times.1);
    let mut named = 0;
    loop {
        let (seen, valid_for) = (now(), hold.valid_for());
        if valid_for.is_zero() {
            rely(line, turn, &hold, named)?;
            return let_go(line, turn, &hold);
        }
        named = named.max(seen + u64::try_from(valid_for.as_nanos())?);
        if Instant::now() >= end || line.is_over() {
            line.say(&format!("done {turn} {seen}"))?;
            break;
        }
        line.say(&format!("still {turn} {seen}"))?;
        sleep(step);
    }
    // Whether the release is confirmed does not matter here: the claim is over.
    let _ = hold.release();
    line.say(&format!("free {turn} {}", now()))
}

/// Relies on what was named to its end, as a program does that looks once and then works. Only an operator may end it
/// sooner.
fn rely(line: &mut Line, turn: u64, hold: &Hold, named: u64) -> Outcome<()> {
    if matches!(hold.state(), HoldState::Lost(LossReason::NodeDeleted | LossReason::SessionExpired)) {
        return Ok(());
    }
    while now() < named && !line.is_over() {
        sleep(Duration::from_millis(1));
    }
    line.say(&format!("still {turn} {}", named.min(now())))
}

fn let_go(line: &mut Line, turn: u64, hold: &Hold) -> Outcome<()> {
    // It may be at risk first: its lease is over, but the servers have not yet said what became of it.
    let why = match hold.state() {
        HoldState::Lost(reason) => format!("{reason:?}"),
        state => format!("{state:?}"),
    };
    line.say(&format!("lost {turn} {} {why}", now()))?;
    let _ = hold.release();
    line.say(&format!("free {turn} {}", now()))
}

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [hosts, session, register, name, seed, locks @ ..] = words.as_slice() else {
        return Err("HOSTS SESSION_MS REGISTER NAME SEED LOCK...".into());
    };
    let session = Duration::from_millis(session.parse()?);
    let mut dice = Dice::new(seed.parse()?);
    let mut line = Line::open(register, name)?;
    let client = Client::lazy(ClientOptions::new(hosts)?.session_timeout(session)?.identity(name)?);
    let locks = locks.iter().map(|word| Ok((word, lock(&client, word)?))).collect::<Outcome<Vec<_>>>()?;
    for turn in 1.. {
        if line.is_over() {
            break;
        }
        let (word, lock) = &locks[dice.below(locks.len())];
        let times = time(&mut dice, word, session);
        take(&mut line, &mut dice, turn, word, lock, times)?;
        if dice.chance(33) {
            sleep(millis(&mut dice, 20));
        }
    }
    client.close()?;
    Ok(())
}
