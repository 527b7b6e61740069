//! A process that ends the session of this one when this one is dead.
//!
//! ```text
//!  this process ---- lines: the key of each session, and at the end a farewell ---->  the guardian
//!               ---- its own pidfd, with the first line -------------------------->   (such as `zklock guardian`)
//! ```
//!
//! A closed socket is no death: a runtime may be gone, and a child may have inherited the socket. A pidfd is readable when the process is
//! dead and not before, and no later process can have it. So the guardian waits for that.

use crate::clock;
use crate::error::{Error, ErrorKind};
use crate::pool::Slot;
use crate::session::Link;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, send, sendmsg};
use rustix::process::{PidfdFlags, getpid, pidfd_open};
use std::fmt;
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// The line that says that no more will come: the process lives, and looks after its session itself.
const FAREWELL: &[u8] = b"\"Leave\"\n";
/// The line that comes with the pidfd.
const GREETING: &[u8] = b"\"Watch\"\n";
/// A guardian that was dismissed and has not ended by then is killed.
const TO_END: Duration = Duration::from_secs(5);
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// A process that ends the sessions of a client when this process is dead: see [`Client::guard`](crate::Client::guard).
///
/// Dropping it dismisses the guardian, as closing the client does.
#[must_use = "the client is guarded only as long as this is kept"]
pub struct Guardian {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Guardian {
    pub(crate) fn start(mut command: Command, slot: Arc<Slot>, runtime: &Handle) -> Result<Self, Error> {
        let failed = |what: &str, error: &dyn fmt::Display| {
            Error::new(ErrorKind::InvalidInput, format!("the guardian {what}: {error}"))
        };
        let (ours, theirs) = UnixStream::pair().map_err(|error| failed("cannot be spoken to", &error))?;
        let ourselves = pidfd_open(getpid(), PidfdFlags::empty())
            .map_err(|error| failed("cannot watch this process, as on Linux before 5.3", &error))?;
        command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::null());
        // So that no signal for our group ends it first.
        let child = command.process_group(0).spawn().map_err(|error| failed("cannot be started", &error))?;
        // It has our end of the socket no more.
        drop(command);
        let guarding = Guarding { socket: ours, child };
        guarding.greet(&ourselves).map_err(|error| failed("does not listen", &error))?;
        let (stop, stopped) = oneshot::channel();
        let task = runtime.spawn(async move {
            tokio::select! {
                biased;
                _ = stopped => {}
                () = guarding.tell(&slot) => {}
            }
            guarding.dismiss().await;
        });
        Ok(Self { stop, task })
    }

    /// Dismisses the guardian, and waits until it has ended. From then on nobody ends the session when this process dies.
    pub async fn dismiss(self) {
        drop(self.stop);
        // If it fails, its runtime is gone.
        let _ = self.task.await;
    }
}

impl fmt::Debug for Guardian {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guardian").finish_non_exhaustive()
    }
}

struct Guarding {
    socket: UnixStream,
    child: Child,
}

impl Guarding {
    fn greet(&self, ourselves: &OwnedFd) -> std::io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let descriptors = [ourselves.as_fd()];
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
        sendmsg(&self.socket, &[IoSlice::new(GREETING)], &mut ancillary, SendFlags::NOSIGNAL)?;
        // Nothing may wait here for a guardian that does not read. What it is told is far less than a socket takes.
        self.socket.set_nonblocking(true)
    }

    /// Tells the key of each session, until the client is closed.
    async fn tell(&self, slot: &Slot) {
        while let Ok(session) = slot.session().await {
            let mut link = session.link();
            if let Some(key) = session.key().await {
                self.say(format!("{{\"Key\":{:?}}}\n", key.to_bytes()).as_bytes());
            }
            drop(session);
            // If it fails, the session is gone too.
            let _ = link.wait_for(|link| matches!(link, Link::Over(_))).await;
        }
    }

    fn say(&self, line: &[u8]) {
        // No signal for a host that does not ignore SIGPIPE.
        let sent = send(&self.socket, line, SendFlags::NOSIGNAL);
        if sent != Ok(line.len()) {
            tracing::warn!(
                "the guardian does not listen any more: nobody ends the session if this process dies"
            );
        }
    }

    async fn dismiss(mut self) {
        let _ = send(&self.socket, FAREWELL, SendFlags::NOSIGNAL);
        let since = clock::now();
        while let Ok(None) = self.child.try_wait() {
            if clock::now().since(since) > TO_END {
                let _ = self.child.kill();
            }
            clock::sleep(BETWEEN_LOOKS).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Client, ClientOptions};
    use std::fs;
    use zklock_testkit::Server;

    #[tokio::test]
    async fn a_guardian_is_told_the_key_of_each_session_and_when_to_leave() {
        let server = Server::start().unwrap();
        let options = ClientOptions::new(&server.connect_string()).unwrap();
        let client = Client::connect(options.clone()).await.unwrap();
        let heard = std::env::temp_dir().join(format!("zklock-guardian-{}", std::process::id()));
        let mut command = Command::new("sh");
        // Told to leave, it ends, as one must.
        let script =
            "while read -r line; do echo \"$line\" >>\"$0\"; [ \"$line\" != '\"Leave\"' ] || exit 0; done";
        command.args(["-c", script]).arg(&heard);
        let guardian = client.guard(command).unwrap();
        let lines = || fs::read_to_string(&heard).unwrap_or_default();
        let until = async |count: usize| {
            while lines().lines().count() < count {
                clock::sleep(BETWEEN_LOOKS).await;
            }
        };
        until(2).await;
        let first = client.session_key().await.unwrap();
        first.end_session(&options, TO_END).await.unwrap();
        until(3).await;
        let second = client.session_key().await.unwrap();
        guardian.dismiss().await;
        let key = |key: &crate::SessionKey| format!("{{\"Key\":{:?}}}\n", key.to_bytes());
        let expected = format!("\"Watch\"\n{}{}\"Leave\"\n", key(&first), key(&second));
        let found = lines();
        let _ = fs::remove_file(&heard);
        assert_eq!(found, expected);
    }

    #[tokio::test]
    async fn one_that_cannot_be_started_is_an_error() {
        let server = Server::start().unwrap();
        let client = Client::connect(ClientOptions::new(&server.connect_string()).unwrap()).await.unwrap();
        let error = client.guard(Command::new("/nowhere/zklock")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        assert!(error.to_string().contains("cannot be started"), "{error}");
    }
}
