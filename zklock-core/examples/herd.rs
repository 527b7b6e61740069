//! What a release costs where every waiter watches the list of children, and where each watches the one node that
//! matters: how many notifications the server sends, and how long it takes until the next holds.
//!
//!     cargo run --release -p zklock --example herd -- --connect 127.0.0.1:2181
//!
//! Every waiter has a session of its own, so a server must take that many from one address (`maxClientCnxns=0`).
//! Notifications are counted where they cannot be missed: each session goes through a relay in this process, which
//! reads the header of every message that the server sends.

use std::error::Error;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use zklock::face::Watching;
use zklock::{Client, ClientOptions, Hold, Lock, LockSpec};

const USAGE: &str = "\
usage: herd --connect HOSTS [--waiters N,N,...] [--releases N] [--plot FILE]

  --connect HOSTS   the servers, host:port,host:port; a /chroot may follow. The first of them is used
  --waiters N,N     how many wait in each run; 10,100,1000 unless told otherwise
  --releases N      how many releases are measured in each run; 5 unless told otherwise
  --plot FILE       where the plot goes, as SVG; herd.svg unless told otherwise
  --help            this text";

const LOCK: &str = "/zklock-herd";
/// So long that neither pings nor heartbeats come in between.
const SESSION_TIMEOUT: Duration = Duration::from_secs(30);
const PATIENCE: Duration = Duration::from_secs(120);
/// Without a message for so long, everybody has done what there was to do.
const QUIET: Duration = Duration::from_millis(400);

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

struct Arguments {
    hosts: String,
    waiters: Vec<usize>,
    releases: usize,
    plot: String,
}

/// What was measured with so many waiters.
struct Figures {
    waiters: usize,
    /// With [`Watching::Nearest`], and with [`Watching::Children`].
    runs: [Run; 2],
}

/// The average of some releases.
struct Run {
    notifications: f64,
    hand_over: Duration,
}

#[tokio::main]
async fn main() -> std::process::ExitCode {
    let outcome = match arguments() {
        Ok(Some(arguments)) => compare(&arguments).await,
        Ok(None) => {
            println!("{USAGE}");
            Ok(())
        }
        Err(error) => Err(error),
    };
    match outcome {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            std::process::ExitCode::FAILURE
        }
    }
}

fn arguments() -> Result<Option<Arguments>> {
    let mut found = Arguments {
        hosts: String::new(),
        waiters: vec![10, 100, 1000],
        releases: 5,
        plot: "herd.svg".to_owned(),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        if word == "--help" || word == "-h" {
            return Ok(None);
        }
        let value = words.next().ok_or(USAGE)?;
        match word.as_str() {
            "--connect" => found.hosts = value,
            "--waiters" => {
                found.waiters = value.split(',').map(str::parse).collect::<std::result::Result<_, _>>()?;
            }
            "--releases" => found.releases = value.parse()?,
            "--plot" => found.plot = value,
            _ => return Err(USAGE.into()),
        }
    }
    let is_fine = !found.hosts.is_empty()
        && !found.waiters.is_empty()
        && found.releases > 0
        && found.waiters.iter().all(|count| *count > 0);
    if is_fine { Ok(Some(found)) } else { Err(USAGE.into()) }
}

async fn compare(arguments: &Arguments) -> Result<()> {
    let chroot = arguments.hosts.find('/').map_or("", |at| &arguments.hosts[at..]);
    let first = arguments.hosts.split(['/', ',']).next().unwrap_or_default();
    let relay = Relay::before(first).await?;
    let hosts = format!("{}{chroot}", relay.address);
    println!("{:>8}  {:>23}  {:>23}", "", "the nearest watched", "children watched");
    println!(
        "{:>8}  {:>13} {:>9}  {:>13} {:>9}",
        "waiters", "notifications", "hand-over", "notifications", "hand-over"
    );
    let mut all = Vec::new();
    for &waiters in &arguments.waiters {
        let nearest = measure(&relay, &hosts, waiters, arguments.releases, Watching::Nearest).await?;
        let children = measure(&relay, &hosts, waiters, arguments.releases, Watching::Children).await?;
        let figures = Figures { waiters, runs: [nearest, children] };
        print!("{waiters:>8}");
        for run in &figures.runs {
            let millis = run.hand_over.as_secs_f64() * 1000.0;
            print!("  {:>13.1} {millis:>6.1} ms", run.notifications);
        }
        println!();
        all.push(figures);
    }
    std::fs::write(&arguments.plot, plot(&all))?;
    println!("notifications for each release, counted on the wire; as a plot in {}", arguments.plot);
    Ok(())
}

/// So many wait behind one holder. Each that gets the lock releases it when all is quiet.
async fn measure(
    relay: &Relay,
    hosts: &str,
    waiters: usize,
    releases: usize,
    watching: Watching,
) -> Result<Run> {
    let (granted, mut grants) = mpsc::unbounded_channel();
    let mut opening = JoinSet::new();
    for _ in 0..=waiters {
        let options = ClientOptions::new(hosts).session_timeout(SESSION_TIMEOUT).connect_timeout(PATIENCE);
        opening.spawn(Client::connect(options));
    }
    let mut clients = Vec::new();
    while let Some(client) = opening.join_next().await {
        clients.push(client??);
    }
    let mut queue = Queue { waiting: JoinSet::new(), granted };
    for client in &clients {
        queue.join(client.lock(&LockSpec::mutex(LOCK)?.watching(watching))?);
    }
    let mut next = async || match tokio::time::timeout(PATIENCE, grants.recv()).await {
        Ok(Some(grant)) => Ok(grant),
        _ => Err(format!("nobody gets the lock {LOCK}: is somebody else in its queue?")),
    };
    let mut holder = next().await?;
    relay.quiet().await;
    let queued = clients[0].mutex(LOCK)?.contenders().await?.len();
    if queued != waiters + 1 {
        return Err(format!("{queued} are in the queue of {LOCK}, and should be {}", waiters + 1).into());
    }
    relay.quiet().await;
    let (mut notifications, mut hand_over) = (0, Duration::ZERO);
    for _ in 0..releases {
        let (before, begun) = (relay.notifications(), Instant::now());
        holder.hold.release().await?;
        let following = next().await?;
        hand_over += following.at - begun;
        // All who were woken are back at their watches.
        relay.quiet().await;
        notifications += relay.notifications() - before;
        // So that there are as many for the next.
        queue.join(holder.lock);
        relay.quiet().await;
        holder = following;
    }
    queue.waiting.abort_all();
    let mut closing = JoinSet::new();
    for client in clients {
        closing.spawn(async move { client.close().await });
    }
    closing.join_all().await;
    Ok(Run {
        notifications: notifications as f64 / releases as f64,
        hand_over: hand_over / u32::try_from(releases)?,
    })
}

/// Those who wait.
struct Queue {
    waiting: JoinSet<()>,
    granted: mpsc::UnboundedSender<Grant>,
}

struct Grant {
    lock: Lock,
    hold: Hold,
    at: Instant,
}

impl Queue {
    fn join(&mut self, lock: Lock) {
        let granted = self.granted.clone();
        self.waiting.spawn(async move {
            match lock.acquire().await {
                // Nobody listens any more at the end of the run.
                Ok(hold) => drop(granted.send(Grant { at: Instant::now(), hold, lock })),
                Err(error) => eprintln!("{error}"),
            }
        });
    }
}

/// Passes bytes on between clients and a server, and counts what the server tells without having been asked.
struct Relay {
    address: SocketAddr,
    counts: Arc<Counts>,
}

struct Counts {
    notifications: AtomicU64,
    /// When the last message came that is not a ping, in milliseconds since the start.
    last: AtomicU64,
    start: Instant,
}

impl Relay {
    async fn before(server: &str) -> Result<Self> {
        // Fails early, where the server cannot be reached.
        TcpStream::connect(server).await.map_err(|error| format!("{server}: {error}"))?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let counts = Arc::new(Counts {
            notifications: AtomicU64::new(0),
            last: AtomicU64::new(0),
            start: Instant::now(),
        });
        let (shared, server) = (counts.clone(), server.to_owned());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(upstream) = TcpStream::connect(&server).await else { continue };
                // Small messages must not wait for each other.
                let _ = (client.set_nodelay(true), upstream.set_nodelay(true));
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = upstream.into_split();
                tokio::spawn(pass(from_client, to_server, None));
                tokio::spawn(pass(from_server, to_client, Some(shared.clone())));
            }
        });
        Ok(Self { address, counts })
    }

    fn notifications(&self) -> u64 {
        self.counts.notifications.load(Ordering::Relaxed)
    }

    async fn quiet(&self) {
        let now = || u64::try_from(self.counts.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        let begun = now();
        loop {
            let last = self.counts.last.load(Ordering::Relaxed).max(begun);
            let silence = Duration::from_millis(now().saturating_sub(last));
            if silence >= QUIET {
                return;
            }
            tokio::time::sleep(QUIET - silence).await;
        }
    }
}

/// Until either side hangs up. The other side sees that when its half is dropped here.
async fn pass(from: OwnedReadHalf, to: OwnedWriteHalf, counts: Option<Arc<Counts>>) {
    let (mut chunk, mut headers) = (vec![0; 64 * 1024], Headers::default());
    while from.readable().await.is_ok() {
        let count = match from.try_read(&mut chunk) {
            Ok(0) => return,
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
            Err(_) => return,
        };
        if let Some(counts) = &counts {
            headers.read(&chunk[..count], counts);
        }
        let mut rest = &chunk[..count];
        while !rest.is_empty() {
            if to.writable().await.is_err() {
                return;
            }
            match to.try_write(rest) {
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => return,
            }
        }
    }
}

/// Finds the messages in a stream of bytes: each is its length, then a number that says what it answers.
#[derive(Default)]
struct Headers {
    greeted: bool,
    head: Vec<u8>,
    /// What is left of the message.
    left: usize,
}

/// What stands in place of that number.
const NOTIFICATION: [u8; 4] = (-1_i32).to_be_bytes();
const PING: [u8; 4] = (-2_i32).to_be_bytes();

impl Headers {
    fn read(&mut self, mut bytes: &[u8], counts: &Counts) {
        while !bytes.is_empty() {
            let skipped = self.left.min(bytes.len());
            self.left -= skipped;
            bytes = &bytes[skipped..];
            let taken = bytes.len().min(8 - self.head.len());
            self.head.extend(&bytes[..taken]);
            bytes = &bytes[taken..];
            if let [a, b, c, d, number @ ..] = &self.head[..] {
                if let Ok(number) = <[u8; 4]>::try_from(number) {
                    let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
                    self.left = length.saturating_sub(number.len());
                    self.head.clear();
                    self.saw(number, counts);
                }
            }
        }
    }

    fn saw(&mut self, number: [u8; 4], counts: &Counts) {
        // The first message, which opens the session, has no such number.
        if !std::mem::replace(&mut self.greeted, true) || number == PING {
            return;
        }
        if number == NOTIFICATION {
            counts.notifications.fetch_add(1, Ordering::Relaxed);
        }
        let now = u64::try_from(counts.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        counts.last.fetch_max(now, Ordering::Relaxed);
    }
}

const SIZE: (f64, f64) = (640.0, 420.0);
const MARGIN: (f64, f64) = (70.0, 50.0);
const COLOURS: [(&str, &str); 2] = [("#0072b2", "the nearest watched"), ("#d55e00", "children watched")];

/// Both axes are logarithmic.
fn plot(all: &[Figures]) -> String {
    let most = all.iter().map(|figures| figures.waiters).max().unwrap_or(1).max(10) as f64;
    let decades = most.log10().ceil();
    let x = |value: f64| MARGIN.0 + value.max(1.0).log10() / decades * (SIZE.0 - 2.0 * MARGIN.0);
    let y = |value: f64| SIZE.1 - MARGIN.1 - value.max(1.0).log10() / decades * (SIZE.1 - 2.0 * MARGIN.1);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" font-family=\"sans-serif\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        SIZE.0, SIZE.1
    );
    // Writing to a string cannot fail.
    for decade in 0..=decades as i32 {
        let value = 10_f64.powi(decade);
        let (right, bottom) = (SIZE.0 - MARGIN.0, SIZE.1 - MARGIN.1);
        let _ = write!(
            svg,
            "<path d=\"M{0:.1} {1}V{bottom}M{2} {3:.1}H{right}\" stroke=\"#ddd\"/>\n\
             <text x=\"{0:.1}\" y=\"{4}\" text-anchor=\"middle\">{value}</text>\n\
             <text x=\"{5}\" y=\"{6:.1}\" text-anchor=\"end\">{value}</text>\n",
            x(value),
            MARGIN.1,
            MARGIN.0,
            y(value),
            bottom + 18.0,
            MARGIN.0 - 8.0,
            y(value) + 4.0,
        );
    }
    for (number, (colour, name)) in COLOURS.iter().enumerate() {
        let points: Vec<(f64, f64)> =
            all.iter().map(|it| (x(it.waiters as f64), y(it.runs[number].notifications))).collect();
        let line: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            line.join(" ")
        );
        for (x, y) in points {
            let _ = writeln!(svg, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{colour}\"/>");
        }
        let top = MARGIN.1 + 20.0 + number as f64 * 20.0;
        let _ = writeln!(svg, "<text x=\"{}\" y=\"{top}\" fill=\"{colour}\">{name}</text>", MARGIN.0 + 14.0);
    }
    let _ = write!(
        svg,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">waiters</text>\n\
         <text x=\"{}\" y=\"28\" text-anchor=\"middle\">notifications for each release of a mutex</text>\n</svg>\n",
        SIZE.0 / 2.0,
        SIZE.1 - 12.0,
        SIZE.0 / 2.0,
    );
    svg
}
