//! What has happened to anything that a client made, through one descriptor.

use crate::async_call::zklock_call;
use crate::call;
use crate::client::{Client, zklock_client};
use crate::events::{Event, zklock_event_kind};
use crate::failure::Failure;
use crate::handle::{Object, SentHandle};
use crate::hold::zklock_hold;
use crate::raw::out;
use crate::status::zklock_status::{self, ZKLOCK_PENDING};
use crate::ticket::zklock_ticket;
use std::ffi::{c_int, c_void};

/// Something that has happened: see zklock_client_next_event, which fills all of it. It never
/// grows.
#[allow(non_camel_case_types, reason = "the name in C")]
#[repr(C)]
#[derive(Debug)]
pub struct zklock_event {
    /// What was given to zklock_ticket_set_context, zklock_call_set_context or
    /// zklock_hold_set_context; NULL if nothing was.
    pub context: *mut c_void,
    /// The ticket of ZKLOCK_EVENT_TICKET, otherwise NULL.
    pub ticket: *mut zklock_ticket,
    /// The call of ZKLOCK_EVENT_RELEASED and ZKLOCK_EVENT_CALL, otherwise NULL.
    pub call: *mut zklock_call,
    /// The hold of ZKLOCK_EVENT_LOST and ZKLOCK_EVENT_WANTED, and that of ZKLOCK_EVENT_RELEASED
    /// unless it is freed; otherwise NULL.
    pub hold: *mut zklock_hold,
    /// What has happened.
    pub kind: zklock_event_kind,
    /// 0. A later version may give it a meaning.
    pub reserved: [u32; 7],
}

/// The descriptor of a client: readable as long as zklock_client_next_event has an event. So one
/// descriptor serves all tickets, calls and holds of a client, however many they are. Do not read
/// from it, write to it or close it.
///
/// From the first call of this or of zklock_client_next_event on the events of the client are
/// queued, and none before. A client of zklock_client_new_lazy belongs to this process from then
/// on, and its first event of the connection comes when it has connected.
///
/// @param client the client.
/// @param[out] descriptor valid until the client is freed.
/// @return ZKLOCK_OK; ZKLOCK_REFUSED if the system gives none, or no thread.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_client_fd(
    client: *mut zklock_client,
    descriptor: *mut c_int,
) -> zklock_status {
    call::status("zklock_client_fd", || {
        let descriptor = out("descriptor", descriptor)?;
        let client = Client::table().find(client)?;
        let number = client.events().descriptor()?;
        client.events().want(client.inner())?;
        descriptor.set(number);
        Ok(())
    })
}

/// The next event of a client: something has happened to the client, or to what it made. It does
/// not wait. Events of the connection come first, all others in the order in which they happened.
///
///     zklock_event event;
///
///     while (zklock_client_next_event(client, &event) == ZKLOCK_OK) {
///         if (event.kind == ZKLOCK_EVENT_TICKET) go_on_with(event.context, event.ticket);
///         if (event.kind == ZKLOCK_EVENT_LOST) stop(event.context);
///         if (event.kind == ZKLOCK_EVENT_RELEASED) zklock_call_free(event.call);
///     }
///
/// From the first call of this or of zklock_client_fd on, there is one event of each ticket that
/// comes to have its result, even if it was begun before; of each call of the client and of its
/// locks, holds, barriers and members that does so; of each loss of a hold that was acquired from
/// then on, and that others wait for it if zklock_hold_is_wanted or zklock_hold_wanted_fd was
/// called for it; and of each change of the connection, beginning with how it is then. A ticket or
/// a call that is cancelled has its result by that. What is freed before its event was given has
/// none. Events of the connection that nobody asks for are told as fewer: several outages as one,
/// several lost sessions as one, but never none. All others are kept until they are asked for, or
/// their handle is freed.
///
/// A call of zklock_client_new_start belongs to no client, and an observer has its descriptor
/// alone: there are no events of them.
///
/// @param client the client.
/// @param[out] event what has happened. Its handles stay yours.
/// @return ZKLOCK_OK; ZKLOCK_PENDING if there is no event; ZKLOCK_REFUSED if the first call is
///         given no thread by the system.
#[must_use]
#[unsafe(no_mangle)]
pub extern "C-unwind" fn zklock_client_next_event(
    client: *mut zklock_client,
    event: *mut zklock_event,
) -> zklock_status {
    call::status("zklock_client_next_event", || {
        let event = out("event", event)?;
        let client = Client::table().find(client)?;
        client.events().want(client.inner())?;
        let none = || Failure::new(ZKLOCK_PENDING, "there is no event: wait for the client's descriptor");
        event.set(shown(&client.events().next().ok_or_else(none)?));
        Ok(())
    })
}

/// As C has it.
fn shown(event: &Event) -> zklock_event {
    use zklock_event_kind::{
        ZKLOCK_EVENT_CALL, ZKLOCK_EVENT_LOST, ZKLOCK_EVENT_RELEASED, ZKLOCK_EVENT_TICKET, ZKLOCK_EVENT_WANTED,
    };
    let number =
        |handle: &Option<SentHandle<c_void>>| handle.as_ref().map_or(std::ptr::null_mut(), SentHandle::get);
    let of = |kinds: &[zklock_event_kind]| {
        if kinds.contains(&event.kind) { number(&event.handle) } else { std::ptr::null_mut() }
    };
    let is_release = event.kind == ZKLOCK_EVENT_RELEASED;
    zklock_event {
        context: event.context.0,
        ticket: of(&[ZKLOCK_EVENT_TICKET]).cast(),
        call: of(&[ZKLOCK_EVENT_CALL, ZKLOCK_EVENT_RELEASED]).cast(),
        hold: if is_release {
            number(&event.released)
        } else {
            of(&[ZKLOCK_EVENT_LOST, ZKLOCK_EVENT_WANTED])
        }
        .cast(),
        kind: event.kind,
        reserved: [0; 7],
    }
}
