//! zklock's Rust face under chaos: see ../README.md for its arguments and its lines.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use ground::Dice;
use zklock::further::AfterFailure;
use zklock::{
    Begun, Client, ClientOptions, ErrorKind, Hold, HoldState, Job, JobSpec, Lock, LockSpec, LossReason, Run,
};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const LINGER: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(10);

/// The clock that all processes of a machine share.
fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let number = |part: i64| u64::try_from(part).unwrap_or_default();
    number(time.tv_sec) * 1_000_000_000 + number(time.tv_nsec)
}

/// The line to the register.
struct Line {
    socket: TcpStream,
    is_over: Arc<AtomicBool>,
    /// The number of the turn.
    turn: u64,
}

/// How long a turn holds the lock, and how often the worker says so.
type Times = (Duration, Duration);

impl Line {
    fn open(address: &str, name: &str) -> Outcome<Self> {
        let mut socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let (mut reading, tells) = (socket.try_clone()?, Arc::clone(&is_over));
        std::thread::spawn(move || {
            // The register never sends anything: whatever comes, or an error, is the end.
            let _ = reading.read(&mut [0]);
            tells.store(true, Ordering::Relaxed);
        });
        socket.write_all(format!("hello {name} {}\n", std::process::id()).as_bytes())?;
        Ok(Self { socket, is_over, turn: 0 })
    }

    fn say(&mut self, word: &str, rest: std::fmt::Arguments<'_>) -> Outcome<()> {
        Ok(self.socket.write_all(format!("{word} {} {rest}\n", self.turn).as_bytes())?)
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

/// A time of up to this number of microseconds.
fn micros(dice: &mut Dice, most: u64) -> Duration {
    Duration::from_micros(dice.throw() % (most + 1))
}

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
fn gave(line: &mut Line, reason: &str) -> Outcome<()> {
    line.say("gave", format_args!("{} {reason}", now()))?;
    if !matches!(reason, "busy" | "timeout") {
        sleep(Duration::from_millis(100));
    }
    Ok(())
}

fn take(line: &mut Line, dice: &mut Dice, word: &str, lock: &Lock, times: Times) -> Outcome<()> {
    line.say("want", format_args!("{word} {}", now()))?;
    let got = if dice.chance(20) {
        lock.try_acquire().wait()
    } else {
        lock.acquire_timeout(PATIENCE).wait().map(Some)
    };
    let hold = match got {
        Ok(Some(hold)) => hold,
        Ok(None) => return gave(line, "busy"),
        Err(error) if error.kind() == ErrorKind::Timeout => return gave(line, "timeout"),
        Err(error) => return gave(line, &format!("{:?}", error.kind())),
    };
    claim(line, &hold, times)?;
    // Whether the release is confirmed does not matter here: the claim is over.
    let _ = hold.release().wait();
    line.say("free", format_args!("{}", now()))
}

/// One turn with a job: it may have been done already.
fn run_once(line: &mut Line, dice: &mut Dice, word: &str, job: &Job, times: Times) -> Outcome<()> {
    line.say("want", format_args!("{word} {}", now()))?;
    let (patience, late) = if dice.chance(50) { (Duration::ZERO, "busy") } else { (PATIENCE, "timeout") };
    let run = match job.begin_timeout(patience).wait() {
        Ok(Begun::Run(run)) => run,
        Ok(Begun::Done(last)) => {
            return line.say("over", format_args!("{} {} {}", last.token.value(), last.period(), now()));
        }
        Err(error) if error.kind() == ErrorKind::Timeout => return gave(line, late),
        Err(error) => return gave(line, &format!("{:?}", error.kind())),
    };
    line.say("runs", format_args!("{} {}", run.hold().token().value(), now()))?;
    let is_held = claim(line, run.hold(), times)?;
    let outcome = end(line, dice, &run, is_held)?;
    drop(run);
    line.say("ended", format_args!("{} {outcome}", now()))?;
    line.say("free", format_args!("{}", now()))
}

/// Ends a run, and returns what is known of its record. A program that does not look whether it still holds the lock says that it
/// is done, too.
fn end(line: &mut Line, dice: &mut Dice, run: &Run, is_held: bool) -> Outcome<&'static str> {
    if dice.chance(if is_held { 80 } else { 50 }) {
        line.say("ends", format_args!("{}", now()))?;
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
fn claim(line: &mut Line, hold: &Hold, times: Times) -> Outcome<bool> {
    if hold.valid_for().is_zero() {
        return lost(line, hold);
    }
    line.say("have", format_args!("{} {} {}", hold.token().value(), hold.node(), now()))?;
    let (end, step) = (Instant::now() + times.0, times.1);
    let mut named = 0;
    loop {
        let (seen, valid_for) = (now(), hold.valid_for());
        if valid_for.is_zero() {
            rely(line, hold, named)?;
            return lost(line, hold);
        }
        named = named.max(seen + u64::try_from(valid_for.as_nanos())?);
        if Instant::now() >= end || line.is_over() {
            line.say("done", format_args!("{seen}"))?;
            return Ok(true);
        }
        line.say("still", format_args!("{seen}"))?;
        sleep(step);
    }
}

/// Relies on what was named to its end, as a program does that looks once and then works. Only an operator may end it
/// sooner.
fn rely(line: &mut Line, hold: &Hold, named: u64) -> Outcome<()> {
    if matches!(hold.state(), HoldState::Lost(LossReason::NodeDeleted | LossReason::SessionExpired)) {
        return Ok(());
    }
    while now() < named && !line.is_over() {
        sleep(Duration::from_millis(1));
    }
    line.say("still", format_args!("{}", named.min(now())))
}

fn lost(line: &mut Line, hold: &Hold) -> Outcome<bool> {
    // It may be at risk first: its lease is over, but the servers have not yet said what became of it.
    let why = match hold.state() {
        HoldState::Lost(reason) => format!("{reason:?}"),
        state => format!("{state:?}"),
    };
    line.say("lost", format_args!("{} {why}", now()))?;
    Ok(false)
}

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [hosts, session, register, name, seed, times, locks @ ..] = words.as_slice() else {
        return Err("arguments: see ../README.md".into());
    };
    let times = times.split(',').map(str::parse).collect::<Result<Vec<u64>, _>>()?;
    let [usual, rare, step] = times[..] else { return Err("USUAL,RARE,STEP".into()) };
    let session = Duration::from_millis(session.parse()?);
    let mut dice = Dice::new(seed.parse()?);
    let mut line = Line::open(register, name)?;
    let client = Client::lazy(ClientOptions::new(hosts).session_timeout(session).identity(name));
    let works = locks.iter().map(|word| Ok((word, work(&client, word)?))).collect::<Outcome<Vec<_>>>()?;
    while !line.is_over() {
        line.turn += 1;
        let (word, work) = &works[dice.below(works.len())];
        let is_rare = dice.chance(if matches!(work, Work::Job(_)) { 20 } else { 10 });
        let times = (micros(&mut dice, if is_rare { rare } else { usual }), Duration::from_micros(step));
        match work {
            Work::Lock(lock) => {
                take(&mut line, &mut dice, word, lock, times)?;
                if dice.chance(33) {
                    sleep(micros(&mut dice, 20_000));
                }
            }
            Work::Job(job) => {
                run_once(&mut line, &mut dice, word, job, times)?;
                sleep(micros(&mut dice, 200_000));
            }
        }
    }
    client.close().wait()?;
    Ok(())
}
