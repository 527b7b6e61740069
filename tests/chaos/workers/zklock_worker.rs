//! zklock's Rust face under chaos: see ../README.md for its arguments and its lines.

mod common;

use std::thread::sleep;
use std::time::{Duration, Instant};

use common::{Line, Outcome, PATIENCE, SLOW, millis, now, time};
use ground::Dice;
use zklock::further::AfterFailure;
use zklock::{
    Begun, Client, ClientOptions, ErrorKind, Hold, HoldState, Job, JobSpec, Lock, LockSpec, LossReason, Run,
};

const LINGER: Duration = Duration::from_secs(2);

/// What can be done in a turn.
enum Work {
    Lock(Lock),
    Job(Job),
}

/// The lock of a word such as `semaphore=2:/a`, or the job of one such as `job=1000:/a`.
fn work(client: &Client, word: &str) -> Outcome<Work> {
    let (kind, path) = word.split_once(':').ok_or("KIND:PATH")?;
    if let Some((kind @ ("job" | "job-next"), every)) = kind.split_once('=') {
        let after_failure = if kind == "job" { AfterFailure::Again } else { AfterFailure::Next };
        let spec = JobSpec::new(path, Duration::from_millis(every.parse()?))?;
        return Ok(Work::Job(client.job(&spec.after_failure(after_failure))?));
    }
    let spec = match kind.split_once('=') {
        Some(("semaphore", count)) => LockSpec::semaphore(path, count.parse()?)?,
        None if kind == "mutex" => LockSpec::mutex(path)?,
        None if kind == "lingering" => LockSpec::mutex(path)?.linger(LINGER),
        None if kind == "read" => LockSpec::read_lock(path)?,
        None if kind == "write" => LockSpec::write_lock(path)?,
        None if kind == "exclusive" => LockSpec::single_node(path)?,
        _ => return Err(format!("no kind: {kind}").into()),
    };
    Ok(Work::Lock(client.lock(&spec)?))
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
    let got = if dice.chance(20) {
        lock.try_acquire().wait()
    } else {
        lock.acquire_timeout(PATIENCE).wait().map(Some)
    };
    let hold = match got {
        Ok(Some(hold)) => hold,
        Ok(None) => return gave(line, turn, "busy"),
        Err(error) if error.kind() == ErrorKind::Timeout => return gave(line, turn, "timeout"),
        Err(error) => return gave(line, turn, &format!("{:?}", error.kind())),
    };
    claim(line, turn, &hold, times)?;
    // Whether the release is confirmed does not matter here: the claim is over.
    let _ = hold.release().wait();
    line.say(&format!("free {turn} {}", now()))
}

/// One turn with a job: it may have been done already.
fn run_once(
    line: &mut Line,
    dice: &mut Dice,
    turn: u64,
    word: &str,
    job: &Job,
    times: (Duration, Duration),
) -> Outcome<()> {
    line.say(&format!("want {turn} {word} {}", now()))?;
    let (patience, late) = if dice.chance(50) { (Duration::ZERO, "busy") } else { (PATIENCE, "timeout") };
    let run = match job.begin_timeout(patience).wait() {
        Ok(Begun::Run(run)) => run,
        Ok(Begun::Done(last)) => {
            return line.say(&format!("over {turn} {} {} {}", last.token.value(), last.period(), now()));
        }
        Err(error) if error.kind() == ErrorKind::Timeout => return gave(line, turn, late),
        Err(error) => return gave(line, turn, &format!("{:?}", error.kind())),
    };
    line.say(&format!("runs {turn} {} {}", run.hold().token().value(), now()))?;
    let is_held = claim(line, turn, run.hold(), times)?;
    let outcome = end(line, dice, turn, &run, is_held)?;
    drop(run);
    line.say(&format!("ended {turn} {} {outcome}", now()))?;
    line.say(&format!("free {turn} {}", now()))
}

/// Ends a run, and returns what is known of its record. A program that does not look whether it still holds the lock says that it
/// is done, too.
fn end(line: &mut Line, dice: &mut Dice, turn: u64, run: &Run, is_held: bool) -> Outcome<&'static str> {
    if dice.chance(if is_held { 80 } else { 50 }) {
        line.say(&format!("ends {turn} {}", now()))?;
        return Ok(match run.done().wait().map_err(|error| error.kind()) {
            Ok(()) => "done",
            // The library knows that it is not recorded.
            Err(ErrorKind::Lost(_) | ErrorKind::NotHeld | ErrorKind::Conflict) => "failed",
            Err(_) => "unknown",
        });
    }
    if dice.chance(50) {
        // Whether that is recorded does not matter: it is not done.
        let _ = run.failed("by chance").wait();
    }
    Ok("failed")
}

/// Claims the lock for a time, unless it is lost before. Returns whether it is still held.
fn claim(line: &mut Line, turn: u64, hold: &Hold, times: (Duration, Duration)) -> Outcome<bool> {
    if hold.valid_for().is_zero() {
        return lost(line, turn, hold);
    }
    line.say(&format!("have {turn} {} {} {}", hold.token().value(), hold.node(), now()))?;
    let (end, step) = (Instant::now() + times.0, times.1);
    let mut named = 0;
    loop {
        let (seen, valid_for) = (now(), hold.valid_for());
        if valid_for.is_zero() {
            rely(line, turn, hold, named)?;
            return lost(line, turn, hold);
        }
        named = named.max(seen + u64::try_from(valid_for.as_nanos())?);
        if Instant::now() >= end || line.is_over() {
            line.say(&format!("done {turn} {seen}"))?;
            return Ok(true);
        }
        line.say(&format!("still {turn} {seen}"))?;
        sleep(step);
    }
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

fn lost(line: &mut Line, turn: u64, hold: &Hold) -> Outcome<bool> {
    // It may be at risk first: its lease is over, but the servers have not yet said what became of it.
    let why = match hold.state() {
        HoldState::Lost(reason) => format!("{reason:?}"),
        state => format!("{state:?}"),
    };
    line.say(&format!("lost {turn} {} {why}", now()))?;
    Ok(false)
}

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [hosts, session, register, name, seed, locks @ ..] = words.as_slice() else {
        return Err("HOSTS SESSION_MS REGISTER NAME SEED LOCK...".into());
    };
    let session = Duration::from_millis(session.parse()?);
    let mut dice = Dice::new(seed.parse()?);
    let mut line = Line::open(register, name)?;
    let client = Client::lazy(ClientOptions::new(hosts).session_timeout(session).identity(name));
    let works = locks.iter().map(|word| Ok((word, work(&client, word)?))).collect::<Outcome<Vec<_>>>()?;
    for turn in 1.. {
        if line.is_over() {
            break;
        }
        let (word, work) = &works[dice.below(works.len())];
        match work {
            Work::Lock(lock) => {
                let times = time(&mut dice, word, session);
                take(&mut line, &mut dice, turn, word, lock, times)?;
                if dice.chance(33) {
                    sleep(millis(&mut dice, 20));
                }
            }
            Work::Job(job) => {
                let is_slow = dice.chance(20);
                let times = time(&mut dice, if is_slow { SLOW } else { word }, session);
                run_once(&mut line, &mut dice, turn, word, job, times)?;
                sleep(millis(&mut dice, 200));
            }
        }
    }
    client.close().wait()?;
    Ok(())
}
