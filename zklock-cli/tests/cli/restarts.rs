//! What survives a restart of the leader, by session timeout. A measurement, which is run only if it is asked for:
//!
//! ```text
//! cargo test --release -p zklock-cli --test cli restarts -- --ignored --nocapture --test-threads 1
//! ```

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use ground::{Ensemble, until};
use zklock::{Client, ClientOptions, Hold, HoldState};

use crate::support::{Process, SOON, path, run_at};

const TIMEOUTS: [u64; 5] = [6, 10, 15, 20, 30];
const RESTARTS: usize = 20;

/// Ends a server.
type End = fn(&ground::Process);

/// A hold of a program, and a job of `zklock run`, with one session timeout.
struct Subject {
    timeout: Duration,
    client: Client,
    path: String,
    hold: Option<Hold>,
    job: Option<Process>,
    /// Holds and jobs.
    kept: [usize; 2],
    /// The least lease that the hold had left, of each restart.
    left: Vec<Duration>,
}

impl Subject {
    fn new(hosts: &str, seconds: u64) -> Self {
        let timeout = Duration::from_secs(seconds);
        let options = ClientOptions::new(hosts).session_timeout(timeout);
        let client = Client::connect(options).wait().unwrap();
        Self { timeout, client, path: path(), hold: None, job: None, kept: [0; 2], left: Vec::new() }
    }

    /// Acquires what was lost, and waits until the lease is as long as it gets.
    fn settle(&mut self, hosts: &str) {
        self.job.get_or_insert_with(|| {
            let (path, timeout) = (format!("{}-job", self.path), format!("{}s", self.timeout.as_secs()));
            let script = "echo runs; exec sleep 1000";
            let job = Process::start(&mut run_at(hosts, &path, &["--session-timeout", &timeout], script));
            assert_eq!(job.line(), "runs\n");
            job
        });
        let acquire = || self.client.mutex(&self.path).unwrap().acquire().wait().unwrap();
        let hold = self.hold.get_or_insert_with(acquire);
        assert!(until(SOON, || hold.valid_for() > self.timeout * 2 / 5));
    }

    fn count(&mut self) {
        self.hold.take_if(|hold| !matches!(hold.state(), HoldState::Held | HoldState::AtRisk));
        self.job.take_if(|job| !job.is_running());
        self.kept[0] += usize::from(self.hold.is_some());
        self.kept[1] += usize::from(self.job.is_some());
    }
}

#[test]
#[ignore = "a measurement"]
fn what_survives_a_restart_of_the_leader() {
    println!(
        "T, end of the leader, load: holds and jobs of {RESTARTS} that survived; least lease left, median (least)"
    );
    for is_busy in [false, true] {
        let cores = if is_busy { thread::available_parallelism().map_or(1, usize::from) } else { 0 };
        let mut busy = Command::new("sh");
        busy.args(["-c", "while :; do :; done"]);
        let loops: Vec<_> = (0..cores).map(|_| Process::start(&mut busy)).collect();
        for (name, end) in [("TERM", ground::Process::stop as End), ("KILL", ground::Process::kill)] {
            for subject in restarted(end) {
                let mut left = subject.left;
                left.sort();
                println!(
                    "{:>3} s  {name}  {}  holds {:>2}  jobs {:>2}  {:.2} s ({:.2} s)",
                    subject.timeout.as_secs(),
                    if is_busy { "busy " } else { "quiet" },
                    subject.kept[0],
                    subject.kept[1],
                    left[left.len() / 2].as_secs_f64(),
                    left[0].as_secs_f64(),
                );
            }
        }
        drop(loops);
    }
}

/// Restarts the leader of an ensemble with ZooKeeper's default timing again and again.
fn restarted(end: End) -> Vec<Subject> {
    let ensemble = Ensemble::builder().servers(3).tick(Duration::from_secs(2)).start();
    let hosts = ensemble.connect_string();
    let mut subjects: Vec<_> = TIMEOUTS.into_iter().map(|seconds| Subject::new(&hosts, seconds)).collect();
    for _ in 0..RESTARTS {
        subjects.iter_mut().for_each(|subject| subject.settle(&hosts));
        let old = ensemble.leader();
        let mut left = [Duration::MAX; TIMEOUTS.len()];
        let mut look = || {
            for (left, subject) in left.iter_mut().zip(&subjects) {
                *left = subject.hold.as_ref().map_or(Duration::ZERO, Hold::valid_for).min(*left);
            }
        };
        end(old);
        let is_over = until(SOON, || {
            look();
            ensemble.leader_now().is_some_and(|leader| leader.number() != old.number())
        });
        assert!(is_over, "no other server leads");
        // Long enough for every client to find it, or to lose its hold.
        let until_then = Instant::now() + Duration::from_secs(3);
        while Instant::now() < until_then {
            look();
            thread::sleep(Duration::from_millis(10));
        }
        old.start();
        ensemble.wait_until_whole(SOON);
        for (subject, left) in subjects.iter_mut().zip(left) {
            subject.left.push(left);
            subject.count();
        }
    }
    subjects
}
