//! Five workers, each a process of its own, share one lock. One of them is killed while it holds the lock; when its
//! session has timed out, the next takes over.
//!
//!     cargo run --example quickstart -- --connect 127.0.0.1:2181

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};
use zklock_core::ClientOptions;
use zklock_core::blocking::Client;

const USAGE: &str = "\
usage: quickstart --connect HOSTS

  --connect HOSTS   the servers, host:port,host:port; a /chroot may follow
  --help            this text

Five workers share the lock /zklock-quickstart. One is killed while it holds it.";

const LOCK: &str = "/zklock-quickstart";
const WORKERS: usize = 5;
/// The how many-th holder is killed: there are others behind it.
const VICTIM: usize = 3;
/// Short, so that nobody has to wait long for the lock of a worker that was killed.
const SESSION_TIMEOUT: Duration = Duration::from_secs(4);
const PATIENCE: Duration = Duration::from_secs(60);

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        ["--connect", hosts] => supervise(hosts),
        ["--connect", hosts, "--worker", number] => work(hosts, number),
        ["--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        _ => Err(USAGE.into()),
    };
    match outcome {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            std::process::ExitCode::FAILURE
        }
    }
}

/// What one worker does: this is all that a user of the lock has to write.
fn work(hosts: &str, number: &str) -> Result<()> {
    let options = ClientOptions::new(hosts)?
        .session_timeout(SESSION_TIMEOUT)?
        .connect_timeout(Duration::from_secs(5))
        .identity(&format!("worker-{number}"))?;
    let client = Client::connect(options)?;
    let lock = client.mutex(LOCK)?;

    let hold = lock.acquire_timeout(PATIENCE)?;
    println!("holds {}", hold.token());
    // The work. A real one would look at hold.valid_for(), or wait for hold.loss().wait(), as it goes.
    thread::sleep(Duration::from_millis(300));
    hold.release()?;
    println!("released");
    client.close()?;
    Ok(())
}

/// A worker, and a line that it printed.
type Report = (usize, String);

fn supervise(hosts: &str) -> Result<()> {
    let start = Instant::now();
    let say = |text: String| println!("{:6.2} s  {text}", start.elapsed().as_secs_f64());
    // Fails early, and with a better message than five workers would.
    Client::connect(ClientOptions::new(hosts)?.connect_timeout(Duration::from_secs(5)))?.close()?;
    say(format!("{WORKERS} workers want the lock {LOCK} on {hosts}"));

    let (reports, inbox) = mpsc::channel();
    let mut workers = Vec::new();
    for number in 1..=WORKERS {
        workers.push(start_worker(hosts, number, reports.clone())?);
    }
    drop(reports);

    let mut tokens: Vec<u64> = Vec::new();
    let mut victim = None;
    for (number, line) in inbox {
        if let Some(token) = line.strip_prefix("holds ") {
            say(format!("worker {number} holds the lock, token {token}"));
            tokens.push(token.parse()?);
            if tokens.len() == VICTIM {
                workers[number - 1].kill()?;
                victim = Some(number);
                say(format!("worker {number} is killed; its lock is free when its session has timed out"));
            }
        } else {
            say(format!("worker {number} has {line} the lock"));
        }
    }
    for (number, worker) in (1..).zip(&mut workers) {
        let status = worker.wait()?;
        if !status.success() && victim != Some(number) {
            return Err(format!("worker {number} failed: {status}").into());
        }
    }
    if tokens.len() != WORKERS || !tokens.is_sorted_by(|earlier, later| earlier < later) {
        return Err(format!("{WORKERS} growing tokens were expected, not {tokens:?}").into());
    }
    say("done: everyone had the lock once, and every token was greater than the one before".to_owned());
    Ok(())
}

fn start_worker(hosts: &str, number: usize, reports: mpsc::Sender<Report>) -> Result<Child> {
    let arguments = ["--connect", hosts, "--worker", &number.to_string()];
    let mut child = Command::new(std::env::current_exe()?).args(arguments).stdout(Stdio::piped()).spawn()?;
    let output = child.stdout.take().ok_or("the worker has no output")?;
    thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(std::result::Result::ok) {
            // Nobody listens any more when the supervisor has failed.
            let _ = reports.send((number, line));
        }
    });
    Ok(child)
}
