//! Plays a seed in a process of its own, with the kernel of a simulation.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

/// SIGALRM and SIGPROF, which end a seed that takes too long: see `kernel/time.c`.
const LATE: [i32; 2] = [14, 27];

/// The result of a seed, as printed by its process.
pub(crate) struct Played {
    pub(crate) is_good: bool,
    pub(crate) is_late: bool,
    pub(crate) said: String,
}

/// Plays a seed, perhaps without some of its faults.
pub(crate) fn play(seed: u64, without: &[usize]) -> Played {
    let numbers: Vec<_> = without.iter().map(ToString::to_string).collect();
    let library = std::env::var("SIMULATION_KERNEL").expect("`run` has set it");
    let done = Command::new(std::env::current_exe().expect("this program"))
        .args(["--one", &seed.to_string(), "--without", &numbers.join(",")])
        .env("LD_PRELOAD", library)
        .env("RUST_BACKTRACE", "0")
        .output()
        .expect("a process that plays");
    let mut said = String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned();
    let is_good = done.status.success();
    let is_late = done.status.signal().is_some_and(|signal| LATE.contains(&signal));
    if is_late {
        said.insert_str(0, "VIOLATION: it does not end\n");
    } else if !is_good {
        said += &done.status.to_string();
    }
    Played { is_good, is_late, said }
}

impl Played {
    /// The number after a word.
    pub(crate) fn number(&self, word: &str) -> u64 {
        self.behind(word).and_then(|number| number.parse().ok()).unwrap_or(0)
    }

    /// The hash of everything that has passed.
    pub(crate) fn trace(&self) -> &str {
        self.behind("trace").unwrap_or("-")
    }

    fn behind(&self, word: &str) -> Option<&str> {
        self.said.split_whitespace().skip_while(|said| *said != word).nth(1)
    }
}
