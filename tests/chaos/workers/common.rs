//! Code that workers in Rust share: the connection to the register, and how long they hold locks.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ground::Dice;

pub(crate) type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// Locks that are held for long, so that much goes wrong meanwhile.
pub(crate) const SLOW: &str = ":/slow/";
/// Locks that are held for a millisecond at most, so that they are granted often.
const SWIFT: &str = ":/swift-";
/// How often a worker says that it still holds: ten times more rarely for slow locks.
const STEP: Duration = Duration::from_millis(2);
const SWIFT_STEP: Duration = Duration::from_micros(200);

/// The clock that all processes of a machine share.
pub(crate) fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let number = |part: i64| u64::try_from(part).unwrap_or_default();
    number(time.tv_sec) * 1_000_000_000 + number(time.tv_nsec)
}

/// The line to the register.
pub(crate) struct Line {
    socket: TcpStream,
    is_over: Arc<AtomicBool>,
}

impl Line {
    pub(crate) fn open(address: &str, name: &str) -> Outcome<Self> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let (mut reading, tells) = (socket.try_clone()?, Arc::clone(&is_over));
        std::thread::spawn(move || {
            // The register never sends anything: whatever comes, or an error, is the end.
            let _ = reading.read(&mut [0]);
            tells.store(true, Ordering::Relaxed);
        });
        let mut line = Self { socket, is_over };
        line.say(&format!("hello {name} {}", std::process::id()))?;
        Ok(line)
    }

    pub(crate) fn say(&mut self, text: &str) -> Outcome<()> {
        Ok(self.socket.write_all(format!("{text}\n").as_bytes())?)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

/// How long this lock is held in a turn, and how often that is reported.
pub(crate) fn time(dice: &mut Dice, word: &str, session: Duration) -> (Duration, Duration) {
    if word.contains(SLOW) {
        let longest = usize::try_from(session.as_millis() * 3).unwrap_or_default();
        return (millis(dice, longest), STEP * 10);
    }
    if word.contains(SWIFT) {
        return (millis(dice, 1000) / 1000, SWIFT_STEP);
    }
    let longest = if dice.chance(10) { 200 } else { 5 };
    (millis(dice, longest), STEP)
}

/// A time of up to this number of milliseconds.
pub(crate) fn millis(dice: &mut Dice, most: usize) -> Duration {
    Duration::from_millis(u64::try_from(dice.below(most + 1)).unwrap_or_default())
}
