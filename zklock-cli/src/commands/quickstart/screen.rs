//! The screen: lines, and on a terminal a picture of the queue below them, which is drawn again and again in its place.

use std::fmt::Write as _;
use std::io::IsTerminal;
use std::time::Instant;

use rustix::stdio::stdout;
use rustix::termios::tcgetwinsize;

use crate::failure::Failure;
use crate::output::print;

/// A terminal that is narrower than this shows no picture.
const WIDTH: usize = 50;
/// The width of a terminal that does not say how wide it is.
const USUAL: u16 = 80;

/// The tone of a line, which decides its colour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tone {
    Plain,
    Grant,
    Good,
    Trouble,
    Bad,
}

impl Tone {
    fn colour(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Grant => "\x1b[1;36m",
            Self::Good => "\x1b[32m",
            Self::Trouble => "\x1b[33m",
            Self::Bad => "\x1b[1;31m",
        }
    }
}

/// The lock, the workers and the ledger at one moment.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Picture {
    pub(super) holder: Option<String>,
    pub(super) is_killed: bool,
    pub(super) waiting: Vec<String>,
    pub(super) stopped: Option<String>,
    pub(super) greatest: u64,
}

impl Picture {
    fn rows(&self) -> Vec<(Tone, String)> {
        let nobody = || "nobody".to_owned();
        let holder = self.holder.clone().unwrap_or_else(nobody);
        let (tone, holder) = match self.is_killed {
            true => (Tone::Trouble, format!("{holder}, which was killed: its session is not over yet")),
            false => (Tone::Grant, holder),
        };
        let waiting = if self.waiting.is_empty() { nobody() } else { self.waiting.join(", ") };
        let stopped = self.stopped.clone().unwrap_or_else(nobody);
        let ledger = match self.greatest {
            0 => "nothing is written".to_owned(),
            greatest => format!("the greatest token is {greatest}"),
        };
        vec![
            (Tone::Plain, String::new()),
            (tone, format!("  holds    {holder}")),
            (Tone::Plain, format!("  waits    {waiting}")),
            (
                if self.stopped.is_some() { Tone::Trouble } else { Tone::Plain },
                format!("  stopped  {stopped}"),
            ),
            (Tone::Good, format!("  ledger   {ledger}")),
        ]
    }
}

#[derive(Debug)]
pub(super) struct Screen {
    begun: Instant,
    has_colours: bool,
    has_picture: bool,
    picture: Option<Picture>,
    /// How many lines of it are on the screen.
    drawn: usize,
}

impl Screen {
    pub(super) fn new() -> Self {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        // A dumb terminal takes no orders.
        let takes_orders =
            std::io::stdout().is_terminal() && variable("TERM").is_some_and(|name| name != "dumb");
        Self {
            begun: Instant::now(),
            has_colours: takes_orders && variable("NO_COLOR").is_none(),
            has_picture: takes_orders,
            picture: None,
            drawn: 0,
        }
    }

    pub(super) fn has_picture(&self) -> bool {
        self.has_picture
    }

    /// Writes a line that stays, and the picture below it.
    pub(super) fn say(&mut self, tone: Tone, text: &str, picture: Option<Picture>) -> Result<(), Failure> {
        self.picture = picture;
        let line = format!("{:6.2} s  {}\n", self.begun.elapsed().as_secs_f64(), self.coloured(tone, text));
        self.draw(&line)
    }

    /// Puts this picture in the place of the one before.
    pub(super) fn show(&mut self, picture: Picture) -> Result<(), Failure> {
        if self.picture.as_ref() == Some(&picture) {
            return Ok(());
        }
        self.picture = Some(picture);
        self.draw("")
    }

    /// Writes lines above the picture. It is one write, so nothing flickers.
    fn draw(&mut self, lines: &str) -> Result<(), Failure> {
        let mut text = self.erased();
        text += lines;
        let width = width();
        let rows = self.picture.as_ref().filter(|_| width >= WIDTH).map(Picture::rows).unwrap_or_default();
        for (tone, row) in &rows {
            // A line that wraps would be two.
            let row: String = row.chars().take(width - 1).collect();
            let _ = writeln!(text, "{}", self.coloured(*tone, &row));
        }
        self.drawn = rows.len();
        print(&text)
    }

    /// Returns the text that erases the picture.
    fn erased(&self) -> String {
        if self.drawn == 0 { String::new() } else { format!("\x1b[{}A\x1b[J", self.drawn) }
    }

    fn coloured(&self, tone: Tone, text: &str) -> String {
        match tone.colour() {
            colour if self.has_colours && !colour.is_empty() => format!("{colour}{text}\x1b[0m"),
            _ => text.to_owned(),
        }
    }
}

/// Leaves the lines on the screen, and nothing else.
impl Drop for Screen {
    fn drop(&mut self) {
        let _ = print(&self.erased());
    }
}

fn width() -> usize {
    let columns = tcgetwinsize(stdout()).map_or(0, |size| size.ws_col);
    usize::from(if columns == 0 { USUAL } else { columns })
}
