//! The death of a process, as a future.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use tokio::sync::watch;

/// A process that we wait for. The number of a dead process may be another's, but its descriptor never is.
#[derive(Debug)]
pub(crate) struct Death {
    process: Arc<OwnedFd>,
    is_dead: watch::Receiver<bool>,
}

impl Death {
    /// Makes it of the process's pidfd.
    pub(crate) fn of(process: OwnedFd) -> io::Result<Self> {
        let process = Arc::new(process);
        let (sender, is_dead) = watch::channel(false);
        std::thread::Builder::new().name("death".to_owned()).spawn({
            let process = process.clone();
            move || {
                while poll(&mut [PollFd::new(&process, PollFlags::IN)], None) == Err(Errno::INTR) {}
                let _ = sender.send(true);
            }
        })?;
        Ok(Self { process, is_dead })
    }

    pub(crate) fn process(&self) -> &OwnedFd {
        &self.process
    }

    /// Waits until the process is dead. May be dropped and called again.
    pub(crate) async fn wait(&self) {
        let _ = self.is_dead.clone().wait_for(|is_dead| *is_dead).await;
    }
}
