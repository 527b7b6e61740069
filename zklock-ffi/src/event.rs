//! Events of a client and of everything that it made, through one descriptor.

use crate::client::{Client, zklock_client};
use crate::events::{Event, zklock_event_kind};
use crate::export::export;
use crate::failure::Failure;
use crate::handle::{Object, SentHandle};
use crate::hold::zklock_hold;
use crate::observer::zklock_observer;
use crate::raw::out;
use crate::started::zklock_call;
use crate::status::zklock_status::{self, ZKLOCK_PENDING};
use std::ffi::{c_int, c_void};

/// Something that has happened. zklock_client_next_event fills all members. The struct never grows.
#[allow(non_camel_case_types, reason = "the name in C")]
#[repr(C)]
#[derive(Debug)]
pub struct zklock_event {
    /// The pointer that was given to zklock_call_set_context or zklock_hold_set_context; NULL if none
    /// was.
    pub context: *mut c_void,
    /// For ZKLOCK_EVENT_CALL, the call; otherwise NULL.
    pub call: *mut zklock_call,
    /// For ZKLOCK_EVENT_LOST and ZKLOCK_EVENT_WANTED, the hold. For ZKLOCK_EVENT_CALL, the hold that a
    /// call of zklock_release_start has released, unless it has been freed. Otherwise NULL.
    pub hold: *mut zklock_hold,
    /// For ZKLOCK_EVENT_LEADER, the observer; otherwise NULL.
    pub observer: *mut zklock_observer,
    /// What has happened.
    pub kind: zklock_event_kind,
    /// Always 0. A later version may give it a meaning.
    pub reserved: [u32; 7],
}

export! {
    /// Gets the descriptor of a client. It is readable while zklock_client_next_event has an event,
    /// so this one descriptor serves all calls, holds and observers of the client. Do not read from
    /// it, write to it or close it.
    ///
    /// The client queues events only after the first call of this function or of
    /// zklock_client_next_event. After that call, a client of zklock_client_new_lazy belongs to this
    /// process. Its first event about the connection comes once it has connected.
    ///
    /// @param client the client.
    /// @param[out] descriptor valid until the client is freed.
    /// @return ZKLOCK_OK; ZKLOCK_REFUSED if the system has no descriptor or thread left.
    pub fn zklock_client_fd(client: *mut zklock_client, descriptor: *mut c_int) -> zklock_status {
        let descriptor = out("descriptor", descriptor)?;
        let client = Client::table().find(client)?;
        let number = client.events().descriptor()?;
        client.events().want(client.inner())?;
        descriptor.set(number);
    }

    /// Gets the next event of a client and returns at once. Events are about the client itself or about
    /// anything that it made. Those about the connection come first, all others in the order in which
    /// they happened. Call it until it returns anything but ZKLOCK_OK. ZKLOCK_PENDING then means that
    /// there is nothing more for now; any other status is an error.
    ///
    ///     zklock_event event;
    ///     zklock_status status;
    ///
    ///     while ((status = zklock_client_next_event(client, &event)) == ZKLOCK_OK) {
    ///         if (event.kind == ZKLOCK_EVENT_CALL) go_on_with(event.context, event.call);
    ///         if (event.kind == ZKLOCK_EVENT_LOST) stop(event.context);
    ///     }
    ///     if (status != ZKLOCK_PENDING) return fail(zklock_last_error());
    ///
    /// After the first call of this function or of zklock_client_fd, the client has one event for
    ///
    /// - each call of the client and of its locks, holds, barriers and members that gets its result,
    ///   even if it was started earlier;
    /// - each hold that is lost, if it was acquired after that call;
    /// - each such hold that others wait for, if zklock_hold_is_wanted was called for it;
    /// - each new holder or leader that an observer sees: see zklock_observe;
    /// - each change of the connection, starting with its current state.
    ///
    /// Cancelling a call gives it a result, and so an event. A handle that is freed before its event was
    /// fetched has no event. Events about the connection that are not fetched are merged:
    /// several outages become one, several lost sessions become one, but none vanishes entirely. All
    /// other events are kept until they are fetched or their handle is freed.
    ///
    /// @param client the client.
    /// @param[out] event what has happened. You still own the handles in it.
    /// @return ZKLOCK_OK; ZKLOCK_PENDING if there is no event; ZKLOCK_REFUSED if the first call
    ///         cannot start a thread.
    pub fn zklock_client_next_event(client: *mut zklock_client, event: *mut zklock_event) -> zklock_status {
        let event = out("event", event)?;
        let client = Client::table().find(client)?;
        client.events().want(client.inner())?;
        let none = || Failure::new(ZKLOCK_PENDING, "");
        event.set(shown(&client.events().next().ok_or_else(none)?));
    }
}

/// Returns the event as a C struct.
fn shown(event: &Event) -> zklock_event {
    use zklock_event_kind::{ZKLOCK_EVENT_CALL, ZKLOCK_EVENT_LEADER, ZKLOCK_EVENT_LOST, ZKLOCK_EVENT_WANTED};
    let number =
        |handle: &Option<SentHandle<c_void>>| handle.as_ref().map_or(std::ptr::null_mut(), SentHandle::get);
    let (handle, none) = (number(&event.handle), std::ptr::null_mut());
    let (call, hold, observer) = match event.kind {
        ZKLOCK_EVENT_CALL => (handle, number(&event.released), none),
        ZKLOCK_EVENT_LOST | ZKLOCK_EVENT_WANTED => (none, handle, none),
        ZKLOCK_EVENT_LEADER => (none, none, handle),
        _ => (none, none, none),
    };
    zklock_event {
        context: event.context.0,
        call: call.cast(),
        hold: hold.cast(),
        observer: observer.cast(),
        kind: event.kind,
        reserved: [0; 7],
    }
}
