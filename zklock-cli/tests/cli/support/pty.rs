//! A terminal, and a shell on it.

use std::fs::File;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::process::ended;
use super::{SOON, with_environment_of};

/// A process on a terminal of its own, of whose session it is the leader.
pub(crate) struct OnTerminal {
    child: Child,
    terminal: File,
    arriving: Receiver<Vec<u8>>,
    /// What was written to the terminal, and not yet looked for.
    text: String,
}

impl OnTerminal {
    pub(crate) fn start(command: &Command) -> Self {
        let terminal =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a terminal");
        grantpt(&terminal).expect("it is ours");
        unlockpt(&terminal).expect("it is ours");
        let name = ptsname(&terminal, Vec::new()).expect("it has a name").into_string().expect("in ASCII");
        let end = || Stdio::from(File::options().read(true).write(true).open(&name).expect("it is there"));
        let mut leader = Command::new("setsid");
        leader.arg("--ctty").arg(command.get_program()).args(command.get_args());
        let mut leader = with_environment_of(command, leader);
        let child = leader.stdin(end()).stdout(end()).stderr(end()).spawn().expect("util-linux is installed");
        let terminal = File::from(terminal);
        let mut reader = terminal.try_clone().expect("a descriptor");
        let (sender, arriving) = channel();
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut bytes) {
                if sender.send(bytes[..count].to_vec()).is_err() {
                    break;
                }
            }
        });
        Self { child, terminal, arriving, text: String::new() }
    }

    pub(crate) fn types(&mut self, keys: &str) {
        self.terminal.write_all(keys.as_bytes()).expect("somebody reads");
    }

    /// Types this, and waits until that is on the screen.
    pub(crate) fn answers(&mut self, keys: &str, part: &str) {
        self.types(keys);
        self.shows(part);
    }

    /// Types this again and again, until that is on the screen.
    pub(crate) fn types_until_shown(&mut self, keys: &str, part: &str) {
        let shown = ground::until(SOON, || {
            self.types(keys);
            while let Ok(bytes) = self.arriving.recv_timeout(Duration::from_millis(300)) {
                self.text += &String::from_utf8_lossy(&bytes);
            }
            self.text.contains(part)
        });
        assert!(shown, "{part:?} was never shown: {:?}", self.text);
        self.shows(part);
    }

    /// Waits until this is on the screen, and returns what came before it.
    pub(crate) fn shows(&mut self, part: &str) -> String {
        let end = Instant::now() + SOON;
        loop {
            if let Some(at) = self.text.find(part) {
                let before = self.text[..at].to_owned();
                self.text.drain(..at + part.len());
                return before;
            }
            let left = end.saturating_duration_since(Instant::now());
            let Ok(bytes) = self.arriving.recv_timeout(left) else {
                panic!("{part:?} was never shown: {:?}", self.text);
            };
            self.text += &String::from_utf8_lossy(&bytes);
        }
    }

    /// How it has ended.
    pub(crate) fn code(&mut self) -> Option<i32> {
        ended(&mut self.child).unwrap_or_else(|| panic!("still running: {:?}", self.text)).code()
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
