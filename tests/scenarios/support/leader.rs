//! A process that leads and is killed: this very program, told to run one ignored test.

use crate::support::SOON;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;
use zklock_core::{ClientOptions, blocking};

/// What stands before each line that the child means for us: the test harness prints too.
const MARK: &str = "@leader ";

/// The child: campaigns, says that it leads, and goes on until it is killed or its standard input ends.
#[test]
#[ignore = "the child of other tests"]
fn leader() {
    let Ok(path) = std::env::var("ZKLOCK_LEADER_PATH") else { return };
    thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
    let hosts = std::env::var("ZKLOCK_LEADER_HOSTS").expect("set by the parent");
    let options = ClientOptions::new(&hosts).unwrap().session_timeout(Leader::SESSION).unwrap();
    let client = blocking::Client::connect(options.identity("the process").unwrap()).unwrap();
    let hold = client.election(&path).unwrap().acquire().unwrap();
    println!("\n{MARK}{}", hold.token());
    let reason = hold.loss().wait(None, None);
    println!("\n{MARK}{reason:?}");
}

/// A process that campaigns. Dropping it kills it.
pub(crate) struct Leader {
    child: Child,
    lines: Receiver<String>,
}

impl Leader {
    pub(crate) const SESSION: Duration = Duration::from_secs(1);

    pub(crate) fn start(hosts: &str, path: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "--ignored", "--nocapture", "support::leader::leader"])
            .env("ZKLOCK_LEADER_HOSTS", hosts)
            .env("ZKLOCK_LEADER_PATH", path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || {
            let ours = |line: String| line.strip_prefix(MARK).map(str::to_owned);
            output.lines().map_while(Result::ok).filter_map(ours).try_for_each(|line| sender.send(line))
        });
        Self { child, lines }
    }

    /// Waits until it leads, and gives its token.
    #[track_caller]
    pub(crate) fn leads(&self) -> u64 {
        self.lines.recv_timeout(SOON).expect("it comes to lead").parse().expect("a token")
    }

    /// Returns when it is gone.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
