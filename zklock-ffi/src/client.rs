//! A logical connection to an ensemble.

use crate::convert::patience;
use crate::events::Events;
use crate::export::{export, noun};
use crate::failure::Failure;
use crate::handle::Object;
use crate::options::{Options, zklock_options};
use crate::raw::{optional_text, out};
use crate::started::{Answer, Started, starts};
use crate::status::zklock_status;
use std::ffi::{OsStr, c_char};
use std::sync::Arc;
use zklock::Call;
use zklock::face::guardian_command;
use zklock::further::Wait;

noun! {
    /// A logical connection to an ensemble. It outlives sessions: when one expires, it opens the next.
    pub struct zklock_client: Client, 2;

    /// Frees a client with its descriptor and its events, and returns at once. Its sessions are closed
    /// in the background, once its locks, calls and holds are freed as well. To close them now, call
    /// zklock_client_close first.
    ///
    /// @param client may be NULL. A handle that was already freed is ignored.
    pub fn zklock_client_free(client: *mut zklock_client);

    fn inherited(&self) -> Option<Self> {
        (!self.0.is_forked()).then(|| self.clone())
    }

    fn freed(&self) {
        self.1.end();
    }
}

#[derive(Clone)]
pub(crate) struct Client(zklock::Client, Arc<Events>);

impl Client {
    pub(crate) fn inner(&self) -> &zklock::Client {
        &self.0
    }

    /// Returns the events of the client and of everything that it made.
    pub(crate) fn events(&self) -> &Arc<Events> {
        &self.1
    }

    /// Makes a client that has not connected yet.
    fn of(hosts: *const c_char, options: *const zklock_options) -> Result<zklock::Client, Failure> {
        let hosts = optional_text("hosts", hosts)?;
        Ok(zklock::Client::lazy(Options::of_client(options, hosts)?))
    }

    fn keep(inner: zklock::Client) -> *mut zklock_client {
        Self::table().put(Self(inner, Events::new()))
    }

    fn connecting(&self, timeout: i64) -> Result<Call<zklock::Client>, Failure> {
        Ok(self.0.connect_within(patience(timeout)?))
    }
}

export! {
    /// Creates a client and opens its first session. It returns once the session is open, or after the
    /// connect timeout at the latest.
    ///
    /// @param hosts "host:port,host:port", optionally with a "/chroot" at the end. The default port is
    ///         2181. If it is NULL, the environment variable ZKLOCK_HOSTS names them.
    /// @param options NULL for the defaults. They are copied.
    /// @param[out] client the client. Free it with zklock_client_free.
    /// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the hosts cannot be parsed, or are NULL and the
    ///         variable is not set or empty; ZKLOCK_UNREACHABLE if no server answers in time, or no
    ///         host name can be resolved; ZKLOCK_REFUSED if the chroot does not exist, or the system
    ///         gives the library no threads or descriptors;
    ///         ZKLOCK_DEADLOCK in a callback.
    pub fn zklock_client_new(
        hosts: *const c_char,
        options: *const zklock_options,
        client: *mut *mut zklock_client,
    ) -> zklock_status {
        let client = out("client", client)?;
        client.set(Client::keep(Client::of(hosts, options)?.connect_within(Wait::Forever).wait()?));
    }

    /// Creates a client that connects on first use. Until then it does nothing. So a program may create
    /// it, with its locks and barriers, before it forks: each child that uses them connects on its own.
    ///
    /// The first call that needs a connection connects. It tries for no longer than it may wait, and
    /// for no longer than the connect timeout. So this call may also return ZKLOCK_UNREACHABLE or
    /// ZKLOCK_REFUSED for the reasons given at zklock_client_new. The next call tries again. A call
    /// with a timeout of 0 that has to connect first may take the connect timeout plus the try timeout.
    ///
    /// @param hosts as for zklock_client_new.
    /// @param options NULL for the defaults. They are copied.
    /// @param[out] client the client. Free it with zklock_client_free.
    /// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the hosts cannot be parsed.
    pub fn zklock_client_new_lazy(
        hosts: *const c_char,
        options: *const zklock_options,
        client: *mut *mut zklock_client,
    ) -> zklock_status {
        let client = out("client", client)?;
        client.set(Client::keep(Client::of(hosts, options)?));
    }

    /// Starts a guardian: a process that ends the session at the servers when this process is dead. The
    /// client's locks are then free at once. Without a guardian, which is the default, they are free when
    /// the session times out.
    ///
    ///     if (zklock_client_guard(client, NULL) != ZKLOCK_OK) return fail(zklock_last_error());
    ///
    /// The guardian is the command zklock with the argument "guardian", of the same version as this
    /// library. It is a child of this process, in a process group of its own. The client writes to its
    /// standard input: how to connect, with all passwords, and the key of each session. This call returns
    /// when the guardian watches. The guardian ends when the client is closed, or freed together with
    /// everything that was made from it. It writes to standard error only if it could not end the session
    /// of a dead process.
    ///
    /// The guardian waits until this process is dead. It does nothing to a process that is stopped, slow,
    /// cut off or replaced (exec). Child processes of this process may still run when the next holder has
    /// the lock. If the machine or the container dies, if the guardian is killed too, or if the servers
    /// cannot be reached, the session timeout applies. If the guardian ends early, the log has a warning,
    /// and you can make this call again.
    ///
    /// @param client the client. If it has not connected yet, it connects first. In a forked child,
    ///        guard a client that the child made.
    /// @param command the path of the command zklock, or its name in the directories of PATH. NULL for
    ///        "zklock".
    /// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the command cannot be found or executed, if it is
    ///         another program or of another version, if the client has a guardian already, and on
    ///         Linux before 5.3; ZKLOCK_REFUSED if the command was built without what it takes to
    ///         connect, or for a reason of zklock_client_new; ZKLOCK_UNREACHABLE; ZKLOCK_CLOSED;
    ///         ZKLOCK_DEADLOCK in a callback.
    pub fn zklock_client_guard(client: *mut zklock_client, command: *const c_char) -> zklock_status {
        let client = Client::table().find(client)?;
        let program = optional_text("command", command)?;
        client.0.guard(guardian_command(program.map(OsStr::new))).wait()?.keep();
    }

    /// Closes the sessions of a client, which frees every lock that it holds. It returns once the
    /// servers have confirmed this, or after a second at the latest.
    ///
    /// All holds of the client are lost, and all waits end with ZKLOCK_CLOSED. Closing twice is not an
    /// error. You must still free the client.
    ///
    /// @param client the client.
    /// @return ZKLOCK_OK; ZKLOCK_DEADLOCK in a callback; ZKLOCK_REFUSED if the process is exiting and
    ///         no thread can be started.
    pub fn zklock_client_close(client: *mut zklock_client) -> zklock_status {
        Client::table().find(client)?.0.close().wait()?;
    }
}

starts! {
    /// Starts to connect a client of zklock_client_new_lazy, and returns at once. If it is connected, this
    /// does nothing. To wait for the connection, see zklock_call_finish.
    ///
    /// @param client the client. You may free it before the call.
    /// @param timeout in milliseconds. It is never longer than the connect timeout, even with
    ///         ZKLOCK_FOREVER. The result is then ZKLOCK_UNREACHABLE, as if no host name can be
    ///         resolved; it is ZKLOCK_REFUSED for the reasons given at zklock_client_new.
    pub fn zklock_client_connect_start(client: *mut zklock_client, timeout: i64) {
        let client = Client::table().find(client)?;
        Started::keep(client.connecting(timeout)?, &client.1, |_| Answer::Nothing)
    }

    /// Starts to close a client as zklock_client_close does, and returns at once. When the call has its
    /// result, the holds of the client are lost.
    ///
    /// @param client the client. You may free it before the call.
    pub fn zklock_client_close_start(client: *mut zklock_client) {
        let client = Client::table().find(client)?;
        Started::keep(client.0.close(), &client.1, Answer::nothing)
    }
}
