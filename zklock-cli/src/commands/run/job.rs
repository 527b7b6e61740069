//! A job as `zklock run` sees it: its warden, which takes orders and reports.

use std::ffi::OsString;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as Socket;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, Shutdown, sendmsg, shutdown};
use rustix::process::{Pid, PidfdFlags, Signal, getpid, kill_process, pidfd_open, set_child_subreaper};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use zklock::face::Message;

use crate::commands::variables::Variables;
use crate::failure::Failure;
use crate::processes::descendants;
use crate::processes::warden;

#[derive(Debug)]
pub(super) struct Job {
    warden: Child,
    socket: UnixStream,
    /// What has come of the next report.
    received: Vec<u8>,
    group: Option<Pid>,
}

impl Job {
    /// Starts the warden, which starts the job, with these variables in its environment.
    pub(super) fn start(command: &[OsString], variables: &Variables, start: &Message) -> io::Result<Self> {
        // If the warden is killed, its children become ours.
        set_child_subreaper(Some(getpid()))?;
        let (ours, theirs) = Socket::pair()?;
        let mut warden = Command::new("/proc/self/exe");
        variables.set(&mut warden);
        let warden = warden
            .arg0("zklock-warden")
            .arg(warden::WORD)
            .args(command)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .process_group(0)
            .spawn()?;
        let sent = send_start(&ours, start);
        ours.set_nonblocking(true)?;
        let socket = UnixStream::from_std(ours)?;
        let job = Self { warden, socket, received: Vec::new(), group: None };
        sent.map(|()| job)
    }

    /// Returns the job's process group, once it has been started.
    pub(super) fn group(&self) -> Option<Pid> {
        self.group
    }

    /// Gives an order. If the warden is gone, the next report shows that.
    pub(super) async fn order(&mut self, order: &Message) {
        let _ = self.socket.write_all(&order.to_line()).await;
        self.wake_warden();
    }

    pub(super) async fn signal(&mut self, signal: nix::sys::signal::Signal) {
        self.order(&Message::new("signal").and("number", &(signal as i32))).await;
    }

    /// Continues the warden, in case somebody has stopped it. It is our child and not yet reaped, so nobody else has its
    /// number.
    pub(super) fn wake_warden(&self) {
        let _ = kill_process(Pid::from_child(&self.warden), Signal::CONT);
    }

    /// Returns the next report of the warden; `None` if the warden is gone. May be dropped and called again.
    pub(super) async fn report(&mut self) -> Result<Option<Message>, Failure> {
        loop {
            if let Some(report) = Message::take(&mut self.received)? {
                if report.kind() == "started" {
                    self.group = Pid::from_raw(report.need("group")?);
                }
                return Ok(Some(report));
            }
            match self.socket.read_buf(&mut self.received).await {
                Ok(1..) => {}
                _ => return Ok(None),
            }
        }
    }

    /// Kills what is left of the job of a warden that was killed. Blocks until it is gone.
    pub(super) fn kill_without_warden(mut self) {
        let _ = self.warden.kill();
        let _ = self.warden.wait();
        if let Some(group) = self.group {
            descendants::kill_all(group);
        }
    }
}

impl Drop for Job {
    /// Sees to it that nothing is left of the job when the lock is released, whatever the reason.
    fn drop(&mut self) {
        // If the message does not arrive, the warden waits for our end before it does anything about the session.
        let _ = self.socket.try_write(&Message::new("leave").to_line());
        let _ = shutdown(&self.socket, Shutdown::Both);
        // A warden that was reaped has no number any more.
        if matches!(self.warden.try_wait(), Ok(None)) {
            self.wake_warden();
        }
        let _ = self.warden.wait();
    }
}

/// Sends the first order, our input, output and errors for the job, and a descriptor that shows when we are dead.
fn send_start(socket: &Socket, start: &Message) -> io::Result<()> {
    let (input, output, errors) = (io::stdin(), io::stdout(), io::stderr());
    let mut descriptors = vec![input.as_fd(), output.as_fd(), errors.as_fd()];
    // By the time the warden asks for it, our number could be another's. Kernels before 5.3 have no such descriptor.
    let ourselves = pidfd_open(getpid(), PidfdFlags::empty()).ok();
    descriptors.extend(ourselves.as_ref().map(AsFd::as_fd));
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
    let start = start.to_line();
    let sent = sendmsg(socket, &[IoSlice::new(&start)], &mut ancillary, SendFlags::NOSIGNAL)?;
    if sent == start.len() { Ok(()) } else { Err(io::Error::other("the warden takes no orders")) }
}
