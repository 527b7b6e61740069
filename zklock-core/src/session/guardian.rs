//! Starts a process, the guardian, that ends the session of this process when this process is dead.
//!
//! ```text
//!  this process ---- its own pidfd, the key of the session, how to connect ---->  the guardian
//!               <--- that it watches, or why it cannot -------------------------   (such as `zklock guardian`)
//!               ---- the key of each later session, and at the end a farewell -->
//! ```
//!
//! The guardian waits on the pidfd, because that becomes readable when the process is dead, and not before, and never stands for a
//! later process. The end of the socket does not show that the process is dead: its runtime may be gone, or a child may have
//! inherited the socket.
//!
//! Hosts and passwords go through the socket, because other users can read command lines and environments.

#[cfg(test)]
mod tests;

use crate::base::clock;
use crate::base::error::{Error, ErrorKind};
use crate::base::message::Message;
use crate::base::platform;
use crate::base::sockets::above_streams;
use crate::session::pool::Pool;
use crate::session::session::{Link, Session};
use crate::session::slot::Slot;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, send, sendmsg};
use std::ffi::OsStr;
use std::fmt;
use std::future::pending;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

/// The last message. The process lives, and ends its session itself.
const FAREWELL: &str = "leave";
/// The first message, sent with the pidfd.
const GREETING: &str = "watch";
/// The reason in the error if it does not listen.
const ENDED: &str = "it ended at once";
/// Longer than any answer.
const LONGEST_ANSWER: usize = 4096;
/// The time in which it has to answer, including its start.
const TO_ANSWER: Duration = Duration::from_secs(10);
/// The time after which a dismissed guardian that has not ended is killed.
const TO_END: Duration = Duration::from_secs(5);
const BETWEEN_LOOKS: Duration = Duration::from_millis(5);

/// The command that the faces for other languages start by default.
const PROGRAM: &str = "zklock";
/// Its first argument, which makes it a guardian.
const WORD: &str = "guardian";

/// A process that ends the sessions of a client when this process is dead. See [`Client::guard`](crate::Client::guard).
///
/// Dropping it dismisses the guardian, as closing the client does.
///
/// # Examples
///
/// ```no_run
/// # async fn example(client: zklock::Client) -> Result<(), zklock::Error> {
/// let mut command = std::process::Command::new("zklock");
/// command.arg("guardian");
/// let guardian = client.guard(command).await?;
/// // ... whatever is locked now is free at once if this process is killed ...
/// guardian.dismiss().await;
/// # Ok(())
/// # }
/// ```
#[must_use = "the client is guarded only as long as this is kept"]
pub struct Guardian {
    /// Dropped: it is dismissed. Used: it stays until the client is closed.
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

/// Returns the command that starts the guardian: `program`, or the `zklock` on the `PATH` if it is `None`.
pub fn command(program: Option<&OsStr>) -> Command {
    let mut command = Command::new(program.unwrap_or(OsStr::new(PROGRAM)));
    command.arg(WORD);
    command
}

impl Guardian {
    pub(crate) async fn start(mut command: Command, pool: &Pool) -> Result<Self, Error> {
        if pool.is_closed() {
            return Err(Error::closed());
        }
        let only = OnlyGuardian::take(&pool.has_guardian)?;
        let pair = std::os::unix::net::UnixStream::pair()
            .and_then(|(ours, theirs)| Ok((above_streams(ours.into())?.into(), theirs)));
        let (ours, theirs) = pair.map_err(|error| failed(format_args!("it cannot be spoken to: {error}")))?;
        let ourselves = platform::own_process().map_err(|error| {
            failed(format_args!("it cannot watch this process, which needs Linux 5.3 or later: {error}"))
        })?;
        command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::null());
        // In a group of its own, so that no signal for ours ends it.
        let child = command.process_group(0).spawn().map_err(|error| not_started(&command, &error))?;
        let program = command.get_program().to_string_lossy().into_owned();
        // It still has the guardian's end of the socket.
        drop(command);
        let (stop, stopped) = oneshot::channel();
        let (answered, answer) = oneshot::channel();
        let guarding = Guarding { socket: None, child, program, _only: only };
        let options = pool.options().pass_on(Message::new("options"));
        let (ours, slot) = ((ours, ourselves), pool.slot().clone());
        let task = pool.runtime().spawn(guarding.run(ours, options, slot, stopped, answered));
        let guardian = Self { stop, task };
        answer.await.unwrap_or_else(|_| Err(Error::closed())).map(|()| guardian)
    }

    /// Dismisses the guardian, and waits until it has ended. Afterwards, nothing ends the session early when this process
    /// dies.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: zklock::Client, guardian: zklock::further::Guardian) {
    /// client.close().await;
    /// // No process of ours is left when this returns.
    /// guardian.dismiss().await;
    /// # }
    /// ```
    pub async fn dismiss(self) {
        drop(self.stop);
        // If it fails, its runtime is gone.
        let _ = self.task.await;
    }

    /// Keeps the guardian until the client is closed, or the last of its clones, locks and holds is dropped.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(client: zklock::Client, command: std::process::Command) -> Result<(), zklock::Error> {
    /// client.guard(command).await?.keep();
    /// # Ok(())
    /// # }
    /// ```
    pub fn keep(self) {
        // If it fails, the guardian has ended.
        let _ = self.stop.send(());
    }
}

impl fmt::Debug for Guardian {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guardian").finish_non_exhaustive()
    }
}

/// Reserves the place of a client's only guardian.
struct OnlyGuardian(Arc<watch::Sender<bool>>);

impl OnlyGuardian {
    fn take(has_guardian: &Arc<watch::Sender<bool>>) -> Result<Self, Error> {
        if has_guardian.send_if_modified(|before| !std::mem::replace(before, true)) {
            return Ok(Self(has_guardian.clone()));
        }
        let message =
            "this client has a guardian already, which looks after all of its sessions: ask for it once";
        Err(Error::new(ErrorKind::InvalidInput, message))
    }
}

impl Drop for OnlyGuardian {
    fn drop(&mut self) {
        self.0.send_replace(false);
    }
}

struct Guarding {
    /// `None` until the runtime has it.
    socket: Option<UnixStream>,
    child: Child,
    /// Its name, for messages.
    program: String,
    _only: OnlyGuardian,
}

impl Guarding {
    async fn run(
        mut self,
        (socket, ourselves): (std::os::unix::net::UnixStream, OwnedFd),
        options: Message,
        slot: Arc<Slot>,
        mut stopped: oneshot::Receiver<()>,
        answered: oneshot::Sender<Result<(), Error>>,
    ) {
        let begun = async {
            self.greet(socket, &ourselves).map_err(|error| match error.kind() {
                io::ErrorKind::BrokenPipe => self.silent(ENDED),
                _ => self.silent(&error.to_string()),
            })?;
            // Before the rest, so that a guardian that watches has the key of the present session.
            let sent = match slot.current() {
                Some(session) => self.tell_key(&session).await.then(|| session.id()),
                None => None,
            };
            self.say(&options).await;
            self.answer().await.map(|()| sent)
        };
        let begun = tokio::select! {
            biased;
            // The caller no longer waits.
            _ = &mut stopped => None,
            begun = begun => Some(begun),
        };
        let sent = match begun {
            Some(Ok(sent)) => sent,
            Some(Err(error)) => {
                // It may be a wrong program, which does not end by itself.
                let _ = self.child.kill();
                self.dismiss().await;
                let _ = answered.send(Err(error));
                return;
            }
            None => return self.dismiss().await,
        };
        let _ = answered.send(Ok(()));
        let dismissed = async {
            if stopped.await.is_ok() {
                pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            () = dismissed => {}
            () = self.tell(&slot, sent) => {}
            () = self.end() => tracing::warn!(
                program = &*self.program,
                "the guardian has ended: if this process dies, its locks are free when the session times out"
            ),
        }
        self.dismiss().await;
    }

    fn greet(&mut self, socket: std::os::unix::net::UnixStream, ourselves: &OwnedFd) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let descriptors = [ourselves.as_fd()];
        ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
        let greeting = Message::new(GREETING).to_line();
        sendmsg(&socket, &[IoSlice::new(&greeting)], &mut ancillary, platform::NO_SIGNAL)?;
        socket.set_nonblocking(true)?;
        self.socket = Some(UnixStream::from_std(socket)?);
        Ok(())
    }

    /// Waits until it answers that it watches.
    async fn answer(&mut self) -> Result<(), Error> {
        let mut received = Vec::new();
        let answered = async {
            while !received.contains(&b'\n') && received.len() <= LONGEST_ANSWER {
                match self.receive().await {
                    Some(bytes) => received.extend(bytes),
                    None => break,
                }
            }
        };
        if clock::timeout(TO_ANSWER, answered).await.is_err() {
            return Err(self.silent(&format!("it has not answered for {TO_ANSWER:?}")));
        }
        let said = String::from_utf8_lossy(&received).into_owned();
        match Message::take(&mut received) {
            Ok(Some(answer)) if answer.kind() == "watches" => Ok(()),
            Ok(Some(answer)) if answer.kind() == "fails" => {
                let why: String = answer.need("why")?;
                let message =
                    format!("the guardian {:?} cannot end the session if need be: {why}", self.program);
                Err(Error::new(ErrorKind::Refused, message))
            }
            _ if said.is_empty() => Err(self.silent(ENDED)),
            _ if said.len() > LONGEST_ANSWER => Err(self.silent("it says more than an answer")),
            _ => Err(self.silent(&format!("it says {:?}", said.trim_end()))),
        }
    }

    /// Waits until it has closed its end of the socket.
    async fn end(&self) {
        while self.receive().await.is_some() {}
    }

    /// Receives its next bytes; `None` if it has ended.
    async fn receive(&self) -> Option<Vec<u8>> {
        let socket = self.socket.as_ref()?;
        let mut bytes = vec![0; LONGEST_ANSWER];
        loop {
            socket.readable().await.ok()?;
            match socket.try_read(&mut bytes) {
                Ok(0) => return None,
                Ok(length) => {
                    bytes.truncate(length);
                    return Some(bytes);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return None,
            }
        }
    }

    /// Sends the key of each new session until the client is closed. The session `sent` was sent before.
    async fn tell(&self, slot: &Slot, sent: Option<i64>) {
        while let Ok(session) = slot.session().await {
            let mut link = session.link();
            if sent != Some(session.id()) {
                self.tell_key(&session).await;
            }
            drop(session);
            // If it fails, the session is gone too.
            let _ = link.wait_for(|link| matches!(link, Link::Over(_))).await;
        }
    }

    /// Sends the key of a session, and returns whether there is one.
    async fn tell_key(&self, session: &Session) -> bool {
        let key = session.key().await;
        if let Some(key) = &key {
            self.say(&Message::new("session").bytes("key", &key.to_bytes())).await;
        }
        key.is_some()
    }

    /// Sends a message. It ignores errors, because the end of the guardian shows elsewhere.
    async fn say(&self, message: &Message) {
        let Some(socket) = &self.socket else { return };
        let line = message.to_line();
        let mut rest = &line[..];
        while !rest.is_empty() {
            // Without a signal, for a host that does not ignore SIGPIPE.
            let sent =
                socket.async_io(Interest::WRITABLE, || Ok(send(socket, rest, platform::NO_SIGNAL)?)).await;
            match sent {
                Ok(sent) => rest = &rest[sent..],
                Err(_) => return,
            }
        }
    }

    async fn dismiss(mut self) {
        if let Some(socket) = &self.socket {
            // A guardian that reads nothing need not hear it.
            let _ = send(socket, &Message::new(FAREWELL).to_line(), platform::NO_SIGNAL);
        }
        // The end of the socket ends it, too.
        self.socket = None;
        let since = clock::now();
        while let Ok(None) = self.child.try_wait() {
            if clock::now().since(since) > TO_END {
                let _ = self.child.kill();
            }
            clock::sleep(BETWEEN_LOOKS).await;
        }
    }

    fn silent(&self, problem: &str) -> Error {
        failed(format_args!(
            "{problem}: {:?} is to be the command zklock, of this version, with the argument {WORD}",
            self.program
        ))
    }
}

fn failed(problem: fmt::Arguments<'_>) -> Error {
    Error::new(ErrorKind::InvalidInput, format!("the guardian cannot be started: {problem}"))
}

fn not_started(command: &Command, error: &io::Error) -> Error {
    const INSTALL: &str = "install the command zklock (cargo install --path zklock-cli), or give its path";
    let program = command.get_program();
    let is_path = program.as_encoded_bytes().contains(&b'/');
    let path = std::env::var_os("PATH").unwrap_or_default();
    match error.kind() {
        io::ErrorKind::NotFound if is_path => {
            failed(format_args!("there is no program {program:?}: {INSTALL}"))
        }
        io::ErrorKind::NotFound => {
            failed(format_args!("there is no {program:?} in the directories of PATH ({path:?}): {INSTALL}"))
        }
        io::ErrorKind::PermissionDenied => {
            failed(format_args!("this user may not execute {program:?}: {INSTALL}"))
        }
        _ => failed(format_args!("{program:?}: {error}")),
    }
}
