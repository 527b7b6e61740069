//! The keeper: the process that holds the lock for a shell, until it is asked to release it, or the shell is dead.

use std::convert::Infallible;
use std::env::set_current_dir;
use std::fs::File;
use std::future::pending;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream as Socket;
use std::time::Duration;

use rustix::process::{Signal, pidfd_send_signal};
use rustix::stdio::{dup2_stdin, dup2_stdout};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::pipe::Receiver;
use tokio::net::{UnixListener, UnixStream};
use tokio::time::{sleep, timeout};
use zklock::face::{Message, now};
use zklock::further::Wait;
use zklock::{Client, Error, ErrorKind, Hold, HoldState, Lock};

use crate::commands::choice::{Choice, lengthen};
use crate::connect::Connection;
use crate::failure::Failure;
use crate::processes::clock::since_boot;
use crate::processes::orders::Limits;
use crate::processes::questions::{self, is_of_this_user};
use crate::processes::signals::Signals;

/// How long a connection may stay without a question.
const TO_ASK: Duration = Duration::from_secs(10);
const LONGEST_QUESTION: u64 = 100;
const BETWEEN_TRIES: Duration = Duration::from_millis(100);

pub(super) struct Keeper<'a> {
    signals: &'a Signals,
    on_lost_signal: Option<Signal>,
    /// The pidfd of the shell, which is readable when the shell is dead, as a pipe is at its end.
    shell: Receiver,
    /// To `zklock acquire`, which waits.
    starter: UnixStream,
}

impl<'a> Keeper<'a> {
    /// Takes over its input, which is the socket, and its output, which is the pidfd of the shell.
    pub(super) fn new(signals: &'a Signals, on_lost_signal: Option<Signal>) -> io::Result<Self> {
        let starter = Socket::from(io::stdin().as_fd().try_clone_to_owned()?);
        let shell = Receiver::from_owned_fd_unchecked(io::stdout().as_fd().try_clone_to_owned()?)?;
        let nothing = File::options().read(true).write(true).open("/dev/null")?;
        dup2_stdin(&nothing)?;
        dup2_stdout(&nothing)?;
        starter.set_nonblocking(true)?;
        Ok(Self { signals, on_lost_signal, shell, starter: UnixStream::from_std(starter)? })
    }

    pub(super) async fn keep(mut self, choice: &Choice, connection: &Connection) -> io::Result<()> {
        let wait = choice.wait();
        let connected = tokio::select! {
            connected = choice.connect(connection, None) => connected,
            () = self.abandoned() => return Ok(()),
        };
        let (client, lock) = match connected {
            Ok(connected) => connected,
            Err(failure) => return self.fail(&failure).await,
        };
        // Files were read by now, whose paths may be relative. The keeper must not be in the way of a file system's removal.
        set_current_dir("/")?;
        let kept = self.keep_lock(&client, &lock, choice, wait).await;
        let _ = client.close().await;
        kept
    }

    async fn keep_lock(
        &mut self,
        client: &Client,
        lock: &Lock,
        choice: &Choice,
        wait: Wait,
    ) -> io::Result<()> {
        let limits = Limits::of(client, Duration::MAX);
        let begun = async {
            let hold = choice.acquire(client, lock, wait).await?;
            let variables = choice.variables(&hold).await?;
            lengthen(&hold, &limits).await?;
            let (listener, name) = questions::listen()?;
            let text = variables.and(questions::HOLD, Some(name)).assignments();
            Ok::<_, Failure>((hold, UnixListener::from_std(listener)?, text))
        };
        let begun = tokio::select! {
            begun = begun => begun,
            () = self.abandoned() => return Ok(()),
        };
        let (hold, listener, text) = match begun {
            Ok(begun) => begun,
            Err(failure) => return self.fail(&failure).await,
        };
        self.report(&Message::new("held").and("text", &text)).await?;
        // From now on, no signal releases it: those who stop a service, or a machine, send one to all processes, and the shell
        // may have work to end under the lock.
        let is_known = tokio::select! {
            is_known = self.hears() => is_known,
            _ = self.shell.readable() => false,
        };
        if !is_known {
            return Ok(());
        }
        tokio::select! {
            () = self.answer(&listener, &hold) => {}
            _ = self.shell.readable() => {}
            never = self.tell_of_loss(&hold, client, &limits) => match never {},
        }
        // If it fails, closing the client frees the lock too.
        let _ = hold.release().await;
        Ok(())
    }

    async fn fail(&mut self, failure: &Failure) -> io::Result<()> {
        let code = failure.exit() as u8;
        self.report(&Message::new("failed").and("code", &code).and("why", failure)).await
    }

    async fn report(&mut self, report: &Message) -> io::Result<()> {
        self.starter.write_all(&report.to_line()).await
    }

    /// Waits until nobody needs the lock that was asked for.
    async fn abandoned(&self) {
        tokio::select! {
            _ = self.hears() => {}
            _ = self.shell.readable() => {}
            _ = self.signals.end() => {}
        }
    }

    /// Waits for a word of `zklock acquire`, which says just one; returns `false` if it is gone.
    async fn hears(&self) -> bool {
        loop {
            if self.starter.readable().await.is_err() {
                return false;
            }
            match self.starter.try_read(&mut [0]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                heard => return heard.is_ok_and(|count| count > 0),
            }
        }
    }

    /// Answers questions until one of them is the last.
    async fn answer(&self, listener: &UnixListener, hold: &Hold) {
        loop {
            let Ok((mut socket, _)) = listener.accept().await else {
                // There are too many open files, for example.
                sleep(BETWEEN_TRIES).await;
                continue;
            };
            if !is_of_this_user(&socket) {
                continue;
            }
            let Ok(Some(question)) = timeout(TO_ASK, asked(&mut socket)).await else { continue };
            let is_last = question.kind() == "release";
            let error = if is_last { hold.release().await.err() } else { None };
            // The clock is read first, so that this is not later than the end of the lease.
            let now = now();
            let mut answer = Message::new("hold")
                .and("lock", hold.path())
                .and("node", hold.node())
                .and("token", &hold.token().value())
                .time("valid-until", since_boot(now + hold.valid_for()));
            answer = match (error.as_ref().map(Error::kind), hold.state()) {
                (Some(ErrorKind::Lost(reason)), _) | (_, HoldState::Lost(reason)) => {
                    answer.and("lost", &reason)
                }
                _ => error.into_iter().fold(answer, |answer, error| answer.and("unreleased", &error)),
            };
            let _ = socket.write_all(&answer.to_line()).await;
            if is_last {
                return;
            }
        }
    }

    /// Sends the signal of `--on-lost-signal` once: before the lease ends, as a command gets TERM, or when the lock was
    /// taken away.
    async fn tell_of_loss(&self, hold: &Hold, client: &Client, limits: &Limits) -> Infallible {
        let is_short = async {
            loop {
                let left = hold.valid_for().saturating_sub(limits.least_lease());
                if left.is_zero() {
                    return;
                }
                sleep(left).await;
            }
        };
        tokio::select! {
            _ = hold.lost() => {}
            () = is_short => {}
        }
        // A lock that is being released has no lease either.
        if let (Some(signal), HoldState::Held | HoldState::AtRisk | HoldState::Lost(_)) =
            (self.on_lost_signal, hold.state())
        {
            let _ = pidfd_send_signal(&self.shell, signal);
        }
        if let Ok(Some(_)) = hold.lost().await {
            // All that is left to do is to say so.
            let _ = client.close().await;
        }
        pending().await
    }
}

async fn asked(socket: &mut UnixStream) -> Option<Message> {
    let mut received = Vec::new();
    BufReader::new(socket.take(LONGEST_QUESTION)).read_until(b'\n', &mut received).await.ok()?;
    Message::take(&mut received).ok().flatten().filter(|asked| ["held", "release"].contains(&asked.kind()))
}
