//! Tickets: waits in the background, for event loops.

use crate::call;
use crate::convert::patience;
use crate::events::{Events, Notice, zklock_event_kind};
use crate::failure::Failure;
use crate::handle::{Object, handle};
use crate::hold::{Held, zklock_hold};
use crate::lock::{Lock, zklock_lock};
use crate::raw::{Context, out};
use crate::status::zklock_status::{self, ZKLOCK_PENDING};
use std::ffi::{c_int, c_void};
use std::sync::Arc;
use zklock_core::{Owner, blocking};

/// A wait for a lock that goes on in the background, for event loops.
#[allow(non_camel_case_types, reason = "the name in C")]
#[derive(Debug)]
pub struct zklock_ticket {
    _opaque: [u8; 0],
}

pub(crate) struct Ticket {
    inner: blocking::Started<blocking::Hold>,
    events: Arc<Events>,
    notice: Arc<Notice>,
}

handle!(Ticket: zklock_ticket, 4);

/// Starts to wait for a lock, and returns at once. When zklock_acquire_finish has a result, the
/// ticket's descriptor becomes readable (zklock_ticket_fd), and the client has an event
/// (zklock_client_next_event).
///
/// Such a wait does not belong to a thread: a thread that holds the lock may start another wait for
/// it, and any thread may release the hold, even if the lock is reentrant. The lock is held from
/// the moment that it is granted, not from the moment that you fetch the hold.
///
/// @param lock the lock.
/// @param timeout in milliseconds, as for zklock_acquire.
/// @param[out] ticket the ticket. Free it with zklock_ticket_free.
/// @return ZKLOCK_OK. Other statuses come with the result.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_acquire_start(
    lock: *mut zklock_lock,
    timeout: i64,
    ticket: *mut *mut zklock_ticket,
) -> zklock_status {
    call::status("zklock_acquire_start", || {
        let ticket = out("ticket", ticket)?;
        let lock = Lock::table().find(lock)?;
        let events = lock.events().clone();
        let kind = zklock_event_kind::ZKLOCK_EVENT_TICKET;
        let notice = Notice::new(kind, Some(events.clone()), Context::NONE);
        let inner = lock.inner().acquire_call(Owner::ticket(), patience(timeout)?).detach(notice.teller())?;
        let handle = Ticket::table().put(Ticket { inner, events, notice: notice.clone() });
        notice.known(handle);
        ticket.set(handle);
        Ok(())
    })
}

/// Gets the descriptor of a ticket. It becomes readable when there is a result, and stays readable.
/// Do not read from it, write to it or close it. It is created the first time that you ask for it.
/// A program with thousands of tickets should use the one descriptor of their client instead:
/// zklock_client_fd.
///
/// @param ticket the ticket.
/// @param[out] descriptor valid until the ticket is freed.
/// @return ZKLOCK_OK; ZKLOCK_REFUSED if the system has no descriptor left.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_ticket_fd(
    ticket: *const zklock_ticket,
    descriptor: *mut c_int,
) -> zklock_status {
    call::status("zklock_ticket_fd", || {
        out("descriptor", descriptor)?.set(Ticket::table().find(ticket)?.notice.descriptor()?);
        Ok(())
    })
}

/// Sets the pointer that the event of a ticket gives back to you. The library never follows it. It
/// is NULL until you set it. The hold that you fetch from the ticket starts with the same pointer.
///
/// The event may come as soon as the ticket is started. So start tickets and fetch events on the
/// same thread, or lock a mutex of yours from zklock_acquire_start until the context is set, and
/// also while you handle an event.
///
/// @param ticket the ticket.
/// @param context any pointer, or NULL.
/// @return ZKLOCK_OK.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_ticket_set_context(
    ticket: *mut zklock_ticket,
    context: *mut c_void,
) -> zklock_status {
    call::status("zklock_ticket_set_context", || {
        Ticket::table().find(ticket)?.notice.set_context(Context(context));
        Ok(())
    })
}

/// Fetches the result of zklock_acquire_start, and returns at once. The result can be fetched once.
///
/// @param ticket the ticket. You must still free it.
/// @param[out] hold as for zklock_acquire.
/// @return ZKLOCK_OK; ZKLOCK_PENDING as long as the wait goes on; ZKLOCK_INTERRUPTED after
///         zklock_acquire_cancel; ZKLOCK_NOT_HELD if the result was already fetched; ZKLOCK_LOST if
///         the lock was granted, but lost before this call; and everything that zklock_acquire
///         returns.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_acquire_finish(
    ticket: *mut zklock_ticket,
    hold: *mut *mut zklock_hold,
) -> zklock_status {
    call::status("zklock_acquire_finish", || {
        let hold = out("hold", hold)?;
        let pending =
            || Failure::new(ZKLOCK_PENDING, "the wait goes on: wait for the ticket's descriptor or event");
        let ticket = Ticket::table().find(ticket)?;
        let result = ticket.inner.fetch().ok_or_else(pending)?;
        hold.set(Held::keep(result?, &ticket.events, ticket.notice.context()));
        Ok(())
    })
}

/// Cancels a wait, and returns at once. The ticket's descriptor becomes readable, its event comes,
/// and zklock_acquire_finish gives ZKLOCK_INTERRUPTED, or the result if there already is one.
/// Nothing is left behind in the queue: the node is deleted in the background. Before the process
/// ends, close the client, which waits for that.
///
/// @param ticket the ticket. You must still free it.
/// @return ZKLOCK_OK.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_acquire_cancel(ticket: *mut zklock_ticket) -> zklock_status {
    call::status("zklock_acquire_cancel", || {
        let ticket = Ticket::table().find(ticket)?;
        ticket.inner.cancel();
        ticket.notice.happen();
        Ok(())
    })
}

/// Frees a ticket and its descriptor. Remove the descriptor from your event loop first. A wait that
/// is still going on is cancelled. A lock that was granted but not fetched is released in the
/// background. A freed ticket has no more events.
///
/// @param ticket may be NULL. A handle that was already freed is ignored.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_ticket_free(ticket: *mut zklock_ticket) {
    call::free("zklock_ticket_free", || {
        if let Some(ticket) = Ticket::table().take(ticket) {
            ticket.notice.end();
        }
    });
}
