//! A logical connection to an ensemble.

use crate::async_call::{Answer, AsyncCall, zklock_call};
use crate::c_enum::c_enum;
use crate::call;
use crate::convert::{patience, unsigned, whole};
use crate::events::Events;
use crate::failure::Failure;
use crate::handle::{Object, handle};
use crate::loss::zklock_reason;
use crate::options::{Options, zklock_options};
use crate::raw::{mark_process, optional_text, out, outs, text};
use crate::status::zklock_status;
use std::ffi::{OsStr, c_char, c_void};
use std::sync::Arc;
use zklock_core::face::guardian_command;
use zklock_core::{AcquireOutcome, LossReason, Stats, blocking};

/// A logical connection to an ensemble. It outlives sessions: when one expires, it opens the next.
#[allow(non_camel_case_types, reason = "the name in C")]
#[derive(Debug)]
pub struct zklock_client {
    _opaque: [u8; 0],
}

c_enum! {
    /// The figures that zklock_client_stat can give.
    pub enum zklock_stat {
        /// Sessions opened so far.
        ZKLOCK_STAT_SESSIONS = 1,
        /// Locks granted so far.
        ZKLOCK_STAT_GRANTS = 2,
        /// Holds lost so far.
        ZKLOCK_STAT_LOSSES = 3,
        /// Attempts whose caller already has an answer, but whose node may still exist. It is being
        /// deleted.
        ZKLOCK_STAT_OWED = 4,
        /// The number of the session, as the servers print it in their logs; 0 if there is no
        /// session.
        ZKLOCK_STAT_SESSION_ID = 5,
        /// The session timeout that the servers granted, in milliseconds; 0 if there is no session.
        ZKLOCK_STAT_SESSION_TIMEOUT = 6,
        /// How often a session got a new connection because the previous one broke.
        ZKLOCK_STAT_RECONNECTS = 7,
        /// Calls to acquire a lock that were given a hold.
        ZKLOCK_STAT_ACQUIRES_GRANTED = 8,
        /// Calls to acquire a lock that were not to wait, and found the lock busy.
        ZKLOCK_STAT_ACQUIRES_BUSY = 9,
        /// Calls to acquire a lock that waited until their timeout because others had the lock.
        ZKLOCK_STAT_ACQUIRES_TIMED_OUT = 10,
        /// Calls to acquire a lock that failed with any other error.
        ZKLOCK_STAT_ACQUIRES_FAILED = 11,
        /// Calls to acquire a lock that were cancelled, or whose ticket was freed.
        ZKLOCK_STAT_ACQUIRES_CANCELLED = 12,
        /// Holds lost for ZKLOCK_REASON_SESSION_EXPIRED. Each zklock_reason has such a figure: its
        /// number is that of the reason plus 100.
        ZKLOCK_STAT_LOSSES_SESSION_EXPIRED = 101,
        /// Holds lost for ZKLOCK_REASON_NODE_DELETED.
        ZKLOCK_STAT_LOSSES_NODE_DELETED = 102,
        /// Holds lost for ZKLOCK_REASON_LEASE_LAPSED.
        ZKLOCK_STAT_LOSSES_LEASE_LAPSED = 103,
        /// Holds lost for ZKLOCK_REASON_CLIENT_CLOSED.
        ZKLOCK_STAT_LOSSES_CLIENT_CLOSED = 104,
        /// Holds lost for ZKLOCK_REASON_OTHER.
        ZKLOCK_STAT_LOSSES_OTHER = 105,
        /// Holds lost for ZKLOCK_REASON_FOREIGN_CONTENDER.
        ZKLOCK_STAT_LOSSES_FOREIGN_CONTENDER = 106,
        /// Holds lost for ZKLOCK_REASON_SESSION_CLOSED.
        ZKLOCK_STAT_LOSSES_SESSION_CLOSED = 107,
    }
}

/// The number of a figure in zklock_stat that counts losses is that of the reason plus this.
const LOSSES: i32 = 100;

pub(crate) struct Client(blocking::Client, Arc<Events>);

impl Client {
    pub(crate) fn inner(&self) -> &blocking::Client {
        &self.0
    }

    /// Returns the events of the client and of everything that it made.
    pub(crate) fn events(&self) -> &Arc<Events> {
        &self.1
    }
}

handle!(
    Client: zklock_client,
    2,
    fn inherited(&self) -> Option<Self> {
        (!self.0.is_forked()).then(|| Self(self.0.clone(), self.1.clone()))
    }
);

/// Creates a client and opens its first session. It returns once the session is open, or after the
/// connect timeout at the latest.
///
/// @param hosts "host:port,host:port", optionally with a "/chroot" at the end. The default port is
///         2181.
/// @param options NULL for the defaults. They are copied.
/// @param[out] client the client. Free it with zklock_client_free.
/// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the hosts cannot be parsed; ZKLOCK_UNREACHABLE if
///         no server answers in time, or no host name can be resolved; ZKLOCK_REFUSED if the chroot
///         does not exist, or the system gives the library no threads or descriptors;
///         ZKLOCK_DEADLOCK in a callback.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_client_new(
    hosts: *const c_char,
    options: *const zklock_options,
    client: *mut *mut zklock_client,
) -> zklock_status {
    call::status("zklock_client_new", || {
        let client = out("client", client)?;
        let hosts = text("hosts", hosts)?;
        mark_process();
        let connected = blocking::Client::connect(Options::of(options, hosts)?)?;
        client.set(Client::table().put(Client(connected, Events::new())));
        Ok(())
    })
}

/// Starts to create a client as zklock_client_new does, and returns at once. When the call has its
/// result, take the client from it with zklock_call_client.
///
/// @param hosts as for zklock_client_new.
/// @param options NULL for the defaults. They are copied.
/// @param[out] call the call. Free it with zklock_call_free.
/// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the hosts cannot be parsed. All other statuses
///         come with the result.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_client_new_start(
    hosts: *const c_char,
    options: *const zklock_options,
    call: *mut *mut zklock_call,
) -> zklock_status {
    call::status("zklock_client_new_start", || {
        let call = out("call", call)?;
        let hosts = text("hosts", hosts)?;
        mark_process();
        let client = blocking::Client::lazy(Options::of(options, hosts)?);
        // The call does not belong to a client yet.
        call.set(AsyncCall::start(
            &AsyncCall::notice(None),
            |ready| client.start_connecting(None, ready),
            Answer::Client,
        )?);
        Ok(())
    })
}

/// Creates a client that connects on first use. Until then it does nothing, so a program may create
/// it, and locks and barriers of it, before it forks: each child that uses them connects on its
/// own.
///
/// The first call that needs a connection makes it. That takes no longer than this call may wait,
/// and no longer than the connect timeout. So such a call may also return ZKLOCK_UNREACHABLE or
/// ZKLOCK_REFUSED for the reasons given at zklock_client_new. The next call tries again. A call
/// with a timeout of 0 that has to connect first may take the connect timeout plus the try timeout.
///
/// @param hosts as for zklock_client_new.
/// @param options NULL for the defaults. They are copied.
/// @param[out] client the client. Free it with zklock_client_free.
/// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the hosts cannot be parsed.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_client_new_lazy(
    hosts: *const c_char,
    options: *const zklock_options,
    client: *mut *mut zklock_client,
) -> zklock_status {
    call::status("zklock_client_new_lazy", || {
        let client = out("client", client)?;
        let hosts = text("hosts", hosts)?;
        mark_process();
        let lazy = blocking::Client::lazy(Options::of(options, hosts)?);
        client.set(Client::table().put(Client(lazy, Events::new())));
        Ok(())
    })
}

/// Connects a client of zklock_client_new_lazy now, and returns once it is connected. If it already
/// is, this does nothing.
///
/// @param client the client.
/// @param timeout in milliseconds. The wait is never longer than the connect timeout, even with
///         ZKLOCK_FOREVER.
/// @return ZKLOCK_OK; ZKLOCK_UNREACHABLE if no server answers in time, or no host name can be
///         resolved; ZKLOCK_REFUSED if the chroot does not exist, or the system gives the library
///         no threads or descriptors; ZKLOCK_CLOSED; ZKLOCK_DEADLOCK in a callback.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_client_connect(client: *mut zklock_client, timeout: i64) -> zklock_status {
    call::status("zklock_client_connect", || {
        Ok(Client::table().find(client)?.0.connect_within(patience(timeout)?)?)
    })
}

/// Starts to connect a client as zklock_client_connect does, and returns at once.
///
/// @param client the client. You may free it before the call.
/// @param timeout in milliseconds, as for zklock_client_connect.
/// @param[out] call the call. Free it with zklock_call_free.
/// @return ZKLOCK_OK. Other statuses come with the result.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_client_connect_start(
    client: *mut zklock_client,
    timeout: i64,
    call: *mut *mut zklock_call,
) -> zklock_status {
    call::status("zklock_client_connect_start", || {
        let call = out("call", call)?;
        let client = Client::table().find(client)?;
        let wait = patience(timeout)?;
        let begin = |ready| client.0.start_connecting(wait, ready);
        call.set(AsyncCall::start(&AsyncCall::notice(Some(&client.1)), begin, |_| Answer::Nothing)?);
        Ok(())
    })
}

/// Takes the connected client from a call of zklock_client_new_start. It returns at once.
///
/// @param call the call. You must still free it.
/// @param[out] client the client, which you now own. Free it with zklock_client_free.
/// @return ZKLOCK_OK; ZKLOCK_NOT_HELD if the client was already taken from the call;
///         ZKLOCK_INVALID_ARGUMENT if the call is of another function; and everything that
///         zklock_call_finish returns.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_call_client(
    call: *mut zklock_call,
    client: *mut *mut zklock_client,
) -> zklock_status {
    call::status("zklock_call_client", || {
        let client = out("client", client)?;
        let connected = AsyncCall::answer(call, |answer| match std::mem::replace(answer, Answer::Taken) {
            Answer::Client(connected) => Ok(connected),
            other => {
                *answer = other;
                Err(answer.unsuited("a client"))
            }
        })?;
        client.set(Client::table().put(Client(connected, Events::new())));
        Ok(())
    })
}

/// Starts a guardian: a process that ends the session at the servers when this process is dead. Then
/// the client's locks are free at once, and not when the session times out. By default there is none.
///
///     if (zklock_client_guard(client, NULL) != ZKLOCK_OK) return fail(zklock_last_error());
///
/// It is the command zklock, of the same version as this library, with the argument "guardian".
/// Through its standard input it is told how to connect, with all passwords, and the keys of the
/// client's sessions. The call returns when it watches. It is a child of this process, with a process
/// group of its own, and ends when the client is closed, or freed with all that was made of it. It
/// writes nothing, but to standard error if it could not end the session of a dead process.
///
/// It does nothing to a process that is stopped, slow, cut off or replaced (exec). What this process
/// has started may live on beside the next holder. The session timeout still applies if the machine or
/// the container dies, if the guardian is killed as well, or if the servers cannot be reached. If it
/// ends before, the log has a warning, and the call can be made again.
///
/// @param client the client. One that has not connected connects first. A forked child guards a
///        client of its own.
/// @param command the path of the command zklock, or its name in the directories of PATH. NULL for
///        "zklock".
/// @return ZKLOCK_OK; ZKLOCK_INVALID_ARGUMENT if the command cannot be found or executed, if it is
///         another program or of another version, if the client has a guardian already, and on
///         Linux before 5.3; ZKLOCK_REFUSED if the command was built without what it takes to
///         connect, or for a reason of zklock_client_new; ZKLOCK_UNREACHABLE; ZKLOCK_CLOSED;
///         ZKLOCK_DEADLOCK in a callback.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_client_guard(
    client: *mut zklock_client,
    command: *const c_char,
) -> zklock_status {
    call::status("zklock_client_guard", || {
        let client = Client::table().find(client)?;
        let program = optional_text("command", command)?;
        Ok(client.0.guard(guardian_command(program.map(OsStr::new)))?)
    })
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
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_client_close(client: *mut zklock_client) -> zklock_status {
    call::status("zklock_client_close", || Ok(Client::table().find(client)?.0.close()?))
}

/// Starts to close a client as zklock_client_close does, and returns at once. When the call has its
/// result, the holds of the client are lost.
///
/// @param client the client. You may free it before the call.
/// @param[out] call the call. Free it with zklock_call_free.
/// @return ZKLOCK_OK. Other statuses come with the result.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_client_close_start(
    client: *mut zklock_client,
    call: *mut *mut zklock_call,
) -> zklock_status {
    call::status("zklock_client_close_start", || {
        let call = out("call", call)?;
        let client = Client::table().find(client)?;
        let notice = AsyncCall::notice(Some(&client.1));
        call.set(AsyncCall::start(&notice, |ready| client.0.start_close(ready), Answer::nothing)?);
        Ok(())
    })
}

/// Frees a client with its descriptor and its events, and returns at once. Its sessions are closed
/// in the background, once its locks, tickets and holds are freed as well. To close them now, call
/// zklock_client_close first.
///
/// @param client may be NULL. A handle that was already freed is ignored.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_client_free(client: *mut zklock_client) {
    call::free("zklock_client_free", || {
        if let Some(client) = Client::table().take(client) {
            client.1.end();
        }
    });
}

/// Gets one figure about what a client has done so far, or what it still has to clean up. It sends
/// no request.
///
/// @param client the client.
/// @param stat one of zklock_stat.
/// @param[out] value the number.
/// @return ZKLOCK_OK.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_client_stat(
    client: *const zklock_client,
    stat: i32,
    value: *mut u64,
) -> zklock_status {
    use zklock_stat::{
        ZKLOCK_STAT_ACQUIRES_BUSY, ZKLOCK_STAT_ACQUIRES_CANCELLED, ZKLOCK_STAT_ACQUIRES_FAILED,
        ZKLOCK_STAT_ACQUIRES_GRANTED, ZKLOCK_STAT_ACQUIRES_TIMED_OUT, ZKLOCK_STAT_GRANTS, ZKLOCK_STAT_LOSSES,
        ZKLOCK_STAT_OWED, ZKLOCK_STAT_RECONNECTS, ZKLOCK_STAT_SESSION_ID, ZKLOCK_STAT_SESSION_TIMEOUT,
        ZKLOCK_STAT_SESSIONS,
    };
    call::status("zklock_client_stat", || {
        let unknown = || Failure::argument(format!("there is no stat with the number {stat}"));
        let value = out("value", value)?;
        let client = Client::table().find(client)?;
        let stats = client.0.stats();
        let number = match zklock_stat::find(stat).ok_or_else(unknown)? {
            ZKLOCK_STAT_SESSIONS => stats.sessions,
            ZKLOCK_STAT_GRANTS => stats.grants,
            ZKLOCK_STAT_LOSSES => stats.losses,
            ZKLOCK_STAT_OWED => stats.owed,
            ZKLOCK_STAT_SESSION_ID => client.0.session_id().map_or(0, unsigned),
            ZKLOCK_STAT_SESSION_TIMEOUT => {
                client.0.session_timeout().map_or(0, |time| whole(time).unsigned_abs())
            }
            ZKLOCK_STAT_RECONNECTS => stats.reconnects,
            ZKLOCK_STAT_ACQUIRES_GRANTED => stats.acquires(AcquireOutcome::Granted),
            ZKLOCK_STAT_ACQUIRES_BUSY => stats.acquires(AcquireOutcome::Busy),
            ZKLOCK_STAT_ACQUIRES_TIMED_OUT => stats.acquires(AcquireOutcome::TimedOut),
            ZKLOCK_STAT_ACQUIRES_FAILED => stats.acquires(AcquireOutcome::Failed),
            ZKLOCK_STAT_ACQUIRES_CANCELLED => stats.acquires(AcquireOutcome::Cancelled),
            losses => losses_of(&stats, losses),
        };
        value.set(number);
        Ok(())
    })
}

/// Returns how many holds were lost for the reason that this figure counts.
fn losses_of(stats: &Stats, stat: zklock_stat) -> u64 {
    let is_meant = |reason: &&LossReason| zklock_reason::of(**reason) as i32 + LOSSES == stat as i32;
    LossReason::ALL.iter().filter(is_meant).map(|reason| stats.losses_by(*reason)).sum()
}

/// Gets all figures of zklock_client_stat as text for Prometheus, along with how long acquires
/// waited, how long holds were held and how long heartbeats took. The text has Prometheus' format
/// 0.0.4: serve it as "text/plain; version=0.0.4". It sends no request.
///
///     static char page[16384];
///     size_t length;
///
///     if (zklock_client_prometheus(client, page, sizeof page, &length) != ZKLOCK_OK) return fail(zklock_last_error());
///     if (length <= sizeof page) fwrite(page, 1, length, out);
///
/// Names of metrics and labels do not change from version to version, but later versions may add
/// some. Each text is about one client. Do not join the texts of two clients: every name would then
/// occur twice, which Prometheus refuses.
///
/// @param client the client. If it has not connected yet, all counts are 0.
/// @param buffer receives the text, without a NUL at its end. Text that does not fit is cut off. It
///         may be NULL if size is 0.
/// @param size the size of the buffer in bytes.
/// @param[out] length the length of the whole text in bytes, even if it does not fit. The text may
///         be longer the next time.
/// @return ZKLOCK_OK.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_client_prometheus(
    client: *const zklock_client,
    buffer: *mut c_void,
    size: usize,
    length: *mut usize,
) -> zklock_status {
    call::status("zklock_client_prometheus", || {
        let length = out("length", length)?;
        let room = outs("buffer", buffer.cast::<u8>(), size)?;
        let page = Client::table().find(client)?.0.stats().to_prometheus();
        room.set(page.as_bytes());
        length.set(page.len());
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_stat() {
        for reason in LossReason::ALL {
            let stat = zklock_stat::find(zklock_reason::of(*reason) as i32 + LOSSES);
            assert!(stat.is_some(), "{reason:?}");
            assert_eq!(losses_of(&Stats::default(), stat.unwrap()), 0);
        }
    }
}
