//! Four workers, each a process of its own, share one lock and write to one ledger. One is killed while it holds the
//! lock; one is stopped while it holds the lock, and wakes when another has taken over: its late write is refused.
//!
//!     cargo run -p zklock-core --example quickstart                                 on a server in this process
//!     cargo run -p zklock-core --example quickstart -- --connect zk1:2181,zk2:2181  on an ensemble of yours

mod stage;
mod worker;

use std::error::Error;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use stage::{Stage, name};
use worker::LOCK;
use zklock_core::ClientOptions;
use zklock_core::blocking::{Client, Lock};

const USAGE: &str = "\
usage: quickstart [--connect HOSTS]

  --connect HOSTS   the servers, host:port,host:port; a /chroot may follow.
                    Without it, a throw-away server in memory is started
  --help            this text

Four workers share the lock /zklock-quickstart and write to a ledger. One is killed while it holds the lock, one is
stopped for longer than its session lasts.";

const WORKERS: usize = 4;

/// How long a worker works.
const WORK: Duration = Duration::from_millis(400);

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words[..] {
        [] => on_a_throw_away_server(),
        ["--connect", hosts] => Play::new(hosts).and_then(Play::perform),
        ["--connect", hosts, "--worker", name] => worker::work(hosts, name),
        ["--help" | "-h"] => {
            println!("{USAGE}");
            Ok(())
        }
        _ => Err(USAGE.into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn on_a_throw_away_server() -> Result<()> {
    // Ticks that are short enough for sessions of 2 s.
    let server = zklock_testkit::Server::builder().tick(Duration::from_millis(500)).start()?;
    println!("A ZooKeeper server in memory, for this run alone: {}", server.connect_string());
    Play::new(&server.connect_string()).and_then(Play::perform)
}

/// What happens to a worker while it holds the lock, in the order of the grants.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Works,
    IsKilled,
    IsStopped,
}

const FATES: [Fate; WORKERS] = [Fate::Works, Fate::IsKilled, Fate::IsStopped, Fate::Works];

/// The resource that the lock is for. It keeps the greatest token that has written, and refuses smaller ones: this is
/// what makes a late write harmless, however late it is.
#[derive(Default)]
struct Ledger {
    greatest: u64,
}

impl Ledger {
    fn write(&mut self, token: u64) -> bool {
        let is_accepted = token > self.greatest;
        self.greatest = self.greatest.max(token);
        is_accepted
    }
}

struct Play {
    stage: Stage,
    hosts: String,
    /// To look at the queue with.
    lock: Lock,
    client: Client,
    ledger: Ledger,
    /// Who was granted the lock, in order.
    grants: Vec<usize>,
    stopped: Option<usize>,
    refused: Vec<usize>,
    lost: Vec<usize>,
}

impl Play {
    fn new(hosts: &str) -> Result<Self> {
        let client = Client::connect(ClientOptions::new(hosts)?.connect_timeout(Duration::from_secs(5)))?;
        let lock = client.mutex(LOCK)?;
        Ok(Self {
            stage: Stage::new(),
            hosts: hosts.to_owned(),
            lock,
            client,
            ledger: Ledger::default(),
            grants: Vec::new(),
            stopped: None,
            refused: Vec::new(),
            lost: Vec::new(),
        })
    }

    fn perform(mut self) -> Result<()> {
        self.stage.say(&format!("{WORKERS} workers want the lock {LOCK}"));
        for _ in 0..WORKERS {
            self.stage.start(&self.hosts)?;
        }
        while let Some((index, line)) = self.stage.next()? {
            match line.split_once(' ').unwrap_or((&line, "")) {
                ("holds", token) => self.granted(index, token)?,
                ("writes", token) => self.writes(index, token.parse()?)?,
                ("lost", reason) => {
                    self.lost.push(index);
                    self.stage.say(&format!("{} is told: {reason}", name(index)));
                }
                _ => self.stage.say(&format!("{} has {line} the lock", name(index))),
            }
        }
        self.judge()?;
        self.client.close()?;
        Ok(())
    }

    fn granted(&mut self, index: usize, token: &str) -> Result<()> {
        let fate = *FATES.get(self.grants.len()).ok_or("more grants than workers")?;
        if self.grants.is_empty() {
            self.wait_for_a_queue()?;
        }
        self.grants.push(index);
        self.stage.say(&format!("{} holds the lock, token {token}; {}", name(index), self.waiting()?));
        match fate {
            Fate::Works => {
                self.stage.pause(WORK)?;
                self.stage.go_on(index)?;
            }
            Fate::IsKilled => {
                self.stage.pause(WORK)?;
                self.stage.kill(index)?;
                self.stage
                    .say(&format!("{} is killed; the lock is free when its session is over", name(index)));
            }
            Fate::IsStopped => {
                self.stage.pause(WORK)?;
                self.stage.stop(index)?;
                // It will read this when it wakes, and believe that it may write.
                self.stage.go_on(index)?;
                self.stopped = Some(index);
                self.stage.say(&format!("{} is stopped where it is, and knows nothing of it", name(index)));
            }
        }
        Ok(())
    }

    fn writes(&mut self, index: usize, token: u64) -> Result<()> {
        if self.ledger.write(token) {
            self.stage.say(&format!("{} writes with token {token}: accepted", name(index)));
            // The next has taken over: now the one that was stopped wakes up.
            if let Some(stopped) = self.stopped.take() {
                self.stage.say(&format!("{} wakes up", name(stopped)));
                self.stage.wake(stopped)?;
            }
        } else {
            self.refused.push(index);
            let greatest = self.ledger.greatest;
            self.stage
                .say(&format!("{} writes with token {token}: REFUSED, {greatest} has written", name(index)));
        }
        Ok(())
    }

    /// So that there is somebody to be seen in it.
    fn wait_for_a_queue(&self) -> Result<()> {
        let end = Instant::now() + Duration::from_secs(30);
        while self.lock.contenders()?.len() < WORKERS {
            if Instant::now() > end {
                return Err("not all workers are in the queue after 30 s".into());
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    fn waiting(&self) -> Result<String> {
        let waiting: Vec<_> =
            self.lock.contenders()?.into_iter().filter(|contender| !contender.holds).collect();
        let names: Vec<_> = waiting.iter().map(|contender| contender.identity.as_str()).collect();
        Ok(match names[..] {
            [] => "nobody waits".to_owned(),
            [one] => format!("{one} waits"),
            _ => format!("{} wait", names.join(", ")),
        })
    }

    /// Whether it was as promised.
    fn judge(&mut self) -> Result<()> {
        if self.grants.len() != WORKERS {
            return Err(format!("{WORKERS} grants were expected, not {}", self.grants.len()).into());
        }
        let (killed, stopped) = (self.grants[1], self.grants[2]);
        for index in 0..WORKERS {
            let status = self.stage.status(index)?;
            if status.success() == (index == killed) {
                return Err(format!("{} has ended with {status}", name(index)).into());
            }
        }
        if self.refused != [stopped] || self.lost != [stopped] {
            return Err("the late write, and it alone, was to be refused, and its writer to be told".into());
        }
        self.stage
            .say("done: one holder at a time, in the order of the queue, and the late write did no harm");
        Ok(())
    }
}
