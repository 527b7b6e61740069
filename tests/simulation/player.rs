//! A process that plays seeds, with the kernel of a simulation: see `kernel/plays.c`.

use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The exit codes of a seed that takes too long: by SIGALRM, or by SIGPROF.
const LATE: [&str; 2] = ["142", "155"];

pub(crate) struct Player {
    child: Child,
    /// `None` when the process must end.
    asks: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

/// The result of a seed, as printed by its process.
pub(crate) struct Played {
    pub(crate) is_good: bool,
    pub(crate) is_late: bool,
    pub(crate) said: String,
}

impl Player {
    pub(crate) fn new() -> io::Result<Self> {
        let library = std::env::var("SIMULATION_KERNEL").map_err(io::Error::other)?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["--one", "", "--without", ""]).env("LD_PRELOAD", library).env("RUST_BACKTRACE", "0");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (asks, answers) = (child.stdin.take(), child.stdout.take());
        let answers = answers.ok_or(io::ErrorKind::BrokenPipe)?;
        Ok(Self { child, asks, answers: BufReader::new(answers) })
    }

    /// Plays a seed, perhaps without some of its faults.
    pub(crate) fn play(&mut self, seed: u64, without: &[usize]) -> Played {
        self.try_to_play(seed, without).unwrap_or_else(|error| Played {
            is_good: false,
            is_late: false,
            said: format!("it cannot be played: {error}"),
        })
    }

    fn try_to_play(&mut self, seed: u64, without: &[usize]) -> io::Result<Played> {
        let numbers: Vec<_> = without.iter().map(ToString::to_string).collect();
        let asks = self.asks.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        asks.write_all(format!("{seed} {}\n", numbers.join(",")).as_bytes())?;
        let (mut said, mut line) = (String::new(), Vec::new());
        loop {
            line.clear();
            if self.answers.read_until(b'\n', &mut line)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let text = String::from_utf8_lossy(&line);
            if let Some(status) = text.trim_end().strip_prefix("end ") {
                let (is_good, is_late) = (status == "0", LATE.contains(&status));
                if is_late {
                    said.insert_str(0, "VIOLATION: it does not end\n");
                } else if !is_good {
                    said += &format!("exit status: {status}");
                }
                return Ok(Played { is_good, is_late, said });
            }
            said += &text;
        }
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        self.asks = None;
        let _ = self.child.wait();
    }
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
